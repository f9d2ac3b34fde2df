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

/// Return how often `mark` occurs outside quotation marks.
#[must_use]
pub fn count_unquoted(line: &[u8], mark: u8) -> usize {
    line.split(|&byte| byte == b'"').step_by(2).map(|part| part.iter().filter(|&&byte| byte == mark).count()).sum()
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

    #[test]
    fn marks_within_quotation_marks_do_not_count() {
        assert_eq!(count_unquoted(br#"a,"b,c""d,",e,"f"#, b','), 3);
    }
}
