//! Stream: documents in one by one, decided at once. Only the keys of kept documents stay in memory; their sets go to a file.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::band::{FIRST_MEMBERS, NO_KEY, NOBODY};
use crate::verify::similarity_at_least;

/// Keys and content hashes are well mixed already.
#[derive(Default)]
pub(crate) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| hash.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 ^= word;
    }
}

pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

/// The members of a bucket: how many, and the last that came; each member knows the one before it.
#[derive(Clone, Copy)]
struct Bucket {
    last: u32,
    size: u32,
}

/// What becomes of a document: kept under a number, or removed for one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// It is like none before it.
    Kept,
    /// It is as similar as this to the kept document of this number.
    Removed {
        /// The kept document.
        witness: u32,
        /// Their similarity.
        similarity: f64,
    },
}

/// The documents kept so far.
pub struct KeptDocuments {
    buckets: Vec<Map<u64, Bucket>>,
    /// For band b, `before[b][i]` is the member that came before kept document i in its bucket.
    before: Vec<Vec<u32>>,
    contents: Map<[u64; 2], u32>,
    file: File,
    /// Where each kept set starts in the file, in elements, and the end.
    offsets: Vec<u64>,
    threshold: f64,
    max_bucket: u32,
    candidates: Vec<u32>,
    bytes: Vec<u8>,
    set: Vec<u64>,
    capped: u64,
}

impl KeptDocuments {
    /// None yet. Their sets will be written to `file`.
    #[must_use]
    pub fn new(bands: usize, threshold: f64, max_bucket: u32, file: File) -> Self {
        Self {
            buckets: (0..bands).map(|_| Map::default()).collect(),
            before: vec![Vec::new(); bands],
            contents: Map::default(),
            file,
            offsets: vec![0],
            threshold,
            max_bucket,
            candidates: Vec::new(),
            bytes: Vec::new(),
            set: Vec::new(),
            capped: 0,
        }
    }

    /// How many are kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether none is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often a document met a bucket above the cap.
    #[must_use]
    pub const fn capped(&self) -> u64 {
        self.capped
    }

    /// Decides on a document with elements, by its keys (one per band), content hash and set; keeps it if it is new.
    ///
    /// # Errors
    /// If the file of sets can not be read or written.
    pub fn decide(&mut self, keys: &[u64], content: [u64; 2], set: &[u64]) -> io::Result<Decision> {
        if let Some(&witness) = self.contents.get(&content) {
            return Ok(Decision::Removed { witness, similarity: 1.0 });
        }
        self.gather_candidates(keys);
        let mut best = Decision::Kept;
        for candidate in std::mem::take(&mut self.candidates) {
            let similarity = self.compare(candidate, set)?;
            if let Some(similarity) = similarity
                && !matches!(best, Decision::Removed { similarity: so_far, .. } if so_far >= similarity)
            {
                best = Decision::Removed { witness: candidate, similarity };
            }
        }
        if best == Decision::Kept {
            self.keep(keys, content, set)?;
        }
        Ok(best)
    }

    /// Fills `candidates` with the kept documents that share a bucket, ascending.
    fn gather_candidates(&mut self, keys: &[u64]) {
        for (band, key) in keys.iter().enumerate().filter(|&(_, &key)| key != NO_KEY) {
            let Some(bucket) = self.buckets[band].get(key) else { continue };
            let skip = if bucket.size > self.max_bucket { bucket.size as usize - FIRST_MEMBERS } else { 0 };
            self.capped += u64::from(skip > 0);
            let before = &self.before[band];
            let members = std::iter::successors(Some(bucket.last), |&member| {
                Some(before[member as usize]).filter(|&earlier| earlier != NOBODY)
            });
            self.candidates.extend(members.skip(skip));
        }
        self.candidates.sort_unstable();
        self.candidates.dedup();
    }

    fn compare(&mut self, candidate: u32, set: &[u64]) -> io::Result<Option<f64>> {
        let (start, end) = (self.offsets[candidate as usize], self.offsets[candidate as usize + 1]);
        let (small, large) = ((end - start).min(set.len() as u64), (end - start).max(set.len() as u64));
        if (small as f64) / (large as f64) < self.threshold {
            return Ok(None);
        }
        self.bytes.resize((end - start) as usize * 8, 0);
        self.file.read_exact_at(&mut self.bytes, start * 8)?;
        self.set.clear();
        self.set.extend(self.bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)));
        Ok(similarity_at_least(&self.set, set, self.threshold))
    }

    fn keep(&mut self, keys: &[u64], content: [u64; 2], set: &[u64]) -> io::Result<()> {
        let (number, start) = (self.len() as u32, self.offsets[self.len()]);
        self.bytes.clear();
        self.bytes.extend(set.iter().flat_map(|element| element.to_le_bytes()));
        self.file.write_all_at(&self.bytes, start * 8)?;
        self.offsets.push(start + set.len() as u64);
        self.contents.insert(content, number);
        for (band, &key) in keys.iter().enumerate() {
            let bucket = self.buckets[band].entry(key).or_insert(Bucket { last: NOBODY, size: 0 });
            self.before[band].push(bucket.last);
            *bucket = Bucket { last: number, size: bucket.size + 1 };
        }
        Ok(())
    }
}
