//! Long lines of JSON and CSV: what a parser of Python objects would need several times their length for.
//!
//! Python holds a text with one character beyond the basic plane in four bytes per character, and a list of small
//! values in many times their length. Long strings are therefore decoded to UTF-8 here, and values are counted.

/// A JSON line without its long strings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Start and end of every string that is longer than a limit, with its quotation marks.
    pub strings: Vec<(usize, usize)>,
    /// Commas, colons and opening brackets outside strings: at least as many as there are values but one.
    pub marks: usize,
}

/// Return the outline of a JSON line with the strings of more than `limit` bytes; the line may be malformed.
#[must_use]
pub fn json_outline(line: &[u8], limit: usize) -> Outline {
    let mut outline = Outline::default();
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b'"' => {
                let end = string_end(line, at);
                if end - at > limit {
                    outline.strings.push((at, end));
                }
                at = end;
                continue;
            }
            b',' | b':' | b'[' | b'{' => outline.marks += 1,
            _ => {}
        }
        at += 1;
    }
    outline
}

/// Return one past the closing quotation mark of the string that starts at `start`, or the end of the line.
fn string_end(line: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < line.len() {
        match line[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    line.len()
}

/// Return a valid JSON line with the number of each string in its place, and start and end of these strings.
///
/// Keys stay, so that a parser finds which string has which path without a copy of it. The spans leave out the
/// quotation marks.
#[must_use]
pub fn json_numbered(line: &[u8]) -> (Vec<u8>, Vec<(usize, usize)>) {
    let (mut numbered, mut strings) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < line.len() {
        let end = if line[at] == b'"' { string_end(line, at) } else { at + 1 };
        if line[at] != b'"' || is_key(&line[end..]) {
            numbered.extend_from_slice(&line[at..end]);
        } else {
            numbered.extend_from_slice(strings.len().to_string().as_bytes());
            strings.push((at + 1, (at + 1).max(end - 1)));
        }
        at = end;
    }
    (numbered, strings)
}

/// Whether the bytes after a string show that it is a key.
fn is_key(rest: &[u8]) -> bool {
    rest.iter().find(|byte| !b" \t\n\r".contains(byte)) == Some(&b':')
}

/// Call `emit` with the parts of the UTF-8 text of a JSON string with its quotation marks; none if it is not valid.
pub fn json_text(string: &[u8], mut emit: impl FnMut(&[u8])) -> Option<()> {
    let mut rest = string.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    simdutf8::basic::from_utf8(rest).ok()?;
    while let Some(plain) = rest.iter().position(|&byte| byte == b'\\' || byte < b' ' || byte == b'"') {
        emit(&rest[..plain]);
        let escape = rest[plain..].strip_prefix(b"\\")?;
        let (c, used) = unescape(escape)?;
        emit(c.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &escape[used..];
    }
    emit(rest);
    Some(())
}

/// Return the character of an escape sequence after its backslash, and the bytes of it.
fn unescape(escape: &[u8]) -> Option<(char, usize)> {
    let simple = |c| Some((c, 1));
    match escape.first()? {
        b'"' => simple('"'),
        b'\\' => simple('\\'),
        b'/' => simple('/'),
        b'b' => simple('\u{8}'),
        b'f' => simple('\u{C}'),
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'u' => unescape_code(&escape[1..]).map(|(c, used)| (c, used + 1)),
        _ => None,
    }
}

fn unescape_code(digits: &[u8]) -> Option<(char, usize)> {
    let first = code_unit(digits)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, 4));
    }
    let second = code_unit(digits[4..].strip_prefix(b"\\u")?)?;
    let pair = [first as u16, second as u16];
    let c = char::decode_utf16(pair).next()?.ok()?;
    Some((c, 10))
}

/// Return the number of four hexadecimal digits.
fn code_unit(digits: &[u8]) -> Option<u32> {
    let digits = digits.first_chunk::<4>()?;
    digits.iter().try_fold(0, |code, &digit| Some(code << 4 | char::from(digit).to_digit(16)?))
}

