//! Repeated passages: every L-gram (L consecutive words) that stands at an earlier position of the corpus, with its
//! first occurrence.
//!
//! Every L-gram selects the rightmost minimal hash of its k-grams, k = ⌊L/2⌋. The selection depends only on the content
//! of the L-gram, so equal L-grams select equal k-grams at equal offsets. A *segment* is a run of L-grams that select
//! the same k-gram; [`Scanner::scan`] writes one [`Entry`] per segment, about one for every L/4 words. Entries are
//! grouped by the hash of the k-gram, the fingerprint ([`Groups`]). A segment that equals the first of its group repeats
//! it: any earlier occurrence of one of its L-grams would be in the group, before the first. If other segments differ
//! from the first, their L-grams and those of the first are written one by one ([`Scanner::scan_regions`]) and grouped
//! by their own hashes. Nothing is missed: equal L-grams are always in groups of the same fingerprint.
//!
//! A suffix array gives the same answer, in memory for the whole corpus and with several times the work. Comparing each
//! segment only with the first of its group would be faster still, and misses repeats.
//!
//! Segments are equal if their lengths, at least 93 bits of two polynomials modulo 2⁶¹ − 1 and their fingerprints are.
//! Two different sequences of n token hashes agree in a polynomial with probability at most n / 2⁶¹ over the seed: for
//! a billion different segments of 100 words, any two are taken for equal with probability below 10⁻⁷; L-grams are
//! compared by 122 bits.

mod cut;
mod groups;
mod hashes;
mod scan;

pub use cut::{Cut, cut_texts};
pub use groups::{Covers, Groups, Kind, Order, Regions, renumber};
pub use scan::{Scanner, Spill};

/// Partitions of the entries, by the lowest bits of the fingerprint: the highest bits of a minimum are not uniform.
pub const PARTITIONS: usize = 256;
/// Maximum number of tokens of an L-gram. A segment has at most half as many L-grams, which 16 bits must hold.
pub const MAX_TOKENS: usize = 100_000;
/// Bytes of an encoded entry.
pub const ENTRY_BYTES: usize = 34;

/// A segment, or a single L-gram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Bits of the hash by which entries are grouped, without those of the partition.
    pub fingerprint: u32,
    /// Number of L-grams.
    pub count: u16,
    /// Hash of all tokens.
    pub hash: u64,
    /// Bits of a second hash of all tokens.
    pub check: u32,
    /// Number of the document.
    pub document: u32,
    /// Index of the first token in its document.
    pub position: u32,
    /// First code point, and one past the last.
    pub span: [u32; 2],
}

impl Entry {
    /// Return whether two entries of one fingerprint have the same tokens.
    #[must_use]
    pub fn same_tokens(&self, other: &Self) -> bool {
        (self.hash, self.check, self.count) == (other.hash, other.check, other.count)
    }

    /// Return the document in the high half and the first token in the low half.
    fn key(&self) -> u64 {
        u64::from(self.document) << 32 | u64::from(self.position)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.hash.to_le_bytes());
        let [start, end] = self.span;
        for value in [self.fingerprint, self.check, self.document, self.position, start, end] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&self.count.to_le_bytes());
    }

    fn decode(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[8 + 4 * i + byte]));
        Self {
            hash: u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| bytes[byte])),
            fingerprint: word(0),
            check: word(1),
            document: word(2),
            position: word(3),
            span: [word(4), word(5)],
            count: u16::from_le_bytes([bytes[32], bytes[33]]),
        }
    }
}
