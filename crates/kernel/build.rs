//! Generator of the Unicode tables of the kernel.
//!
//! There are two tables. Both have two stages, a block index and blocks of 128 entries, and equal blocks are stored
//! once.
//!
//! * `PROPERTIES`, a byte per code point: the token class and the properties that the normalisation options need.
//! * `FOLDED`, a 32-bit word per code point: the result of the default normalisation (NFKC, then lower case) wherever
//!   it follows from the character alone, so that the fast path never calls the normaliser for ordinary text.
//!
//! `src/unicode.rs` reads both tables; the constants of their layout are repeated there.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::hash::Hash;
use std::path::Path;
use std::{env, fs};

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfkc_quick};
use unicode_properties::{GeneralCategory as Category, GeneralCategoryGroup as Group, UnicodeGeneralCategory as _};
use unicode_script::{Script, UnicodeScript as _};

const CODE_POINTS: u32 = 0x11_0000;
/// Entries per block of a table.
const BLOCK: usize = 128;

/// Scripts written without spaces: each character is a word by itself.
const STANDALONE_SCRIPTS: [Script; 7] =
    [Script::Han, Script::Hiragana, Script::Katakana, Script::Thai, Script::Lao, Script::Khmer, Script::Myanmar];

// Bits of an entry of `PROPERTIES`: two bits of token class, then flags.
const WORD: u8 = 1;
const MARK: u8 = 2;
const STANDALONE: u8 = 3;
const WHITESPACE: u8 = 0x04;
const PUNCTUATION: u8 = 0x08;
const DIGIT: u8 = 0x10;
const STARTS_SEGMENT: u8 = 0x20;
const ASSIGNED: u8 = 0x40;

// Fields of an entry of `FOLDED`: payload (21 bits), token class (2), kind (2), rank of a mark (7).
const KIND_SHIFT: u32 = 23;
const CLASS_SHIFT: u32 = 21;
const RANK_SHIFT: u32 = 25;
const SIMPLE: u32 = 0;
const REPLACED: u32 = 1;
const ORDERED_MARK: u32 = 2;
const CONTEXTUAL: u32 = 3;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    check_unicode_versions();
    let properties: Vec<u8> = (0..CODE_POINTS).map(|code| char::from_u32(code).map_or(0, properties)).collect();
    let ranks = combining_ranks();
    let mut replacements = Replacements::default();
    let folded: Vec<u32> = (0..CODE_POINTS)
        .map(|code| char::from_u32(code).map_or(0, |c| folded(c, &properties, &ranks, &mut replacements)))
        .collect();

    let (major, minor, update) = unicode_properties::UNICODE_VERSION;
    let mut source = format!(
        "/// The Unicode version of every table.\npub const UNICODE_VERSION: &str = \"{major}.{minor}.{update}\";\n"
    );
    write_table(&mut source, "PROPERTIES", "u8", &properties);
    write_table(&mut source, "FOLDED", "u32", &folded);
    writeln!(source, "/// Generated.\npub static REPLACEMENTS: &str = {:?};", replacements.text).unwrap();
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("unicode_tables.rs"), source).expect("OUT_DIR is writable");
}

/// Check that all tables have the same Unicode version. Lower case comes from the compiler's tables; an older compiler
/// would lack newer letters.
fn check_unicode_versions() {
    let (major, minor, update) = unicode_properties::UNICODE_VERSION;
    let normalisation = unicode_normalization::UNICODE_VERSION;
    assert_eq!(
        (major, minor, update),
        (normalisation.0.into(), normalisation.1.into(), normalisation.2.into()),
        "unicode-properties and unicode-normalization have different Unicode versions; pin equal ones in Cargo.toml"
    );
    let compiler = char::UNICODE_VERSION;
    assert!(
        (u64::from(compiler.0), u64::from(compiler.1)) >= (major, minor),
        "the compiler has Unicode {}.{}, the tables need {major}.{minor}; use a newer Rust",
        compiler.0,
        compiler.1
    );
}

fn properties(c: char) -> u8 {
    let (category, group) = (c.general_category(), c.general_category_group());
    let letter_or_number = matches!(group, Group::Letter | Group::Number);
    let class = match group {
        Group::Mark => MARK,
        _ if letter_or_number && is_standalone(c) => STANDALONE,
        _ if letter_or_number => WORD,
        _ => 0,
    };
    let flag = |condition: bool, bit: u8| if condition { bit } else { 0 };
    class
        | flag(c.is_whitespace(), WHITESPACE)
        | flag(matches!(group, Group::Punctuation | Group::Symbol), PUNCTUATION)
        | flag(category == Category::DecimalNumber, DIGIT)
        | flag(starts_segment(c), STARTS_SEGMENT)
        | flag(category != Category::Unassigned, ASSIGNED)
}