/// Reads the fields of one CSV record as the csv module of Python does, without conversion to a wide text.
#[derive(Clone, Copy, Debug)]
pub struct CsvFields<'a> {
    record: &'a [u8],
    at: usize,
    delimiter: u8,
}

/// What follows a field of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldEnd {
    /// A delimiter, and another field after it.
    Delimiter,
    /// The end of the line, or of the data.
    Line,
    /// Nothing: its quotation mark is not closed.
    Unclosed,
}

/// How a CSV record ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordEnd {
    /// With a line feed outside quotation marks, or with the data.
    Closed,
    /// Not yet: its last quotation mark is not closed.
    Unclosed,
    /// With a line that has text after a carriage return outside quotation marks.
    LoneReturn,
}

impl<'a> CsvFields<'a> {
    /// Start at the offset `at` of a record.
    #[must_use]
    pub fn new(record: &'a [u8], at: usize, delimiter: u8) -> Self {
        Self { record, at: at.min(record.len()), delimiter }
    }

    /// Call `emit` with the parts of the next field.
    pub fn next_field(&mut self, emit: impl FnMut(&[u8])) -> FieldEnd {
        if self.rest().starts_with(b"\"") {
            self.at += 1;
            return self.quoted(emit);
        }
        self.unquoted(emit)
    }

    /// Whether the record is blank; it has no fields then.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        matches!(self.rest().first(), None | Some(b'\r' | b'\n'))
    }

    /// Return the offset in the record at which the next field begins, or the line ends.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a [u8] {
        &self.record[self.at..]
    }

    /// Read a field after its opening quotation mark; text after the closing one belongs to it.
    fn quoted(&mut self, mut emit: impl FnMut(&[u8])) -> FieldEnd {
        while let Some(mark) = self.rest().iter().position(|&byte| byte == b'"') {
            let rest = self.rest();
            self.at += mark + 1;
            if rest.get(mark + 1) != Some(&b'"') {
                emit(&rest[..mark]);
                return self.unquoted(emit);
            }
            emit(&rest[..=mark]);
            self.at += 1;
        }
        emit(self.rest());
        self.at = self.record.len();
        FieldEnd::Unclosed
    }

    fn unquoted(&mut self, mut emit: impl FnMut(&[u8])) -> FieldEnd {
        let (rest, delimiter) = (self.rest(), self.delimiter);
        let ends = |&byte: &u8| byte == delimiter || byte == b'\n' || byte == b'\r';
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        emit(&rest[..length]);
        self.at += length;
        if rest.get(length) == Some(&delimiter) {
            self.at += 1;
            return FieldEnd::Delimiter;
        }
        FieldEnd::Line
    }

    /// Read carriage returns and a line feed; where other text follows a carriage return, the rest of the line.
    fn line_end(&mut self) -> RecordEnd {
        let rest = self.rest();
        let returns = rest.iter().take_while(|&&byte| byte == b'\r').count();
        let closed = matches!(rest.get(returns), None | Some(b'\n'));
        let feed = rest.iter().position(|&byte| byte == b'\n');
        self.at = feed.map_or(self.record.len(), |feed| self.at + feed + 1);
        if closed { RecordEnd::Closed } else { RecordEnd::LoneReturn }
    }
}

