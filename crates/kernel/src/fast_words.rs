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

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    Word,
    Alone,
}

/// The reusable buffers of one worker.
#[derive(Default)]
pub struct WordScratch {
    /// Folded text; valid up to `state.end`, padded behind it so that whole blocks can be read.
    text: Vec<u8>,
    /// Start, end, start, end … of the words in `text`.
    bounds: Vec<u32>,
    state: State,
}

/// How far the scratch is filled.
#[derive(Clone, Copy, Default)]
struct State {
    end: usize,
    marks: usize,
    open: Open,
}

/// The scratch on its way through the hot loop: what changes with every character is kept apart from the buffers, so
/// that it can stay in registers.
struct Cursor<'s> {
    text: &'s mut [u8],
    bounds: &'s mut [u32],
    end: usize,
    marks: usize,
    open: Open,
}

impl Cursor<'_> {
    #[inline(always)]
    fn state(&self) -> State {
        State { end: self.end, marks: self.marks, open: self.open }
    }

    /// Notes a boundary here if `really`; without a branch, because a word's length can not be predicted.
    #[inline(always)]
    fn mark_if(&mut self, really: bool) {
        self.bounds[self.marks] = self.end as u32;
        self.marks += usize::from(really);
    }

    #[inline(always)]
    fn close(&mut self) {
        self.mark_if(self.open != Open::Nothing);
        self.open = Open::Nothing;
    }

    /// Appends the first `length` bytes of `raw`.
    #[inline(always)]
    fn push(&mut self, raw: [u8; 4], length: usize) {
        self.text[self.end..self.end + 4].copy_from_slice(&raw);
        self.end += length;
    }

    #[inline(always)]
    fn take_word(&mut self, raw: [u8; 4], length: usize) {
        self.mark_if(self.open == Open::Alone);
        self.mark_if(self.open != Open::Word);
        self.open = Open::Word;
        self.push(raw, length);
    }

    #[inline(always)]
    fn take_alone(&mut self, raw: [u8; 4], length: usize) {
        self.mark_if(self.open != Open::Nothing);
        self.mark_if(true);
        self.open = Open::Alone;
        self.push(raw, length);
    }

    /// Takes a character of any class.
    #[inline]
    fn take(&mut self, c: char, class: Class) {
        let mut raw = [0; 4];
        let length = c.encode_utf8(&mut raw).len();
        match class {
            Class::Separator => self.close(),
            Class::Word => self.take_word(raw, length),
            Class::Alone => self.take_alone(raw, length),
            Class::Mark if self.open != Open::Nothing => self.push(raw, length),
            Class::Mark => {}
        }
    }
}

/// Appends the hash of every word of `text` to `hashes`.
pub fn hash_words(text: &str, hasher: &BytesHasher, simd: bool, scratch: &mut WordScratch, hashes: &mut Vec<u64>) {
    scratch.state = State::default();
    scratch.make_room(0);
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let limit = scratch.state.end + FLUSH_AT;
        scratch.make_room(FLUSH_AT);
        at = ascii_lanes(bytes, at, limit, simd, scratch);
        let full = scratch.state.end >= limit;
        if at > start && at < bytes.len() && !bytes[at].is_ascii() {
            at -= 1; // the next character may compose with this one, also behind the flush
            scratch.take_back_ascii();
        }
        if at < bytes.len() && !full {
            at = characters(text, at, limit, scratch);
        }
        scratch.flush(hasher, hashes);
    }
    let mut cursor = scratch.cursor();
    cursor.close();
    scratch.state = cursor.state();
    scratch.flush(hasher, hashes);
}

impl WordScratch {
    /// Makes room for `more` bytes of text and the step that crosses them behind the end, and for their boundaries: two
    /// for each byte, since separators take no room in the text.
    #[inline]
    fn make_room(&mut self, more: usize) {
        let text = self.state.end + more + STEP_ROOM + BLOCK;
        if self.text.len() < text {
            self.text.resize(text.max(FLUSH_AT + 2 * STEP_ROOM), 0);
        }
        let marks = self.state.marks + 2 * (more + STEP_ROOM);
        if self.bounds.len() < marks {
            self.bounds.resize(marks, 0);
        }
    }

