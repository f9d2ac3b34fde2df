//! Segment: postings in, a sorted file out, and looked up there.
//!
//! A posting says that a document has a key. A segment is an immutable file of two runs of postings, each ascending by key, then
//! document: band keys, and hashes of ids. All numbers are little-endian, every byte is covered by a check:
//!
//! ```text
//! block 0      "MWPOST\r\n", version u32, CRC-32C of both u32, zeros up to 1,024 bytes
//! blocks       those of the band keys, then those of the id hashes, 1,024 bytes each (see `block`)
//! fences       the first key of every block, u64 each
//! trailer      postings of both runs, blocks of both runs, lowest document, one past the highest, bytes of the file: u64 each;
//!              CRC-32C of the fences, CRC-32C of the trailer up to here: u32 each; "MWPOST\r\n"
//! ```
//! Fences stay in memory, about 1 % of the file; a lookup then reads one block. Blocks are read, not mapped: a file that
//! became shorter is an error and not the end of the process.

mod block;
mod cache;
mod ends;
mod merge;
mod writer;

pub use block::{Block, key_of, pack};
pub use cache::BlockCache;
pub use merge::merge;
pub use writer::SegmentWriter;

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::BLOCK;
use ends::{TRAILER, Trailer, foreign, header};

/// Blocks that reading from front to back takes at once: 1 MiB.
const CHUNK_BLOCKS: usize = 1024;
/// One past the largest number a document can have.
pub const DOCUMENTS: u64 = u32::MAX as u64;

/// What is wrong with a segment, and in which file.
#[derive(Debug)]
pub enum SegmentError {
    /// The system said no.
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

/// One of the two runs of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Keys of bands.
    Bands = 0,
    /// Hashes of ids.
    Ids = 1,
}

/// Both runs, as they stand in the file.
pub const RUNS: [Run; 2] = [Run::Bands, Run::Ids];

/// An open segment.
#[derive(Debug)]
pub struct Segment {
    path: PathBuf,
    file: File,
    trailer: Trailer,
    fences: [Vec<u64>; 2],
    cache: Option<(Arc<BlockCache>, u32)>,
}

impl Segment {
    /// Opens a file and checks all of it but the blocks.
    ///
    /// # Errors
    /// If it can not be read, or is not a whole segment.
    pub fn open(path: &Path) -> Result<Self, SegmentError> {
        let io = |error| SegmentError::Io(path.to_owned(), error);
        let damaged = |what: String| SegmentError::Damaged(path.to_owned(), what);
        let file = File::open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        let part = |place, what: &str| damaged(format!("the {what} at byte {place} is damaged"));
        if bytes < (BLOCK + TRAILER) as u64 {
            return Err(damaged(format!("it has {bytes} bytes, too few for a segment")));
        }
        let (mut start, mut end) = ([0; BLOCK], [0; TRAILER]);
        read(path, &file, &mut start, 0, "header")?;
        if start != header() {
            return Err(damaged(foreign(&start)));
        }
        read(path, &file, &mut end, bytes - TRAILER as u64, "trailer")?;
        let trailer = Trailer::from_bytes(&end, bytes).ok_or_else(|| part(bytes - TRAILER as u64, "trailer"))?;
        let blocks = trailer.blocks.iter().sum::<u64>();
        let place = (blocks + 1) * BLOCK as u64;
        let mut fences = vec![0; blocks as usize * 8];
        read(path, &file, &mut fences, place, "list of fences")?;
        let checksum = crc32c::crc32c(&fences);
        let mut bands: Vec<u64> = fences.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let ids = bands.split_off(trailer.blocks[0] as usize);
        if checksum != trailer.fences_checksum || !bands.is_sorted() || !ids.is_sorted() {
            return Err(part(place, "list of fences"));
        }
        bands.shrink_to_fit();
        Ok(Self { path: path.to_owned(), file, trailer, fences: [bands, ids], cache: None })
    }

    /// The same segment, with its blocks kept in a cache once they were looked up.
    #[must_use]
    pub fn cached(self, cache: &Arc<BlockCache>) -> Self {
        Self { cache: Some((Arc::clone(cache), cache.register())), ..self }
    }

    /// Bytes of the file.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        let blocks = self.trailer.blocks[0] + self.trailer.blocks[1];
        (blocks + 1) * BLOCK as u64 + blocks * 8 + TRAILER as u64
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The lowest document that it covers.
    #[must_use]
    pub const fn low(&self) -> u64 {
        self.trailer.low
    }

    /// One past the highest document that it covers.
    #[must_use]
    pub const fn high(&self) -> u64 {
        self.trailer.high
    }

    /// Postings of a run.
    #[must_use]
    pub const fn len(&self, run: Run) -> u64 {
        self.trailer.entries[run as usize]
    }

