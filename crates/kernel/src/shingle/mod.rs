//! Shingle: text in, 64-bit shingle hashes out, as a set or as a bag.

use std::collections::HashMap;

use crate::error::{Fault, check_length, checked_text};
use crate::hash::{BytesHasher, ContentHasher, Domain, GOLDEN, mix};
use crate::normalise::{Normalisation, Normaliser, Span};
use crate::tokens::{self, CharacterHasher, Token};
use crate::words::{WordScratch, hash_words};

/// Base of the polynomial over token hashes. It is 3 modulo 8, so that M−1 is divisible by two only once: texts that
/// differ by two neighbouring tokens changing places keep 63 of 64 bits apart.
const BASE: u64 = 0xE703_7ED1_A0B4_28DB;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A run of letters, numbers and marks; one character in scripts written without spaces.
    Word,
    /// A code point of the normalised text.
    Char,
    /// A byte of the text as it is.
    Byte,
}

/// How texts become shingles.
#[derive(Clone, Debug)]
pub struct ShingleConfig {
    /// What a token is.
    pub kind: Kind,
    /// Tokens per shingle, at least 1.
    pub size: usize,
    /// Whether repeated shingles count.
    pub bag: bool,
    /// Keep only the low 32 bits of a hash.
    pub narrow: bool,
    /// Seed of the token hash.
    pub seed: u64,
    /// What to change before cutting into tokens.
    pub normalisation: Normalisation,
}

/// The reusable buffers of one worker; `shingles` is the result.
#[derive(Default)]
pub struct Scratch {
    words: WordScratch,
    tokens: Vec<u64>,
    /// Shingle hashes, or bag elements, of the last document.
    pub shingles: Vec<u64>,
}

/// Where each shingle of a text stands, in text order.
#[derive(Debug, Default)]
pub struct Spans {
    /// The element of each shingle.
    pub elements: Vec<u64>,
    /// First code point (byte, for byte shingles).
    pub starts: Vec<u64>,
    /// One past the last.
    pub ends: Vec<u64>,
}

/// Turns texts into shingle hashes.
pub struct Shingler {
    config: ShingleConfig,
    hasher: BytesHasher,
    characters: CharacterHasher,
    /// `BASE` to the power of the shingle size: the weight of the token that leaves the window.
    leaving: u64,
    simd: bool,
}

impl Shingler {
    /// A shingler; `simd` false keeps to portable code, for tests.
    #[must_use]
    pub fn new(config: ShingleConfig, simd: bool) -> Self {
        let hasher = BytesHasher::new(config.seed, Domain::Token);
        let characters = CharacterHasher::new(hasher.clone());
        let leaving = power(BASE, config.size as u64);
        Self { config, hasher, characters, leaving, simd }
    }

    /// Whether repeated shingles count.
    #[must_use]
    pub const fn is_bag(&self) -> bool {
        self.config.bag
    }

    /// Fills `scratch.shingles` with the elements of `document`: in text order and with repetitions for a set, in no
    /// particular order for a bag.
    ///
    /// # Errors
    /// If the document is not text, or too long.
    pub fn elements(&self, document: &[u8], scratch: &mut Scratch) -> Result<(), Fault> {
        scratch.tokens.clear();
        scratch.shingles.clear();
        if self.config.kind == Kind::Byte {
            check_length(document)?;
            self.roll(document, |&byte| self.characters.byte(byte), &mut scratch.shingles);
        } else {
            let mut normaliser = Normaliser::new(self.config.normalisation);
            self.hash_tokens(checked_text(document)?, &mut normaliser, &mut scratch.words, &mut scratch.tokens);
            self.roll(&scratch.tokens, |&hash| hash, &mut scratch.shingles);
        }
        if self.config.bag {
            self.number_occurrences(&mut scratch.shingles);
        }
        Ok(())
    }

    /// As [`Self::elements`], distinct and ascending.
    ///
    /// # Errors
    /// If the document is not text, or too long.
    pub fn distinct(&self, document: &[u8], scratch: &mut Scratch) -> Result<(), Fault> {
        self.elements(document, scratch)?;
        scratch.shingles.sort_unstable();
        scratch.shingles.dedup();
        Ok(())
    }

    /// The hash of the token sequence of the document that [`Self::elements`] was last called with.
    #[must_use]
    pub fn content(&self, document: &[u8], hasher: &ContentHasher, scratch: &mut Scratch) -> [u64; 2] {
        if self.config.kind == Kind::Byte {
            scratch.tokens.extend(document.iter().map(|&byte| self.characters.byte(byte)));
        }
        hasher.hash(&scratch.tokens)
    }

