//! Shingling of a long document in pieces, so that memory does not grow with its length.
//!
//! Tokens and shingles take 16 bytes per token, and normalisation makes up to 18 characters of one (U+FDFA). A document
//! is therefore cut where the text on both sides can be normalised and tokenised separately, and only the tokens of one
//! piece are held. Distinct elements are sorted and merged piece by piece.

use std::mem::{swap, take};

use super::{Kind, Scratch, Shingler};
use crate::error::{MAX_ELEMENTS, MAX_SEGMENT_BYTES, TextFault, check_length, checked_text};
use crate::hash::ContentState;
use crate::normalise::Normaliser;
use crate::sketch::Scheme;
use crate::unicode::{Class, Folded, FoldedEntry, Properties};

/// Bytes of a piece. Tokens and shingles of one take 8 MiB where each byte is a token, and six times as much at the
/// largest growth under NFKC.
const PIECE_BYTES: usize = 1 << 19;
/// Elements that are collected before they are merged with the earlier ones: 16 MiB.
const MERGED_ELEMENTS: usize = 1 << 21;

/// Return whether a document is shingled in pieces.
#[must_use]
pub const fn is_long(document: &[u8]) -> bool {
    document.len() > PIECE_BYTES
}

impl Shingler {
    /// Call `take` with the tokens and the shingles of each piece; `take` may change the shingles.
    ///
    /// # Errors
    /// If the document is not UTF-8, too long or cannot be normalised in pieces; or the error of `take`.
    pub fn pieces(
        &self,
        document: &[u8],
        scratch: &mut Scratch,
        mut take: impl FnMut(&[u64], &mut Vec<u64>) -> Result<(), TextFault>,
    ) -> Result<(), TextFault> {
        scratch.tokens.clear();
        let mut window = RollingWindow::new(self);
        let mut process = |window: &RollingWindow, scratch: &mut Scratch| {
            take(&scratch.tokens[window.carried..], &mut scratch.shingles)
        };
        if self.config.kind == Kind::Byte {
            check_length(document)?;
            for piece in document.chunks(PIECE_BYTES) {
                window.push_bytes(self, piece, scratch);
                process(&window, scratch)?;
            }
        } else {
            let mut text = checked_text(document)?;
            while !text.is_empty() {
                let (piece, rest) = text.split_at(self.piece_end(text)?);
                window.push(self, piece, scratch);
                process(&window, scratch)?;
                text = rest;
            }
        }
        if !window.full {
            scratch.shingles.clear();
            window.finish(self, scratch);
            take(&[], &mut scratch.shingles)?;
        }
        Ok(())
    }

    /// Call `take` with each piece, the words that are not consumed yet, with `SPANS` their spans, and whether it is the
    /// last piece; `take` returns how many words it consumes. Return the number of words.
    ///
    /// # Errors
    /// If the document is not UTF-8, too long or cannot be normalised in pieces; `take` is not called then.
    pub fn words<const SPANS: bool>(
        &self,
        document: &[u8],
        scratch: &mut Scratch,
        mut take: impl FnMut(&str, &[u64], &[[u32; 2]], bool) -> usize,
    ) -> Result<usize, TextFault> {
        let mut text = checked_text(document)?;
        let lengths = self.piece_lengths(text)?;
        let mut normaliser = Normaliser::new(self.config.normalisation);
        let (mut base, mut count) = (0, 0);
        scratch.tokens.clear();
        scratch.spans.clear();
        for length in lengths {
            let (piece, rest) = text.split_at(length);
            let before = scratch.tokens.len();
            if SPANS {
                base += self.hash_words_with_spans(piece, base, &mut normaliser, scratch);
            } else {
                self.hash_tokens(piece, &mut normaliser, &mut scratch.words, &mut scratch.tokens);
            }
            count += scratch.tokens.len() - before;
            let consumed = take(piece, &scratch.tokens, &scratch.spans, rest.is_empty());
            scratch.tokens.drain(..consumed);
            scratch.spans.drain(..consumed.min(scratch.spans.len()));
            text = rest;
        }
        Ok(count)
    }

    /// Return the length of each piece.
    fn piece_lengths(&self, mut text: &str) -> Result<Vec<usize>, TextFault> {
        let mut lengths = Vec::new();
        while !text.is_empty() {
            let length = self.piece_end(text)?;
            lengths.push(length);
            text = &text[length..];
        }
        Ok(lengths)
    }