    fn cursor(&mut self) -> Cursor<'_> {
        let State { end, marks, open } = self.state;
        Cursor { text: &mut self.text, bounds: &mut self.bounds, end, marks, open }
    }

    /// Forgets the last byte that [`ascii_lanes`] took.
    fn take_back_ascii(&mut self) {
        let state = &mut self.state;
        if state.open == Open::Word {
            state.end -= 1;
            if self.bounds[state.marks - 1] as usize == state.end {
                state.marks -= 1;
                state.open = Open::Nothing;
            }
        }
    }

    /// Hashes the finished words and moves an unfinished one to the front.
    fn flush(&mut self, hasher: &BytesHasher, hashes: &mut Vec<u64>) {
        let state = &mut self.state;
        let finished = state.marks / 2;
        hashes.extend(self.bounds[..2 * finished].chunks_exact(2).map(|bound| {
            let (start, end) = (bound[0] as usize, bound[1] as usize);
            hasher.hash_padded(&self.text, start, end - start)
        }));
        if state.open == Open::Nothing {
            *state = State::default();
        } else {
            let start = self.bounds[state.marks - 1] as usize;
            if start > 0 {
                self.text.copy_within(start..state.end, 0);
            }
            self.bounds[0] = 0;
            *state = State { end: state.end - start, marks: 1, open: state.open };
        }
    }
}

/// Takes the text from `at` on as long as it is ASCII for whole lanes (or to its end) and the scratch has room.
fn ascii_lanes(bytes: &[u8], at: usize, limit: usize, simd: bool, scratch: &mut WordScratch) -> usize {
    if scratch.state.open == Open::Alone {
        if !bytes[at].is_ascii() {
            return at; // a mark may follow that belongs to the open character
        }
        let mut cursor = scratch.cursor();
        cursor.close();
        scratch.state = cursor.state();
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
    let mut inside = u64::from(scratch.state.open == Open::Word);
    let State { mut end, mut marks, .. } = scratch.state;
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
    scratch.state = State { end, marks, open: if inside == 1 { Open::Word } else { Open::Nothing } };
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
///
/// Each character is taken as soon as it is seen. Should a mark follow that composes with it or changes places with
/// another, the segment is taken back and goes to the normaliser as a whole.
fn characters(text: &str, mut at: usize, limit: usize, scratch: &mut WordScratch) -> usize {
    let bytes = text.as_bytes();
    let mut cursor = scratch.cursor();
    let mut check_at = at + BLOCK;
    let mut segment = (at, cursor.state());
    let mut rank = 0;
    while let Some((c, raw, length)) = decode(bytes, at) {
        if c.is_ascii() && at < check_at {
            segment = (at, cursor.state());
            rank = 0;
            at += 1;
            if c.is_ascii_alphanumeric() {
                cursor.take_word([raw[0] | 0x20, 0, 0, 0], 1);
            } else {
                cursor.close();
            }
            continue;
        }
        let entry = FoldedEntry::of(c);
        if entry.starts_segment() {
            if at >= check_at {
                if cursor.end >= limit || bytes[at..].get(..LANE).is_some_and(<[u8]>::is_ascii) {
                    break;
                }
                check_at = at + BLOCK;
            }
            segment = (at, cursor.state());
        }
        at += length;
        // Comparing whole entries, most frequent first, because a jump through a table of cases would be mispredicted
        // at the start and at the end of every word.
        if entry == FoldedEntry::WORD {
            rank = 0;
            cursor.take_word(raw, length);
            continue;
        }
        if entry == FoldedEntry::SEPARATOR {
            rank = 0;
            cursor.close();
            continue;
        }
        if entry == FoldedEntry::ALONE {
            rank = 0;
            cursor.take_alone(raw, length);
            continue;
        }
        match entry.unpack(c) {
            Folded::Simple(c, class) => {
                rank = 0;
                cursor.take(c, class);
            }
            Folded::Pooled(folded) => {
                rank = u32::MAX;
                for c in folded.chars() {
                    cursor.take(c, Properties::of(c).class());
                }
            }
            Folded::OrderedMark(c, class, next_rank) if rank <= next_rank && cursor.end < limit => {
                rank = next_rank;
                cursor.take(c, class);
            }
            Folded::OrderedMark(..) | Folded::Entangled => {
                at = segment_end(text, at);
                scratch.state = segment.1;
                take_normalised(&text[segment.0..at], scratch);
                cursor = scratch.cursor();
            }
        }
    }
    scratch.state = cursor.state();
    at
}

/// The character at `at` of valid UTF-8, its encoding and its length; nothing at the end.
#[inline(always)]
fn decode(bytes: &[u8], at: usize) -> Option<(char, [u8; 4], usize)> {
    let raw: [u8; 4] = if let Some(raw) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        *raw
    } else {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
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

/// Where the next segment starts, from `from` on.
fn segment_end(text: &str, from: usize) -> usize {
    let start = text[from..].char_indices().find(|&(_, c)| Properties::of(c).starts_segment());
    start.map_or(text.len(), |(offset, _)| from + offset)
}

#[cold]
fn take_normalised(segment: &str, scratch: &mut WordScratch) {
    for c in segment.nfkc().flat_map(lowercase) {
        scratch.make_room(0); // a segment has no bound, a character has
        let mut cursor = scratch.cursor();
        cursor.take(c, Properties::of(c).class());
        scratch.state = cursor.state();
    }
    scratch.make_room(FLUSH_AT);
}

#[cfg(test)]
mod tests;
