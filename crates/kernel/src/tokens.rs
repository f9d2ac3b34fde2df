//! Tokens: text in, the tokens of a shingle kind out, with their places. The general path, for every option.

use crate::hash::BytesHasher;
use crate::normalise::{Normaliser, Span};
use crate::unicode::{Class, Properties};

/// A token's hash and its place in the original text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Hash of the token's normalised UTF-8 bytes.
    pub hash: u64,
    /// Where it stands.
    pub span: Span,
}

/// Calls `take` with every word of `piece`. A piece ends its last word.
pub fn words(piece: &str, normaliser: &mut Normaliser, hasher: &BytesHasher, mut take: impl FnMut(Token)) {
    let mut word = OpenWord::default();
    normaliser.push(piece, |c, span| {
        let class = Properties::of(c).class();
        let continues = match class {
            Class::Mark => word.is_open(),
            Class::Word => word.is_open() && !word.alone,
            Class::Separator | Class::Alone => false,
        };
        if !continues {
            word.close(hasher, &mut take);
        }
        match class {
            Class::Word | Class::Alone => word.extend(c, span, continues, class == Class::Alone),
            Class::Mark if continues => {
                let alone = word.alone;
                word.extend(c, span, true, alone);
            }
            Class::Mark | Class::Separator => {}
        }
    });
    word.close(hasher, &mut take);
}

#[derive(Default)]
struct OpenWord {
    text: String,
    start: usize,
    end: usize,
    alone: bool,
}

impl OpenWord {
    fn is_open(&self) -> bool {
        !self.text.is_empty()
    }

    fn extend(&mut self, c: char, span: Span, continues: bool, alone: bool) {
        if !continues {
            self.start = span.start;
        }
        self.end = span.end;
        self.alone = alone;
        self.text.push(c);
    }

    fn close(&mut self, hasher: &BytesHasher, take: &mut impl FnMut(Token)) {
        if self.is_open() {
            let span = Span { start: self.start, end: self.end };
            take(Token { hash: hasher.hash(self.text.as_bytes()), span });
            self.text.clear();
        }
    }
}

/// Hashes of single characters; those of ASCII, and of all bytes, are looked up.
#[derive(Clone, Debug)]
pub struct CharacterHasher {
    hasher: BytesHasher,
    bytes: Box<[u64; 256]>,
}

impl CharacterHasher {
    /// Hashes characters as `hasher` hashes their UTF-8 bytes.
    #[must_use]
    pub fn new(hasher: BytesHasher) -> Self {
        let bytes = Box::new(std::array::from_fn(|byte| hasher.hash(&[byte as u8])));
        Self { hasher, bytes }
    }

    /// The hash of one byte.
    #[inline(always)]
    #[must_use]
    pub fn byte(&self, byte: u8) -> u64 {
        self.bytes[usize::from(byte)]
    }

    /// The hash of one character.
    #[inline]
    #[must_use]
    pub fn character(&self, c: char) -> u64 {
        if c.is_ascii() { self.byte(c as u8) } else { self.hasher.hash(c.encode_utf8(&mut [0; 4]).as_bytes()) }
    }
}

/// Calls `take` with every character of `piece`.
pub fn characters(piece: &str, normaliser: &mut Normaliser, hasher: &CharacterHasher, mut take: impl FnMut(Token)) {
    normaliser.push(piece, |c, span| take(Token { hash: hasher.character(c), span }));
}
