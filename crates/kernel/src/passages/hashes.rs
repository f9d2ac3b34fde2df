//! Hashes of all runs of tokens of a text from two prefix polynomials, and the selection of k-grams.
//!
//! The polynomials are modulo the prime 2⁶¹ − 1. Modulo 2⁶⁴, Thue–Morse sequences of 1,024 tokens would collide under
//! every base.

use crate::hash::{Domain, key};

const PRIME: u64 = (1 << 61) - 1;

#[inline(always)]
const fn reduce(x: u64) -> u64 {
    let folded = (x & PRIME) + (x >> 61);
    if folded >= PRIME { folded - PRIME } else { folded }
}

#[inline(always)]
const fn multiply(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    reduce((product as u64 & PRIME) + (product >> 61) as u64)
}

/// Return hash · base + token, equal modulo the prime and at most 3 above it: the next step waits for no comparison.
#[inline(always)]
const fn append(hash: u64, base: u64, token: u64) -> u64 {
    let product = hash as u128 * base as u128;
    let sum = (product as u64 & PRIME) + (product >> 61) as u64 + token;
    (sum & PRIME) + (sum >> 61)
}

/// Bases of both polynomials and their powers up to the length of the longest segment.
pub struct Polynomials {
    powers: [Vec<u64>; 2],
}

impl Polynomials {
    /// Create the polynomials under `seed` for runs of up to `longest` tokens, at least 1.
    pub fn new(seed: u64, longest: usize) -> Self {
        let powers = [0, 1].map(|lane| {
            let base = reduce(key(seed, Domain::Passage, lane));
            std::iter::successors(Some(1), |&power| Some(multiply(power, base))).take(longest + 1).collect()
        });
        Self { powers }
    }

    /// Replace `prefixes` by the hashes of all prefixes of `tokens`, at most 3 above the prime.
    pub fn fill(&self, tokens: &[u64], prefixes: &mut Vec<[u64; 2]>) {
        let mut last = [0; 2];
        prefixes.clear();
        prefixes.reserve(tokens.len() + 1);
        prefixes.push(last);
        for &token in tokens {
            last = self.append(last, token);
            prefixes.push(last);
        }
    }

    /// Return the hashes of all tokens.
    pub fn whole(&self, tokens: &[u64]) -> [u64; 2] {
        let [first, second] = tokens.iter().fold([0; 2], |hashes, &token| self.append(hashes, token));
        [reduce(first), reduce(second)]
    }

    #[inline(always)]
    fn append(&self, [first, second]: [u64; 2], token: u64) -> [u64; 2] {
        let token = reduce(token);
        [append(first, self.powers[0][1], token), append(second, self.powers[1][1], token)]
    }

    /// Return the hash of the tokens from `start` to `end` under one polynomial.
    #[inline(always)]
    pub fn run(&self, prefixes: &[[u64; 2]], lane: usize, start: usize, end: usize) -> u64 {
        let leaving = multiply(prefixes[start][lane], self.powers[lane][end - start]);
        reduce(prefixes[end][lane] + PRIME - leaving)
    }
}

/// Call `emit` with the first window, the end of the windows and the selected hash of each run of windows of `width`
/// hashes that select the same one: the rightmost minimum.
pub fn select(hashes: &[u64], width: usize, mut emit: impl FnMut(usize, usize, u64)) {
    if hashes.len() < width {
        return;
    }
    let windows = hashes.len() - width + 1;
    let (mut first, mut selected) = (0, rightmost_minimum(hashes, 0, width));
    for window in 1..windows {
        let entering = window + width - 1;
        let next = if hashes[entering] <= hashes[selected] {
            entering
        } else if selected < window {
            rightmost_minimum(hashes, window, window + width)
        } else {
            continue;
        };
        emit(first, window, hashes[selected]);
        (first, selected) = (window, next);
    }
    emit(first, windows, hashes[selected]);
}

fn rightmost_minimum(hashes: &[u64], start: usize, end: usize) -> usize {
    (start + 1..end).fold(start, |best, i| if hashes[i] <= hashes[best] { i } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn runs_of_equal_tokens_have_equal_hashes_wherever_they_stand() {
        let tokens: Vec<u64> = (0..60).map(|i| mix(i % 7)).collect();
        let polynomials = Polynomials::new(1, 60);
        let mut prefixes = Vec::new();
        polynomials.fill(&tokens, &mut prefixes);
        for lane in [0, 1] {
            let hash = |start: usize, end: usize| polynomials.run(&prefixes, lane, start, end);
            assert_eq!(hash(3, 20), hash(10, 27));
            assert_eq!(hash(0, 1), reduce(tokens[0]));
            assert_ne!(hash(3, 20), hash(4, 21));
        }
    }

    #[test]
    fn thue_morse_sequences_of_1024_tokens_do_not_collide() {
        let sequence =
            |flip: u32| (0..1024u32).map(|i| mix(u64::from((i.count_ones() + flip) % 2))).collect::<Vec<_>>();
        let polynomials = Polynomials::new(1, 1024);
        let hash = |tokens: &[u64], lane| {
            let mut prefixes = Vec::new();
            polynomials.fill(tokens, &mut prefixes);
            polynomials.run(&prefixes, lane, 0, 1024)
        };
        assert!((0..2).all(|lane| hash(&sequence(0), lane) != hash(&sequence(1), lane)));
    }

    #[test]
    fn every_window_selects_its_rightmost_minimum() {
        for (seed, width) in (0..200).flat_map(|seed| [(seed, 1), (seed, 2), (seed, 7)]) {
            let hashes: Vec<u64> = (0..30).map(|i| mix(seed * 100 + i) % 5).collect();
            let mut found = Vec::new();
            select(&hashes, width, |first, end, hash| found.push((first, end, hash)));
            let minimum = |window: usize| rightmost_minimum(&hashes, window, window + width);
            let mut expected: Vec<(usize, usize, u64)> = Vec::new();
            for window in 0..=30 - width {
                match expected.last_mut() {
                    Some(last) if minimum(last.0) == minimum(window) => last.1 = window + 1,
                    _ => expected.push((window, window + 1, hashes[minimum(window)])),
                }
            }
            assert_eq!(found, expected);
        }
    }
}
