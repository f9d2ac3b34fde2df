//! Writing a segment: ascending postings in, one run after the other, a file out.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::SegmentError;
use super::block::{BLOCK, BlockBuilder, key_of};
use super::ends::{Trailer, header};

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;

/// A segment that is being written. What it wrote is not durable before the caller has synced the file.
pub struct SegmentWriter {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    builder: BlockBuilder,
    fences: Vec<u64>,
    run: usize,
    last: Option<u128>,
    trailer: Trailer,
}

impl SegmentWriter {
    /// A new file for postings of the documents from `low` up to, not including, `high`.
    ///
    /// # Errors
    /// If there is a file already, or it can not be made.
    pub fn create(path: &Path, low: u64, high: u64) -> Result<Self, SegmentError> {
        let file = File::options().write(true).create_new(true).open(path);
        let file = file.map_err(|error| SegmentError::Io(path.to_owned(), error))?;
        let mut buffer = Vec::with_capacity(BUFFER + BLOCK);
        buffer.extend_from_slice(&header());
        Ok(Self {
            path: path.to_owned(),
            file,
            buffer,
            builder: BlockBuilder::default(),
            fences: Vec::new(),
            run: 0,
            last: None,
            trailer: Trailer { low, high, ..Trailer::default() },
        })
    }

    /// Adds a packed posting to the run that is being written.
    ///
    /// # Errors
    /// If the file can not be written. A posting that does not come after the one before it, or is of no document of the
    /// segment, is an error when its block ends.
    #[inline(always)]
    pub fn push(&mut self, posting: u128) -> Result<(), SegmentError> {
        if !self.builder.push(posting) {
            self.end_block()?;
            self.builder.push(posting);
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), SegmentError> {
        let postings = self.builder.postings();
        let (Some(&first), Some(&last)) = (postings.first(), postings.last()) else { return Ok(()) };
        let documents = self.trailer.low..self.trailer.high;
        let ascends = self.last < Some(first) && postings.is_sorted_by(|left, right| left < right);
        if !ascends || !postings.iter().all(|&posting| documents.contains(&u64::from(posting as u32))) {
            return Err(SegmentError::Damaged(self.path.clone(), "postings come out of order".to_owned()));
        }
        self.last = Some(last);
        self.fences.push(key_of(first));
        self.trailer.entries[self.run] += postings.len() as u64;
        self.trailer.blocks[self.run] += 1;
        self.builder.write(self.fences.len() as u64, &mut self.buffer);
        if self.buffer.len() >= BUFFER { self.empty_buffer() } else { Ok(()) }
    }

    /// Ends the run of band keys; what follows is the run of id hashes.
    ///
    /// # Errors
    /// If the file can not be written.
    pub fn end_run(&mut self) -> Result<(), SegmentError> {
        self.end_block()?;
        (self.run, self.last) = (1, None);
        Ok(())
    }

    fn empty_buffer(&mut self) -> Result<(), SegmentError> {
        self.file.write_all(&self.buffer).map_err(|error| SegmentError::Io(self.path.clone(), error))?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the rest and gives back how many postings the file holds, in both runs.
    ///
    /// # Errors
    /// If the file can not be written.
    pub fn finish(mut self) -> Result<u64, SegmentError> {
        self.end_block()?;
        let fences: Vec<u8> = self.fences.iter().flat_map(|fence| fence.to_le_bytes()).collect();
        self.trailer.fences_checksum = crc32c::crc32c(&fences);
        self.buffer.extend_from_slice(&fences);
        self.buffer.extend_from_slice(&self.trailer.to_bytes());
        self.empty_buffer()?;
        Ok(self.trailer.entries.iter().sum())
    }
}
