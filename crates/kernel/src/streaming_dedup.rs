//! Deduplication of a stream: each document is kept or removed as soon as it arrives.
//!
//! The band keys and content hashes of kept documents stay in memory; their sets are written to a file and read back
//! for comparison.

use std::fs::File;
use std::io;

use crate::band::{FIRST_MEMBERS, NO_DOCUMENT, NO_KEY};
use crate::hash::PremixedMap;
use crate::positioned::{read_exact_at, write_all_at};
use crate::verify::similarity_at_least;

/// Linked list of the members of a bucket; `previous` holds the links.
#[derive(Clone, Copy)]
struct Bucket {
    last: u32,
    size: u32,
}

/// Decision about a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// It is similar to no kept document.
    Kept,
    /// It is similar to a kept document.
    Removed {
        /// Number of the most similar kept document; the first of several.
        witness: u32,
        /// Their Jaccard similarity.
        similarity: f64,
    },
}

/// The documents kept so far, numbered in order of arrival.
pub struct KeptDocuments {
    buckets: Vec<PremixedMap<u64, Bucket>>,
    /// For band b, `previous[b][i]` is the member added to its bucket before kept document i.
    previous: Vec<Vec<u32>>,
    contents: PremixedMap<[u64; 2], u32>,
    file: File,
    /// Start of each kept set in the file, counted in elements, and the end of the last.
    offsets: Vec<u64>,
    threshold: f64,
    max_bucket: u32,
    candidates: Vec<u32>,
    bytes: Vec<u8>,
    set: Vec<u64>,
    capped: u64,
}

impl KeptDocuments {
    /// Create an empty store whose sets will be written to `file`.
    #[must_use]
    pub fn new(bands: usize, threshold: f64, max_bucket: u32, file: File) -> Self {
        Self {
            buckets: (0..bands).map(|_| PremixedMap::default()).collect(),
            previous: vec![Vec::new(); bands],
            contents: PremixedMap::default(),
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

    /// Return the number of kept documents.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Return whether no document is kept.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Return how many times a document was looked up in a bucket above the cap.
    #[must_use]
    pub const fn capped(&self) -> u64 {
        self.capped
    }

    /// Decide about a document by its band keys, content hash and non-empty set; store it if it is kept.
    ///
    /// # Errors
    /// If the file of sets cannot be read or written.
    pub fn decide(&mut self, keys: &[u64], content: [u64; 2], set: &[u64]) -> io::Result<Decision> {
        if let Some(&witness) = self.contents.get(&content) {
            return Ok(Decision::Removed { witness, similarity: 1.0 });
        }
        self.collect_candidates(keys);
        let mut best = Decision::Kept;
        for candidate in std::mem::take(&mut self.candidates) {
            let similarity = self.compare(candidate, set)?;
            if let Some(similarity) = similarity
                && !matches!(best, Decision::Removed { similarity: highest, .. } if highest >= similarity)
            {
                best = Decision::Removed { witness: candidate, similarity };
            }
        }
        if best == Decision::Kept {
            self.keep(keys, content, set)?;
        }
        Ok(best)
    }

    /// Fill `candidates` with the kept documents that share a bucket, ascending.
    fn collect_candidates(&mut self, keys: &[u64]) {
        for (band, key) in keys.iter().enumerate().filter(|&(_, &key)| key != NO_KEY) {
            let Some(bucket) = self.buckets[band].get(key) else { continue };
            let skip = if bucket.size > self.max_bucket { bucket.size as usize - FIRST_MEMBERS } else { 0 };
            self.capped += u64::from(skip > 0);
            let previous = &self.previous[band];
            let members = std::iter::successors(Some(bucket.last), |&member| {
                Some(previous[member as usize]).filter(|&earlier| earlier != NO_DOCUMENT)
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
        read_exact_at(&self.file, &mut self.bytes, start * 8)?;
        self.set.clear();
        self.set.extend(self.bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)));
        Ok(similarity_at_least(&self.set, set, self.threshold))
    }

    fn keep(&mut self, keys: &[u64], content: [u64; 2], set: &[u64]) -> io::Result<()> {
        let (number, start) = (self.len() as u32, self.offsets[self.len()]);
        self.bytes.clear();
        self.bytes.extend(set.iter().flat_map(|element| element.to_le_bytes()));
        write_all_at(&self.file, &self.bytes, start * 8)?;
        self.offsets.push(start + set.len() as u64);
        self.contents.insert(content, number);
        for (band, &key) in keys.iter().enumerate() {
            let bucket = self.buckets[band].entry(key).or_insert(Bucket { last: NO_DOCUMENT, size: 0 });
            self.previous[band].push(bucket.last);
            *bucket = Bucket { last: number, size: bucket.size + 1 };
        }
        Ok(())
    }
}
