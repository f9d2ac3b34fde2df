//! Immutable sorted files of postings.
//!
//! A posting is a pair of a key and a document that has it. A segment has two runs of postings, band keys and id
//! hashes, each ascending by key, then document. All numbers are little-endian, and every byte is covered by a check:
//!
//! ```text
//! block 0      "MWPOST\r\n", version u32, CRC-32C of both u32, zeros up to 1,024 bytes
//! blocks       those of the band keys, then those of the id hashes, 1,024 bytes each (see `block`)
//! fences       the first key of every block, u64 each
//! trailer      postings of both runs, blocks of both runs, lowest document, one past the highest, file size: u64 each;
//!              CRC-32C of the fences, CRC-32C of the trailer up to here: u32 each; "MWPOST\r\n"
//! ```
//! The fences stay in memory, about 1 % of the file, so a lookup reads one block. Files are read, not memory-mapped: a
//! file that became shorter gives an error, while a mapped one would end the process.

mod block;
mod cache;
mod header_trailer;
mod merge;
mod writer;

pub use block::{Block, key_of, pack};
pub use cache::BlockCache;
pub use merge::merge;
pub use writer::{SegmentWriter, Summary};

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::positioned::read_exact_at;
use block::BLOCK_BYTES;
use header_trailer::{TRAILER_BYTES, Trailer, describe_header, header};

/// Blocks per read of a sequential scan: 1 MiB.
const CHUNK_BLOCKS: usize = 1024;
/// One past the largest document number.
pub const MAX_DOCUMENTS: u64 = u32::MAX as u64;

/// Error of a segment file.
#[derive(Debug)]
pub enum SegmentError {
    /// The operating system reported an error.
    Io(PathBuf, io::Error),
    /// The file does not hold what was written to it.
    Damaged(PathBuf, String),
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Damaged(path, what) => write!(f, "{}: {what}", path.display()),
        }
    }
}

impl std::error::Error for SegmentError {}

/// Run of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Band keys.
    Bands = 0,
    /// Id hashes.
    Ids = 1,
}

/// Both runs in the order of the file.
pub const RUNS: [Run; 2] = [Run::Bands, Run::Ids];

/// Open segment.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    file: File,
    trailer: Trailer,
    fences: [Vec<u64>; 2],
    cache: Option<(Arc<BlockCache>, u32)>,
}

impl Segment {
    /// Open a file and check everything except the blocks.
    ///
    /// # Errors
    /// If the file cannot be read, or is not an intact segment.
    pub fn open(path: &Path) -> Result<Self, SegmentError> {
        let io = |error| SegmentError::Io(path.to_owned(), error);
        let damaged = |what: String| SegmentError::Damaged(path.to_owned(), what);
        let file = File::open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        let part = |offset, what: &str| damaged(format!("the {what} at byte {offset} is damaged"));
        if bytes < (BLOCK_BYTES + TRAILER_BYTES) as u64 {
            return Err(damaged(format!("it has {bytes} bytes, too few for a segment")));
        }
        let (mut start, mut end) = ([0; BLOCK_BYTES], [0; TRAILER_BYTES]);
        read(path, &file, &mut start, 0, "header")?;
        if start != header() {
            return Err(damaged(describe_header(&start)));
        }
        read(path, &file, &mut end, bytes - TRAILER_BYTES as u64, "trailer")?;
        let trailer = Trailer::from_bytes(&end, bytes).ok_or_else(|| part(bytes - TRAILER_BYTES as u64, "trailer"))?;
        let blocks = trailer.blocks.iter().sum::<u64>();
        let offset = (blocks + 1) * BLOCK_BYTES as u64;
        let mut fences = vec![0; blocks as usize * 8];
        read(path, &file, &mut fences, offset, "list of fences")?;
        let checksum = crc32c::crc32c(&fences);
        let mut bands: Vec<u64> = fences.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let ids = bands.split_off(trailer.blocks[0] as usize);
        if checksum != trailer.fences_checksum || !bands.is_sorted() || !ids.is_sorted() {
            return Err(part(offset, "list of fences"));
        }
        bands.shrink_to_fit();
        Ok(Self { path: path.to_owned(), file, trailer, fences: [bands, ids], cache: None })
    }

