//! General tokeniser: words and characters under every normalisation option, with their spans.
//!
//! [`crate::fast_words`] is the fast path for words under the default normalisation.

use crate::hash::BytesHasher;
use crate::normalise::{Normaliser, Span};
use crate::unicode::{Class, Properties};

/// Hash of a token and its span in the original text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Hash of the token's normalised UTF-8 bytes.
    pub hash: u64,
    /// Span in the original text.
    pub span: Span,
}

/// Call `emit` with every word of `piece`. The end of a piece ends a word.
pub fn words(piece: &str, normaliser: &mut Normaliser, hasher: &BytesHasher, mut emit: impl FnMut(Token)) {
    let mut word = OpenWord::default();
    normaliser.push(piece, |c, span| {
        let class = Properties::of(c).class();
        let continues = match class {
            Class::Mark => word.is_open(),
            Class::Word => word.is_open() && !word.standalone,
            Class::Separator | Class::Standalone => false,
        };
        if !continues {
            word.close(hasher, &mut emit);
        }
        match class {
            Class::Word | Class::Standalone => word.extend(c, span, continues, class == Class::Standalone),
            Class::Mark if continues => {
                let standalone = word.standalone;
                word.extend(c, span, true, standalone);
            }
            Class::Mark | Class::Separator => {}
        }
    });
    word.close(hasher, &mut emit);
}

/// The word that is being read; empty between words.
#[derive(Default)]
struct OpenWord {
    text: String,
    start: usize,
    end: usize,
    standalone: bool,
}

impl OpenWord {
    fn is_open(&self) -> bool {
        !self.text.is_empty()
    }

    fn extend(&mut self, c: char, span: Span, continues: bool, standalone: bool) {
        if !continues {
            self.start = span.start;
        }
        self.end = span.end;
        self.standalone = standalone;
        self.text.push(c);
    }

    fn close(&mut self, hasher: &BytesHasher, emit: &mut impl FnMut(Token)) {
        if self.is_open() {
            let span = Span { start: self.start, end: self.end };
            emit(Token { hash: hasher.hash(self.text.as_bytes()), span });
            self.text.clear();
        }
    }
}

/// Hash function of single characters; the hashes of all bytes, and so of ASCII, come from a table.
#[derive(Clone, Debug)]
pub struct CharacterHasher {
    hasher: BytesHasher,
    bytes: Box<[u64; 256]>,
}

impl CharacterHasher {
    /// Create a function that hashes characters as `hasher` hashes their UTF-8 bytes.
    #[must_use]
    pub fn new(hasher: BytesHasher) -> Self {
        let bytes = Box::new(std::array::from_fn(|byte| hasher.hash(&[byte as u8])));
        Self { hasher, bytes }
    }

    /// Return the hash of one byte.
    #[inline(always)]
    #[must_use]
    pub fn byte(&self, byte: u8) -> u64 {
        self.bytes[usize::from(byte)]
    }

    /// Return the hash of one character.
    #[inline]
    #[must_use]
    pub fn character(&self, c: char) -> u64 {
        if c.is_ascii() { self.byte(c as u8) } else { self.hasher.hash(c.encode_utf8(&mut [0; 4]).as_bytes()) }
    }
}

/// Call `emit` with every character of `piece`.
pub fn characters(piece: &str, normaliser: &mut Normaliser, hasher: &CharacterHasher, mut emit: impl FnMut(Token)) {
    normaliser.push(piece, |c, span| emit(Token { hash: hasher.character(c), span }));
}