    /// Return the end of the piece at the start of a text: the last cut within its length, else the next one.
    fn piece_end(&self, text: &str) -> Result<usize, TextFault> {
        if text.len() <= PIECE_BYTES {
            return Ok(text.len());
        }
        let middle = (0..=PIECE_BYTES).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let is_cut = |&(offset, c): &(usize, char)| offset > 0 && splits(self.config.kind, c);
        if let Some((offset, _)) = text[..middle].char_indices().rev().find(is_cut) {
            return Ok(offset);
        }
        let end = text[middle..].char_indices().find(|&(_, c)| splits(self.config.kind, c));
        let end = end.map_or(text.len(), |(offset, _)| middle + offset);
        self.check_segments(&text[..end])?;
        Ok(end)
    }

    /// Check that no segment of a text is too long to be normalised. Shorter pieces cannot have such a segment.
    fn check_segments(&self, text: &str) -> Result<(), TextFault> {
        if !self.config.normalisation.changes_segments() {
            return Ok(());
        }
        let starts = text.char_indices().filter(|&(_, c)| Properties::of(c).starts_segment()).map(|(offset, _)| offset);
        let mut previous = 0;
        for start in starts.chain([text.len()]) {
            if start - previous > MAX_SEGMENT_BYTES {
                return Err(TextFault::LongSegment);
            }
            previous = start;
        }
        Ok(())
    }

    /// Write the signature of a long document to `out`, and its tokens to `content`.
    ///
    /// # Errors
    /// If the document cannot be shingled, or has too many elements where they must be held as a whole.
    pub fn sketch_pieces<C: Scheme>(
        &self,
        document: &[u8],
        scheme: &C,
        scratch: &mut Scratch,
        out: &mut [C::Slot],
        content: &mut ContentState<'_>,
    ) -> Result<(), TextFault> {
        let whole = self.config.bag || !scheme.merges();
        let mut part = out.to_vec();
        let mut first = true;
        self.pieces(document, scratch, |tokens, shingles| {
            content.push(tokens);
            if !whole && (first || !shingles.is_empty()) {
                scheme.sketch(shingles, &mut part);
                let slots = out.iter_mut().zip(&part);
                slots.for_each(|(slot, &value)| *slot = if first { value } else { value.min(*slot) });
                first = false;
            }
            Ok(())
        })?;
        if whole {
            self.distinct_of_pieces(document, scratch)?;
            scheme.sketch(&mut scratch.shingles, out);
        }
        Ok(())
    }

    /// Fill `scratch.shingles` with the distinct and ascending elements of a long document.
    pub(super) fn distinct_of_pieces(&self, document: &[u8], scratch: &mut Scratch) -> Result<(), TextFault> {
        let mut set = ElementMerger { elements: Vec::new(), fresh: Vec::new(), bag: self.config.bag };
        self.pieces(document, scratch, |_, shingles| set.add(shingles))?;
        set.merge()?;
        scratch.shingles = take(&mut set.elements);
        if self.config.bag {
            self.number_occurrences(&mut scratch.shingles);
            scratch.shingles.sort_unstable();
            scratch.shingles.dedup();
        }
        Ok(())
    }
}

/// Window over the tokens of a document that continues from one piece to the next.
pub(super) struct RollingWindow {
    normaliser: Normaliser,
    /// Tokens of earlier pieces at the start of `Scratch::tokens`.
    carried: usize,
    /// Whether a full window was seen, after which a short last window is ignored.
    full: bool,
}

impl RollingWindow {
    /// Create a window at the start of a document.
    pub(super) const fn new(shingler: &Shingler) -> Self {
        Self { normaliser: Normaliser::new(shingler.config.normalisation), carried: 0, full: false }
    }

    /// Replace `scratch.shingles` by the shingles that end in the next piece of text.
    pub(super) fn push(&mut self, shingler: &Shingler, piece: &str, scratch: &mut Scratch) {
        self.carry(shingler, scratch);
        shingler.hash_tokens(piece, &mut self.normaliser, &mut scratch.words, &mut scratch.tokens);
        self.roll(shingler, scratch);
    }