    /// A hasher of token sequences under this shingler's seed.
    #[must_use]
    pub fn content_hasher(&self) -> ContentHasher {
        ContentHasher::new(self.config.seed)
    }

    fn hash_tokens(&self, piece: &str, normaliser: &mut Normaliser, words: &mut WordScratch, hashes: &mut Vec<u64>) {
        match self.config.kind {
            Kind::Word if self.config.normalisation.is_default_for_words() => {
                hash_words(piece, &self.hasher, self.simd, words, hashes);
            }
            Kind::Word => tokens::words(piece, normaliser, &self.hasher, |token| hashes.push(token.hash)),
            Kind::Char => tokens::characters(piece, normaliser, &self.characters, |token| hashes.push(token.hash)),
            Kind::Byte => hashes.extend(piece.bytes().map(|byte| self.characters.byte(byte))),
        }
    }

    /// Appends the shingle of every window over `tokens`; one shingle of all of them when they fill no window.
    #[inline(always)]
    fn roll<T>(&self, tokens: &[T], hash: impl Fn(&T) -> u64, shingles: &mut Vec<u64>) {
        let size = self.config.size.min(tokens.len());
        if size == 0 {
            return;
        }
        let mut sum = tokens[..size].iter().fold(0u64, |sum, token| sum.wrapping_mul(BASE).wrapping_add(hash(token)));
        shingles.reserve(tokens.len() - size + 1);
        shingles.push(self.finish(sum));
        shingles.extend(tokens[size..].iter().zip(tokens).map(|(enters, leaves)| {
            let change = hash(enters).wrapping_sub(hash(leaves).wrapping_mul(self.leaving));
            sum = sum.wrapping_mul(BASE).wrapping_add(change);
            self.finish(sum)
        }));
    }

    #[inline(always)]
    fn finish(&self, sum: u64) -> u64 {
        self.narrow(mix(sum))
    }

    #[inline(always)]
    fn narrow(&self, hash: u64) -> u64 {
        if self.config.narrow { hash & 0xFFFF_FFFF } else { hash }
    }

    #[inline(always)]
    fn occurrence(&self, shingle: u64, number: u64) -> u64 {
        if number == 0 { shingle } else { self.narrow(mix(shingle.wrapping_add(number.wrapping_mul(GOLDEN)))) }
    }

    fn number_occurrences(&self, shingles: &mut [u64]) {
        shingles.sort_unstable();
        for run in shingles.chunk_by_mut(|left, right| left == right) {
            for (shingle, number) in run.iter_mut().zip(0..) {
                *shingle = self.occurrence(*shingle, number);
            }
        }
    }

    /// Where each shingle of `document` stands.
    ///
    /// # Errors
    /// If the document is not text, or too long.
    pub fn spans(&self, document: &[u8]) -> Result<Spans, Fault> {
        let tokens = self.tokens_with_spans(document)?;
        let mut spans = Spans::default();
        self.roll(&tokens, |token| token.hash, &mut spans.elements);
        if self.config.bag {
            let mut seen: HashMap<u64, u64> = HashMap::new();
            for element in &mut spans.elements {
                let number = seen.entry(*element).and_modify(|number| *number += 1).or_insert(0);
                *element = self.occurrence(*element, *number);
            }
        }
        let size = self.config.size.min(tokens.len()).max(1);
        for window in tokens.windows(size) {
            spans.starts.push(window[0].span.start as u64);
            spans.ends.push(window[size - 1].span.end as u64);
        }
        Ok(spans)
    }

    fn tokens_with_spans(&self, document: &[u8]) -> Result<Vec<Token>, Fault> {
        if self.config.kind == Kind::Byte {
            check_length(document)?;
            let token =
                |(start, &byte)| Token { hash: self.characters.byte(byte), span: Span { start, end: start + 1 } };
            return Ok(document.iter().enumerate().map(token).collect());
        }
        let text = checked_text(document)?;
        let mut normaliser = Normaliser::new(self.config.normalisation);
        let mut tokens = Vec::new();
        match self.config.kind {
            Kind::Word => tokens::words(text, &mut normaliser, &self.hasher, |token| tokens.push(token)),
            _ => tokens::characters(text, &mut normaliser, &self.characters, |token| tokens.push(token)),
        }
        Ok(tokens)
    }
}

fn power(base: u64, exponent: u64) -> u64 {
    let (mut result, mut square, mut left) = (1u64, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        left >>= 1;
    }
    result
}

mod stream;
pub use stream::ShingleStream;
