//! Properties of code points, and their result under the default normalisation.
//!
//! `build.rs` generates the tables, so one Unicode version is compiled in and the result does not depend on the
//! machine.

#[allow(clippy::unreadable_literal, reason = "generated")]
mod tables {
    include!(concat!(env!("OUT_DIR"), "/unicode_tables.rs"));
}

pub use tables::UNICODE_VERSION;
use tables::{FOLDED, FOLDED_INDEX, PROPERTIES, PROPERTIES_INDEX, REPLACEMENTS};

/// Role of a character in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Ends a word: white space, punctuation, symbols, controls.
    Separator = 0,
    /// Letter or number of a script that separates words.
    Word = 1,
    /// Combining mark; belongs to the letter before it.
    Mark = 2,
    /// Letter or number of a script written without spaces; a word by itself.
    Standalone = 3,
}

const CLASSES: [Class; 4] = [Class::Separator, Class::Word, Class::Mark, Class::Standalone];

/// Properties of a code point, as the byte that `build.rs` packed.
#[derive(Clone, Copy, Debug)]
pub struct Properties(pub u8);

impl Properties {
    /// Return the properties of `c`.
    #[inline(always)]
    #[must_use]
    pub fn of(c: char) -> Self {
        Self(PROPERTIES[table_index(&PROPERTIES_INDEX, c)])
    }

    /// Return the role of the character in words.
    #[inline(always)]
    #[must_use]
    pub const fn class(self) -> Class {
        CLASSES[(self.0 & 3) as usize]
    }

    /// Return whether the character is `White_Space`.
    #[inline(always)]
    #[must_use]
    pub const fn is_whitespace(self) -> bool {
        self.0 & 0x04 != 0
    }

    /// Return whether the character is punctuation or a symbol (general categories P* and S*).
    #[inline(always)]
    #[must_use]
    pub const fn is_punctuation(self) -> bool {
        self.0 & 0x08 != 0
    }

    /// Return whether the character is a decimal digit (general category Nd).
    #[inline(always)]
    #[must_use]
    pub const fn is_digit(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// Return whether the character never combines with the text before it, so that text can be cut here and normalised
    /// in pieces.
    #[inline(always)]
    #[must_use]
    pub const fn starts_segment(self) -> bool {
        self.0 & 0x20 != 0
    }

    /// Return whether the code point is assigned in the compiled Unicode version.
    #[inline(always)]
    #[must_use]
    pub const fn is_assigned(self) -> bool {
        self.0 & 0x40 != 0
    }
}

/// Result of the default normalisation (NFKC, then lower case) of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folded {
    /// One character, whatever its neighbours are, unless a mark follows that composes with it.
    Simple(char, Class),
    /// Several characters, or a different one.
    Replacement(&'static str),
    /// A mark that is unchanged while the ranks of the marks after a letter do not decrease.
    OrderedMark(char, Class, u32),
    /// It depends on the neighbours: the normaliser must be called.
    Contextual,
}

/// Packed table entry of a code point; cheap to copy and to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedEntry(u32);

impl FoldedEntry {
    /// Letter or number that is unchanged.
    pub const WORD: Self = Self((Class::Word as u32) << 21);
    /// Separator that is unchanged.
    pub const SEPARATOR: Self = Self((Class::Separator as u32) << 21);
    /// Character of a script without spaces that is unchanged.
    pub const STANDALONE: Self = Self((Class::Standalone as u32) << 21);

    /// Return the entry of `c`.
    #[inline(always)]
    #[must_use]
    pub fn of(c: char) -> Self {
        Self(FOLDED[table_index(&FOLDED_INDEX, c)])
    }

    /// Return whether a normalisation segment starts here.
    #[inline(always)]
    #[must_use]
    pub const fn starts_segment(self) -> bool {
        self.0 >> 23 & 3 < 2
    }

    /// Unpack the entry of `c`.
    #[inline(always)]
    #[must_use]
    pub fn unpack(self, c: char) -> Folded {
        let payload = self.0 & 0x1F_FFFF;
        let class = CLASSES[(self.0 >> 21 & 3) as usize];
        match self.0 >> 23 & 3 {
            0 => Folded::Simple(shifted(c, payload), class),
            1 => Folded::Replacement(replacement_at(payload as usize)),
            2 => Folded::OrderedMark(shifted(c, payload), class, self.0 >> 25),
            _ => Folded::Contextual,
        }
    }
}

#[inline(always)]
fn shifted(c: char, shift: u32) -> char {
    char::from_u32((c as u32).wrapping_add(shift) & 0x1F_FFFF).unwrap_or(c)
}

fn replacement_at(offset: usize) -> &'static str {
    let text = &REPLACEMENTS[offset..];
    &text[..text.find('\u{FFFF}').unwrap_or(text.len())]
}

#[inline(always)]
fn table_index(index: &[u16], c: char) -> usize {
    let code = c as usize;
    usize::from(index[code >> 7]) << 7 | code & 127
}

/// Return the lower case of one character by itself; code points newer than the tables are unchanged.
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
                Folded::Replacement(text) => assert_eq!(text, expected, "{c:?}"),
                Folded::Contextual => assert!(!Properties::of(c).starts_segment(), "{c:?}"),
            }
        }
    }

    #[test]
    fn text_cut_at_segment_starts_normalises_piece_by_piece() {
        // All pairs of a character that interacts with others, or an example of those that do not, and a segment start.
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
    fn characters_have_the_expected_classes() {
        for (text, class) in [
            ("aZéßж٣9Ⅷ", Class::Word),
            ("漢ひカー々ไลខမ", Class::Standalone),
            ("\u{301}\u{93F}\u{E34}", Class::Mark),
            (" _-.…🙂\u{200D}\u{0}", Class::Separator),
        ] {
            for c in text.chars() {
                assert_eq!(Properties::of(c).class(), class, "{c:?}");
            }
        }
    }
}
