//! Fast tokeniser: word hashes under the default normalisation.
//!
//! [`crate::tokens`] defines words and supports every option; this module computes the same hashes at memory speed for
//! the normalisation that almost all users have (NFKC and lower case). ASCII text is classified 64 bytes at a time into
//! a bit mask whose transitions are the word boundaries; all other text takes one table lookup per character. Both
//! paths write the folded text to a scratch buffer and the word boundaries to a list, from which the words are hashed.
//!
//! The scratch buffer is flushed every 8 KiB, so it stays in the first-level cache.
//!
//! With `SPANS`, the origin of each boundary in the original text is kept next to it. In ASCII text the distance between
//! a boundary and its origin is constant over a lane; in other text it is determined at the end of each segment, as
//! [`crate::normalise`] defines it: every character of a segment has the span of the whole segment.

use unicode_normalization::UnicodeNormalization as _;

use crate::hash::{BLOCK as HASH_BLOCK, BytesHasher};
use crate::unicode::{Class, Folded, FoldedEntry, Properties, lowercase};

/// Bytes classified at once: one bit each in a machine word.
const LANE_BYTES: usize = 64;
/// Scratch text after which its words are hashed. With the boundaries it fills about half of a 32 KiB first-level
/// cache.
const FLUSH_BYTES: usize = 8192;
/// Upper bound of the UTF-8 text that one step writes without a check: a lane, or the replacement of one character (at
/// most 18 characters in Unicode 17).
const STEP_BYTES: usize = 512;

/// Bytes of other text between two checks whether the next lane is ASCII.
const ASCII_CHECK_BYTES: usize = 16;

/// Kind of the token at the end of the scratch text.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum OpenToken {
    #[default]
    None,
    Word,
    Standalone,
}

/// Reusable buffers of one worker.
#[derive(Default)]
pub struct WordScratch {
    /// Folded text; valid up to `state.end`, padded after it so that whole blocks can be read.
    text: Vec<u8>,
    /// Start, end, start, end … of the words in `text`.
    bounds: Vec<u32>,
    /// Code point of the original text of each boundary, with `SPANS`.
    origins: Vec<u32>,
    state: State,
    /// Bytes of the original text so far minus its code points so far, with `SPANS`.
    extra: usize,
}

/// Fill level of the scratch.
#[derive(Clone, Copy, Default)]
struct State {
    end: usize,
    bound_count: usize,
    open: OpenToken,
}

/// The scratch in the hot loop: the values that change with every character are separate from the buffers, so that they
/// stay in registers.
struct Cursor<'s> {
    text: &'s mut [u8],
    bounds: &'s mut [u32],
    end: usize,
    bound_count: usize,
    open: OpenToken,
}

impl Cursor<'_> {
    #[inline(always)]
    fn state(&self) -> State {
        State { end: self.end, bound_count: self.bound_count, open: self.open }
    }

    /// Add a boundary here if `condition`; without a branch, because the length of a word cannot be predicted.
    #[inline(always)]
    fn push_bound_if(&mut self, condition: bool) {
        self.bounds[self.bound_count] = self.end as u32;
        self.bound_count += usize::from(condition);
    }

    #[inline(always)]
    fn close(&mut self) {
        self.push_bound_if(self.open != OpenToken::None);
        self.open = OpenToken::None;
    }

    /// Append the first `length` bytes of `raw`.
    #[inline(always)]
    fn push(&mut self, raw: [u8; 4], length: usize) {
        self.text[self.end..self.end + 4].copy_from_slice(&raw);
        self.end += length;
    }

    #[inline(always)]
    fn push_word(&mut self, raw: [u8; 4], length: usize) {
        self.push_bound_if(self.open == OpenToken::Standalone);
        self.push_bound_if(self.open != OpenToken::Word);
        self.open = OpenToken::Word;
        self.push(raw, length);
    }

    #[inline(always)]
    fn push_standalone(&mut self, raw: [u8; 4], length: usize) {
        self.push_bound_if(self.open != OpenToken::None);
        self.push_bound_if(true);
        self.open = OpenToken::Standalone;
        self.push(raw, length);
    }

    /// Append a character of any class.
    #[inline]
    fn push_char(&mut self, c: char, class: Class) {
        let mut raw = [0; 4];
        let length = c.encode_utf8(&mut raw).len();
        match class {
            Class::Separator => self.close(),
            Class::Word => self.push_word(raw, length),
            Class::Standalone => self.push_standalone(raw, length),
            Class::Mark if self.open != OpenToken::None => self.push(raw, length),
            Class::Mark => {}
        }
    }
}