fn is_standalone(c: char) -> bool {
    let scripts = c.script_extension();
    // `contains_script` is true for Common and Inherited characters in every script; they are not standalone.
    !scripts.is_common()
        && !scripts.is_inherited()
        && STANDALONE_SCRIPTS.iter().any(|&script| scripts.contains_script(script))
}

/// Return whether the text before `c` and the text from `c` on can be normalised separately.
fn starts_segment(c: char) -> bool {
    let first = std::iter::once(c).nfkd().next().unwrap_or(c);
    let inert = |c: char| canonical_combining_class(c) == 0 && is_nfkc_quick(std::iter::once(c)) != IsNormalized::Maybe;
    inert(c) && inert(first)
}

/// Return the rank of each canonical combining class other than 0: only their order matters.
fn combining_ranks() -> HashMap<u8, u32> {
    let mut classes: Vec<u8> = (0..CODE_POINTS)
        .filter_map(char::from_u32)
        .map(canonical_combining_class)
        .filter(|&class| class != 0)
        .collect();
    classes.sort_unstable();
    classes.dedup();
    assert!(classes.len() < 127, "a rank has 7 bits");
    classes.into_iter().zip(1..).collect()
}

fn lower(c: char) -> String {
    if c.general_category() == Category::Unassigned { c.to_string() } else { c.to_lowercase().collect() }
}

/// Return the packed result of the default normalisation of `c`, as far as it does not depend on its neighbours.
fn folded(c: char, properties: &[u8], ranks: &HashMap<u8, u32>, replacements: &mut Replacements) -> u32 {
    let stable = is_nfkc_quick(std::iter::once(c)) == IsNormalized::Yes;
    let starts = properties[c as usize] & STARTS_SEGMENT != 0;
    let text: String = std::iter::once(c).nfkc().map(lower).collect();
    let mut characters = text.chars();
    let single = characters.next().filter(|_| characters.next().is_none());
    let entry = |kind: u32, class: u8, payload: u32| {
        assert!(payload < 1 << CLASS_SHIFT);
        kind << KIND_SHIFT | u32::from(class) << CLASS_SHIFT | payload
    };
    let class_of = |c: char| properties[c as usize] & 3;
    match (stable, starts, single) {
        (true, true, Some(lowered)) => entry(SIMPLE, class_of(lowered), shift(c, lowered)),
        (_, true, _) => entry(REPLACED, 0, replacements.offset_of(&text)),
        (true, false, Some(lowered)) if canonical_combining_class(c) != 0 => {
            entry(ORDERED_MARK, class_of(lowered), shift(c, lowered))
                | ranks[&canonical_combining_class(c)] << RANK_SHIFT
        }
        _ => entry(CONTEXTUAL, 0, 0),
    }
}

/// Return the distance from `from` to `to`, modulo 2²¹. Unchanged characters have 0, so that their blocks are equal.
fn shift(from: char, to: char) -> u32 {
    (to as u32).wrapping_sub(from as u32) & ((1 << CLASS_SHIFT) - 1)
}

/// Replacement texts, each terminated by U+FFFF, which no normalisation of assigned text yields.
#[derive(Default)]
struct Replacements {
    text: String,
    offsets: HashMap<String, u32>,
}

impl Replacements {
    fn offset_of(&mut self, replacement: &str) -> u32 {
        assert!(!replacement.contains('\u{FFFF}'));
        *self.offsets.entry(replacement.to_owned()).or_insert_with(|| {
            let offset = u32::try_from(self.text.len()).expect("the replacements are less than 4 GiB");
            self.text.push_str(replacement);
            self.text.push('\u{FFFF}');
            offset
        })
    }
}

fn write_table<T: Copy + Eq + Hash + Display>(source: &mut String, name: &str, kind: &str, values: &[T]) {
    let mut blocks: Vec<T> = Vec::new();
    let mut first_uses: HashMap<&[T], usize> = HashMap::new();
    let mut index: Vec<usize> = Vec::new();
    for block in values.chunks_exact(BLOCK) {
        let number = *first_uses.entry(block).or_insert_with(|| {
            blocks.extend_from_slice(block);
            blocks.len() / BLOCK - 1
        });
        index.push(number);
    }
    write_array(source, &format!("{name}_INDEX"), "u16", &index);
    write_array(source, name, kind, &blocks);
}

fn write_array<T: Display>(source: &mut String, name: &str, kind: &str, values: &[T]) {
    writeln!(source, "/// Generated.").unwrap();
    write!(source, "pub static {name}: [{kind}; {}] = [", values.len()).unwrap();
    for value in values {
        write!(source, "{value},").unwrap();
    }
    source.push_str("];\n");
}
