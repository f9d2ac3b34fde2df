//! General normaliser: every option, with the span of each character in the original text.
//!
//! [`crate::fast_words`] is the fast path for words under the default options.

use unicode_normalization::UnicodeNormalization as _;

use crate::unicode::{Folded, FoldedEntry, Properties, lowercase};

/// Changes to a text before it is tokenised, applied in the order of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "the user chooses six independent options")]
pub struct Normalisation {
    /// Unicode normalisation form KC.
    pub nfkc: bool,
    /// Decompose canonically, drop U+0300–U+036F and recompose.
    pub strip_accents: bool,
    /// Convert each character to lower case by itself.
    pub lowercase: bool,
    /// Drop punctuation and symbols.
    pub strip_punctuation: bool,
    /// Replace each decimal digit by `0`.
    pub mask_digits: bool,
    /// Replace each run of white space by one space, and drop it at both ends.
    pub collapse_whitespace: bool,
}

impl Default for Normalisation {
    fn default() -> Self {
        Self {
            nfkc: true,
            strip_accents: false,
            lowercase: true,
            strip_punctuation: false,
            mask_digits: false,
            collapse_whitespace: true,
        }
    }
}

impl Normalisation {
    /// Return whether words are the same as under the default options; white space is never part of a word.
    #[must_use]
    pub fn is_default_for_words(self) -> bool {
        self == Self { collapse_whitespace: self.collapse_whitespace, ..Self::default() }
    }

    pub(crate) const fn changes_segments(self) -> bool {
        self.nfkc || self.strip_accents
    }
}

/// Half-open range of code points of the original text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First code point.
    pub start: usize,
    /// One past the last code point.
    pub end: usize,
}

/// Normaliser of a text in pieces; every piece but the first must start at a segment start.
#[derive(Clone, Debug)]
pub struct Normaliser {
    options: Normalisation,
    position: usize,
    started: bool,
    pending_space: Option<Span>,
}

impl Normaliser {
    /// Create a normaliser at the start of a text.
    #[must_use]
    pub const fn new(options: Normalisation) -> Self {
        Self { options, position: 0, started: false, pending_space: None }
    }

    /// Call `emit` with each normalised character of `piece` and its span in the whole text.
    pub fn push(&mut self, piece: &str, mut emit: impl FnMut(char, Span)) {
        let mut rest = piece.chars();
        let mut text = piece;
        while let Some(first) = rest.next() {
            let followed_by_ascii = rest.as_str().as_bytes().first().is_none_or(u8::is_ascii);
            let is_single = followed_by_ascii || self.starts_segment(rest.as_str());
            if is_single && self.push_single(first, &mut emit) {
                text = rest.as_str();
                continue;
            }
            let (length, code_points) = self.segment(text);
            let span = self.advance(code_points);
            let (segment, remainder) = text.split_at(length);
            self.normalise_segment(segment, span, &mut emit);
            (text, rest) = (remainder, remainder.chars());
        }
    }

    fn advance(&mut self, code_points: usize) -> Span {
        let start = self.position;
        self.position += code_points;
        Span { start, end: self.position }
    }

    /// Process a character that is a segment by itself with one table lookup; return false if the lookup is not
    /// sufficient.
    #[inline(always)]
    fn push_single(&mut self, c: char, emit: &mut impl FnMut(char, Span)) -> bool {
        if self.options.strip_accents && !c.is_ascii() {
            return false;
        }
        match FoldedEntry::of(c).unpack(c) {
            Folded::Simple(lower, _) => {
                let span = self.advance(1);
                self.filter(if self.options.lowercase { lower } else { c }, span, emit);
            }
            Folded::Replacement(folded) if self.options.nfkc && self.options.lowercase => {
                let span = self.advance(1);
                folded.chars().for_each(|c| self.filter(c, span, emit));
            }
            _ => return false,
        }
        true
    }

    #[inline]
    fn starts_segment(&self, text: &str) -> bool {
        !self.options.changes_segments() || text.chars().next().is_none_or(|c| Properties::of(c).starts_segment())
    }

    /// Return the length of the segment at the start of `text` in bytes and in code points.
    fn segment(&self, text: &str) -> (usize, usize) {
        let mut rest = text.chars();
        let mut code_points = 0;
        while rest.next().is_some() {
            code_points += 1;
            if self.starts_segment(rest.as_str()) {
                break;
            }
        }
        (text.len() - rest.as_str().len(), code_points)
    }

    fn normalise_segment(&mut self, segment: &str, span: Span, emit: &mut impl FnMut(char, Span)) {
        match (self.options.nfkc, self.options.strip_accents) {
            (true, true) => strip_accents(segment.nfkc()).for_each(|c| self.lower(c, span, emit)),
            (true, false) => segment.nfkc().for_each(|c| self.lower(c, span, emit)),
            (false, true) => strip_accents(segment.chars()).for_each(|c| self.lower(c, span, emit)),
            (false, false) => segment.chars().for_each(|c| self.lower(c, span, emit)),
        }
    }

    #[inline]
    fn lower(&mut self, c: char, span: Span, emit: &mut impl FnMut(char, Span)) {
        if self.options.lowercase {
            lowercase(c).for_each(|c| self.filter(c, span, emit));
        } else {
            self.filter(c, span, emit);
        }
    }

    #[inline(always)]
    fn filter(&mut self, c: char, span: Span, emit: &mut impl FnMut(char, Span)) {
        let properties = Properties::of(c);
        if self.options.strip_punctuation && properties.is_punctuation() {
            return;
        }
        let c = if self.options.mask_digits && properties.is_digit() { '0' } else { c };
        if self.options.collapse_whitespace {
            if properties.is_whitespace() {
                let start = self.pending_space.map_or(span.start, |space| space.start);
                self.pending_space = Some(Span { start, end: span.end });
                return;
            }
            if let Some(space) = self.pending_space.take().filter(|_| self.started) {
                emit(' ', space);
            }
            self.started = true;
        }
        emit(c, span);
    }
}

fn strip_accents(characters: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    characters.nfd().filter(|c| !('\u{300}'..='\u{36F}').contains(c)).nfc()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(text: &str, options: Normalisation) -> String {
        let mut out = String::new();
        Normaliser::new(options).push(text, |c, _| out.push(c));
        out
    }

    #[test]
    fn each_option_changes_only_its_characters() {
        let plain = Normalisation {
            nfkc: false,
            strip_accents: false,
            lowercase: false,
            strip_punctuation: false,
            mask_digits: false,
            collapse_whitespace: false,
        };
        let cases = [
            (plain, "Ａ ﬁ  É1!", "Ａ ﬁ  É1!"),
            (Normalisation { nfkc: true, ..plain }, "Ａ ﬁ e\u{301}", "A fi é"),
            (Normalisation { strip_accents: true, ..plain }, "É e\u{301} й ø", "E e и ø"),
            (Normalisation { lowercase: true, ..plain }, "ÀΣİ", "àσi\u{307}"),
            (Normalisation { strip_punctuation: true, ..plain }, "don't $5 – x", "dont 5  x"),
            (Normalisation { mask_digits: true, ..plain }, "19 ٣ ½", "00 0 ½"),
            (Normalisation { collapse_whitespace: true, ..plain }, " a \t\n\u{3000} b ", "a b"),
        ];
        for (options, text, expected) in cases {
            assert_eq!(normalised(text, options), expected, "{options:?}");
        }
    }
}