/// Append the hash of every word of `text` to `hashes`.
pub fn hash_words(text: &str, hasher: &BytesHasher, simd: bool, scratch: &mut WordScratch, hashes: &mut Vec<u64>) {
    process::<false>(text, hasher, simd, scratch, hashes, &mut Vec::new());
}

/// Append the hash and the span of every word of `text`; return the number of code points of `text`.
///
/// The spans start at `base`, the number of code points before `text`.
pub fn hash_words_with_spans(
    text: &str,
    base: u32,
    hasher: &BytesHasher,
    simd: bool,
    scratch: &mut WordScratch,
    hashes: &mut Vec<u64>,
    spans: &mut Vec<[u32; 2]>,
) -> u32 {
    let first = spans.len();
    process::<true>(text, hasher, simd, scratch, hashes, spans);
    spans[first..].iter_mut().for_each(|span| *span = span.map(|at| at + base));
    (text.len() - scratch.extra) as u32
}

fn process<const SPANS: bool>(
    text: &str,
    hasher: &BytesHasher,
    simd: bool,
    scratch: &mut WordScratch,
    hashes: &mut Vec<u64>,
    spans: &mut Vec<[u32; 2]>,
) {
    scratch.state = State::default();
    scratch.extra = 0;
    scratch.reserve(0);
    let bytes = text.as_bytes();
    let mut position = 0;
    while position < bytes.len() {
        let start = position;
        let limit = scratch.state.end + FLUSH_BYTES;
        scratch.reserve(FLUSH_BYTES);
        position = ascii_lanes::<SPANS>(bytes, position, limit, simd, scratch);
        let full = scratch.state.end >= limit;
        if position > start && position < bytes.len() && !bytes[position].is_ascii() {
            position -= 1; // the next character may compose with this one, even after the flush
            scratch.undo_last_byte();
        }
        if position < bytes.len() && !full {
            position = characters::<SPANS>(text, position, limit, scratch);
        }
        scratch.flush::<SPANS>(hasher, hashes, spans);
    }
    scratch.close::<SPANS>(bytes.len());
    scratch.flush::<SPANS>(hasher, hashes, spans);
}

impl WordScratch {
    /// Reserve `more` bytes of text and one step after them, and their boundaries: two per byte, since separators take
    /// no text.
    #[inline]
    fn reserve(&mut self, more: usize) {
        let text = self.state.end + more + STEP_BYTES + HASH_BLOCK;
        if self.text.len() < text {
            self.text.resize(text.max(FLUSH_BYTES + 2 * STEP_BYTES), 0);
        }
        let bound_count = self.state.bound_count + 2 * (more + STEP_BYTES);
        if self.bounds.len() < bound_count {
            self.bounds.resize(bound_count, 0);
            self.origins.resize(bound_count, 0);
        }
    }

    /// Close the open token, which extends to `position` of the original text.
    fn close<const SPANS: bool>(&mut self, position: usize) {
        let mut cursor = self.cursor();
        cursor.close();
        let state = cursor.state();
        if SPANS && state.bound_count > self.state.bound_count {
            self.origins[state.bound_count - 1] = (position - self.extra) as u32;
        }
        self.state = state;
    }

    /// Set the origins of the boundaries of a segment that starts at `from` and ends at `position`: a word that has a
    /// character of the segment extends over the whole segment.
    fn end_segment(&mut self, text: &str, from: (usize, State), position: usize, state: State) -> Cursor<'_> {
        let code_points = text[from.0..position].chars().count();
        let start = from.0 - self.extra;
        self.extra += position - from.0 - code_points;
        for i in from.1.bound_count..state.bound_count {
            let has_character = i % 2 == 1 && self.bounds[i] as usize > from.1.end;
            self.origins[i] = (start + if has_character { code_points } else { 0 }) as u32;
        }
        self.cursor_at(state)
    }

    fn cursor(&mut self) -> Cursor<'_> {
        self.cursor_at(self.state)
    }

    fn cursor_at(&mut self, state: State) -> Cursor<'_> {
        let State { end, bound_count, open } = state;
        Cursor { text: &mut self.text, bounds: &mut self.bounds, end, bound_count, open }
    }

    /// Undo the last byte that [`ascii_lanes`] appended.
    fn undo_last_byte(&mut self) {
        let state = &mut self.state;
        if state.open == OpenToken::Word {
            state.end -= 1;
            if self.bounds[state.bound_count - 1] as usize == state.end {
                state.bound_count -= 1;
                state.open = OpenToken::None;
            }
        }
    }

    /// Hash the complete words and move an incomplete one to the front.
    fn flush<const SPANS: bool>(&mut self, hasher: &BytesHasher, hashes: &mut Vec<u64>, spans: &mut Vec<[u32; 2]>) {
        let state = &mut self.state;
        let finished = state.bound_count / 2;
        if SPANS {
            spans.extend_from_slice(self.origins[..2 * finished].as_chunks().0);
        }
        hashes.extend(self.bounds[..2 * finished].chunks_exact(2).map(|bound| {
            let (start, end) = (bound[0] as usize, bound[1] as usize);
            hasher.hash_padded(&self.text, start, end - start)
        }));
        if state.open == OpenToken::None {
            *state = State::default();
        } else {
            let start = self.bounds[state.bound_count - 1] as usize;
            if start > 0 {
                self.text.copy_within(start..state.end, 0);
            }
            self.bounds[0] = 0;
            if SPANS {
                self.origins[0] = self.origins[state.bound_count - 1];
            }
            *state = State { end: state.end - start, bound_count: 1, open: state.open };
        }
    }
}

