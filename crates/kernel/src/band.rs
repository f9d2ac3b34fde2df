//! Band: signatures in, buckets and candidate pairs out.
//!
//! A signature of b·r slots is cut into b bands of r slots; each band hashes to one 64-bit key. Documents with an equal key
//! share a bucket, and documents that share a bucket are candidates. A bucket has bounded cost: above a cap each member is
//! paired with its first few members only, in an order that the caller gives, so that the choice never depends on
//! threads, memory or arrival.

use rayon::prelude::*;

use crate::hash::{Domain, fold, key, mix};
use crate::sketch::Slot;

/// The key of a document that is in no bucket: without elements, not readable, or standing behind an equal one.
pub const NO_KEY: u64 = u64::MAX;
/// The number of a member that takes part in no bucket.
pub const NOBODY: u32 = u32::MAX;
/// With how many of its members a bucket above the cap pairs each.
pub const FIRST_MEMBERS: usize = 16;

/// Cuts signatures into bands.
#[derive(Clone, Debug)]
pub struct Banding {
    rows: usize,
    keys: [u64; 2],
    starts: Vec<u64>,
}

impl Banding {
    /// `bands` bands of `rows` slots, for signatures made with `seed`.
    #[must_use]
    pub fn new(bands: usize, rows: usize, seed: u64) -> Self {
        let keys = [key(seed, Domain::Band, 0), key(seed, Domain::Band, 1)];
        let starts = (0..bands as u64).map(|band| key(seed, Domain::Band, 2 + band)).collect();
        Self { rows, keys, starts }
    }

    /// Number of bands.
    #[must_use]
    pub const fn bands(&self) -> usize {
        self.starts.len()
    }

    /// Slots that the bands need.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.starts.len() * self.rows
    }

    /// The key of every band of a signature.
    pub fn keys<'s, S: Slot>(&'s self, signature: &'s [S]) -> impl Iterator<Item = u64> + 's {
        self.starts.iter().zip(signature.chunks_exact(self.rows)).map(|(&start, slots)| {
            let hash = slots.chunks(2).fold(start, |h, two| {
                let hi = two.get(1).map_or(0, |&slot| slot.into());
                fold(two[0].into() ^ self.keys[0] ^ h, hi ^ self.keys[1])
            });
            mix(hash).min(NO_KEY - 1)
        })
    }
}

/// The buckets of one band, gathered part by part.
#[derive(Debug, Default)]
pub struct Buckets {
    keys: Vec<u64>,
    members: Vec<u32>,
    /// What shares its key with another, by key and number, once gathering is over.
    shared: Option<Vec<(u64, u32)>>,
    /// Where the next bucket starts.
    place: usize,
    counts: BucketCounts,
}

/// What a band's buckets held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketCounts {
    /// Buckets above the cap.
    pub capped: u64,
    /// Members of those.
    pub capped_members: u64,
    /// Pairs inside them that were not proposed.
    pub left_out: u64,
    /// Members of the largest bucket; 0 if no key is shared.
    pub largest: u64,
}

impl Buckets {
    /// Takes the keys of documents and the numbers under which they take part; only those whose key is in `part` of
    /// `parts` equal ranges of keys.
    pub fn push(&mut self, keys: &[u64], members: &[u32], part: u64, parts: u64) {
        let mine = |key: u64| (u128::from(key) * u128::from(parts)) >> 64 == u128::from(part);
        let entries = keys.iter().zip(members);
        for (&key, &member) in entries.filter(|&(&key, &member)| key != NO_KEY && member != NOBODY && mine(key)) {
            self.keys.push(key);
            self.members.push(member);
        }
    }

