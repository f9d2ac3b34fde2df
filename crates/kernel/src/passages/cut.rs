//! Cuts: what is removed from a text of which some tokens are covered by repeated passages.
//!
//! A *unit* is a line, a sentence (see [`crate::units`]) or a token; only whole units are cut whose tokens are all covered. What lies between
//! two tokens is a *gap*. A run of units has a gap on both sides, of which one is left: a gap consists of what belongs
//! to the token before it, a middle, and what belongs to the token after it. What belongs to tokens that stay, stays,
//! and so does one of the middles: the one with more line breaks, or the first of two with as many.

use std::collections::VecDeque;
use std::ops::Range;

use crate::batch::{Texts, run_tasks};
use crate::error::{TextError, TextFault, checked_text};
use crate::shingle::{Scratch, Shingler};
use crate::unicode::{Class, Properties};
use crate::units::{Unit, UnitStarts};

/// Units at the end of a run that are remembered: some may have to stay, because the words around the run would become
/// one without them.
const TAIL: usize = 8;

/// Piece that is cut out of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// First code point, and one past the last.
    pub points: [u32; 2],
    /// First byte, and one past the last.
    pub bytes: [usize; 2],
    /// Number of tokens.
    pub tokens: u32,
}

/// Position in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Point {
    code_point: u32,
    byte: usize,
}

/// Consecutive tokens: where they start and end, and how many there are.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    start: Point,
    end: Point,
    count: u32,
}

impl Tokens {
    fn push(&mut self, next: Self) {
        let start = if self.count == 0 { next.start } else { self.start };
        *self = Self { start, end: next.end, count: self.count + next.count };
    }
}

/// Return the cuts of each text, of which ascending and disjoint spans of code points are covered; or its fault.
#[must_use]
pub fn cut_texts<O>(
    shingler: &Shingler,
    texts: Texts<'_, O>,
    covered: &[&[[u32; 2]]],
    snap: Option<Unit>,
    threads: usize,
) -> Vec<Result<Vec<Cut>, TextFault>>
where
    O: Copy + TryInto<usize> + Sync,
{
    let parts = run_tasks(threads, texts.tasks(), |scratch, documents: Range<usize>| {
        let cuts = documents.map(|i| cut_text(shingler, texts.get(i), covered[i], snap, scratch));
        Ok::<_, TextError>(cuts.collect::<Vec<_>>())
    });
    parts.unwrap_or_default().into_iter().flatten().collect() // a task has no error of its own
}

fn cut_text(
    shingler: &Shingler,
    document: &[u8],
    covered: &[[u32; 2]],
    snap: Option<Unit>,
    scratch: &mut Scratch,
) -> Result<Vec<Cut>, TextFault> {
    let mut cutter = Cutter::new(checked_text(document)?, covered, snap);
    if !covered.is_empty() {
        shingler.words::<true>(document, scratch, |_, _, spans, _| {
            for &span in spans {
                cutter.add(span);
            }
            spans.len()
        })?;
    }
    Ok(cutter.finish())
}

/// Function from the tokens of a text, one after the other, to its cuts.
struct Cutter<'t> {
    text: &'t str,
    covered: &'t [[u32; 2]],
    snap: Option<Unit>,
    /// The last token.
    last: Option<Tokens>,
    /// End of the last token that stays.
    kept: Option<Point>,
    /// Units that are cut, and the last of them.
    run: Tokens,
    tail: VecDeque<Tokens>,
    /// Tokens of the unit that is not complete, and whether all of them are covered.
    unit: Tokens,
    unit_is_covered: bool,
    cuts: Vec<Cut>,
}

impl<'t> Cutter<'t> {
    fn new(text: &'t str, covered: &'t [[u32; 2]], snap: Option<Unit>) -> Self {
        let (run, unit) = (Tokens::default(), Tokens::default());
        let (tail, cuts) = (VecDeque::new(), Vec::new());
        Self { text, covered, snap, last: None, kept: None, run, tail, unit, unit_is_covered: true, cuts }
    }

    fn add(&mut self, span: [u32; 2]) {
        let before = self.last.map_or_else(Point::default, |token| token.end);
        // The tokens of ½ share a character, so they are in one unit.
        let start = self.point(before, span[0].max(before.code_point));
        let token = Tokens { start, end: self.point(start, span[1].max(start.code_point)), count: 1 };
        let is_apart = self.last.is_none() || span[0] >= before.code_point && self.starts_unit(before, start);
        if is_apart {
            self.end_unit();
        }
        self.unit_is_covered &= self.is_covered(span);
        self.unit.push(token);
        if !self.unit_is_covered {
            self.end_run(Some(self.unit.start));
            self.kept = Some(token.end);
        }
        self.last = Some(token);
    }

