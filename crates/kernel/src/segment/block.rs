//! Blocks of a segment: up to 252 ascending postings in 1,024 bytes, with a checksum.
//!
//! ```text
//!  0  checksum   u32   CRC-32C of the block's number in the file (u64) and of the rest of the block
//!  4  count      u16   number of postings, at least 1
//!  6  width      u8    bytes per key difference, 0 to 8
//!  7  zero       u8
//!  8  base       u64   the first key
//! 16  postings         count times: key - base in `width` bytes, document u32
//!     zeros
//! ```
//! Keys are uniform over 64 bits, so neighbours differ only in their lower bytes: seven bytes in a segment of 16,000
//! documents, six in one of a hundred million. Postings of equal width allow a binary search without decoding.

use crc32c::{crc32c, crc32c_append};

/// Size of a block: four per page; reading one costs about as much as the system call.
pub const BLOCK_BYTES: usize = 1024;
const HEADER_BYTES: usize = 16;
const DOCUMENT_BYTES: usize = 4;
/// Postings in a block whose keys are all equal.
pub const MAX_POSTINGS: usize = (BLOCK_BYTES - HEADER_BYTES) / DOCUMENT_BYTES;
/// Block number that no file has.
const NO_BLOCK: u64 = u64::MAX;

/// Pack a key and a document into one number that sorts by key, then document.
#[inline(always)]
#[must_use]
pub const fn pack(key: u64, document: u32) -> u128 {
    (key as u128) << 32 | document as u128
}

/// Return the key of a packed posting.
#[inline(always)]
#[must_use]
pub const fn key_of(posting: u128) -> u64 {
    (posting >> 32) as u64
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("the slice has 8 bytes"))
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("the slice has 4 bytes"))
}

fn checksum(block: &[u8], number: u64) -> u32 {
    crc32c_append(crc32c(&number.to_le_bytes()), &block[4..])
}

/// A decoded block.
#[derive(Clone, Debug)]
pub struct Block {
    number: u64,
    bytes: [u8; BLOCK_BYTES],
    base: u64,
    count: usize,
    width: usize,
}

impl Default for Block {
    fn default() -> Self {
        Self { number: NO_BLOCK, bytes: [0; BLOCK_BYTES], base: 0, count: 0, width: 0 }
    }
}

impl Block {
    /// Return the number of the block, or none if no valid block was read.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        Some(self.number).filter(|&number| number != NO_BLOCK)
    }

    /// Return the bytes of the block in the file.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; BLOCK_BYTES] {
        &self.bytes
    }

    /// Return the number of postings.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Return whether no block was read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Replace the block by the bytes that `read` writes; an error leaves no block.
    ///
    /// # Errors
    /// Those of `read`. `Ok(false)` means that the bytes are not block `number` with this first key.
    pub fn fill<E>(
        &mut self,
        number: u64,
        first_key: u64,
        read: impl FnOnce(&mut [u8; BLOCK_BYTES]) -> Result<(), E>,
    ) -> Result<bool, E> {
        self.number = NO_BLOCK;
        self.count = 0;
        read(&mut self.bytes)?;
        let bytes = &self.bytes;
        let (count, width) = (usize::from(u16::from_le_bytes([bytes[4], bytes[5]])), usize::from(bytes[6]));
        let fits = (1..=MAX_POSTINGS).contains(&count)
            && width <= 8
            && count * (width + DOCUMENT_BYTES) <= BLOCK_BYTES - HEADER_BYTES;
        if !fits || read_u32(bytes, 0) != checksum(bytes, number) || read_u64(bytes, 8) != first_key {
            return Ok(false);
        }
        (self.number, self.base, self.count, self.width) = (number, first_key, count, width);
        Ok(true)
    }

    /// Return the key and the document of posting `i`.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, i: usize) -> (u64, u32) {
        let end = HEADER_BYTES + i * (self.width + DOCUMENT_BYTES) + self.width;
        // The last of these eight bytes is the last of the difference; the bytes before the difference are shifted out.
        let (shift, mask) = ((64 - 8 * self.width) & 63, if self.width == 0 { 0 } else { u64::MAX });
        let difference = (read_u64(&self.bytes, end - 8) >> shift) & mask;
        (self.base.wrapping_add(difference), read_u32(&self.bytes, end))
    }

    /// Return the index of the first posting with a key of at least `key`.
    #[must_use]
    pub fn lower_bound(&self, key: u64) -> usize {
        let (mut start, mut size) = (0, self.count);
        while size > 0 {
            let half = size / 2;
            let below = self.get(start + half).0 < key;
            start += if below { half + 1 } else { 0 };
            size = if below { size - half - 1 } else { half };
        }
        start
    }

    /// Append all postings, packed.
    pub fn unpack(&self, out: &mut Vec<u128>) {
        out.extend((0..self.count).map(|i| {
            let (key, document) = self.get(i);
            pack(key, document)
        }));
    }
}

