//! The ends of a segment: block 0, which says what the file is, and the trailer, which says how much it holds.

use super::DOCUMENTS;
use super::block::{BLOCK, MOST};

const MAGIC: [u8; 8] = *b"MWPOST\r\n";
const VERSION: u32 = 1;
/// Bytes of the trailer.
pub const TRAILER: usize = 72;

/// The end of the file: how much there is, and of which documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    /// Postings of both runs.
    pub entries: [u64; 2],
    /// Blocks of both runs.
    pub blocks: [u64; 2],
    /// The lowest document.
    pub low: u64,
    /// One past the highest document.
    pub high: u64,
    /// CRC-32C of the fences.
    pub fences_checksum: u32,
}

impl Trailer {
    /// Bytes of the whole file; none if there can not be as many.
    fn file_bytes(&self) -> Option<u64> {
        let blocks = self.blocks[0].checked_add(self.blocks[1])?;
        blocks.checked_mul(BLOCK as u64 + 8)?.checked_add((BLOCK + TRAILER) as u64)
    }

    /// As it is written.
    pub fn to_bytes(&self) -> [u8; TRAILER] {
        let [entries, blocks] = [self.entries, self.blocks];
        let bytes = self.file_bytes().unwrap_or(0);
        let words = [entries[0], entries[1], blocks[0], blocks[1], self.low, self.high, bytes];
        let mut trailer = [0; TRAILER];
        for (place, word) in trailer.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        trailer[56..60].copy_from_slice(&self.fences_checksum.to_le_bytes());
        let checksum = crc32c::crc32c(&trailer[..60]);
        trailer[60..64].copy_from_slice(&checksum.to_le_bytes());
        trailer[64..].copy_from_slice(&MAGIC);
        trailer
    }

    /// The trailer of a file of `file_bytes` bytes, if it is whole and makes sense.
    pub fn from_bytes(bytes: &[u8; TRAILER], file_bytes: u64) -> Option<Self> {
        let words: Vec<u64> = bytes[..56].as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let trailer = Self {
            entries: [words[0], words[1]],
            blocks: [words[2], words[3]],
            low: words[4],
            high: words[5],
            fences_checksum: u32::from_le_bytes([bytes[56], bytes[57], bytes[58], bytes[59]]),
        };
        let filled = |run: usize| {
            let most = trailer.blocks[run].saturating_mul(MOST as u64);
            (trailer.blocks[run]..=most).contains(&trailer.entries[run])
        };
        let fits = trailer.low <= trailer.high && trailer.high <= DOCUMENTS && filled(0) && filled(1);
        // Writing it again compares the checksum, the length and the magic at once.
        (fits && trailer.file_bytes() == Some(file_bytes) && trailer.to_bytes() == *bytes).then_some(trailer)
    }
}

/// Block 0.
pub fn header() -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..12]);
    header[12..16].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// What is wrong with a header that is not ours.
pub fn foreign(start: &[u8; BLOCK]) -> String {
    let version = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
    let whole = start[..8] == MAGIC && start[12..16] == crc32c::crc32c(&start[..12]).to_le_bytes();
    if whole && version != VERSION {
        return format!("its format has version {version}, this program reads version {VERSION}");
    }
    "the header is damaged".to_owned()
}
