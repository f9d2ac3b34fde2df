//! Normalisation, tokens and shingles.
//!
//! The first bytes choose the settings and the cuts of the stream, the rest is the text. All ways to shingle a text
//! must agree: with and without SIMD, the fast and the general tokeniser, a whole text and a stream of chunks.

use std::sync::Arc;

use arbitrary::Unstructured;
use minwise_kernel::error::{TextFault, checked_text};
use minwise_kernel::fast_words::{WordScratch, hash_words};
use minwise_kernel::hash::{BytesHasher, Domain};
use minwise_kernel::normalise::{Normalisation, Normaliser};
use minwise_kernel::shingle::{Kind, Scratch, ShingleConfig, ShingleStream, Shingler};
use minwise_kernel::tokens;

/// Run one case.
///
/// # Panics
/// If two ways to shingle the text differ.
pub fn run(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let Ok((config, cut_seed)) = settings(&mut source) else { return };
    let text = source.take_rest();
    let shingler = Shingler::new(config.clone(), true);
    let whole = elements(&shingler, text);
    assert_eq!(whole, elements(&Shingler::new(config.clone(), false), text), "portable code: {config:?}");
    check_spans(&shingler, text, whole.as_deref(), &config);
    if !config.bag {
        assert_eq!(whole, streamed(Shingler::new(config.clone(), true), text, cut_seed), "stream: {config:?}");
    }
    if let Ok(text) = checked_text(text) {
        check_tokenisers(text, config.seed);
    }
}

fn settings(source: &mut Unstructured<'_>) -> arbitrary::Result<(ShingleConfig, u8)> {
    let flags: u8 = source.arbitrary()?;
    let changes: u8 = source.arbitrary()?;
    // Half of all cases have the settings of the fast path.
    let normalisation = if changes & 0x80 == 0 { Normalisation::default() } else { normalisation(changes) };
    let config = ShingleConfig {
        kind: [Kind::Word, Kind::Char, Kind::Byte, Kind::Word][usize::from(flags & 3)],
        size: 1 + usize::from(flags >> 2 & 7),
        bag: flags & 0x20 != 0,
        narrow: flags & 0x40 != 0,
        seed: u64::from(flags),
        normalisation,
    };
    Ok((config, source.arbitrary()?))
}

const fn normalisation(bits: u8) -> Normalisation {
    Normalisation {
        nfkc: bits & 1 != 0,
        strip_accents: bits & 2 != 0,
        lowercase: bits & 4 != 0,
        strip_punctuation: bits & 8 != 0,
        mask_digits: bits & 16 != 0,
        collapse_whitespace: bits & 32 != 0,
    }
}

fn elements(shingler: &Shingler, text: &[u8]) -> Result<Vec<u64>, TextFault> {
    let mut scratch = Scratch::default();
    shingler.elements(text, &mut scratch)?;
    Ok(scratch.shingles)
}

/// Compare the elements with those of the general tokeniser, which also finds their spans.
fn check_spans(shingler: &Shingler, text: &[u8], whole: Result<&[u64], &TextFault>, config: &ShingleConfig) {
    let spans = match (shingler.spans(text), whole) {
        (Ok(spans), Ok(_)) => spans,
        (spans, whole) => return assert_eq!(spans.as_ref().err(), whole.err()),
    };
    let (mut left, mut right) = (spans.elements.clone(), whole.unwrap_or_default().to_vec());
    if config.bag {
        left.sort_unstable();
        right.sort_unstable();
    }
    assert_eq!(left, right, "spans: {config:?}");
    assert_eq!((spans.starts.len(), spans.ends.len()), (left.len(), left.len()));
    assert!(spans.starts.iter().zip(&spans.ends).all(|(start, end)| start <= end && *end <= text.len() as u64));
}

fn streamed(shingler: Shingler, text: &[u8], cut_seed: u8) -> Result<Vec<u64>, TextFault> {
    let mut stream = ShingleStream::new(Arc::new(shingler));
    let mut found = Vec::new();
    let (mut rest, mut length) = (text, usize::from(cut_seed));
    while !rest.is_empty() {
        length = (length * 7 + 1) % 61;
        let (chunk, after) = rest.split_at(length.min(rest.len()));
        found.extend_from_slice(stream.push(chunk)?);
        rest = after;
    }
    found.extend_from_slice(stream.finish()?);
    Ok(found)
}

fn check_tokenisers(text: &str, seed: u64) {
    let hasher = BytesHasher::new(seed, Domain::Token);
    let mut general = Vec::new();
    let mut normaliser = Normaliser::new(Normalisation::default());
    tokens::words(text, &mut normaliser, &hasher, |token| general.push(token.hash));
    for simd in [false, true] {
        let mut fast = Vec::new();
        hash_words(text, &hasher, simd, &mut WordScratch::default(), &mut fast);
        assert_eq!(fast, general, "fast words, simd {simd}");
    }
}
