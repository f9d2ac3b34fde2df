//! Sequential writer of a segment file.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::SegmentError;
use super::block::{BLOCK_BYTES, BlockBuilder, key_of};
use super::header_trailer::{Trailer, header};

/// Bytes buffered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// What identifies a segment: the counts and checksums of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Postings in both runs.
    pub postings: u64,
    /// Size of the file.
    pub bytes: u64,
    /// Checksum of the trailer, which covers the counts and the checksum of the fences.
    pub trailer: u32,
    /// CRC-32C of the checksums of all blocks, in the order of the file.
    pub blocks: u32,
}

/// Segment that is being written. The data is durable only after the caller has synced the file.
pub struct SegmentWriter {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    builder: BlockBuilder,
    fences: Vec<u64>,
    run: usize,
    last: Option<u128>,
    trailer: Trailer,
    blocks_checksum: u32,
}

impl SegmentWriter {
    /// Create a file for postings of the documents from `low` up to, not including, `high`. Only its owner can read it.
    ///
    /// # Errors
    /// If the file exists or cannot be created.
    pub fn create(path: &Path, low: u64, high: u64) -> Result<Self, SegmentError> {
        let file = private_options().write(true).create_new(true).open(path);
        let file = file.map_err(|error| SegmentError::Io(path.to_owned(), error))?;
        let mut buffer = Vec::with_capacity(BUFFER_BYTES + BLOCK_BYTES);
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
            blocks_checksum: 0,
        })
    }

    /// Append a packed posting to the current run.
    ///
    /// # Errors
    /// If the file cannot be written. A posting that does not come after the previous one, or whose document is outside
    /// the range of the segment, is reported when its block ends.
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
            let what = "postings must ascend and be of documents in the segment's range".to_owned();
            return Err(SegmentError::Damaged(self.path.clone(), what));
        }
        self.last = Some(last);
        self.fences.push(key_of(first));
        self.trailer.entries[self.run] += postings.len() as u64;
        self.trailer.blocks[self.run] += 1;
        let checksum = self.builder.write(self.fences.len() as u64, &mut self.buffer);
        self.blocks_checksum = crc32c::crc32c_append(self.blocks_checksum, &checksum);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// End the run of band keys; the run of id hashes follows.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn end_run(&mut self) -> Result<(), SegmentError> {
        self.end_block()?;
        (self.run, self.last) = (1, None);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SegmentError> {
        self.file.write_all(&self.buffer).map_err(|error| SegmentError::Io(self.path.clone(), error))?;
        self.buffer.clear();
        Ok(())
    }

    /// Write the rest of the file and return what identifies it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> Result<Summary, SegmentError> {
        self.end_block()?;
        let fences: Vec<u8> = self.fences.iter().flat_map(|fence| fence.to_le_bytes()).collect();
        self.trailer.fences_checksum = crc32c::crc32c(&fences);
        self.buffer.extend_from_slice(&fences);
        self.buffer.extend_from_slice(&self.trailer.to_bytes());
        self.flush()?;
        Ok(Summary {
            postings: self.trailer.entries.iter().sum(),
            bytes: self.trailer.file_bytes().unwrap_or(0),
            trailer: self.trailer.checksum(),
            blocks: self.blocks_checksum,
        })
    }
}

/// Return options that create files for their owner alone: the keys are made with the seed of the index.
fn private_options() -> OpenOptions {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "only Unix has modes"))]
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
