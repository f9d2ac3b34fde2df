//! Byte offsets of code points in stored texts: UTF-8 as it is, or with the escape sequences of JSON.
//!
//! A cut is given in code points of a text, and removes bytes of the row that holds it. Nothing is decoded: a text of
//! 128 MiB needs no second copy. A code point begins at every byte that does not continue another one, so that bytes
//! that are not UTF-8 have offsets too.

/// Bytes that are counted at a time.
const BLOCK: usize = 64;

/// Place in a text, from which later offsets are found.
#[derive(Clone, Copy, Debug)]
pub struct TextCursor<'a> {
    text: &'a [u8],
    escaped: bool,
    at: usize,
    point: usize,
}

impl<'a> TextCursor<'a> {
    /// Start before a text; `escaped` tells whether it has escape sequences, as in a JSON string.
    #[must_use]
    pub fn new(text: &'a [u8], escaped: bool) -> Self {
        Self { text, escaped, at: 0, point: 0 }
    }

    /// Return the byte at which a code point begins, or the end of the text; the point is not before an earlier one.
    pub fn offset_of(&mut self, point: usize) -> usize {
        while self.at < self.text.len() {
            let block = &self.text[self.at..self.text.len().min(self.at + BLOCK)];
            let begins = block.iter().filter(|&&byte| begins_point(byte)).count();
            if begins <= point.saturating_sub(self.point) && !(self.escaped && block.contains(&b'\\')) {
                self.at += block.len();
                self.point += begins;
            } else if self.step_to(point, self.at + block.len()) {
                break;
            }
        }
        self.at
    }

    /// Move on byte by byte until `end`; return whether the point was reached before.
    fn step_to(&mut self, point: usize, end: usize) -> bool {
        while self.at < end {
            let begins = begins_point(self.text[self.at]);
            if begins && self.point >= point {
                return true;
            }
            self.point += usize::from(begins);
            self.at += if self.escaped { escape_length(&self.text[self.at..]) } else { 1 };
        }
        self.at = self.at.min(self.text.len());
        false
    }

    /// Return the number of code points of the text.
    #[must_use]
    pub fn count(mut self) -> usize {
        self.offset_of(usize::MAX);
        self.point
    }
}

/// Whether a byte does not continue a code point of UTF-8.
fn begins_point(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// Return the bytes of an escape sequence of JSON, both halves of a surrogate pair together; 1 for any other byte.
fn escape_length(text: &[u8]) -> usize {
    match text {
        [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..] => 12,
        [b'\\', b'u', ..] => 6,
        [b'\\', ..] => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(text: &[u8], escaped: bool, points: &[usize]) -> Vec<usize> {
        let mut cursor = TextCursor::new(text, escaped);
        points.iter().map(|&point| cursor.offset_of(point)).collect()
    }

    #[test]
    fn points_of_utf8_begin_at_the_bytes_of_characters() {
        let text = "aé中🙂".repeat(100);
        let starts: Vec<usize> = text.char_indices().map(|(start, _)| start).chain([text.len()]).collect();
        let points: Vec<usize> = (0..starts.len()).collect();
        assert_eq!(offsets(text.as_bytes(), false, &points), starts);
        for (point, &start) in starts.iter().enumerate() {
            assert_eq!(offsets(text.as_bytes(), false, &[point, point, point + 1000]), [start, start, text.len()]);
        }
        assert_eq!(TextCursor::new(text.as_bytes(), false).count(), 400);
    }

    #[test]
    fn an_escape_sequence_is_one_point() {
        let text = r"a\u00e9\\\ud83d\uDE42\nb".as_bytes();
        assert_eq!(offsets(text, true, &[0, 1, 2, 3, 4, 5, 6]), [0, 1, 7, 9, 21, 23, 24]);
        assert_eq!(TextCursor::new(text, true).count(), 6);
        let long = r"\\u00e9".repeat(50);
        assert_eq!(TextCursor::new(long.as_bytes(), true).count(), 300);
        assert_eq!(offsets(long.as_bytes(), true, &[6, 7, 299]), [7, 9, 349]);
    }

    #[test]
    fn bytes_that_are_no_text_have_offsets() {
        assert_eq!(offsets(b"\x80a\xffb\x80", false, &[0, 1, 2, 3]), [1, 2, 3, 5]);
        assert_eq!(offsets(b"ab\\", true, &[2, 3, 4]), [2, 3, 3]);
        assert_eq!(TextCursor::new(b"", true).count(), 0);
    }
}