    /// Return the segment with a cache for the blocks that lookups read.
    #[must_use]
    pub fn cached(self, cache: &Arc<BlockCache>) -> Self {
        Self { cache: Some((Arc::clone(cache), cache.register())), ..self }
    }

    /// Return the size of the file.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        let blocks = self.trailer.blocks[0] + self.trailer.blocks[1];
        (blocks + 1) * BLOCK_BYTES as u64 + blocks * 8 + TRAILER_BYTES as u64
    }

    /// Return the checksum of the trailer.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        self.trailer.checksum()
    }

    /// Return the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Return the lowest document of its range.
    #[must_use]
    pub const fn low(&self) -> u64 {
        self.trailer.low
    }

    /// Return one past the highest document of its range.
    #[must_use]
    pub const fn high(&self) -> u64 {
        self.trailer.high
    }

    /// Return the number of postings of a run.
    #[must_use]
    pub const fn len(&self, run: Run) -> u64 {
        self.trailer.entries[run as usize]
    }

    /// Return whether both runs are empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len(Run::Bands) + self.len(Run::Ids) == 0
    }

    /// Return the memory used, in bytes, without the cache.
    #[must_use]
    pub const fn resident_bytes(&self) -> usize {
        size_of::<Self>() + 8 * (self.fences[0].capacity() + self.fences[1].capacity())
    }

    /// Return the number of the first block of a run.
    const fn first_block(&self, run: Run) -> u64 {
        match run {
            Run::Bands => 1,
            Run::Ids => 1 + self.trailer.blocks[0],
        }
    }

    /// Call `visit` with the documents of `key`, ascending, until it breaks; return whether it did.
    ///
    /// `block` caches the last block read: with ascending keys each block is read once.
    ///
    /// # Errors
    /// If a block cannot be read or is damaged.
    #[inline]
    pub fn members(
        &self,
        run: Run,
        key: u64,
        block: &mut Block,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SegmentError> {
        let fences = &self.fences[run as usize];
        let start = count_below(fences, key).saturating_sub(1);
        for (index, _) in fences.iter().enumerate().skip(start).take_while(|&(_, &fence)| fence <= key) {
            self.load(run, index, block)?;
            for i in block.lower_bound(key)..block.len() {
                let (other, document) = block.get(i);
                if other != key {
                    return Ok(ControlFlow::Continue(()));
                }
                if visit(document).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn load(&self, run: Run, index: usize, block: &mut Block) -> Result<(), SegmentError> {
        let number = self.first_block(run) + index as u64;
        if block.number() == Some(number) {
            return Ok(());
        }
        let cache = self.cache.as_ref().map(|(cache, segment)| (cache, BlockCache::tag(*segment, number)));
        let mut is_new = false;
        let intact = block.fill(number, self.fences[run as usize][index], |bytes| {
            if cache.is_some_and(|(cache, tag)| cache.get(tag, bytes)) {
                return Ok(());
            }
            is_new = true;
            read(&self.path, &self.file, bytes, number * BLOCK_BYTES as u64, "block")
        })?;
        if !intact {
            return Err(self.damaged_block(number));
        }
        if is_new && let Some((cache, tag)) = cache {
            cache.put(tag, block.bytes());
        }
        Ok(())
    }

    fn damaged_block(&self, number: u64) -> SegmentError {
        SegmentError::Damaged(self.path.clone(), format!("block {number} is damaged"))
    }

    /// Return a sequential reader of a run.
    #[must_use]
    pub fn entries(&self, run: Run) -> Entries<'_> {
        Entries {
            segment: self,
            run,
            next: 0,
            chunk: Vec::new(),
            chunk_start: 0,
            block: Block::default(),
            count: 0,
            last: None,
        }
    }

    /// Read the whole file, check that every block is intact and all postings ascend, and return the CRC-32C of the
    /// checksums of all blocks.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn check(&self) -> Result<u32, SegmentError> {
        let (mut block, mut checksum) = (Vec::new(), 0);
        for run in RUNS {
            let mut entries = self.entries(run);
            while entries.next_block(&mut block)? {
                block.clear();
                checksum = crc32c::crc32c_append(checksum, &entries.block.bytes()[..4]);
            }
        }
        Ok(checksum)
    }
}

/// Sequential reader of a run; checks that postings ascend.
pub struct Entries<'s> {
    segment: &'s Segment,
    run: Run,
    next: usize,
    chunk: Vec<u8>,
    chunk_start: usize,
    block: Block,
    count: u64,
    last: Option<u128>,
}

