//! Hash functions and key derivation.
//!
//! The definitions are those of the appendix of DESIGN and frozen by the golden tests: one changed bit here changes
//! every stored signature. No function here is cryptographic; a secret seed keeps an adversary from constructing
//! collisions.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// 2⁶⁴ divided by the golden ratio, an odd number: the step between consecutive counters before mixing, and a
/// multiplier that spreads numbers over all bits.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Purpose of a derived key. Keys of different domains are unrelated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Tokens of a text.
    Token = 1,
    /// Integers as elements of a set.
    Integer = 2,
    /// Strings as elements of a set.
    String = 3,
    /// Byte strings as elements of a set.
    Bytes = 4,
    /// Rounds of one-permutation and fast sketching.
    Bins = 5,
    /// Hash functions of the minhash scheme.
    MinHash = 6,
    /// Donor bins of optimal densification.
    Densify = 7,
    /// Bands of a signature.
    Band = 8,
    /// Token sequence of a document.
    Content = 9,
    /// Directions of the random projections of vectors.
    Projection = 10,
    /// Offsets of the intervals on a random projection.
    Offset = 11,
    /// Bases of the polynomials over the tokens of passages.
    Passage = 12,
}

/// Mix 64 bits so that every output bit depends on every input bit; a bijection.
#[inline(always)]
#[must_use]
pub const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Return the high half xor the low half of the 128-bit product.
#[inline(always)]
#[must_use]
pub const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product >> 64) as u64 ^ product as u64
}

/// Return the `i`-th key of `domain` under `seed`.
#[must_use]
pub const fn key(seed: u64, domain: Domain, i: u64) -> u64 {
    let base = mix(seed.wrapping_add((domain as u64).wrapping_mul(GOLDEN)));
    mix(base.wrapping_add((i.wrapping_add(1)).wrapping_mul(GOLDEN)))
}

/// Bytes per block of [`BytesHasher`], and the readable bytes that [`BytesHasher::hash_padded`] needs after the text.
pub const BLOCK: usize = 16;

/// `MASKS[n]` keeps the first `n` bytes of a little-endian block.
static MASKS: [[u64; 2]; BLOCK + 1] = masks();

const fn masks() -> [[u64; 2]; BLOCK + 1] {
    let mut masks = [[u64::MAX; 2]; BLOCK + 1];
    let mut length = 0;
    while length < BLOCK {
        let mask = (1u128 << (8 * length)) - 1;
        masks[length] = [mask as u64, (mask >> 64) as u64];
        length += 1;
    }
    masks
}

/// Hash function of byte strings: folded multiplication over zero-padded 16-byte blocks, plus a multiple of the length.
#[derive(Clone, Debug)]
pub struct BytesHasher {
    keys: [u64; 3],
}

impl BytesHasher {
    /// Create the hash function of `domain` under `seed`.
    #[must_use]
    pub const fn new(seed: u64, domain: Domain) -> Self {
        Self { keys: [key(seed, domain, 0), key(seed, domain, 1), key(seed, domain, 2)] }
    }

    #[inline(always)]
    const fn absorb(&self, h: u64, lo: u64, hi: u64) -> u64 {
        fold(lo ^ self.keys[0] ^ h, hi ^ self.keys[1])
    }

    #[inline(always)]
    const fn finish(&self, h: u64, length: usize) -> u64 {
        h.wrapping_add((length as u64).wrapping_mul(self.keys[2]))
    }

    /// Return the hash of `buffer[start..start + length]`, which at least [`BLOCK`] bytes of any content must follow.
    ///
    /// Reading whole blocks and masking the last one avoids a branch on the length, which is unpredictable for words.
    ///
    /// # Panics
    /// If fewer than [`BLOCK`] bytes follow the text.
    #[inline(always)]
    #[must_use]
    pub fn hash_padded(&self, buffer: &[u8], start: usize, length: usize) -> u64 {
        let (mut h, mut at, mut left) = (0, start, length);
        while left > BLOCK {
            let (lo, hi) = load(buffer, at);
            h = self.absorb(h, lo, hi);
            at += BLOCK;
            left -= BLOCK;
        }
        let (lo, hi) = load(buffer, at);
        let [mask_lo, mask_hi] = MASKS[left];
        self.finish(self.absorb(h, lo & mask_lo, hi & mask_hi), length)
    }

    /// Return the hash of `data`.
    #[must_use]
    pub fn hash(&self, data: &[u8]) -> u64 {
        let whole = data.len().saturating_sub(1) / BLOCK * BLOCK;
        let mut h = 0;
        for at in (0..whole).step_by(BLOCK) {
            let (lo, hi) = load(data, at);
            h = self.absorb(h, lo, hi);
        }
        let mut last = [0; BLOCK];
        last[..data.len() - whole].copy_from_slice(&data[whole..]);
        let (lo, hi) = load(&last, 0);
        self.finish(self.absorb(h, lo, hi), data.len())
    }
}