    /// The candidate pairs `low << 32 | high` of the next buckets, ascending and distinct: of as many as give `most` pairs, and at
    /// least of one. None when there are no more buckets.
    pub fn next_pairs(&mut self, max_bucket: usize, most: usize) -> Option<Vec<u64>> {
        let entries = self.shared.get_or_insert_with(|| {
            let mut entries = shared_entries(&std::mem::take(&mut self.keys), &std::mem::take(&mut self.members));
            entries.par_sort_unstable();
            entries
        });
        let rest = &entries[self.place..];
        if rest.is_empty() {
            return None;
        }
        let mut pairs = Vec::new();
        for bucket in rest.chunk_by(|left, right| left.0 == right.0) {
            pair_members(bucket, max_bucket, &mut pairs, &mut self.counts);
            self.place += bucket.len();
            if pairs.len() >= most {
                break;
            }
        }
        pairs.par_sort_unstable();
        pairs.dedup();
        Some(pairs)
    }

    /// What the buckets so far held.
    #[must_use]
    pub const fn counts(&self) -> BucketCounts {
        self.counts
    }
}

/// The pair `low << 32 | high` of two numbers.
#[must_use]
pub const fn pack_pair(one: u32, other: u32) -> u64 {
    let (low, high) = if one < other { (one, other) } else { (other, one) };
    (low as u64) << 32 | high as u64
}

fn pair_members(bucket: &[(u64, u32)], max_bucket: usize, pairs: &mut Vec<u64>, counts: &mut BucketCounts) {
    let size = bucket.len();
    let partners = if size <= max_bucket { size } else { FIRST_MEMBERS };
    let before = pairs.len();
    for (i, &(_, member)) in bucket.iter().enumerate() {
        pairs.extend(bucket[..i.min(partners)].iter().map(|&(_, earlier)| pack_pair(earlier, member)));
    }
    if size > 1 {
        counts.largest = counts.largest.max(size as u64);
    }
    if size > max_bucket {
        counts.capped += 1;
        counts.capped_members += size as u64;
        counts.left_out += (size as u64) * (size as u64 - 1) / 2 - (pairs.len() - before) as u64;
    }
}

/// Bits per key of the sieve: one key in about eight that nobody shares stays by accident.
const SIEVE_BITS: usize = 8;

/// The entries whose key occurs at least twice, and a few others.
///
/// Most keys of a corpus are nobody else's. Marking the low bits of every key in a table, once and twice, finds them at a
/// fraction of the cost of sorting.
fn shared_entries(keys: &[u64], members: &[u32]) -> Vec<(u64, u32)> {
    let sieve = Sieve::of(keys);
    keys.iter().zip(members).filter(|&(&key, _)| sieve.twice(key)).map(|(&key, &member)| (key, member)).collect()
}

struct Sieve {
    mask: u64,
    once: Vec<u64>,
    again: Vec<u64>,
}

impl Sieve {
    fn of(keys: &[u64]) -> Self {
        let bits = (keys.len() * SIEVE_BITS).next_power_of_two().max(64);
        let mut sieve = Self { mask: bits as u64 - 1, once: vec![0; bits / 64], again: vec![0; bits / 64] };
        for &key in keys {
            let (word, bit) = sieve.place(key);
            sieve.again[word] |= sieve.once[word] & bit;
            sieve.once[word] |= bit;
        }
        sieve
    }

    const fn place(&self, key: u64) -> (usize, u64) {
        let place = key & self.mask;
        ((place / 64) as usize, 1 << (place % 64))
    }

    fn twice(&self, key: u64) -> bool {
        let (word, bit) = self.place(key);
        self.again[word] & bit != 0
    }
}

/// Documents with equal content, gathered part by part.
#[derive(Debug, Default)]
pub struct Copies {
    low: Vec<u64>,
    high: Vec<u64>,
    members: Vec<u32>,
}

impl Copies {
    /// Takes the content hashes of documents and the numbers under which they take part; only those whose hash is in
    /// `part` of `parts` equal ranges. `contents` holds two words per document.
    pub fn push(&mut self, contents: &[u64], members: &[u32], part: u64, parts: u64) {
        let mine = |key: u64| (u128::from(key) * u128::from(parts)) >> 64 == u128::from(part);
        for (content, &member) in contents.chunks_exact(2).zip(members) {
            if member != NOBODY && mine(content[0]) {
                self.low.push(content[0]);
                self.high.push(content[1]);
                self.members.push(member);
            }
        }
    }

