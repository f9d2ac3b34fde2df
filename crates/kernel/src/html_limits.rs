//! Limits of HTML pages, checked before a parser builds the tree.
//!
//! A tree costs 180 bytes per node, attributes of one element are compared with each other, and most start tags search
//! the open elements: 100,000 nested elements took 26 s, as many attributes 66 s. One pass over the tags bounds all
//! three. It need not know the tree: elements that others of their kind close do not nest without an element that is
//! counted.

/// Maximum length of a page: its tree and text take about twelve times as much.
const MAX_PAGE_BYTES: usize = 1 << 24;
/// Maximum number of tags; each is up to two nodes.
const MAX_TAGS: usize = 1 << 20;
/// Maximum number of elements that are open at the same time; browsers stop at 512, and 8,192 take about a second.
const MAX_NESTED: usize = 8192;
/// Open elements that start tags search, or open again, beyond 64 for each tag: about 2 s.
const MAX_SEARCHED: usize = 1 << 26;
const SEARCHED_PER_TAG: usize = 64;
/// Maximum number of attributes of a tag.
const MAX_ATTRIBUTES: usize = 512;
/// Longest element name that is compared; longer names count as one.
const NAME_BYTES: usize = 16;

/// Elements without content, and elements that another of the same kind closes.
const NOT_NESTED: &[&[u8]] = &[
    b"a",
    b"area",
    b"base",
    b"body",
    b"br",
    b"button",
    b"caption",
    b"col",
    b"colgroup",
    b"dd",
    b"dt",
    b"embed",
    b"form",
    b"frame",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"head",
    b"hr",
    b"html",
    b"image",
    b"img",
    b"input",
    b"keygen",
    b"li",
    b"link",
    b"meta",
    b"nobr",
    b"optgroup",
    b"option",
    b"p",
    b"param",
    b"rb",
    b"rp",
    b"rt",
    b"rtc",
    b"source",
    b"tbody",
    b"td",
    b"tfoot",
    b"th",
    b"thead",
    b"tr",
    b"track",
    b"wbr",
];
/// Elements whose content is text up to their end tag, except within SVG and `MathML`.
const RAW_TEXT: &[&[u8]] = &[b"iframe", b"noembed", b"noframes", b"script", b"style", b"textarea", b"title", b"xmp"];

/// Return why a page is not parsed; none if its cost is bounded.
#[must_use]
pub fn html_problem(page: &[u8]) -> Option<String> {
    if page.len() > MAX_PAGE_BYTES {
        return Some(format!("is an HTML page of more than {MAX_PAGE_BYTES} bytes"));
    }
    let mut scan = Scan::default();
    let mut at = 0;
    while let Some(offset) = page[at..].iter().position(|&byte| byte == b'<') {
        at += offset + 1;
        match page.get(at) {
            Some(b'!' | b'?') => at = skip_comment(page, at),
            Some(b'/') if page.get(at + 1).is_some_and(u8::is_ascii_alphabetic) => {
                scan.close(&name_at(page, at + 1));
            }
            Some(byte) if byte.is_ascii_alphabetic() => {
                let name = name_at(page, at);
                let (end, attributes) = skip_tag(page, at);
                if let Some(problem) = scan.open(&name, attributes) {
                    return Some(problem);
                }
                at = if scan.is_raw(&name) { skip_raw_text(page, end, name.bytes()) } else { end };
            }
            _ => {}
        }
    }
    None
}

/// Name of an element in lower case, cut to a maximum length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    bytes: [u8; NAME_BYTES],
    length: usize,
}

impl Name {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn is_in(&self, names: &[&[u8]]) -> bool {
        names.binary_search(&self.bytes()).is_ok()
    }
}

fn name_at(page: &[u8], at: usize) -> Name {
    let mut name = Name { bytes: [0; NAME_BYTES], length: 0 };
    let ends = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
    for &byte in page[at..].iter().take(NAME_BYTES).take_while(|&&byte| !ends(byte)) {
        name.bytes[name.length] = byte.to_ascii_lowercase();
        name.length += 1;
    }
    name
}

/// Counts of the tags so far.
#[derive(Debug, Default)]
struct Scan {
    tags: usize,
    nested: usize,
    searched: usize,
    /// Open elements by name: few names, so that a list is faster than a map.
    open: Vec<(Name, usize)>,
}

impl Scan {
    fn open(&mut self, name: &Name, attributes: usize) -> Option<String> {
        self.tags += 1;
        self.searched += self.nested;
        if self.tags > MAX_TAGS {
            return Some(format!("is an HTML page of more than {MAX_TAGS} tags"));
        }
        if attributes > MAX_ATTRIBUTES {
            return Some(format!("is an HTML page with an element of more than {MAX_ATTRIBUTES} attributes"));
        }
        if !name.is_in(NOT_NESTED) {
            self.nested += 1;
            *self.count(name) += 1;
        }
        let searched = MAX_SEARCHED + SEARCHED_PER_TAG * self.tags;
        let deep = self.nested > MAX_NESTED || self.searched > searched;
        deep.then(|| format!("is an HTML page that nests more than {MAX_NESTED} elements, or many over most of it"))
    }

