//! Shingling: from a text to 64-bit shingle hashes, as a set or as a bag.

use std::collections::HashMap;

use crate::error::{TextFault, check_length, checked_text};
use crate::fast_words::{WordScratch, hash_words, hash_words_with_spans};
use crate::hash::{BytesHasher, ContentHasher, Domain, GOLDEN, mix};
use crate::normalise::{Normalisation, Normaliser, Span};
use crate::tokens::{self, CharacterHasher, Token};

/// Base of the polynomial over token hashes. Swapping two adjacent tokens changes the sum by a multiple of BASE − 1.
/// BASE is 3 modulo 8, so BASE − 1 is divisible by two only once, and 63 of the 64 bits of the difference are kept.
const BASE: u64 = 0xE703_7ED1_A0B4_28DB;

/// Kind of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A run of letters, numbers and marks; one character in scripts written without spaces.
    Word,
    /// A code point of the normalised text.
    Char,
    /// A byte of the original text.
    Byte,
}

/// Settings of a shingler.
#[derive(Clone, Debug)]
pub struct ShingleConfig {
    /// Kind of token.
    pub kind: Kind,
    /// Tokens per shingle, at least 1.
    pub size: usize,
    /// Whether repeated shingles count.
    pub bag: bool,
    /// Whether only the low 32 bits of a hash are kept.
    pub narrow: bool,
    /// Seed of the token hash.
    pub seed: u64,
    /// Changes to the text before it is tokenised.
    pub normalisation: Normalisation,
}

/// Reusable buffers of one worker; `shingles` holds the result.
#[derive(Default)]
pub struct Scratch {
    words: WordScratch,
    tokens: Vec<u64>,
    /// Spans of the tokens, where they are needed.
    spans: Vec<[u32; 2]>,
    /// Hashes of the prefixes of a text, and of its k-grams, for passages.
    pub(crate) prefixes: Vec<[u64; 2]>,
    pub(crate) grams: Vec<u64>,
    /// Shingle hashes, or bag elements, of the last document.
    pub shingles: Vec<u64>,
}

/// Spans of the shingles of a text, in text order.
#[derive(Debug, Default)]
pub struct Spans {
    /// Element of each shingle.
    pub elements: Vec<u64>,
    /// First code point (byte, for byte shingles).
    pub starts: Vec<u64>,
    /// One past the last code point.
    pub ends: Vec<u64>,
}

/// Function from texts to shingle hashes.
pub struct Shingler {
    config: ShingleConfig,
    hasher: BytesHasher,
    characters: CharacterHasher,
    /// `BASE` to the power of the shingle size: the weight of the token that leaves the window.
    leaving_weight: u64,
    simd: bool,
}

impl Shingler {
    /// Create a shingler; `simd` false selects the portable code, for tests.
    #[must_use]
    pub fn new(config: ShingleConfig, simd: bool) -> Self {
        let hasher = BytesHasher::new(config.seed, Domain::Token);
        let characters = CharacterHasher::new(hasher.clone());
        let leaving_weight = power(BASE, config.size as u64);
        Self { config, hasher, characters, leaving_weight, simd }
    }

    /// Return whether repeated shingles count.
    #[must_use]
    pub const fn is_bag(&self) -> bool {
        self.config.bag
    }

    /// Fill `scratch.shingles` with the elements of `document`: in text order and with repetitions for a set, in no
    /// particular order for a bag.
    ///
    /// # Errors
    /// If the document is not UTF-8 or too long.
    pub fn elements(&self, document: &[u8], scratch: &mut Scratch) -> Result<(), TextFault> {
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

    /// Do the same as [`Self::elements`], with distinct and ascending elements, made in pieces of a long document.
    ///
    /// # Errors
    /// If the document is not UTF-8 or too long, or has too many elements.
    pub fn distinct(&self, document: &[u8], scratch: &mut Scratch) -> Result<(), TextFault> {
        if is_long(document) {
            return self.distinct_of_pieces(document, scratch);
        }
        self.elements(document, scratch)?;
        scratch.shingles.sort_unstable();
        scratch.shingles.dedup();
        Ok(())
    }

    /// Return the hash of the token sequence of the document that was last passed to [`Self::elements`].
    #[must_use]
    pub fn content(&self, document: &[u8], hasher: &ContentHasher, scratch: &mut Scratch) -> [u64; 2] {
        if self.config.kind == Kind::Byte {
            scratch.tokens.extend(document.iter().map(|&byte| self.characters.byte(byte)));
        }
        hasher.hash(&scratch.tokens)
    }

    /// Return the hash function of token sequences under this shingler's seed.
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

    /// Append hash and span of every word of `piece`, which `base` code points precede; return its code points.
    fn hash_words_with_spans(&self, piece: &str, base: u32, normaliser: &mut Normaliser, scratch: &mut Scratch) -> u32 {
        let Scratch { words, tokens, spans, .. } = scratch;
        if self.config.normalisation.is_default_for_words() {
            return hash_words_with_spans(piece, base, &self.hasher, self.simd, words, tokens, spans);
        }
        tokens::words(piece, normaliser, &self.hasher, |token| {
            tokens.push(token.hash);
            spans.push([token.span.start as u32, token.span.end as u32]);
        });
        piece.chars().count() as u32
    }

    /// Append the shingle of every window over `tokens`, or one shingle of all tokens if they fill no window.
    #[inline(always)]
    pub(crate) fn roll<T>(&self, tokens: &[T], hash: impl Fn(&T) -> u64, shingles: &mut Vec<u64>) {
        let size = self.config.size.min(tokens.len());
        if size == 0 {
            return;
        }
        let mut sum = tokens[..size].iter().fold(0u64, |sum, token| sum.wrapping_mul(BASE).wrapping_add(hash(token)));
        shingles.reserve(tokens.len() - size + 1);
        shingles.push(self.finish(sum));
        shingles.extend(tokens[size..].iter().zip(tokens).map(|(enters, leaves)| {
            let change = hash(enters).wrapping_sub(hash(leaves).wrapping_mul(self.leaving_weight));
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

    /// Return the spans of the shingles of `document`.
    ///
    /// # Errors
    /// If the document is not UTF-8 or too long.
    pub fn spans(&self, document: &[u8]) -> Result<Spans, TextFault> {
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

    fn tokens_with_spans(&self, document: &[u8]) -> Result<Vec<Token>, TextFault> {
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

mod pieces;
mod stream;
pub use pieces::is_long;
pub use stream::ShingleStream;