/// Return the offset at which a CSV record that begins or continues at `start` ends, and how.
///
/// `quoted` tells whether it continues within quotation marks.
#[must_use]
pub fn csv_record_end(data: &[u8], start: usize, delimiter: u8, quoted: bool) -> (usize, RecordEnd) {
    let mut fields = CsvFields::new(data, start, delimiter);
    let mut end = if quoted { fields.quoted(|_| ()) } else { fields.next_field(|_| ()) };
    while end == FieldEnd::Delimiter {
        end = fields.next_field(|_| ());
    }
    let end = if end == FieldEnd::Unclosed { RecordEnd::Unclosed } else { fields.line_end() };
    (fields.at, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outline_finds_long_strings_and_counts_values() {
        let line = br#"{"a": "12345678", "b": ["x, [", 1, {"c\"": "1234567\""}]}"#;
        let outline = json_outline(line, 9);
        let strings: Vec<&[u8]> = outline.strings.iter().map(|&(start, end)| &line[start..end]).collect();
        assert_eq!(strings, [&br#""12345678""#[..], br#""1234567\"""#]);
        assert_eq!(outline.marks, 9);
        assert_eq!(json_outline(b"\"abc\\", 0).strings, [(0, 5)]);
    }

    #[test]
    fn strings_are_numbered_and_keys_stay() {
        let line = br#" {"a" : "x\"y", "b\"": ["", 1, {"c": "z"}], "d":true}"#;
        let (numbered, strings) = json_numbered(line);
        assert_eq!(numbered, br#" {"a" : 0, "b\"": [1, 1, {"c": 2}], "d":true}"#);
        let texts: Vec<&[u8]> = strings.iter().map(|&(start, end)| &line[start..end]).collect();
        assert_eq!(texts, [&br#"x\"y"#[..], b"", b"z"]);
        assert_eq!(json_numbered(b"\"").1, [(1, 1)]);
    }

    #[test]
    fn texts_are_decoded_or_refused() {
        let cases: [(&[u8], Option<&str>); 11] = [
            ("\"plain é 🙂\"".as_bytes(), Some("plain é 🙂")),
            (br#""a\"b\\c\/d\b\f\n\r\t""#, Some("a\"b\\c/d\u{8}\u{C}\n\r\t")),
            (br#""\u00e9\u20AC\ud83d\ude42""#, Some("é€🙂")),
            (br#""\ud83d""#, None),
            (br#""\ud83d\u0041""#, None),
            (br#""\ude42\ud83d""#, None),
            (br#""\u12""#, None),
            (br#""\x""#, None),
            (b"\"a\nb\"", None),
            (b"\"a\"b\"", None),
            (b"\"\xff\"", None),
        ];
        for (string, expected) in cases {
            let mut text = Vec::new();
            let valid = json_text(string, |part| text.extend_from_slice(part));
            assert_eq!(valid.map(|()| text).as_deref(), expected.map(str::as_bytes), "{string:?}");
        }
    }

    fn fields(record: &str) -> Vec<String> {
        let mut fields = CsvFields::new(record.as_bytes(), 0, b',');
        let mut found = Vec::new();
        let mut end = FieldEnd::Delimiter;
        while end == FieldEnd::Delimiter {
            let mut field = Vec::new();
            end = fields.next_field(|part| field.extend_from_slice(part));
            found.push(String::from_utf8(field).unwrap());
        }
        found
    }

    #[test]
    fn csv_fields_are_unquoted() {
        assert_eq!(fields("a,\"b,c\"\"d\ne\",,f\"g\r\n"), ["a", "b,c\"d\ne", "", "f\"g"]);
        assert_eq!(fields("\"a\"b\",\"c"), ["ab\"", "c"]);
        assert_eq!(fields("a,"), ["a", ""]);
    }

    #[test]
    fn csv_records_end_with_a_line_outside_quotation_marks() {
        let end = |data: &str, quoted| csv_record_end(data.as_bytes(), 0, b',', quoted);
        assert_eq!(end("a,\"b\nc\",d\r\ne\n", false), (11, RecordEnd::Closed));
        assert_eq!(end("a\",b\nc", true), (5, RecordEnd::Closed));
        assert_eq!(end("a,\"b\nc", false), (6, RecordEnd::Unclosed));
        assert_eq!(end("a\rb\nc", false), (4, RecordEnd::LoneReturn));
        assert_eq!(end("\r\r\na", false), (3, RecordEnd::Closed));
        assert_eq!(end("", false), (0, RecordEnd::Closed));
    }
}