/// Process the text from `position` on while whole lanes (or the rest) are ASCII and the scratch is below `limit`;
/// return the new position.
fn ascii_lanes<const SPANS: bool>(
    bytes: &[u8],
    position: usize,
    limit: usize,
    simd: bool,
    scratch: &mut WordScratch,
) -> usize {
    if scratch.state.open == OpenToken::Standalone {
        if !bytes[position].is_ascii() {
            return position; // it may be a mark that belongs to the open character
        }
        scratch.close::<SPANS>(position);
    }
    #[cfg(target_arch = "x86_64")]
    if simd && crate::simd::available() {
        // SAFETY: the processor has the features that the function is compiled for.
        return unsafe { ascii_lanes_avx2::<SPANS>(bytes, position, limit, scratch) };
    }
    let _ = simd;
    ascii_lanes_with::<SPANS>(bytes, position, limit, scratch, classify_portable)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn ascii_lanes_avx2<const SPANS: bool>(
    bytes: &[u8],
    position: usize,
    limit: usize,
    scratch: &mut WordScratch,
) -> usize {
    ascii_lanes_with::<SPANS>(bytes, position, limit, scratch, |lane, out| classify_avx2(lane, out))
}

#[inline(always)]
fn ascii_lanes_with<const SPANS: bool>(
    bytes: &[u8],
    mut position: usize,
    limit: usize,
    scratch: &mut WordScratch,
    classify: impl Fn(&[u8; LANE_BYTES], &mut [u8; LANE_BYTES]) -> Option<u64>,
) -> usize {
    let mut inside = u64::from(scratch.state.open == OpenToken::Word);
    let State { mut end, mut bound_count, .. } = scratch.state;
    let first = bound_count;
    let origin = (position - scratch.extra).wrapping_sub(end) as u32;
    while position < bytes.len() && end < limit {
        let mut last = [b' '; LANE_BYTES];
        let (lane, taken): (&[u8; LANE_BYTES], usize) = if let Some(lane) = bytes[position..].first_chunk() {
            (lane, LANE_BYTES)
        } else {
            let rest = &bytes[position..];
            last[..rest.len()].copy_from_slice(rest);
            (&last, rest.len())
        };
        let out = scratch.text[end..].first_chunk_mut().expect("reserve was called");
        let Some(word) = classify(lane, out) else { break };
        let edges = word ^ (word << 1 | inside);
        bound_count = write_positions(edges, end as u32, &mut scratch.bounds, bound_count);
        // A short last lane is padded with spaces, which close its last word.
        inside = word >> 63;
        position += taken;
        end += taken;
    }
    if SPANS {
        let origins = scratch.origins[first..bound_count].iter_mut();
        origins.zip(&scratch.bounds[first..]).for_each(|(to, bound)| *to = bound.wrapping_add(origin));
    }
    scratch.state = State { end, bound_count, open: if inside == 1 { OpenToken::Word } else { OpenToken::None } };
    position
}

/// Write `base` plus the position of each set bit, always eight at a time: a loop that stops at each count would be
/// mispredicted on almost every lane.
#[inline(always)]
fn write_positions(mut bits: u64, base: u32, positions: &mut [u32], mut count: usize) -> usize {
    let after = count + bits.count_ones() as usize;
    while bits != 0 {
        let eight: &mut [u32; 8] = positions[count..].first_chunk_mut().expect("reserve was called");
        for position in eight {
            *position = base.wrapping_add(bits.trailing_zeros());
            bits &= bits.wrapping_sub(1);
        }
        count += 8;
    }
    after
}

/// Convert a lane to lower case in `out` and return the mask of its letters and digits; none if it is not ASCII.
#[inline(always)]
fn classify_portable(lane: &[u8; LANE_BYTES], out: &mut [u8; LANE_BYTES]) -> Option<u64> {
    if !lane.is_ascii() {
        return None;
    }
    *out = lane.map(|byte| byte.to_ascii_lowercase());
    let mut mask = 0;
    for (eight, index) in lane.chunks_exact(8).zip(0..) {
        let flags = u64::from_le_bytes(std::array::from_fn(|i| u8::from(eight[i].is_ascii_alphanumeric())));
        // The multiplication moves the lowest bit of each byte to the top byte.
        mask |= (flags.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * index);
    }
    Some(mask)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
#[allow(clippy::cast_ptr_alignment, reason = "unaligned loads and stores are used")]
fn classify_avx2(lane: &[u8; LANE_BYTES], out: &mut [u8; LANE_BYTES]) -> Option<u64> {
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
    // SAFETY: a lane is exactly two 32-byte vectors, and an unaligned load has no alignment requirement.
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

/// Process the text from `position` on, character by character, until the next lane is ASCII, the text ends or the
/// scratch is full; return the new position. Both positions are segment starts.
///
/// Each character is appended at once. If a mark follows that composes with it or is reordered, the segment is undone
/// and passed to the normaliser as a whole.
fn characters<const SPANS: bool>(text: &str, mut position: usize, limit: usize, scratch: &mut WordScratch) -> usize {
    let bytes = text.as_bytes();
    let mut cursor = scratch.cursor();
    let mut next_check = position + ASCII_CHECK_BYTES;
    let mut segment = (position, cursor.state());
    let mut rank = 0;
    while let Some((c, raw, length)) = decode(bytes, position) {
        if c.is_ascii() && position < next_check {
            if SPANS {
                let state = cursor.state();
                cursor = scratch.end_segment(text, segment, position, state);
            }
            segment = (position, cursor.state());
            rank = 0;
            position += 1;
            if c.is_ascii_alphanumeric() {
                cursor.push_word([raw[0] | 0x20, 0, 0, 0], 1);
            } else {
                cursor.close();
            }
            continue;
        }
        let entry = FoldedEntry::of(c);
        if entry.starts_segment() {
            if SPANS {
                let state = cursor.state();
                cursor = scratch.end_segment(text, segment, position, state);
            }
            segment = (position, cursor.state());
            if position >= next_check {
                if cursor.end >= limit || bytes[position..].get(..LANE_BYTES).is_some_and(<[u8]>::is_ascii) {
                    break;
                }
                next_check = position + ASCII_CHECK_BYTES;
            }
        }
        position += length;
        // Whole entries are compared, most frequent first, because a jump table would be mispredicted at the start and
        // end of every word.
        if entry == FoldedEntry::WORD {
            rank = 0;
            cursor.push_word(raw, length);
            continue;
        }
        if entry == FoldedEntry::SEPARATOR {
            rank = 0;
            cursor.close();
            continue;
        }
        if entry == FoldedEntry::STANDALONE {
            rank = 0;
            cursor.push_standalone(raw, length);
            continue;
        }
        match entry.unpack(c) {
            Folded::Simple(c, class) => {
                rank = 0;
                cursor.push_char(c, class);
            }
            Folded::Replacement(folded) => {
                rank = u32::MAX;
                for c in folded.chars() {
                    cursor.push_char(c, Properties::of(c).class());
                }
            }
            Folded::OrderedMark(c, class, next_rank) if rank <= next_rank && cursor.end < limit => {
                rank = next_rank;
                cursor.push_char(c, class);
            }
            Folded::OrderedMark(..) | Folded::Contextual => {
                position = segment_end(text, position);
                scratch.state = segment.1;
                push_normalised(&text[segment.0..position], scratch);
                cursor = scratch.cursor();
            }
        }
    }
    let state = cursor.state();
    if SPANS {
        scratch.end_segment(text, segment, position, state);
    }
    scratch.state = state;
    position
}

/// Return the character at `position` of valid UTF-8, its encoding and its length; none at the end.
#[inline(always)]
fn decode(bytes: &[u8], position: usize) -> Option<(char, [u8; 4], usize)> {
    let raw: [u8; 4] = if let Some(raw) = bytes.get(position..).and_then(<[u8]>::first_chunk) {
        *raw
    } else {
        let rest = bytes.get(position..).filter(|rest| !rest.is_empty())?;
        std::array::from_fn(|i| rest.get(i).copied().unwrap_or_default())
    };
    let lead = |bits: u32| u32::from(raw[0]) & bits;
    let tail = |i: usize| u32::from(raw[i]) & 0x3F;
    let (code, length) = match raw[0] {
        0..0x80 => (lead(0x7F), 1),
        0x80..0xE0 => (lead(0x1F) << 6 | tail(1), 2),
        0xE0..0xF0 => (lead(0x0F) << 12 | tail(1) << 6 | tail(2), 3),
        0xF0.. => (lead(0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4),
    };
    Some((char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), raw, length))
}

/// Return the start of the next segment at or after `from`.
fn segment_end(text: &str, from: usize) -> usize {
    let start = text[from..].char_indices().find(|&(_, c)| Properties::of(c).starts_segment());
    start.map_or(text.len(), |(offset, _)| from + offset)
}

#[cold]
fn push_normalised(segment: &str, scratch: &mut WordScratch) {
    for c in segment.nfkc().flat_map(lowercase) {
        scratch.reserve(0); // the length of a segment is unbounded, that of a character is not
        let mut cursor = scratch.cursor();
        cursor.push_char(c, Properties::of(c).class());
        scratch.state = cursor.state();
    }
    scratch.reserve(FLUSH_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{Domain, mix};
    use crate::normalise::{Normalisation, Normaliser};
    use crate::tokens;

    /// Fragments that are combined in every order: short and long ASCII, composing and ordered marks, ligatures,
    /// standalone characters.
    const FRAGMENTS: [&str; 32] = [
        "มี",
        "กิ",
        "កិ",
        "कि",
        "1·",
        "– ",
        "½ ",
        "e\u{301}\u{301}",
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
        let fragments = 1 + mix(number) % 40;
        (0..fragments).map(|i| FRAGMENTS[(mix(number * 1000 + i) % FRAGMENTS.len() as u64) as usize]).collect()
    }

    fn check(text: &str) {
        let hasher = BytesHasher::new(1, Domain::Token);
        let options = Normalisation::default();
        let mut expected = Vec::new();
        let mut expected_spans = Vec::new();
        tokens::words(text, &mut Normaliser::new(options), &hasher, |token| {
            expected.push(token.hash);
            expected_spans.push([token.span.start as u32 + 7, token.span.end as u32 + 7]);
        });
        for simd in [true, false] {
            let mut hashes = Vec::new();
            hash_words(text, &hasher, simd, &mut WordScratch::default(), &mut hashes);
            assert_eq!(hashes, expected, "simd {simd}: {text:?}");
            let (mut again, mut spans) = (Vec::new(), Vec::new());
            let mut scratch = WordScratch::default();
            let length = hash_words_with_spans(text, 7, &hasher, simd, &mut scratch, &mut again, &mut spans);
            assert_eq!((again, spans), (expected.clone(), expected_spans.clone()), "simd {simd}: {text:?}");
            assert_eq!(length as usize, text.chars().count());
        }
    }

    #[test]
    fn short_texts_equal_the_general_path() {
        check("");
        (0..20_000).map(text).for_each(|text| check(&text));
    }

    #[test]
    fn texts_longer_than_the_scratch_equal_the_general_path() {
        // A few fragments repeated, so that the flush falls between every kind of neighbours.
        for number in 0..400 {
            let fragments = 1 + mix(number) % 5;
            let unit: String =
                (0..fragments).map(|i| FRAGMENTS[(mix(number * 1000 + i) % FRAGMENTS.len() as u64) as usize]).collect();
            let lead = "x".repeat((mix(number + 7) % 70) as usize);
            check(&(lead + &unit.repeat(3 * FLUSH_BYTES / unit.len() + 1)));
        }
    }

    #[test]
    fn letters_compose_across_the_flush() {
        for offset in FLUSH_BYTES - 70..FLUSH_BYTES + 10 {
            let lead: String = "ab ".chars().cycle().take(offset).collect();
            check(&format!("{lead}e\u{301} tail"));
            check(&format!("{lead}\u{301} tail"));
            check(&format!("{lead}มี tail"));
        }
    }

    #[test]
    fn words_longer_than_the_scratch_equal_the_general_path() {
        for unit in ["x", "é", "e\u{301}", "\u{301}", "漢", "漢\u{301}"] {
            for length in [FLUSH_BYTES - 1, FLUSH_BYTES, 3 * FLUSH_BYTES + 5] {
                check(&unit.repeat(length));
                check(&format!("a{}b c", unit.repeat(length)));
            }
        }
    }
}
