//! Header (block 0) and trailer of a segment file.

use super::MAX_DOCUMENTS;
use super::block::{BLOCK_BYTES, MAX_POSTINGS};

/// First and last bytes of a segment. A transfer in text mode changes the line end and is detected.
const MAGIC: [u8; 8] = *b"MWPOST\r\n";
/// Format version.
const VERSION: u32 = 1;
/// Size of the trailer.
pub const TRAILER_BYTES: usize = 72;

/// Trailer of a segment: its counts and its range of documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    /// Postings of both runs.
    pub entries: [u64; 2],
    /// Blocks of both runs.
    pub blocks: [u64; 2],
    /// Lowest document of the range.
    pub low: u64,
    /// One past the highest document of the range.
    pub high: u64,
    /// CRC-32C of the fences.
    pub fences_checksum: u32,
}

impl Trailer {
    /// Return the size of the file; none if it overflows.
    pub fn file_bytes(&self) -> Option<u64> {
        let blocks = self.blocks[0].checked_add(self.blocks[1])?;
        blocks.checked_mul(BLOCK_BYTES as u64 + 8)?.checked_add((BLOCK_BYTES + TRAILER_BYTES) as u64)
    }

    /// Return the bytes of the trailer.
    pub fn to_bytes(&self) -> [u8; TRAILER_BYTES] {
        let [entries, blocks] = [self.entries, self.blocks];
        let bytes = self.file_bytes().unwrap_or(0);
        let words = [entries[0], entries[1], blocks[0], blocks[1], self.low, self.high, bytes];
        let mut trailer = [0; TRAILER_BYTES];
        for (target, word) in trailer.chunks_exact_mut(8).zip(words) {
            target.copy_from_slice(&word.to_le_bytes());
        }
        trailer[56..60].copy_from_slice(&self.fences_checksum.to_le_bytes());
        let checksum = crc32c::crc32c(&trailer[..60]);
        trailer[60..64].copy_from_slice(&checksum.to_le_bytes());
        trailer[64..].copy_from_slice(&MAGIC);
        trailer
    }

    /// Return the checksum at the end of the trailer, which covers all other fields.
    pub fn checksum(&self) -> u32 {
        crc32c::crc32c(&self.to_bytes()[..60])
    }

    /// Parse the trailer of a file of `file_bytes` bytes; none if it is damaged or inconsistent.
    pub fn from_bytes(bytes: &[u8; TRAILER_BYTES], file_bytes: u64) -> Option<Self> {
        let words: Vec<u64> = bytes[..56].as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let trailer = Self {
            entries: [words[0], words[1]],
            blocks: [words[2], words[3]],
            low: words[4],
            high: words[5],
            fences_checksum: u32::from_le_bytes([bytes[56], bytes[57], bytes[58], bytes[59]]),
        };
        let filled = |run: usize| {
            let most = trailer.blocks[run].saturating_mul(MAX_POSTINGS as u64);
            (trailer.blocks[run]..=most).contains(&trailer.entries[run])
        };
        let fits = trailer.low <= trailer.high && trailer.high <= MAX_DOCUMENTS && filled(0) && filled(1);
        // Serialising it again compares the checksum, the length and the magic at once.
        (fits && trailer.file_bytes() == Some(file_bytes) && trailer.to_bytes() == *bytes).then_some(trailer)
    }
}

/// Return block 0.
pub fn header() -> [u8; BLOCK_BYTES] {
    let mut header = [0; BLOCK_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..12]);
    header[12..16].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Return what is wrong with a header that differs from [`header`].
pub fn describe_header(found: &[u8; BLOCK_BYTES]) -> String {
    let version = u32::from_le_bytes([found[8], found[9], found[10], found[11]]);
    let intact = found[..8] == MAGIC && found[12..16] == crc32c::crc32c(&found[..12]).to_le_bytes();
    if intact && version != VERSION {
        return format!("its format is version {version}; this program reads version {VERSION}");
    }
    "the header is damaged".to_owned()
}
