//! Writes the Unicode tables of the kernel: what each code point is, and what it becomes.
//!
//! Two tables, both in two stages (a block index, then blocks of 128 with equal blocks shared):
//!
//! * `PROPERTIES`, a byte per code point: token class and the properties that the normalisation options ask for.
//! * `FOLDED`, a word per code point: the outcome of the default normalisation (NFKC, then lower case) wherever it can
//!   be known from the character alone, so that the fast path never calls the normaliser for ordinary text.
//!
//! The layout of both is read by `src/unicode.rs`; the constants here are its mirror.

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
const BLOCK: usize = 128;

/// Scripts written without spaces: each character is a word of its own.
const ALONE_SCRIPTS: [Script; 7] =
    [Script::Han, Script::Hiragana, Script::Katakana, Script::Thai, Script::Lao, Script::Khmer, Script::Myanmar];

const WORD: u8 = 1;
const MARK: u8 = 2;
const ALONE: u8 = 3;
const WHITESPACE: u8 = 0x04;
const PUNCTUATION: u8 = 0x08;
const DIGIT: u8 = 0x10;
const STARTS_SEGMENT: u8 = 0x20;
const ASSIGNED: u8 = 0x40;

const KIND_SHIFT: u32 = 23;
const CLASS_SHIFT: u32 = 21;
const RANK_SHIFT: u32 = 25;
const SIMPLE: u32 = 0;
const POOLED: u32 = 1;
const ORDERED_MARK: u32 = 2;
const ENTANGLED: u32 = 3;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    check_unicode_versions();
    let properties: Vec<u8> = (0..CODE_POINTS).map(|code| char::from_u32(code).map_or(0, properties)).collect();
    let ranks = combining_ranks();
    let mut pool = Pool::default();
    let folded: Vec<u32> = (0..CODE_POINTS)
        .map(|code| char::from_u32(code).map_or(0, |c| folded(c, &properties, &ranks, &mut pool)))
        .collect();

    let (major, minor, update) = unicode_properties::UNICODE_VERSION;
    let mut source = format!(
        "/// The Unicode version of every table.\npub const UNICODE_VERSION: &str = \"{major}.{minor}.{update}\";\n"
    );
    write_table(&mut source, "PROPERTIES", "u8", &properties);
    write_table(&mut source, "FOLDED", "u32", &folded);
    writeln!(source, "/// Generated.\npub static POOL: &str = {:?};", pool.text).unwrap();
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("unicode_tables.rs"), source).expect("OUT_DIR is writable");
}

/// Lower case comes from the compiler's own tables; an older compiler would not know newer letters.
fn check_unicode_versions() {
    let (major, minor, update) = unicode_properties::UNICODE_VERSION;
    let normalisation = unicode_normalization::UNICODE_VERSION;
    assert_eq!(
        (major, minor, update),
        (normalisation.0.into(), normalisation.1.into(), normalisation.2.into()),
        "unicode-properties and unicode-normalization carry different Unicode versions; pin them alike in Cargo.toml"
    );
    let compiler = char::UNICODE_VERSION;
    assert!(
        (u64::from(compiler.0), u64::from(compiler.1)) >= (major, minor),
        "the compiler knows Unicode {}.{}, the tables need {major}.{minor}: use a newer Rust",
        compiler.0,
        compiler.1
    );
}

fn properties(c: char) -> u8 {
    let (category, group) = (c.general_category(), c.general_category_group());
    let letter_or_number = matches!(group, Group::Letter | Group::Number);
    let class = match group {
        Group::Mark => MARK,
        _ if letter_or_number && is_alone(c) => ALONE,
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

fn is_alone(c: char) -> bool {
    let scripts = c.script_extension();
    // Common and Inherited count as every script, which is not what is asked here.
    !scripts.is_common()
        && !scripts.is_inherited()
        && ALONE_SCRIPTS.iter().any(|&script| scripts.contains_script(script))
}

/// Whether normalising what stands before `c` and what starts at `c` apart is the same as normalising both together.
fn starts_segment(c: char) -> bool {
    let first = std::iter::once(c).nfkd().next().unwrap_or(c);
    let inert = |c: char| canonical_combining_class(c) == 0 && is_nfkc_quick(std::iter::once(c)) != IsNormalized::Maybe;
    inert(c) && inert(first)
}

/// Canonical combining classes other than 0, in order, as small numbers: only their order matters.
fn combining_ranks() -> HashMap<u8, u32> {
    let mut classes: Vec<u8> = (0..CODE_POINTS)
        .filter_map(char::from_u32)
        .map(canonical_combining_class)
        .filter(|&class| class != 0)
        .collect();
    classes.sort_unstable();
    classes.dedup();
    assert!(classes.len() < 127, "a rank has seven bits");
    classes.into_iter().zip(1..).collect()
}

fn lower(c: char) -> String {
    if c.general_category() == Category::Unassigned { c.to_string() } else { c.to_lowercase().collect() }
}

/// What the default normalisation makes of `c` when its neighbours play no part.
fn folded(c: char, properties: &[u8], ranks: &HashMap<u8, u32>, pool: &mut Pool) -> u32 {
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
        (true, true, Some(one)) => entry(SIMPLE, class_of(one), shift(c, one)),
        (_, true, _) => entry(POOLED, 0, pool.offset_of(&text)),
        (true, false, Some(one)) if canonical_combining_class(c) != 0 => {
            entry(ORDERED_MARK, class_of(one), shift(c, one)) | ranks[&canonical_combining_class(c)] << RANK_SHIFT
        }
        _ => entry(ENTANGLED, 0, 0),
    }
}

/// How far `to` is from `from`, modulo 2²¹. Characters that stay as they are have 0 and so share their blocks.
fn shift(from: char, to: char) -> u32 {
    (to as u32).wrapping_sub(from as u32) & ((1 << CLASS_SHIFT) - 1)
}

/// Replacement texts, each ended by U+FFFF, which no normalisation yields for assigned text.
#[derive(Default)]
struct Pool {
    text: String,
    offsets: HashMap<String, u32>,
}

impl Pool {
    fn offset_of(&mut self, replacement: &str) -> u32 {
        assert!(!replacement.contains('\u{FFFF}'));
        *self.offsets.entry(replacement.to_owned()).or_insert_with(|| {
            let offset = u32::try_from(self.text.len()).expect("the pool is small");
            self.text.push_str(replacement);
            self.text.push('\u{FFFF}');
            offset
        })
    }
}

fn write_table<T: Copy + Eq + Hash + Display>(source: &mut String, name: &str, kind: &str, values: &[T]) {
    let mut blocks: Vec<T> = Vec::new();
    let mut known: HashMap<&[T], usize> = HashMap::new();
    let mut index: Vec<usize> = Vec::new();
    for block in values.chunks_exact(BLOCK) {
        let number = *known.entry(block).or_insert_with(|| {
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