    /// Do the same for a piece of a document of byte tokens.
    pub(super) fn push_bytes(&mut self, shingler: &Shingler, piece: &[u8], scratch: &mut Scratch) {
        self.carry(shingler, scratch);
        scratch.tokens.extend(piece.iter().map(|&byte| shingler.characters.byte(byte)));
        self.roll(shingler, scratch);
    }

    /// Append the shingle of a document that is shorter than the window.
    pub(super) fn finish(&self, shingler: &Shingler, scratch: &mut Scratch) {
        if !self.full {
            shingler.roll(&scratch.tokens, |&hash| hash, &mut scratch.shingles);
        }
    }

    fn carry(&mut self, shingler: &Shingler, scratch: &mut Scratch) {
        self.carried = scratch.tokens.len().min(shingler.config.size - 1);
        scratch.tokens.drain(..scratch.tokens.len() - self.carried);
    }

    fn roll(&mut self, shingler: &Shingler, scratch: &mut Scratch) {
        scratch.shingles.clear();
        if scratch.tokens.len() >= shingler.config.size {
            self.full = true;
            shingler.roll(&scratch.tokens, |&hash| hash, &mut scratch.shingles);
        }
    }
}

/// Return whether text can be cut before `c` and tokenised in pieces under every option.
pub(super) fn splits(kind: Kind, c: char) -> bool {
    if kind == Kind::Word { splits_words(c) } else { Properties::of(c).starts_segment() }
}

/// Return whether a word ends before `c` under every option: white space is never dropped, and a character of a script
/// without spaces starts a word, unless it is a digit, which may be masked by an ordinary one.
fn splits_words(c: char) -> bool {
    let properties = Properties::of(c);
    let standalone =
        matches!(FoldedEntry::of(c).unpack(c), Folded::Simple(_, Class::Standalone)) && !properties.is_digit();
    properties.starts_segment() && (properties.is_whitespace() || standalone)
}

/// Elements that are sorted and merged in portions; those of a bag are only collected, because all are counted.
struct ElementMerger {
    elements: Vec<u64>,
    fresh: Vec<u64>,
    bag: bool,
}

impl ElementMerger {
    /// Add elements in any order.
    fn add(&mut self, elements: &[u64]) -> Result<(), TextFault> {
        self.fresh.extend_from_slice(elements);
        if self.fresh.len() >= MERGED_ELEMENTS { self.merge() } else { Ok(()) }
    }

    fn merge(&mut self) -> Result<(), TextFault> {
        if self.bag {
            self.elements.extend_from_slice(&self.fresh);
        } else {
            self.fresh.sort_unstable();
            self.fresh.dedup();
            merge_into(&mut self.elements, &mut self.fresh);
        }
        self.fresh.clear();
        if self.elements.len() > MAX_ELEMENTS { Err(TextFault::TooManyElements) } else { Ok(()) }
    }
}