/// Postings of the next block to write.
#[derive(Debug)]
pub struct BlockBuilder {
    postings: Vec<u128>,
    width: usize,
    /// The largest difference that fits in `width` bytes.
    limit: u64,
    /// Postings that fit in a block at `width`.
    capacity: usize,
}

impl Default for BlockBuilder {
    fn default() -> Self {
        Self { postings: Vec::with_capacity(MAX_POSTINGS), width: 0, limit: 0, capacity: MAX_POSTINGS }
    }
}

impl BlockBuilder {
    /// Return the postings added so far.
    #[must_use]
    pub fn postings(&self) -> &[u128] {
        &self.postings
    }

    /// Add a posting that comes after all others; return false if the block is full.
    #[inline(always)]
    pub fn push(&mut self, posting: u128) -> bool {
        let first = self.postings.first().copied().unwrap_or(posting);
        let difference = key_of(posting).wrapping_sub(key_of(first));
        if difference > self.limit && !self.widen(difference) {
            return false;
        }
        let fits = self.postings.len() < self.capacity;
        if fits {
            self.postings.push(posting);
        }
        fits
    }

    /// Widen the differences; return false if the block then has no room for one more posting.
    fn widen(&mut self, difference: u64) -> bool {
        let width = 8 - difference.leading_zeros() as usize / 8;
        let capacity = (BLOCK_BYTES - HEADER_BYTES) / (width + DOCUMENT_BYTES);
        let fits = self.postings.len() < capacity;
        if fits {
            (self.width, self.capacity, self.limit) = (width, capacity, u64::MAX >> (64 - 8 * width));
        }
        fits
    }

    /// Append the block to `out` under its number, start the next one and return the checksum.
    pub fn write(&mut self, number: u64, out: &mut Vec<u8>) -> [u8; 4] {
        let mut block = [0; BLOCK_BYTES + 8]; // the eight-byte store of the last difference may exceed the block
        let base = self.postings.first().map_or(0, |&first| key_of(first));
        block[4..6].copy_from_slice(&(self.postings.len() as u16).to_le_bytes());
        block[6] = self.width as u8;
        block[8..HEADER_BYTES].copy_from_slice(&base.to_le_bytes());
        for (i, &posting) in self.postings.iter().enumerate() {
            let at = HEADER_BYTES + i * (self.width + DOCUMENT_BYTES);
            block[at..at + 8].copy_from_slice(&(key_of(posting) - base).to_le_bytes());
            let at = at + self.width;
            block[at..at + DOCUMENT_BYTES].copy_from_slice(&(posting as u32).to_le_bytes());
        }
        let checksum = checksum(&block[..BLOCK_BYTES], number).to_le_bytes();
        block[..4].copy_from_slice(&checksum);
        out.extend_from_slice(&block[..BLOCK_BYTES]);
        self.postings.clear();
        (self.width, self.limit, self.capacity) = (0, 0, MAX_POSTINGS);
        checksum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_round_trip_at_every_width() {
        for width in 0..=8 {
            let step = if width == 0 { 0 } else { 1u64 << (8 * width - 8) };
            let mut builder = BlockBuilder::default();
            let mut postings = Vec::new();
            for i in 0.. {
                let posting = pack(u64::from(i) * step.min(1 << 55), i);
                if !builder.push(posting) {
                    break;
                }
                postings.push(posting);
            }
            let mut bytes = Vec::new();
            builder.write(7, &mut bytes);
            let mut block = Block::default();
            let mut fill = |number, bytes: &[u8]| {
                block.fill(number, 0, |out| {
                    out.copy_from_slice(bytes);
                    Ok::<(), ()>(())
                })
            };
            assert_eq!(fill(8, &bytes), Ok(false), "the checksum covers the number");
            assert_eq!(fill(7, &bytes), Ok(true));
            let mut unpacked = Vec::new();
            block.unpack(&mut unpacked);
            assert_eq!(unpacked, postings, "{width}");
            for (i, &posting) in postings.iter().enumerate() {
                let first = postings.partition_point(|&other| key_of(other) < key_of(posting));
                assert_eq!(block.lower_bound(key_of(posting)), first, "{width} {i}");
            }
        }
    }

    #[test]
    fn a_posting_that_does_not_fit_leaves_the_block_unchanged() {
        let mut builder = BlockBuilder::default();
        let fit_at_width_2 = (0..168).all(|document| builder.push(pack(5, document)));
        assert!(fit_at_width_2 && !builder.push(pack(5 + 256, 168)));
        let mut bytes = Vec::new();
        builder.write(1, &mut bytes);
        assert_eq!((bytes[4], bytes[6]), (168, 0));
    }
}