    /// For every group of at least two: the members ascending, group after group in the order of their first members; and where
    /// each group starts, with one past the end of the last.
    #[must_use]
    pub fn groups(self) -> (Vec<u32>, Vec<u64>) {
        let sieve = Sieve::of(&self.low);
        let words = self.low.iter().zip(&self.high).zip(&self.members);
        let mut entries: Vec<(u64, u64, u32)> = words
            .filter(|&((&low, _), _)| sieve.twice(low))
            .map(|((&low, &high), &member)| (low, high, member))
            .collect();
        drop(self);
        entries.par_sort_unstable();
        let mut groups: Vec<&[(u64, u64, u32)]> =
            entries.chunk_by(|left, right| left.0 == right.0 && left.1 == right.1).filter(|g| g.len() > 1).collect();
        groups.sort_unstable_by_key(|group| group[0].2);
        let (mut members, mut starts) = (Vec::new(), vec![0]);
        for group in groups {
            members.extend(group.iter().map(|entry| entry.2));
            starts.push(members.len() as u64);
        }
        (members, starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// All pairs of members with an equal key; above the cap only those with one of the first sixteen.
    fn expected(keys: &[u64], members: &[u32], max_bucket: usize) -> Vec<u64> {
        let mut pairs = BTreeSet::new();
        for &key in keys {
            let mut bucket: Vec<u32> = (0..keys.len()).filter(|&i| keys[i] == key).map(|i| members[i]).collect();
            bucket.retain(|&member| key != NO_KEY && member != NOBODY);
            bucket.sort_unstable();
            let partners = if bucket.len() <= max_bucket { bucket.len() } else { FIRST_MEMBERS };
            for (i, &member) in bucket.iter().enumerate() {
                pairs.extend(bucket[..i.min(partners)].iter().map(|&earlier| pack_pair(earlier, member)));
            }
        }
        pairs.into_iter().collect()
    }

    #[test]
    fn pairs_are_those_of_the_definition_however_the_keys_are_cut_into_parts() {
        let keys: Vec<u64> = (0..600u64).map(|i| if i % 50 == 0 { NO_KEY } else { mix(mix(i) % 97) }).collect();
        let members: Vec<u32> = (0..600).map(|i| if i % 31 == 0 { NOBODY } else { 599 - i }).collect();
        for max_bucket in [1, 3, 20, 2000] {
            for parts in [1, 2, 7] {
                let mut pairs = Vec::new();
                for part in 0..parts {
                    let mut buckets = Buckets::default();
                    for (keys, members) in keys.chunks(100).zip(members.chunks(100)) {
                        buckets.push(keys, members, part, parts);
                    }
                    for most in [1, 50, usize::MAX] {
                        pairs.extend(buckets.next_pairs(max_bucket, most).unwrap_or_default());
                    }
                    assert_eq!(buckets.next_pairs(max_bucket, 1), None);
                }
                pairs.sort_unstable();
                assert_eq!(pairs, expected(&keys, &members, max_bucket), "{max_bucket} {parts}");
            }
        }
    }

    #[test]
    fn what_a_cap_leaves_out_is_counted() {
        let mut buckets = Buckets::default();
        buckets.push(&[7; 100], &(0..100).collect::<Vec<u32>>(), 0, 1);
        let pairs = buckets.next_pairs(99, usize::MAX).unwrap_or_default();
        // Members 1…15 have all earlier ones as partners, members 16…99 the first 16.
        assert_eq!(pairs.len(), 15 * 16 / 2 + 84 * 16);
        let left_out = 100 * 99 / 2 - pairs.len() as u64;
        assert_eq!(buckets.counts(), BucketCounts { capped: 1, capped_members: 100, left_out, largest: 100 });
    }

    #[test]
    fn copies_are_grouped_by_both_words() {
        let mut copies = Copies::default();
        copies.push(&[5, 1, 5, 2, 5, 1, 9, 9, 5, 2, 5, 3], &[10, 3, 2, 0, 4, NOBODY], 0, 1);
        assert_eq!(copies.groups(), (vec![2, 10, 3, 4], vec![0, 2, 4]));
    }
}