/// Merge ascending `more` into ascending `all`, from the back, so that no third buffer is needed.
fn merge_into(all: &mut Vec<u64>, more: &mut Vec<u64>) {
    if all.is_empty() {
        return swap(all, more);
    }
    let (mut left, mut right) = (all.len(), more.len());
    let mut end = left + right;
    all.resize(end, 0);
    while right > 0 {
        let value = more[right - 1];
        let larger = left > 0 && all[left - 1] > value;
        left -= usize::from(left > 0 && all[left - 1] >= value);
        right -= usize::from(!larger);
        end -= 1;
        all[end] = if larger { all[left] } else { value };
    }
    all.drain(left..end);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::hash::mix;
    use crate::normalise::Normalisation;
    use crate::shingle::ShingleConfig;
    use crate::sketch::{FastSketch, MinHash, OnePermutation, Slot as _};

    fn shingler(kind: Kind, size: usize, bag: bool) -> Arc<Shingler> {
        let config = ShingleConfig { kind, size, bag, narrow: false, seed: 1, normalisation: Normalisation::default() };
        Arc::new(Shingler::new(config, true))
    }

    fn texts() -> Vec<String> {
        let fragments = ["word ", "ﷺ", "e\u{301}", "漢字", " ", "x", "ที่", "\u{323}\u{301}", "각", "İ"];
        let mixed = |number: u64| -> String {
            (0..200_000).map(|i| fragments[(mix(number * 1_000_000 + i) % fragments.len() as u64) as usize]).collect()
        };
        vec![
            mixed(1),
            "x".repeat(2 * PIECE_BYTES),
            " ".repeat(2 * PIECE_BYTES),
            format!("{} {}", "a b ".repeat(PIECE_BYTES / 8), "é".repeat(PIECE_BYTES / 2)),
            format!("a{}", "\u{301}".repeat(PIECE_BYTES / 2 - 10)),
        ]
    }

    #[test]
    fn pieces_equal_the_whole_document() {
        for (kind, size) in [(Kind::Word, 3), (Kind::Char, 5), (Kind::Byte, 8), (Kind::Word, 10_000)] {
            for bag in [false, true] {
                let shingler = shingler(kind, size, bag);
                for text in texts() {
                    check(&shingler, text.as_bytes());
                }
            }
        }
    }

    fn check(shingler: &Shingler, text: &[u8]) {
        let (mut whole, mut scratch) = (Scratch::default(), Scratch::default());
        shingler.elements(text, &mut whole).unwrap();
        let hasher = shingler.content_hasher();
        let content = shingler.content(text, &hasher, &mut whole);
        whole.shingles.sort_unstable();
        whole.shingles.dedup();
        shingler.distinct(text, &mut scratch).unwrap();
        assert!(scratch.shingles == whole.shingles);
        check_scheme(shingler, text, &FastSketch::new(64, 1, true), &whole.shingles, content);
        check_scheme(shingler, text, &MinHash::new(8, 1, true), &whole.shingles, content);
        let densified = OnePermutation::new(64, 1, Some(crate::sketch::Densify::Optimal));
        check_scheme(shingler, text, &densified, &whole.shingles, content);
    }

    fn check_scheme<C: Scheme>(shingler: &Shingler, text: &[u8], scheme: &C, set: &[u64], content: [u64; 2])
    where
        C::Slot: std::fmt::Debug,
    {
        let mut expected = vec![C::Slot::EMPTY; scheme.slots()];
        scheme.sketch(&mut set.to_vec(), &mut expected);
        let (mut out, hasher) = (vec![C::Slot::EMPTY; scheme.slots()], shingler.content_hasher());
        let mut state = hasher.start();
        shingler.sketch_pieces(text, scheme, &mut Scratch::default(), &mut out, &mut state).unwrap();
        assert_eq!(out, expected);
        assert_eq!(state.finish(), content);
    }

    #[test]
    fn merged_elements_equal_sorted_ones() {
        for (left, right) in [(0, 5), (5, 0), (1000, 3), (3, 1000), (700, 700)] {
            let numbers = |count: u64, seed: u64| -> Vec<u64> {
                let mut numbers: Vec<u64> = (0..count).map(|i| mix(seed + i) % 1500).collect();
                numbers.sort_unstable();
                numbers.dedup();
                numbers
            };
            let (mut all, mut more) = (numbers(left, 1), numbers(right, 10_000));
            let mut expected = [all.clone(), more.clone()].concat();
            expected.sort_unstable();
            expected.dedup();
            merge_into(&mut all, &mut more);
            assert_eq!(all, expected);
        }
    }

    #[test]
    fn too_many_elements_are_a_fault() {
        let text: Vec<u8> = (0..MAX_ELEMENTS as u64 / 8 + 2).flat_map(|i| mix(i).to_le_bytes()).collect();
        let fault = shingler(Kind::Byte, 8, false).distinct(&text, &mut Scratch::default());
        assert_eq!(fault, Err(TextFault::TooManyElements));
        let bag = shingler(Kind::Char, 1, true).distinct(&vec![b'a'; MAX_ELEMENTS + 1], &mut Scratch::default());
        assert_eq!(bag, Err(TextFault::TooManyElements));
    }

    #[test]
    fn endless_marks_are_a_fault() {
        for kind in [Kind::Word, Kind::Char] {
            let text = format!("a{}b", "\u{301}".repeat(MAX_SEGMENT_BYTES / 2));
            let fault = shingler(kind, 1, false).distinct(text.as_bytes(), &mut Scratch::default());
            assert_eq!(fault, Err(TextFault::LongSegment));
        }
    }
}
