//! Hashing: bytes and counters in, 64 well-mixed bits out.
//!
//! The definitions are those of DESIGN §3 and are frozen by the golden tests: a changed bit here changes every stored
//! signature. Nothing in this module is cryptographic; an adversary is kept out by a secret seed.

/// 2⁶⁴ divided by the golden ratio: the step between consecutive counters before mixing.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a derived key is for. Different domains never share keys, so their hashes are unrelated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Tokens of a text.
    Token = 1,
    /// Integers given as members of a set.
    Integer = 2,
    /// Strings given as members of a set.
    String = 3,
    /// Byte strings given as members of a set.
    Bytes = 4,
    /// Rounds of one-permutation and fast sketching.
    Bins = 5,
    /// The independent functions of the minhash scheme.
    MinHash = 6,
    /// The choice of a donor bin in optimal densification.
    Densify = 7,
    /// The bands of a signature.
    Band = 8,
    /// The token sequence of a document.
    Content = 9,
    /// The directions that vectors are projected onto.
    Line = 10,
    /// Where the pieces of such a line begin.
    Offset = 11,
}

/// Mixes 64 bits so that every output bit depends on every input bit; a bijection.
#[inline(always)]
#[must_use]
pub const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// High half xor low half of the 128-bit product.
#[inline(always)]
#[must_use]
pub const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product >> 64) as u64 ^ product as u64
}

/// The `i`-th key that `seed` gives to `domain`.
#[must_use]
pub const fn key(seed: u64, domain: Domain, i: u64) -> u64 {
    let base = mix(seed.wrapping_add((domain as u64).wrapping_mul(GOLDEN)));
    mix(base.wrapping_add((i.wrapping_add(1)).wrapping_mul(GOLDEN)))
}

/// Bytes per block of [`BytesHasher`], and the room a caller of [`BytesHasher::hash_padded`] leaves behind its text.
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

/// Hashes byte strings by folded multiplication over 16-byte blocks, zero-padded, plus a multiple of the length.
#[derive(Clone, Debug)]
pub struct BytesHasher {
    keys: [u64; 3],
}

impl BytesHasher {
    /// A hasher of `domain` under `seed`.
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

    /// The hash of `buffer[start..start + length]`, where at least [`BLOCK`] bytes of any content follow the text.
    ///
    /// Reading whole blocks and masking the last one spares a branch on the length, which words make unpredictable.
    ///
    /// # Panics
    /// If the buffer ends within [`BLOCK`] bytes of the text's end.
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

    /// The hash of `data`.
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

/// Hashes a sequence of 64-bit words to 128 bits, enough that documents with equal hashes are taken to be equal.
#[derive(Clone, Debug)]
pub struct ContentHasher {
    keys: [[u64; 3]; 2],
}

impl ContentHasher {
    /// A hasher under `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let lane = |first: u64| [0, 1, 2].map(|i| key(seed, Domain::Content, first + i));
        Self { keys: [lane(0), lane(3)] }
    }

    /// The hash of `words`; (0, 0) if there are none.
    #[must_use]
    pub fn hash(&self, words: &[u64]) -> [u64; 2] {
        if words.is_empty() {
            return [0, 0];
        }
        let mut lanes = [0; 2];
        for two in words.chunks(2) {
            let hi = two.get(1).copied().unwrap_or(0);
            for (h, keys) in lanes.iter_mut().zip(&self.keys) {
                *h = fold(two[0] ^ keys[0] ^ *h, hi ^ keys[1]);
            }
        }
        [0, 1].map(|lane| mix(lanes[lane].wrapping_add((words.len() as u64).wrapping_mul(self.keys[lane][2]))))
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
