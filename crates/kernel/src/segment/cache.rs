//! Cache: blocks that were read before, up to so many bytes, so that a lookup in a busy index needs no system call.
//!
//! A block may lie in one of four places, found by a hash of its segment and number; the place that was filled longest ago makes
//! room. What comes out is checked like what comes from the disk.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::block::BLOCK;

/// Places that a block may have.
const WAYS: usize = 4;
/// Parts with a lock each, so that threads seldom wait for each other.
const SHARDS: usize = 64;
/// An odd number whose multiples are spread over all bits: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Which block: a segment that was opened once, and the number of the block in it. 0 is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u64);

/// Blocks in memory.
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
    /// The place of each set that is filled next.
    next: Vec<u8>,
}

impl BlockCache {
    /// With room for so many bytes of blocks; they are taken when they are needed.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let sets = bytes / BLOCK / WAYS / SHARDS;
        let shard = || Shard { tags: vec![0; sets * WAYS], bytes: vec![0; sets * WAYS * BLOCK], next: vec![0; sets] };
        let shards = if sets == 0 { Vec::new() } else { (0..SHARDS).map(|_| Mutex::new(shard())).collect() };
        Self { shards, segments: AtomicU32::new(1), used: AtomicUsize::new(0) }
    }

    /// A number for a segment that no other has.
    pub fn register(&self) -> u32 {
        self.segments.fetch_add(1, Ordering::Relaxed)
    }

    /// The tag of a block.
    #[must_use]
    pub const fn tag(segment: u32, block: u64) -> Tag {
        Tag((segment as u64) << 40 | block)
    }

    /// Copies a block out; false if it is not there.
    pub fn get(&self, tag: Tag, out: &mut [u8; BLOCK]) -> bool {
        let Some((shard, set)) = self.locate(tag) else { return false };
        let Some(way) = (0..WAYS).find(|way| shard.tags[set * WAYS + way] == tag.0) else { return false };
        out.copy_from_slice(&shard.bytes[(set * WAYS + way) * BLOCK..][..BLOCK]);
        true
    }

    /// Keeps a copy of a block, in the place of another if there is no room.
    pub fn put(&self, tag: Tag, block: &[u8; BLOCK]) {
        let Some((mut shard, set)) = self.locate(tag) else { return };
        let way = usize::from(shard.next[set]);
        shard.next[set] = ((way + 1) % WAYS) as u8;
        let place = set * WAYS + way;
        if shard.tags[place] == 0 {
            self.used.fetch_add(BLOCK + size_of::<u64>(), Ordering::Relaxed);
        }
        shard.tags[place] = tag.0;
        shard.bytes[place * BLOCK..][..BLOCK].copy_from_slice(block);
    }

    /// Bytes that are filled.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The part and the set where a block may lie.
    fn locate(&self, tag: Tag) -> Option<(MutexGuard<'_, Shard>, usize)> {
        let hash = tag.0.wrapping_mul(SPREAD);
        let shard = self.shards.get(hash as usize >> 32 & (SHARDS - 1))?.lock().unwrap_or_else(PoisonError::into_inner);
        let set = ((u128::from(hash) * shard.next.len() as u128) >> 64) as usize;
        Some((shard, set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(of: u64) -> [u8; BLOCK] {
        [of as u8; BLOCK]
    }

    #[test]
    fn what_was_put_comes_out_as_long_as_there_is_room() {
        let cache = BlockCache::new(1 << 20);
        let segment = cache.register();
        let mut out = block(0);
        for number in 1..200 {
            assert!(!cache.get(BlockCache::tag(segment, number), &mut out));
            cache.put(BlockCache::tag(segment, number), &block(number));
            assert!(cache.get(BlockCache::tag(segment, number), &mut out));
            assert_eq!(out, block(number));
        }
        assert_eq!(cache.resident_bytes(), 199 * (BLOCK + 8));
        assert!(!cache.get(BlockCache::tag(cache.register(), 1), &mut out), "another segment");
    }

    #[test]
    fn it_never_holds_more_than_it_may_nor_gives_out_another_block() {
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
    fn without_room_nothing_is_kept() {
        let cache = BlockCache::new(1000);
        cache.put(BlockCache::tag(1, 1), &block(1));
        assert!(!cache.get(BlockCache::tag(1, 1), &mut block(0)));
        assert_eq!(cache.resident_bytes(), 0);
    }
}
