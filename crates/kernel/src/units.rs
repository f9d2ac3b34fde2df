//! Units of a text: lines, sentences and paragraphs.
//!
//! A unit ends where the next one starts, so every character is in one unit. A *line* starts after a line break: CR LF,
//! or one of LF, CR, U+0085, U+2028 and U+2029. A *paragraph* starts after white space with two line breaks or more. A
//! *sentence* starts where a paragraph does, and after the end of a sentence: a run of terminators and closing quotes
//! or brackets, and white space after it. White space may be missing if one of the terminators is of the scripts that
//! are written without spaces. The rule knows no abbreviations: `Dr. Who` is two sentences.
//!
//! All rules decide by the characters before, so a text can be read in pieces.

use std::ops::Range;

use crate::unicode::Properties;

/// Maximum number of words of a unit. A longer one is divided into units of this many, so that their words fit in memory.
pub const MAX_UNIT_WORDS: usize = 65_535;

/// Quotes and brackets that close.
const CLOSING: &str = ")]}\"'’”»›」』】》〉〕）］｝｣＂＇";
/// Quotes that close in some languages and open in others; they do not close where the next sentence may follow without
/// white space.
const CLOSING_BEFORE_SPACE: &str = "“‘«‹";

/// Kind of unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Text up to a line break.
    Line,
    /// Text up to a terminator, or to the end of the paragraph.
    Sentence,
    /// Text up to a blank line.
    Paragraph,
}

/// How far the end of a sentence has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    None,
    /// After terminators that end a sentence only before white space.
    Marked,
    /// After terminators of which one needs no white space.
    Wide,
    /// After the white space that follows terminators.
    Complete,
}

/// Function that finds the starts of the units of a text, which it reads once.
#[derive(Debug)]
pub struct UnitStarts {
    unit: Unit,
    last: char,
    /// Line breaks in the white space that has been read last.
    breaks: u32,
    end: End,
}

impl UnitStarts {
    /// Create a function at the start of a text.
    #[must_use]
    pub const fn new(unit: Unit) -> Self {
        Self { unit, last: '\0', breaks: 0, end: End::None }
    }

    /// Read the next character; return whether a unit starts before it.
    #[inline(always)]
    pub fn starts_before(&mut self, c: char, is_space: bool) -> bool {
        let joins = self.last == '\r' && c == '\n';
        let starts = match self.unit {
            Unit::Line => is_break(self.last) && !joins,
            Unit::Paragraph => !is_space && self.breaks >= 2,
            Unit::Sentence => !is_space && (self.breaks >= 2 || self.end.is_before(c)),
        };
        self.breaks = if is_space { self.breaks + u32::from(is_break(c) && !joins) } else { 0 };
        if self.unit == Unit::Sentence {
            self.end = self.end.after(c, is_space);
        }
        self.last = c;
        starts
    }
}

impl End {
    /// Return whether the sentence ends before `c`, which is not white space.
    fn is_before(self, c: char) -> bool {
        self == Self::Complete || self == Self::Wide && !is_terminator(c) && !is_wide(c) && !closes(c, self)
    }

    fn after(self, c: char, is_space: bool) -> Self {
        if is_space {
            return if self == Self::None { Self::None } else { Self::Complete };
        }
        match self {
            _ if is_wide(c) => Self::Wide,
            Self::Wide if is_terminator(c) => Self::Wide,
            _ if is_terminator(c) => Self::Marked,
            Self::Marked | Self::Wide if closes(c, self) => self,
            _ => Self::None,
        }
    }
}

const fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Return whether a character ends a sentence before white space.
const fn is_terminator(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '‼' | '⁇' | '⁈' | '⁉' | '؟' | '۔' | '।' | '॥' | '．')
}

/// Return whether a character ends a sentence without white space.
const fn is_wide(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '｡')
}

/// Return whether a quote or bracket closes after terminators.
fn closes(c: char, end: End) -> bool {
    CLOSING.contains(c) || end == End::Marked && CLOSING_BEFORE_SPACE.contains(c)
}

/// Reader of a text in pieces that finds the words of each unit: those that start in it.
#[derive(Debug)]
pub struct UnitReader {
    starts: UnitStarts,
    /// Code points that have been read.
    position: u32,
    /// Span of the open unit without white space at its ends.
    span: Option<[u32; 2]>,
    /// Whether a part of the open unit is a unit of its own.
    divided: bool,
}

impl UnitReader {
    /// Create a reader at the start of a text.
    #[must_use]
    pub const fn new(unit: Unit) -> Self {
        Self { starts: UnitStarts::new(unit), position: 0, span: None, divided: false }
    }

