//! Cache of segment blocks, bounded in bytes, so that a lookup in a busy index needs no system call.
//!
//! The cache is 4-way set-associative: a hash of the segment and the block number selects a set, and the oldest of its
//! four entries is replaced. Blocks from the cache pass the same checks as blocks from disk.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::block::BLOCK_BYTES;
use crate::hash::GOLDEN;
/// Entries per set.
const WAYS: usize = 4;
/// Parts with a lock each, to keep contention between threads low.
const SHARDS: usize = 64;

/// Identifier of a block: the number of an open segment and the number of the block in it. 0 is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u64);

/// Cache of blocks.
#[derive(Debug)]
pub struct BlockCache {
    shards: Vec<Mutex<Shard>>,
    segments: AtomicU32,
    used: AtomicUsize,
}

#[derive(Debug)]
struct Shard {
    tags: Vec<u64>,
    bytes: Vec<u8>,
    /// Entry of each set that is replaced next.
    next: Vec<u8>,
}

impl BlockCache {
    /// Create a cache for `bytes` bytes of blocks; the system commits the memory on first use.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let sets = bytes / BLOCK_BYTES / WAYS / SHARDS;
        let shard =
            || Shard { tags: vec![0; sets * WAYS], bytes: vec![0; sets * WAYS * BLOCK_BYTES], next: vec![0; sets] };
        let shards = if sets == 0 { Vec::new() } else { (0..SHARDS).map(|_| Mutex::new(shard())).collect() };
        Self { shards, segments: AtomicU32::new(1), used: AtomicUsize::new(0) }
    }

    /// Return a new segment number.
    pub fn register(&self) -> u32 {
        self.segments.fetch_add(1, Ordering::Relaxed)
    }

    /// Return the identifier of a block.
    #[must_use]
    pub const fn tag(segment: u32, block: u64) -> Tag {
        Tag((segment as u64) << 40 | block)
    }

    /// Copy a block to `out`; return false if it is not in the cache.
    pub fn get(&self, tag: Tag, out: &mut [u8; BLOCK_BYTES]) -> bool {
        let Some((shard, set)) = self.locate(tag) else { return false };
        let Some(way) = (0..WAYS).find(|way| shard.tags[set * WAYS + way] == tag.0) else { return false };
        out.copy_from_slice(&shard.bytes[(set * WAYS + way) * BLOCK_BYTES..][..BLOCK_BYTES]);
        true
    }

    /// Store a copy of a block; replace another if the set is full.
    pub fn put(&self, tag: Tag, block: &[u8; BLOCK_BYTES]) {
        let Some((mut shard, set)) = self.locate(tag) else { return };
        let way = usize::from(shard.next[set]);
        shard.next[set] = ((way + 1) % WAYS) as u8;
        let entry = set * WAYS + way;
        if shard.tags[entry] == 0 {
            self.used.fetch_add(BLOCK_BYTES + size_of::<u64>(), Ordering::Relaxed);
        }
        shard.tags[entry] = tag.0;
        shard.bytes[entry * BLOCK_BYTES..][..BLOCK_BYTES].copy_from_slice(block);
    }

    /// Return the bytes in use.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Return the locked shard of a block and its set in the shard.
    fn locate(&self, tag: Tag) -> Option<(MutexGuard<'_, Shard>, usize)> {
        let hash = tag.0.wrapping_mul(GOLDEN);
        let shard = self.shards.get(hash as usize >> 32 & (SHARDS - 1))?.lock().unwrap_or_else(PoisonError::into_inner);
        let set = ((u128::from(hash) * shard.next.len() as u128) >> 64) as usize;
        Some((shard, set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u64) -> [u8; BLOCK_BYTES] {
        [number as u8; BLOCK_BYTES]
    }

    #[test]
    fn blocks_are_found_while_the_cache_is_not_full() {
        let cache = BlockCache::new(1 << 20);
        let segment = cache.register();
        let mut out = block(0);
        for number in 1..200 {
            assert!(!cache.get(BlockCache::tag(segment, number), &mut out));
            cache.put(BlockCache::tag(segment, number), &block(number));
            assert!(cache.get(BlockCache::tag(segment, number), &mut out));
            assert_eq!(out, block(number));
        }
        assert_eq!(cache.resident_bytes(), 199 * (BLOCK_BYTES + 8));
        assert!(!cache.get(BlockCache::tag(cache.register(), 1), &mut out), "another segment");
    }

    #[test]
    fn a_full_cache_stays_in_its_limit_and_returns_no_wrong_block() {
        let cache = BlockCache::new(1 << 19);
        let mut out = block(0);
        let mut found = 0;
        for number in 1..5000 {
            cache.put(BlockCache::tag(7, number), &block(number));
        }
        for number in 1..5000 {
            if cache.get(BlockCache::tag(7, number), &mut out) {
                assert_eq!(out, block(number));
                found += 1;
            }
        }
        assert!((256..=512).contains(&found), "{found} of at most 512");
        assert!(cache.resident_bytes() <= (1 << 19) + 512 * 8);
    }

    #[test]
    fn a_cache_smaller_than_one_set_stores_nothing() {
        let cache = BlockCache::new(1000);
        cache.put(BlockCache::tag(1, 1), &block(1));
        assert!(!cache.get(BlockCache::tag(1, 1), &mut block(0)));
        assert_eq!(cache.resident_bytes(), 0);
    }
}
