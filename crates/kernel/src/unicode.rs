//! Unicode: what a code point is, and what the default normalisation makes of it.
//!
//! The tables come from `build.rs`; one Unicode version is compiled in, whatever the machine's own tables say.

#[allow(clippy::unreadable_literal, reason = "generated")]
mod tables {
    include!(concat!(env!("OUT_DIR"), "/unicode_tables.rs"));
}

pub use tables::UNICODE_VERSION;
use tables::{FOLDED, FOLDED_INDEX, POOL, PROPERTIES, PROPERTIES_INDEX};

/// How a character takes part in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Ends a word: white space, punctuation, symbols, controls.
    Separator = 0,
    /// A letter or number of a script that separates its words.
    Word = 1,
    /// A combining mark; belongs to the letter before it.
    Mark = 2,
    /// A letter or number of a script written without spaces; a word of its own.
    Alone = 3,
}

const CLASSES: [Class; 4] = [Class::Separator, Class::Word, Class::Mark, Class::Alone];

/// The properties of one code point, as the byte that `build.rs` packed.
#[derive(Clone, Copy, Debug)]
pub struct Properties(pub u8);

impl Properties {
    /// The properties of `c`.
    #[inline(always)]
    #[must_use]
    pub fn of(c: char) -> Self {
        Self(PROPERTIES[locate(&PROPERTIES_INDEX, c)])
    }

    /// How the character takes part in words.
    #[inline(always)]
    #[must_use]
    pub const fn class(self) -> Class {
        CLASSES[(self.0 & 3) as usize]
    }

    /// `White_Space`.
    #[inline(always)]
    #[must_use]
    pub const fn is_whitespace(self) -> bool {
        self.0 & 0x04 != 0
    }

    /// Punctuation or symbol (general categories P* and S*).
    #[inline(always)]
    #[must_use]
    pub const fn is_punctuation(self) -> bool {
        self.0 & 0x08 != 0
    }

    /// Decimal digit (general category Nd).
    #[inline(always)]
    #[must_use]
    pub const fn is_digit(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// Never combines with what stands before it, so text may be cut here and normalised piece by piece.
    #[inline(always)]
    #[must_use]
    pub const fn starts_segment(self) -> bool {
        self.0 & 0x20 != 0
    }

    /// Assigned in the compiled Unicode version.
    #[inline(always)]
    #[must_use]
    pub const fn is_assigned(self) -> bool {
        self.0 & 0x40 != 0
    }
}

/// What the default normalisation (NFKC, then lower case) makes of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folded {
    /// One character, whatever stands around it (unless a mark follows that composes with it).
    Simple(char, Class),
    /// Several characters, or another one: this text.
    Pooled(&'static str),
    /// A mark that stays as it is while the ranks of the marks behind one letter do not fall.
    OrderedMark(char, Class, u32),
    /// Depends on its neighbours: ask the normaliser.
    Entangled,
}

/// The packed entry of one code point; cheap to copy and to test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedEntry(u32);

impl FoldedEntry {
    /// A letter or number that stays as it is.
    pub const WORD: Self = Self((Class::Word as u32) << 21);
    /// A separator that stays as it is.
    pub const SEPARATOR: Self = Self((Class::Separator as u32) << 21);
    /// A character of a script without spaces that stays as it is.
    pub const ALONE: Self = Self((Class::Alone as u32) << 21);

    /// The entry of `c`.
    #[inline(always)]
    #[must_use]
    pub fn of(c: char) -> Self {
        Self(FOLDED[locate(&FOLDED_INDEX, c)])
    }

    /// Whether a normalisation segment starts here.
    #[inline(always)]
    #[must_use]
    pub const fn starts_segment(self) -> bool {
        self.0 >> 23 & 3 < 2
    }

    /// The entry of `c`, unpacked.
    #[inline(always)]
    #[must_use]
    pub fn unpack(self, c: char) -> Folded {
        let payload = self.0 & 0x1F_FFFF;
        let class = CLASSES[(self.0 >> 21 & 3) as usize];
        match self.0 >> 23 & 3 {
            0 => Folded::Simple(shifted(c, payload), class),
            1 => Folded::Pooled(pooled(payload as usize)),
            2 => Folded::OrderedMark(shifted(c, payload), class, self.0 >> 25),
            _ => Folded::Entangled,
        }
    }
}

#[inline(always)]
fn shifted(c: char, shift: u32) -> char {
    char::from_u32((c as u32).wrapping_add(shift) & 0x1F_FFFF).unwrap_or(c)
}

fn pooled(offset: usize) -> &'static str {
    let text = &POOL[offset..];
    &text[..text.find('\u{FFFF}').unwrap_or(text.len())]
}

#[inline(always)]
fn locate(index: &[u16], c: char) -> usize {
    let code = c as usize;
    usize::from(index[code >> 7]) << 7 | code & 127
}

/// The lower case of one character by itself; characters newer than the tables stay as they are.
#[inline]
pub fn lowercase(c: char) -> impl Iterator<Item = char> {
    let lower = Properties::of(c).is_assigned().then(|| c.to_lowercase());
    let same = lower.is_none().then_some(c);
    lower.into_iter().flatten().chain(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::UnicodeNormalization as _;

    #[test]
    fn folded_entries_agree_with_the_normaliser() {
        for c in (0..0x11_0000).filter_map(char::from_u32) {
            let expected: String = std::iter::once(c).nfkc().flat_map(lowercase).collect();
            match FoldedEntry::of(c).unpack(c) {
                Folded::Simple(folded, class) | Folded::OrderedMark(folded, class, _) => {
                    assert_eq!(folded.to_string(), expected, "{c:?}");
                    assert_eq!(class, Properties::of(folded).class(), "{c:?}");
                }
                Folded::Pooled(text) => assert_eq!(text, expected, "{c:?}"),
                Folded::Entangled => assert!(!Properties::of(c).starts_segment(), "{c:?}"),
            }
        }
    }

    #[test]
    fn text_cut_at_segment_starts_normalises_piece_by_piece() {
        // Every ordered pair of characters that interact at all, or stand for those that do not.
        let interesting: Vec<char> = (0..0x11_0000)
            .filter_map(char::from_u32)
            .filter(|&c| !Properties::of(c).starts_segment())
            .chain("aAé가각ᄀか゛ﾞﾊ ½ﷺ\u{1100}\u{1161}\u{11A8}".chars())
            .collect();
        for &left in &interesting {
            for right in "aé가ᄀかﾊ½ﷺ\u{1100}".chars().filter(|&c| Properties::of(c).starts_segment()) {
                let together: String = [left, right].into_iter().nfkc().collect();
                let apart: String = std::iter::once(left).nfkc().chain(std::iter::once(right).nfkc()).collect();
                assert_eq!(together, apart, "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn classes_of_some_characters() {
        for (text, class) in [
            ("aZéßж٣9Ⅷ", Class::Word),
            ("漢ひカー々ไลខမ", Class::Alone),
            ("\u{301}\u{93F}\u{E34}", Class::Mark),
            (" _-.…🙂\u{200D}\u{0}", Class::Separator),
        ] {
            for c in text.chars() {
                assert_eq!(Properties::of(c).class(), class, "{c:?}");
            }
        }
    }
}