    /// Return the position of a code point that is not before `from`.
    fn point(&self, from: Point, code_point: u32) -> Point {
        let rest = &self.text[from.byte..];
        let count = (code_point - from.code_point) as usize;
        let bytes = match rest.as_bytes().get(..count) {
            Some(bytes) if bytes.is_ascii() => count,
            _ => rest.char_indices().nth(count).map_or(rest.len(), |(byte, _)| byte),
        };
        Point { code_point, byte: from.byte + bytes }
    }

    /// Return whether a unit starts after the token that ends at `end`, and not after the one that starts at `start`.
    fn starts_unit(&self, end: Point, start: Point) -> bool {
        let Some(unit) = self.snap else { return true };
        let mut starts = UnitStarts::new(unit);
        let mut gap = self.text[end.byte..start.byte].chars().chain(self.text[start.byte..].chars().take(1));
        gap.any(|c| starts.starts_before(c, is_space(c)))
    }

    fn is_covered(&mut self, [start, end]: [u32; 2]) -> bool {
        let before = self.covered.iter().take_while(|cover| cover[1] < end).count();
        self.covered = &self.covered[before..];
        self.covered.first().is_some_and(|cover| cover[0] <= start)
    }

    /// Add a complete unit to the run if all its tokens are covered.
    fn end_unit(&mut self) {
        if self.unit_is_covered && self.unit.count > 0 {
            self.run.push(self.unit);
            self.tail.push_back(self.unit);
            if self.tail.len() > TAIL {
                self.tail.pop_front();
            }
        }
        self.unit = Tokens::default();
        self.unit_is_covered = true;
    }

    fn finish(mut self) -> Vec<Cut> {
        self.end_unit();
        self.end_run(None);
        self.cuts
    }

    /// Cut the run; the next token starts at `next`.
    fn end_run(&mut self, mut next: Option<Point>) {
        while self.run.count > 0 {
            if let Some([start, end]) = self.bounds(next) {
                let points = [start.code_point, end.code_point];
                self.cuts.push(Cut { points, bytes: [start.byte, end.byte], tokens: self.run.count });
                break;
            }
            next = self.shorten();
        }
        self.run = Tokens::default();
        self.tail.clear();
    }

    /// Leave the last unit of the run where it is; return where it starts. If it is not remembered, all units stay.
    fn shorten(&mut self) -> Option<Point> {
        let last = self.tail.pop_back()?;
        self.run.count -= last.count;
        match self.tail.back() {
            Some(before) => self.run.end = before.end,
            None => self.run.count = 0,
        }
        Some(last.start)
    }

    /// Return start and end of the cut of the run; none if the words around it would become one.
    fn bounds(&self, next: Option<Point>) -> Option<[Point; 2]> {
        Some(match (self.kept, next) {
            (None, None) => [Point::default(), self.forward(Point::default(), self.text.len())],
            (None, Some(next)) => {
                let prefix = &self.text[..self.run.start.byte];
                let start = prefix.len() - prefix.trim_start_matches(is_space).len();
                [self.forward(Point::default(), start), self.gap(self.run.end, next).middle[1]]
            }
            (Some(kept), None) => {
                let suffix = &self.text[self.run.end.byte..];
                let left = suffix.trim_end_matches(is_space).len();
                [self.gap(kept, self.run.start).middle[0], self.forward(self.run.end, left)]
            }
            (Some(kept), Some(next)) => return self.bounds_between(kept, next),
        })
    }

    fn bounds_between(&self, kept: Point, next: Point) -> Option<[Point; 2]> {
        let (before, after) = (self.gap(kept, self.run.start), self.gap(self.run.end, next));
        match (before.is_split(), after.is_split()) {
            (false, false) if kept != self.run.start => Some([self.run.start, next]),
            (false, false) if next != self.run.end => Some([self.run.start, self.run.end]),
            (false, false) if self.is_joined(kept, next) => None,
            (true, true) if before.breaks < after.breaks => Some([before.middle[0], after.middle[0]]),
            (false, true) => Some([before.middle[0], after.middle[0]]),
            _ => Some([before.middle[1], after.middle[1]]),
        }
    }

    /// Return whether the words that end and start at two positions would be one without anything between them.
    fn is_joined(&self, end: Point, start: Point) -> bool {
        let is_alone = |c: char| Properties::of(c).class() == Class::Standalone;
        let is_mark = |c: &char| Properties::of(*c).class() == Class::Mark;
        let last = self.text[..end.byte].chars().rev().find(|c| !is_mark(c));
        let first = self.text[start.byte..].chars().next();
        !last.is_some_and(is_alone) && !first.is_some_and(is_alone)
    }

    fn gap(&self, start: Point, end: Point) -> Gap {
        let text = &self.text[start.byte..end.byte];
        let Some(first) = text.find(is_space) else { return Gap { middle: [end, end], breaks: 0 } };
        let after = text.rfind(is_break).or_else(|| text.rfind(is_space)).unwrap_or(first);
        let length = text[after..].chars().next().map_or(0, char::len_utf8);
        let middle = [self.forward(start, first), self.forward(start, after + length)];
        Gap { middle, breaks: breaks(text) }
    }