impl Entries<'_> {
    /// Append the packed postings of the next block; return false at the end.
    ///
    /// # Errors
    /// If the block cannot be read or is damaged, or the run has a wrong number of postings.
    pub fn next_block(&mut self, out: &mut Vec<u128>) -> Result<bool, SegmentError> {
        let Some(&fence) = self.segment.fences[self.run as usize].get(self.next) else { return self.end() };
        let number = self.segment.first_block(self.run) + self.next as u64;
        if self.next == self.chunk_start + self.chunk.len() / BLOCK_BYTES {
            self.read_chunk(number)?;
        }
        let start = (self.next - self.chunk_start) * BLOCK_BYTES;
        let intact = self.block.fill(number, fence, |bytes| {
            bytes.copy_from_slice(&self.chunk[start..start + BLOCK_BYTES]);
            Ok(())
        })?;
        let start = out.len();
        self.block.unpack(out);
        if !intact || !self.follows(&out[start..]) {
            return Err(self.segment.damaged_block(number));
        }
        self.next += 1;
        self.count += (out.len() - start) as u64;
        self.last = out.last().copied();
        Ok(true)
    }

    fn read_chunk(&mut self, number: u64) -> Result<(), SegmentError> {
        let left = self.segment.fences[self.run as usize].len() - self.next;
        self.chunk.resize(left.min(CHUNK_BLOCKS) * BLOCK_BYTES, 0);
        self.chunk_start = self.next;
        read(&self.segment.path, &self.segment.file, &mut self.chunk, number * BLOCK_BYTES as u64, "block")
    }

    /// Return whether postings ascend, come after the previous ones and are in the segment's range of documents.
    fn follows(&self, postings: &[u128]) -> bool {
        let documents = self.segment.low()..self.segment.high();
        let known = |&posting: &u128| documents.contains(&u64::from(posting as u32));
        self.last < postings.first().copied()
            && postings.is_sorted_by(|left, right| left < right)
            && postings.iter().all(known)
    }

    fn end(&self) -> Result<bool, SegmentError> {
        let all = self.segment.len(self.run);
        if self.count == all {
            return Ok(false);
        }
        let what = format!("it has {} postings instead of {all}", self.count);
        Err(SegmentError::Damaged(self.segment.path.clone(), what))
    }
}

/// Return the number of fences below `key`.
///
/// Keys are uniform, so an interpolated guess is close; from there the search doubles its steps. Other distributions
/// only make it slower.
fn count_below(fences: &[u64], key: u64) -> usize {
    let guess = ((u128::from(key) * fences.len() as u128) >> 64) as usize;
    let mut step = 1;
    let (mut low, mut high) = (guess, guess);
    if fences.get(guess).is_some_and(|&fence| fence < key) {
        while fences.get(high).is_some_and(|&fence| fence < key) {
            low = high + 1;
            high = (high + step).min(fences.len());
            step *= 2;
        }
    } else {
        while low > 0 && fences[low - 1] >= key {
            high = low - 1;
            low = low.saturating_sub(step);
            step *= 2;
        }
    }
    low + fences[low..high].partition_point(|&fence| fence < key)
}

/// Fill `bytes` from `offset` on; a file that is too short is reported as damaged.
fn read(path: &Path, file: &File, bytes: &mut [u8], offset: u64, what: &str) -> Result<(), SegmentError> {
    read_exact_at(file, bytes, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            SegmentError::Damaged(path.to_owned(), format!("the {what} at byte {offset} is cut off"))
        }
        _ => SegmentError::Io(path.to_owned(), error),
    })
}

#[cfg(test)]
mod tests;