    fn close(&mut self, name: &Name) {
        if let Some(entry) = self.open.iter_mut().find(|entry| entry.0 == *name && entry.1 > 0) {
            entry.1 -= 1;
            self.nested -= 1;
        }
    }

    fn count(&mut self, name: &Name) -> &mut usize {
        // Beyond that many names, all further ones are counted as one that is never closed.
        let known = self.open.iter().position(|entry| entry.0 == *name).or((self.open.len() > 200).then_some(200));
        let at = known.unwrap_or_else(|| {
            self.open.push((*name, 0));
            self.open.len() - 1
        });
        &mut self.open[at].1
    }

    /// Return whether the content of an element that was opened just now is text.
    fn is_raw(&mut self, name: &Name) -> bool {
        let foreign = |entry: &(Name, usize)| entry.1 > 0 && matches!(entry.0.bytes(), b"svg" | b"math");
        if !name.is_in(RAW_TEXT) || self.open.iter().any(foreign) {
            return false;
        }
        self.close(name); // its end tag is skipped
        true
    }
}

/// Return the end of a comment or declaration whose `!` or `?` is at `at`.
fn skip_comment(page: &[u8], at: usize) -> usize {
    let Some(comment) = page[at..].strip_prefix(b"!--") else { return find(page, at, b">") };
    if comment.starts_with(b">") || comment.starts_with(b"->") {
        return find(page, at, b">");
    }
    find(page, at + 3, b"-->").min(find(page, at + 3, b"--!>"))
}

/// Return the end of the first `pattern` from `at` on, or that of the page.
fn find(page: &[u8], at: usize, pattern: &[u8]) -> usize {
    let found = page[at..].windows(pattern.len()).position(|window| window == pattern);
    found.map_or(page.len(), |offset| at + offset + pattern.len())
}

/// Return the end of the tag whose name is at `at`, and its number of attributes.
fn skip_tag(page: &[u8], mut at: usize) -> (usize, usize) {
    let mut attributes = 0;
    while let Some(&byte) = page.get(at) {
        let previous = page[at - 1];
        at += 1;
        match byte {
            b'>' => break,
            b'"' | b'\'' if previous == b'=' || previous.is_ascii_whitespace() => {
                at += page[at..].iter().position(|&end| end == byte).map_or(page.len() - at, |offset| offset + 1);
                attributes += usize::from(previous != b'=');
            }
            b' ' | b'\t' | b'\n' | b'\r' | 0xC | b'/' => {}
            _ => attributes += usize::from(previous.is_ascii_whitespace() || matches!(previous, b'/' | b'"' | b'\'')),
        }
    }
    (at, attributes)
}

/// Return the start of the end tag of an element, or the end of the page.
fn skip_raw_text(page: &[u8], at: usize, name: &[u8]) -> usize {
    let ends = |window: &[u8]| window.starts_with(b"</") && window[2..].eq_ignore_ascii_case(name);
    page[at..].windows(name.len() + 2).position(ends).map_or(page.len(), |offset| at + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(page: &str) -> Option<String> {
        html_problem(page.as_bytes())
    }

    #[test]
    fn names_are_sorted_for_the_search() {
        assert!(NOT_NESTED.is_sorted() && RAW_TEXT.is_sorted());
    }

    #[test]
    fn pages_of_bounded_cost_are_accepted() {
        let many = 20_000;
        let tag = format!("<p {}>", "a=1 ".repeat(MAX_ATTRIBUTES));
        for page in [
            "<div>x</div>".repeat(many),
            "<p>x".repeat(many),
            "<li>x<br>".repeat(many),
            "<table><tr><td>x</table>".repeat(many),
            "<!-- <div> -->".repeat(many),
            format!("<script>{}</script>", "'<div>' ".repeat(many)),
            format!("<STYLE>{}</Style>", "<b>".repeat(many)),
            format!("<p title='{}'>", "a b ".repeat(many)),
            "a < b &lt; c ".repeat(many),
            tag,
        ] {
            assert_eq!(problem(&page), None, "{}", &page[..50]);
        }
    }

    #[test]
    fn pages_of_unbounded_cost_are_refused() {
        let many = 20_000;
        for page in [
            "<div>".repeat(many),
            "<div></b>".repeat(many),
            "<table><tr><td>".repeat(many),
            format!("<svg><style>{}", "<g>".repeat(many)),
            format!("<!-->{}", "<b>".repeat(many)),
            format!("<p {}>", "a=1 ".repeat(many)),
            format!("<p {}>", "a='1'".repeat(many)),
            format!("<p {}>", "a/".repeat(many)),
            format!("{}{}", "<font>".repeat(1000), "<p>x".repeat(200_000)),
            "<b>".repeat(MAX_TAGS + 1),
            "<p>".repeat(MAX_TAGS + 1),
            " ".repeat(MAX_PAGE_BYTES + 1),
        ] {
            assert!(problem(&page).is_some(), "{}", &page[..50]);
        }
    }
}