    /// Whether there are none at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len(Run::Bands) + self.len(Run::Ids) == 0
    }

    /// Bytes of memory that it takes while it is open.
    #[must_use]
    pub const fn resident_bytes(&self) -> usize {
        size_of::<Self>() + 8 * (self.fences[0].capacity() + self.fences[1].capacity())
    }

    /// The number of a run's first block in the file.
    const fn first_block(&self, run: Run) -> u64 {
        match run {
            Run::Bands => 1,
            Run::Ids => 1 + self.trailer.blocks[0],
        }
    }

    /// Shows `each` the documents with `key`, ascending, until it breaks off. Says whether it did.
    ///
    /// `block` keeps the last block that was read: with keys that ascend from call to call, no block is read twice.
    ///
    /// # Errors
    /// If a block can not be read or is damaged.
    #[inline]
    pub fn members(
        &self,
        run: Run,
        key: u64,
        block: &mut Block,
        mut each: impl FnMut(u32) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SegmentError> {
        let fences = &self.fences[run as usize];
        let start = count_below(fences, key).saturating_sub(1);
        for (at, _) in fences.iter().enumerate().skip(start).take_while(|&(_, &fence)| fence <= key) {
            self.load(run, at, block)?;
            for i in block.lower_bound(key)..block.len() {
                let (other, document) = block.get(i);
                if other != key {
                    return Ok(ControlFlow::Continue(()));
                }
                if each(document).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn load(&self, run: Run, at: usize, block: &mut Block) -> Result<(), SegmentError> {
        let number = self.first_block(run) + at as u64;
        if block.number() == Some(number) {
            return Ok(());
        }
        let cache = self.cache.as_ref().map(|(cache, segment)| (cache, BlockCache::tag(*segment, number)));
        let mut is_new = false;
        let whole = block.fill(number, self.fences[run as usize][at], |bytes| {
            if cache.is_some_and(|(cache, tag)| cache.get(tag, bytes)) {
                return Ok(());
            }
            is_new = true;
            read(&self.path, &self.file, bytes, number * BLOCK as u64, "block")
        })?;
        if !whole {
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

    /// The postings of a run, read from front to back.
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

    /// Reads the whole file and checks that every block is whole and everything ascends.
    ///
    /// # Errors
    /// If it can not be read, or anything is wrong.
    pub fn check(&self) -> Result<(), SegmentError> {
        let mut block = Vec::new();
        for run in RUNS {
            let mut entries = self.entries(run);
            while entries.next_block(&mut block)? {
                block.clear();
            }
        }
        Ok(())
    }
}

/// The postings of a run, block by block, checked to ascend from the first to the last.
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
    /// Appends the packed postings of the next block; false if there are no more.
    ///
    /// # Errors
    /// If the block can not be read or is damaged, or the run has ended with another number of postings than it has.
    pub fn next_block(&mut self, out: &mut Vec<u128>) -> Result<bool, SegmentError> {
        let Some(&fence) = self.segment.fences[self.run as usize].get(self.next) else { return self.end() };
        let number = self.segment.first_block(self.run) + self.next as u64;
        if self.next == self.chunk_start + self.chunk.len() / BLOCK {
            self.read_chunk(number)?;
        }
        let at = (self.next - self.chunk_start) * BLOCK;
        let whole = self.block.fill(number, fence, |bytes| {
            bytes.copy_from_slice(&self.chunk[at..at + BLOCK]);
            Ok(())
        })?;
        let start = out.len();
        self.block.unpack(out);
        if !whole || !self.follows(&out[start..]) {
            return Err(self.segment.damaged_block(number));
        }
        self.next += 1;
        self.count += (out.len() - start) as u64;
        self.last = out.last().copied();
        Ok(true)
    }

    fn read_chunk(&mut self, number: u64) -> Result<(), SegmentError> {
        let left = self.segment.fences[self.run as usize].len() - self.next;
        self.chunk.resize(left.min(CHUNK_BLOCKS) * BLOCK, 0);
        self.chunk_start = self.next;
        read(&self.segment.path, &self.segment.file, &mut self.chunk, number * BLOCK as u64, "block")
    }

    /// Whether postings ascend, after those before them, and are of documents of the segment.
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
        let what = format!("it holds {} postings in place of {all}", self.count);
        Err(SegmentError::Damaged(self.segment.path.clone(), what))
    }
}

/// How many of the ascending fences are below `key`.
///
/// Keys are spread evenly, so a first guess by proportion is close: from there the search doubles its steps, and any other
/// spread only makes it longer.
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

/// Fills `bytes` from `place` on; a file that ends too early is a damaged one.
fn read(path: &Path, file: &File, bytes: &mut [u8], place: u64, what: &str) -> Result<(), SegmentError> {
    file.read_exact_at(bytes, place).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            SegmentError::Damaged(path.to_owned(), format!("the {what} at byte {place} is cut off"))
        }
        _ => SegmentError::Io(path.to_owned(), error),
    })
}

#[cfg(test)]
mod tests;