    /// Read the next piece; call `emit` with the words and the span of each unit that ends in it. Return the number of
    /// words up to the open unit.
    ///
    /// `spans` are those of the words that are not consumed yet, up to the end of the piece.
    pub fn read(
        &mut self,
        piece: &str,
        spans: &[[u32; 2]],
        last: bool,
        mut emit: impl FnMut(Range<usize>, [u32; 2]),
    ) -> usize {
        let mut consumed = 0;
        for c in piece.chars() {
            let is_space = Properties::of(c).is_whitespace();
            if self.starts.starts_before(c, is_space) {
                consumed = self.close(spans, consumed, &mut emit);
            }
            if !is_space {
                let start = self.span.map_or(self.position, |span| span[0]);
                self.span = Some([start, self.position + 1]);
            }
            self.position += 1;
        }
        if last { self.close(spans, consumed, &mut emit) } else { self.divide_open(spans, consumed, &mut emit) }
    }

    /// End the open unit before the current position.
    fn close(&mut self, spans: &[[u32; 2]], first: usize, emit: &mut impl FnMut(Range<usize>, [u32; 2])) -> usize {
        let end = first + spans[first..].iter().take_while(|span| span[0] < self.position).count();
        let divided = std::mem::take(&mut self.divided) || end - first > MAX_UNIT_WORDS;
        match self.span.take() {
            Some(span) if !divided => emit(first..end, span),
            _ => divide(spans, first..end, emit),
        }
        end
    }

    /// Emit parts of the open unit if it has too many words.
    fn divide_open(
        &mut self,
        spans: &[[u32; 2]],
        first: usize,
        emit: &mut impl FnMut(Range<usize>, [u32; 2]),
    ) -> usize {
        let parts = (spans.len() - first).saturating_sub(1) / MAX_UNIT_WORDS;
        let end = first + parts * MAX_UNIT_WORDS;
        self.divided |= parts > 0;
        divide(spans, first..end, emit);
        end
    }
}

fn divide(spans: &[[u32; 2]], words: Range<usize>, emit: &mut impl FnMut(Range<usize>, [u32; 2])) {
    for start in words.clone().step_by(MAX_UNIT_WORDS) {
        let end = words.end.min(start + MAX_UNIT_WORDS);
        emit(start..end, [spans[start][0], spans[end - 1][1]]);
    }
}

/// Return the code point at which each unit of a text starts; the first is 0.
#[must_use]
pub fn unit_starts(text: &str, unit: Unit) -> Vec<u64> {
    let mut starts = UnitStarts::new(unit);
    let is_start =
        |&(position, c): &(u64, char)| starts.starts_before(c, Properties::of(c).is_whitespace()) || position == 0;
    (0..).zip(text.chars()).filter(is_start).map(|(position, _)| position).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str, unit: Unit) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        let mut bounds: Vec<usize> = unit_starts(text, unit).into_iter().map(|start| start as usize).collect();
        bounds.push(characters.len());
        bounds.windows(2).map(|ends| characters[ends[0]..ends[1]].iter().collect()).collect()
    }

    #[test]
    fn lines_end_after_their_break() {
        assert_eq!(
            units("a\r\nb\r\rc\n\n d\u{2028}e", Unit::Line),
            ["a\r\n", "b\r", "\r", "c\n", "\n", " d\u{2028}", "e"]
        );
        assert!(units("", Unit::Line).is_empty());
    }

    #[test]
    fn paragraphs_end_after_blank_lines() {
        assert_eq!(units("a\nb\r\n \t\r\n c\r\nd", Unit::Paragraph), ["a\nb\r\n \t\r\n ", "c\r\nd"]);
    }

    #[test]
    fn sentences_end_after_terminators_and_closing_quotes() {
        let cases: [(&str, &[&str]); 6] = [
            ("One 3.14.  “Two!” (Three?)\nfour", &["One 3.14.  ", "“Two!” ", "(Three?)\n", "four"]),
            ("一。「二！」三？？四。“五”", &["一。", "「二！」", "三？？", "四。", "“五”"]),
            ("„Ja.“ Er geht", &["„Ja.“ ", "Er geht"]),
            ("Title\n\nNo end\nhere... yes", &["Title\n\n", "No end\nhere... ", "yes"]),
            ("क्या? हाँ। ठीक", &["क्या? ", "हाँ। ", "ठीक"]),
            ("file.txt is!=this", &["file.txt is!=this"]),
        ];
        for (text, expected) in cases {
            assert_eq!(units(text, Unit::Sentence), expected);
        }
    }
}
