//! Words, fast: text under the default normalisation in, word hashes out.
//!
//! [`crate::tokens`] says what a word is and serves every option; this module gives the same hashes at memory speed for
//! the normalisation nearly everyone uses (NFKC and lower case). Text that is ASCII for 64 bytes at a stretch is
//! classified 64 bytes at a time into a bit mask whose transitions are the word boundaries; all else goes character by
//! character through one table look-up. Both paths write the folded text into a scratch buffer and the boundaries of
//! its words into a list, and from there on the words are hashed alike.
//!
//! The scratch buffer is emptied every few kilobytes so that it never leaves the first-level cache.

use unicode_normalization::UnicodeNormalization as _;

use crate::hash::{BLOCK, BytesHasher};
use crate::unicode::{Class, Folded, FoldedEntry, Properties, lowercase};

/// Bytes classified at once: one bit each in a machine word.
const LANE: usize = 64;
/// Scratch text before its words are hashed. With its boundaries it fills about half of a 32 KB first-level cache.
const FLUSH_AT: usize = 8192;
/// The longest UTF-8 text one segment step may write unchecked: a lane, or one character's replacement (18 characters
/// at most in Unicode 17), with ample room.
const STEP_ROOM: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Word,
    Alone,
}

/// The reusable buffers of one worker.
pub struct WordScratch {
    /// Folded text; valid up to `end`, padded behind it so that whole blocks can be read.
    text: Vec<u8>,
    end: usize,
    /// Start, end, start, end … of the words in `text`.
    bounds: Vec<u32>,
    marks: usize,
    open: Open,
}

impl Default for WordScratch {
    fn default() -> Self {
        Self { text: Vec::new(), end: 0, bounds: Vec::new(), marks: 0, open: Open::Nothing }
    }
}

/// Appends the hash of every word of `text` to `hashes`.
pub fn hash_words(text: &str, hasher: &BytesHasher, simd: bool, scratch: &mut WordScratch, hashes: &mut Vec<u64>) {
    scratch.reset();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let limit = scratch.end + FLUSH_AT;
        scratch.make_room(FLUSH_AT);
        at = ascii_lanes(bytes, at, limit, simd, scratch);
        if at < bytes.len() && scratch.end < limit {
            if at > start && !bytes[at].is_ascii() {
                at -= 1; // the next character may compose with this one
                scratch.take_back_ascii();
            }
            at = characters(text, at, limit, scratch);
        }
        scratch.flush(hasher, hashes);
    }
    scratch.close();
    scratch.flush(hasher, hashes);
}

impl WordScratch {
    fn reset(&mut self) {
        self.end = 0;
        self.marks = 0;
        self.open = Open::Nothing;
    }

    /// Makes room for `more` bytes of text and the step that crosses them, and as many boundaries, behind `end`.
    #[inline]
    fn make_room(&mut self, more: usize) {
        let text = self.end + more + STEP_ROOM + BLOCK;
        if self.text.len() < text {
            self.text.resize(text.max(FLUSH_AT + 2 * STEP_ROOM), 0);
        }
        let marks = self.marks + more + STEP_ROOM;
        if self.bounds.len() < marks {
            self.bounds.resize(marks.max(FLUSH_AT + 2 * STEP_ROOM), 0);
        }
    }

    #[inline(always)]
    fn mark(&mut self) {
        self.bounds[self.marks] = self.end as u32;
        self.marks += 1;
    }

    #[inline(always)]
    fn close(&mut self) {
        if self.open != Open::Nothing {
            self.mark();
            self.open = Open::Nothing;
        }
    }

    #[inline(always)]
    fn push(&mut self, c: char) {
        self.end += c.encode_utf8(&mut self.text[self.end..]).len();
    }

    #[inline(always)]
    fn take(&mut self, c: char, class: Class) {
        match class {
            Class::Separator => self.close(),
            Class::Mark => {
                if self.open != Open::Nothing {
                    self.push(c);
                }
            }
            Class::Word => {
                if self.open != Open::Word {
                    self.close();
                    self.mark();
                    self.open = Open::Word;
                }
                self.push(c);
            }
            Class::Alone => {
                self.close();
                self.mark();
                self.open = Open::Alone;
                self.push(c);
            }
        }
    }

