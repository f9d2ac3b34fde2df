//! The fast path of words against the general one.

use super::*;
use crate::hash::{Domain, mix};
use crate::normalise::{Normalisation, Normaliser};
use crate::tokens;

/// Scraps that meet in every order: long and short ASCII, composing and ordered marks, ligatures, lone characters.
const SCRAPS: [&str; 32] = [
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
    let scraps = 1 + mix(number) % 40;
    (0..scraps).map(|i| SCRAPS[(mix(number * 1000 + i) % SCRAPS.len() as u64) as usize]).collect()
}

fn check(text: &str) {
    let hasher = BytesHasher::new(1, Domain::Token);
    let options = Normalisation::default();
    let mut expected = Vec::new();
    tokens::words(text, &mut Normaliser::new(options), &hasher, |token| expected.push(token.hash));
    for simd in [true, false] {
        let mut hashes = Vec::new();
        hash_words(text, &hasher, simd, &mut WordScratch::default(), &mut hashes);
        assert_eq!(hashes, expected, "simd {simd}: {text:?}");
    }
}

#[test]
fn both_paths_equal_the_general_path() {
    check("");
    (0..20_000).map(text).for_each(|text| check(&text));
}

#[test]
fn texts_longer_than_the_scratch_equal_the_general_path() {
    // A few scraps over and over, so that every border falls on every kind of neighbours.
    for number in 0..400 {
        let scraps = 1 + mix(number) % 5;
        let unit: String =
            (0..scraps).map(|i| SCRAPS[(mix(number * 1000 + i) % SCRAPS.len() as u64) as usize]).collect();
        let lead = "x".repeat((mix(number + 7) % 70) as usize);
        check(&(lead + &unit.repeat(3 * FLUSH_AT / unit.len() + 1)));
    }
}

#[test]
fn letters_compose_across_the_flush() {
    for offset in FLUSH_AT - 70..FLUSH_AT + 10 {
        let lead: String = "ab ".chars().cycle().take(offset).collect();
        check(&format!("{lead}e\u{301} tail"));
        check(&format!("{lead}\u{301} tail"));
        check(&format!("{lead}มี tail"));
    }
}

#[test]
fn words_longer_than_the_scratch_survive() {
    for unit in ["x", "é", "e\u{301}", "\u{301}", "漢", "漢\u{301}"] {
        for length in [FLUSH_AT - 1, FLUSH_AT, 3 * FLUSH_AT + 5] {
            check(&unit.repeat(length));
            check(&format!("a{}b c", unit.repeat(length)));
        }
    }
}