/// Hash function from a sequence of 64-bit words to 128 bits, enough to treat documents with equal hashes as equal.
#[derive(Clone, Debug)]
pub struct ContentHasher {
    keys: [[u64; 3]; 2],
}

impl ContentHasher {
    /// Create the hash function under `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let lane = |first: u64| [0, 1, 2].map(|i| key(seed, Domain::Content, first + i));
        Self { keys: [lane(0), lane(3)] }
    }

    /// Return the hash of `words`; (0, 0) if there are none.
    #[must_use]
    pub fn hash(&self, words: &[u64]) -> [u64; 2] {
        let mut state = self.start();
        state.push(words);
        state.finish()
    }

    /// Return the state before the first word, to hash a sequence in pieces.
    #[must_use]
    pub const fn start(&self) -> ContentState<'_> {
        ContentState { hasher: self, lanes: [0; 2], odd: None, count: 0 }
    }

    #[inline(always)]
    fn absorb(&self, lanes: &mut [u64; 2], lo: u64, hi: u64) {
        for (h, keys) in lanes.iter_mut().zip(&self.keys) {
            *h = fold(lo ^ keys[0] ^ *h, hi ^ keys[1]);
        }
    }
}

/// State of [`ContentHasher`] between two pieces of a sequence.
#[derive(Debug)]
pub struct ContentState<'h> {
    hasher: &'h ContentHasher,
    lanes: [u64; 2],
    /// The last word, if it is the first of a pair.
    odd: Option<u64>,
    /// Number of words so far.
    pub count: usize,
}

impl ContentState<'_> {
    /// Add the next words of the sequence.
    pub fn push(&mut self, mut words: &[u64]) {
        self.count += words.len();
        if let (Some(lo), Some((&hi, rest))) = (self.odd, words.split_first()) {
            self.hasher.absorb(&mut self.lanes, lo, hi);
            (self.odd, words) = (None, rest);
        }
        let (pairs, last) = words.as_chunks();
        for &[lo, hi] in pairs {
            self.hasher.absorb(&mut self.lanes, lo, hi);
        }
        self.odd = last.first().copied().or(self.odd);
    }

    /// Return the hash of all words; (0, 0) if there are none.
    #[must_use]
    pub fn finish(mut self) -> [u64; 2] {
        if self.count == 0 {
            return [0, 0];
        }
        if let Some(lo) = self.odd {
            self.hasher.absorb(&mut self.lanes, lo, 0);
        }
        let words = self.count as u64;
        [0, 1].map(|lane| mix(self.lanes[lane].wrapping_add(words.wrapping_mul(self.hasher.keys[lane][2]))))
    }
}

/// Hash map whose keys are well mixed already, so that they are not hashed a second time.
pub(crate) type PremixedMap<K, V> = HashMap<K, V, BuildHasherDefault<PremixedHasher>>;

/// Hasher of keys that are well mixed already.
#[derive(Default)]
pub(crate) struct PremixedHasher(u64);

impl Hasher for PremixedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| hash.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 ^= word;
    }
}

#[inline(always)]
fn load(buffer: &[u8], at: usize) -> (u64, u64) {
    let block: [u8; BLOCK] = buffer[at..at + BLOCK].try_into().expect("the slice is one block long");
    let block = u128::from_le_bytes(block);
    (block as u64, (block >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_and_plain_hash_agree_on_every_length() {
        let hasher = BytesHasher::new(1, Domain::Token);
        let data: Vec<u8> = (0..200u32).map(|i| (i * 7 + 3) as u8).collect();
        for start in 0..20 {
            for length in 0..150 {
                let plain = hasher.hash(&data[start..start + length]);
                assert_eq!(hasher.hash_padded(&data, start, length), plain, "start {start}, length {length}");
            }
        }
    }

    #[test]
    fn zero_bytes_at_the_end_are_not_padding() {
        let hasher = BytesHasher::new(1, Domain::Bytes);
        let zeros = [0u8; 40];
        let hashes: std::collections::HashSet<u64> = (0..=40).map(|n| hasher.hash(&zeros[..n])).collect();
        assert_eq!(hashes.len(), 41);
    }

    #[test]
    fn a_flipped_input_bit_flips_every_output_bit_about_half_the_time() {
        // 4,096 trials per (input bit, output bit); six standard deviations of a fair coin are 6·sqrt(4096)/2 = 192.
        let hasher = BytesHasher::new(1, Domain::Token);
        for input_bit in 0..64 {
            let mut flips = [0i32; 64];
            for trial in 0..4096u64 {
                let x = mix(trial);
                let differ = mix(hasher.hash(&x.to_le_bytes())) ^ mix(hasher.hash(&(x ^ 1 << input_bit).to_le_bytes()));
                for (bit, count) in flips.iter_mut().enumerate() {
                    *count += (differ >> bit & 1) as i32;
                }
            }
            assert!(flips.iter().all(|count| (count - 2048).abs() <= 192), "input bit {input_bit}: {flips:?}");
        }
    }
}