    /// Forgets the last byte that [`ascii_lanes`] took.
    fn take_back_ascii(&mut self) {
        if self.open == Open::Word {
            self.end -= 1;
            if self.bounds[self.marks - 1] as usize == self.end {
                self.marks -= 1;
                self.open = Open::Nothing;
            }
        }
    }

    /// Hashes the finished words and moves an unfinished one to the front.
    fn flush(&mut self, hasher: &BytesHasher, hashes: &mut Vec<u64>) {
        let finished = self.marks / 2;
        hashes.extend(self.bounds[..2 * finished].chunks_exact(2).map(|bound| {
            let (start, end) = (bound[0] as usize, bound[1] as usize);
            hasher.hash_padded(&self.text, start, end - start)
        }));
        if self.open == Open::Nothing {
            self.end = 0;
            self.marks = 0;
        } else {
            let start = self.bounds[self.marks - 1] as usize;
            if start > 0 {
                self.text.copy_within(start..self.end, 0);
            }
            self.end -= start;
            self.bounds[0] = 0;
            self.marks = 1;
        }
    }
}

/// Takes the text from `at` on as long as it is ASCII for whole lanes (or to its end) and the scratch has room.
fn ascii_lanes(bytes: &[u8], at: usize, limit: usize, simd: bool, scratch: &mut WordScratch) -> usize {
    if scratch.open == Open::Alone {
        scratch.close();
    }
    #[cfg(target_arch = "x86_64")]
    if simd && crate::simd::available() {
        // SAFETY: the features that the function is compiled for were just seen on this processor.
        return unsafe { ascii_lanes_avx2(bytes, at, limit, scratch) };
    }
    let _ = simd;
    ascii_lanes_with(bytes, at, limit, scratch, classify_portable)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn ascii_lanes_avx2(bytes: &[u8], at: usize, limit: usize, scratch: &mut WordScratch) -> usize {
    ascii_lanes_with(bytes, at, limit, scratch, |lane, out| classify_avx2(lane, out))
}

#[inline(always)]
fn ascii_lanes_with(
    bytes: &[u8],
    mut at: usize,
    limit: usize,
    scratch: &mut WordScratch,
    classify: impl Fn(&[u8; LANE], &mut [u8; LANE]) -> Option<u64>,
) -> usize {
    let mut inside = u64::from(scratch.open == Open::Word);
    let (mut end, mut marks) = (scratch.end, scratch.marks);
    while at < bytes.len() && end < limit {
        let mut last = [b' '; LANE];
        let (lane, taken): (&[u8; LANE], usize) = if let Some(lane) = bytes[at..].first_chunk() {
            (lane, LANE)
        } else {
            let rest = &bytes[at..];
            last[..rest.len()].copy_from_slice(rest);
            (&last, rest.len())
        };
        let out = scratch.text[end..].first_chunk_mut().expect("make_room left room");
        let Some(word) = classify(lane, out) else { break };
        let edges = word ^ (word << 1 | inside);
        marks = write_positions(edges, end as u32, &mut scratch.bounds, marks);
        // Behind a short last lane stand spaces: they have closed its word, if any was open.
        inside = word >> 63;
        at += taken;
        end += taken;
    }
    scratch.end = end;
    scratch.marks = marks;
    scratch.open = if inside == 1 { Open::Word } else { Open::Nothing };
    at
}

/// Writes `base` plus the position of each set bit; always eight at a time, because a loop that stops at each count
/// would be mispredicted on nearly every lane.
#[inline(always)]
fn write_positions(mut bits: u64, base: u32, positions: &mut [u32], mut count: usize) -> usize {
    let after = count + bits.count_ones() as usize;
    while bits != 0 {
        let eight: &mut [u32; 8] = positions[count..].first_chunk_mut().expect("make_room left room");
        for position in eight {
            *position = base.wrapping_add(bits.trailing_zeros());
            bits &= bits.wrapping_sub(1);
        }
        count += 8;
    }
    after
}

/// Lower-cases a lane into `out` and returns the mask of its letters and digits; nothing if it is not all ASCII.
#[inline(always)]
fn classify_portable(lane: &[u8; LANE], out: &mut [u8; LANE]) -> Option<u64> {
    if !lane.is_ascii() {
        return None;
    }
    *out = lane.map(|byte| byte.to_ascii_lowercase());
    let mut mask = 0;
    for (eight, index) in lane.chunks_exact(8).zip(0..) {
        let flags = u64::from_le_bytes(std::array::from_fn(|i| u8::from(eight[i].is_ascii_alphanumeric())));
        // The multiplication gathers the lowest bit of each byte in the top byte.
        mask |= (flags.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * index);
    }
    Some(mask)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
#[allow(clippy::cast_ptr_alignment, reason = "the loads and stores are the unaligned ones")]
fn classify_avx2(lane: &[u8; LANE], out: &mut [u8; LANE]) -> Option<u64> {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi8, _mm256_and_si256, _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8, _mm256_storeu_si256,
    };
    let between = |x: __m256i, below: u8, above: u8| {
        let over = _mm256_cmpgt_epi8(x, _mm256_set1_epi8(below.cast_signed()));
        let under = _mm256_cmpgt_epi8(_mm256_set1_epi8(above.cast_signed()), x);
        _mm256_and_si256(over, under)
    };
    let source = lane.as_ptr().cast::<__m256i>();
    let target = out.as_mut_ptr().cast::<__m256i>();
    // SAFETY: a lane is exactly two 32-byte vectors, and the unaligned load needs no alignment.
    let halves = unsafe { [_mm256_loadu_si256(source), _mm256_loadu_si256(source.add(1))] };
    if _mm256_movemask_epi8(_mm256_or_si256(halves[0], halves[1])) != 0 {
        return None;
    }
    let mut mask = 0;
    for (i, x) in halves.into_iter().enumerate() {
        let upper = between(x, b'A' - 1, b'Z' + 1);
        let lower = _mm256_add_epi8(x, _mm256_and_si256(upper, _mm256_set1_epi8(0x20)));
        let letter = between(lower, b'a' - 1, b'z' + 1);
        let digit = between(x, b'0' - 1, b'9' + 1);
        let word = _mm256_movemask_epi8(_mm256_or_si256(letter, digit)).cast_unsigned();
        mask |= u64::from(word) << (32 * i);
        // SAFETY: as above, `i` is 0 or 1.
        unsafe { _mm256_storeu_si256(target.add(i), lower) };
    }
    Some(mask)
}

/// Takes the text from `at` on, character by character, until the next lane is ASCII again, the text ends or the
/// scratch is full. `at` starts a normalisation segment, and so does the returned position.
fn characters(text: &str, mut at: usize, limit: usize, scratch: &mut WordScratch) -> usize {
    let bytes = text.as_bytes();
    let mut check_at = at + BLOCK;
    let mut following = next_character(text, at);
    while let Some((entry, next)) = following {
        following = next_character(text, next);
        let mut end = next;
        if following.is_none_or(|(following, _)| following.starts_segment()) {
            take_single(&text[at..next], entry, scratch);
        } else {
            end = segment_end(text, next);
            take_segment(&text[at..end], scratch);
            following = next_character(text, end);
        }
        at = end;
        if scratch.end >= limit {
            break;
        }
        if at >= check_at {
            if bytes[at..].get(..LANE).is_some_and(<[u8]>::is_ascii) {
                break;
            }
            check_at = at + BLOCK;
        }
    }
    at
}

#[inline(always)]
fn next_character(text: &str, at: usize) -> Option<(FoldedEntry, usize)> {
    let c = text[at..].chars().next()?;
    Some((FoldedEntry::of(c), at + c.len_utf8()))
}

fn segment_end(text: &str, from: usize) -> usize {
    let start = text[from..].char_indices().find(|&(_, c)| Properties::of(c).starts_segment());
    start.map_or(text.len(), |(offset, _)| from + offset)
}

#[inline(always)]
fn take_single(segment: &str, entry: FoldedEntry, scratch: &mut WordScratch) {
    match entry.unpack() {
        Folded::Simple(c, class) | Folded::OrderedMark(c, class, _) => scratch.take(c, class),
        Folded::Pooled(folded) => take_folded(folded.chars(), scratch),
        Folded::Entangled => take_normalised(segment, scratch),
    }
}

/// Takes a letter with its marks; asks the normaliser only when they would compose or change places.
fn take_segment(segment: &str, scratch: &mut WordScratch) {
    scratch.make_room(4 * segment.len());
    let mut rank = 0;
    let ordered = segment.chars().enumerate().all(|(i, c)| match FoldedEntry::of(c).unpack() {
        Folded::Simple(..) => i == 0,
        Folded::OrderedMark(_, _, next) => std::mem::replace(&mut rank, next) <= next,
        _ => false,
    });
    if !ordered {
        return take_normalised(segment, scratch);
    }
    for c in segment.chars() {
        if let Folded::Simple(c, class) | Folded::OrderedMark(c, class, _) = FoldedEntry::of(c).unpack() {
            scratch.take(c, class);
        }
    }
}

fn take_normalised(segment: &str, scratch: &mut WordScratch) {
    // One character of the segment becomes at most 18 in NFKC, and lower case at most triples that.
    scratch.make_room(64 * segment.len());
    take_folded(segment.nfkc().flat_map(lowercase), scratch);
}

fn take_folded(folded: impl Iterator<Item = char>, scratch: &mut WordScratch) {
    for c in folded {
        scratch.take(c, Properties::of(c).class());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{Domain, mix};
    use crate::normalise::{Normalisation, Normaliser};
    use crate::tokens;

    /// Scraps that meet in every order: long and short ASCII, composing and ordered marks, ligatures, lone characters.
    const SCRAPS: [&str; 24] = [
        "a",
        "B",
        " ",
        "_",
        "9",
        "e\u{301}",
        "\u{301}",
        "\u{323}\u{301}",
        "\u{301}\u{323}",
        "é",
        "İ",
        "ﬁ",
        "½",
        "ﷺ",
        "漢",
        "ひ",
        "ﾊﾞ",
        "각",
        "\u{1100}\u{1161}\u{11A8}",
        "ที่",
        "🙂",
        "\u{A0}",
        "The quick brown fox jumps over the lazy dog, 42 times; THEN sleeps for a while under the old tree. ",
        "pneumonoultramicroscopicsilicovolcanoconiosis",
    ];

    fn text(number: u64) -> String {
        let scraps = 1 + mix(number) % 40;
        (0..scraps).map(|i| SCRAPS[(mix(number * 1000 + i) % SCRAPS.len() as u64) as usize]).collect()
    }

    fn check(text: &str) {
        let hasher = BytesHasher::new(1, Domain::Token);
        let options = Normalisation::default();
        let mut expected = Vec::new();
        tokens::words(text, &mut Normaliser::new(options), &hasher, |token| expected.push(token.hash));
        for simd in [true, false] {
            let mut hashes = Vec::new();
            hash_words(text, &hasher, simd, &mut WordScratch::default(), &mut hashes);
            assert_eq!(hashes, expected, "simd {simd}: {text:?}");
        }
    }

    #[test]
    fn both_paths_equal_the_general_path() {
        (0..20_000).map(text).for_each(|text| check(&text));
    }

    #[test]
    fn words_longer_than_the_scratch_survive() {
        for unit in ["x", "é", "e\u{301}", "\u{301}", "漢", "漢\u{301}"] {
            for length in [FLUSH_AT - 1, FLUSH_AT, 3 * FLUSH_AT + 5] {
                check(&unit.repeat(length));
                check(&format!("a{}b c", unit.repeat(length)));
            }
        }
    }
}