    /// Return the position `bytes` after another one.
    fn forward(&self, from: Point, bytes: usize) -> Point {
        let passed = &self.text[from.byte..from.byte + bytes];
        Point { code_point: from.code_point + passed.chars().count() as u32, byte: from.byte + bytes }
    }
}

/// Middle of a gap, and the line breaks in it; without white space, all of the gap belongs to the token before it.
struct Gap {
    middle: [Point; 2],
    breaks: usize,
}

impl Gap {
    fn is_split(&self) -> bool {
        self.middle[0] != self.middle[1]
    }
}

fn is_space(c: char) -> bool {
    Properties::of(c).is_whitespace()
}

const fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Return the number of line breaks; CR LF is one.
fn breaks(gap: &str) -> usize {
    gap.chars().filter(|&c| is_break(c)).count() - gap.matches("\r\n").count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalise::Normalisation;
    use crate::shingle::{Kind, ShingleConfig};

    /// Return the text without its cuts; `«` and `»` mark what is covered.
    fn rest(marked: &str, snap: Option<Unit>) -> String {
        let (mut text, mut covered) = (String::new(), Vec::new());
        for (number, piece) in marked.split(['«', '»']).enumerate() {
            let start = text.chars().count() as u32;
            text += piece;
            if number % 2 == 1 {
                covered.push([start, text.chars().count() as u32]);
            }
        }
        let normalisation = Normalisation::default();
        let config = ShingleConfig { kind: Kind::Word, size: 1, bag: false, narrow: false, seed: 1, normalisation };
        let shingler = Shingler::new(config, true);
        let cuts = cut_text(&shingler, text.as_bytes(), &covered, snap, &mut Scratch::default()).unwrap();
        let mut left = text.clone();
        for cut in cuts.iter().rev() {
            let by_points: String =
                text.chars().skip(cut.points[0] as usize).take((cut.points[1] - cut.points[0]) as usize).collect();
            assert_eq!(by_points, text[cut.bytes[0]..cut.bytes[1]]);
            left.replace_range(cut.bytes[0]..cut.bytes[1], "");
        }
        left
    }

    #[test]
    fn one_separator_stays() {
        for (marked, expected) in [
            ("A. «B b». C", "A. C"),
            ("A, «B b», C", "A, C"),
            ("He said: \"«B b»!\" Then", "He said: Then"),
            ("A («B b») \"C\"", "A \"C\""),
            ("A.\n\n«B b». C", "A.\n\nC"),
            ("A. «B b».\n\nC", "A.\n\nC"),
            ("A\n# «B b»\nC", "A\nC"),
            ("A\n- «B b»\n- C", "A\n- C"),
            ("A\r\n\r\n«B b»\r\nC", "A\r\n\r\nC"),
            ("«B b». C", "C"),
            ("\n# «B b»\n\nC", "\nC"),
            ("A. «B b».\n", "A.\n"),
            ("A. «B b»", "A."),
            ("\n«B b».\n", ""),
            ("A «b» C «b» D", "A C D"),
            ("A «b» «c» D", "A D"),
            ("甲。«乙乙»。丙", "甲。丙"),
            ("甲«乙乙»丙", "甲丙"),
            ("甲«乙乙»。丙", "甲。丙"),
            ("ab«乙乙»cd", "ab乙cd"),
            ("ab«乙»cd", "ab乙cd"),
            ("ab«乙乙»丁", "ab丁"),
            ("a-«b»-c", "a-c"),
            ("a«乙»-c", "a-c"),
            ("x½«y» z", "x½y z"),
            ("a🙂«b»🙂c", "a🙂c"),
            ("a «e\u{301}» o\u{308}", "a o\u{308}"),
        ] {
            assert_eq!(rest(marked, None), expected, "{marked:?}");
        }
    }

    #[test]
    fn only_whole_lines_and_sentences_are_cut() {
        for (marked, snap, expected) in [
            ("a «b\nc d\ne» f\ng", Some(Unit::Line), "a b\ne f\ng"),
            ("a «b» c\nd", Some(Unit::Line), "a b c\nd"),
            ("«a\n\nb»\nc", Some(Unit::Line), "c"),
            ("a\n«b»", Some(Unit::Line), "a"),
            ("a b. «C d! E» f.", Some(Unit::Sentence), "a b. E f."),
            ("a «b. C d.» \"E f.\"", Some(Unit::Sentence), "a b. \"E f.\""),
            ("a\n\n«b\nc»\n\nd", Some(Unit::Sentence), "a\n\nd"),
            ("a\n«b\nc»\nd", Some(Unit::Sentence), "a\nb\nc\nd"),
            ("甲。«乙。丙»丁。", Some(Unit::Sentence), "甲。丙丁。"),
        ] {
            assert_eq!(rest(marked, snap), expected, "{marked:?}");
        }
    }
}
