//! Postings of an index: operations in any order, compared with sorted maps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arbitrary::Unstructured;
use minwise_kernel::postings::{Candidates, Postings, Removed, write_segment};
use minwise_kernel::segment::{BlockCache, Segment, merge};

use crate::scratch::ScratchFile;

/// Columns of a row: an id hash and three band keys.
const WIDTH: usize = 4;
/// Documents of a case: few enough that no lookup meets the limit of postings read per bucket.
const MAX_DOCUMENTS: usize = 900;
/// Key of a document that is in no bucket of a band.
const NO_KEY: u64 = u64::MAX;

/// Documents by key, and which documents are removed.
#[derive(Default)]
struct Oracle {
    rows: Vec<[u64; WIDTH]>,
    removed: BTreeSet<u32>,
}

impl Oracle {
    /// Return the live documents that have a key in one of `columns`.
    fn live(&self, columns: std::ops::Range<usize>, key: u64) -> Vec<u32> {
        let rows = self.rows.iter().zip(0..);
        let having = rows.filter(|(row, _)| key != NO_KEY && row[columns.clone()].contains(&key));
        having.map(|(_, document)| document).filter(|document| !self.removed.contains(document)).collect()
    }

    fn candidates(&self, keys: &[u64], max_bucket: usize, most: usize) -> Candidates {
        let mut counts: BTreeMap<u32, u16> = BTreeMap::new();
        let mut capped = 0;
        for &key in &keys.iter().copied().collect::<BTreeSet<u64>>() {
            let mut members = self.live(1..WIDTH, key);
            capped += u16::from(members.len() > max_bucket);
            members.truncate(max_bucket);
            for document in members {
                *counts.entry(document).or_default() += 1;
            }
        }
        let mut documents: Vec<(u32, u16)> = counts.into_iter().collect();
        documents.sort_by_key(|&(document, shared)| (Reverse(shared), document));
        let left_out = documents.len().saturating_sub(most) as u32;
        documents.truncate(most);
        Candidates { documents, capped, left_out }
    }
}

/// The postings under test and their files.
struct Case {
    postings: Postings,
    oracle: Oracle,
    cache: Option<Arc<BlockCache>>,
    files: Vec<ScratchFile>,
    /// First document that is only in memory.
    recent: u32,
}

/// Run one case.
///
/// # Panics
/// If a lookup differs from the oracle.
pub fn run(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let cached = source.arbitrary().unwrap_or(false);
    let cache = cached.then(|| Arc::new(BlockCache::new(1 << 16)));
    let mut case =
        Case { postings: Postings::default(), oracle: Oracle::default(), cache, files: Vec::new(), recent: 0 };
    while !source.is_empty() {
        if case.step(&mut source).is_err() {
            break;
        }
    }
    case.check([0, 1, 2], 3, usize::MAX);
}

impl Case {
    fn step(&mut self, source: &mut Unstructured<'_>) -> arbitrary::Result<()> {
        match source.int_in_range(0..=7_u8)? {
            0..=2 => self.add(source)?,
            3 => self.remove(source.arbitrary()?),
            4 => self.flush(),
            5 => self.merge(),
            6 => self.load_removed(),
            _ => {
                let keys: [u8; 3] = source.arbitrary()?;
                let (max_bucket, most): (u8, u8) = source.arbitrary()?;
                self.check(keys, usize::from(max_bucket), usize::from(most));
            }
        }
        Ok(())
    }

    /// Add up to 256 documents; few distinct keys make long buckets.
    fn add(&mut self, source: &mut Unstructured<'_>) -> arbitrary::Result<()> {
        let (count, keys): (u8, [u8; WIDTH]) = source.arbitrary()?;
        let first = self.oracle.rows.len();
        let count = usize::from(count).min(MAX_DOCUMENTS - first.min(MAX_DOCUMENTS));
        let rows: Vec<[u64; WIDTH]> =
            (0..count).map(|i| keys.map(|k| key(k.wrapping_add((i * usize::from(k & 3)) as u8)))).collect();
        assert!(self.postings.push(first as u32, rows.as_flattened(), WIDTH) || count == 0);
        self.oracle.rows.extend(rows);
        Ok(())
    }

    fn remove(&mut self, seed: [u8; 2]) {
        let modulus = u32::from(seed[0] | 1);
        let documents = (0..self.oracle.rows.len() as u32).filter(|number| number % modulus == u32::from(seed[1]));
        let documents: Vec<u32> = documents.collect();
        self.postings.remove(&documents);
        self.oracle.removed.extend(documents);
    }

    /// Replace the bitmap by one read from bytes.
    fn load_removed(&mut self) {
        let mut bytes = vec![0_u8; self.oracle.rows.len().div_ceil(8)];
        self.oracle.removed.iter().for_each(|&document| bytes[document as usize / 8] |= 1 << (document % 8));
        self.postings.set_removed(Removed::from_bytes(&bytes));
    }

    fn open(&mut self, file: ScratchFile) -> Arc<Segment> {
        let segment = Segment::open(file.path()).expect("the file was just written");
        self.files.push(file);
        Arc::new(match &self.cache {
            Some(cache) => segment.cached(cache),
            None => segment,
        })
    }

    /// Move the documents in memory to a new segment.
    fn flush(&mut self) {
        let end = self.oracle.rows.len() as u32;
        let rows = self.oracle.rows[self.recent as usize..].as_flattened();
        let file = ScratchFile::new();
        write_segment(file.path(), &[(self.recent, rows)], WIDTH, self.recent.into(), end.into())
            .expect("the documents are in the range");
        let mut segments = self.postings.segments().to_vec();
        segments.push(self.open(file));
        self.postings.set_segments(segments);
        self.postings.forget_recent();
        self.recent = end;
    }

    /// Merge all segments into one, without removed documents.
    fn merge(&mut self) {
        let segments = self.postings.segments().to_vec();
        if segments.is_empty() {
            return;
        }
        let inputs: Vec<&Segment> = segments.iter().map(AsRef::as_ref).collect();
        let file = ScratchFile::new();
        let removed = &self.oracle.removed;
        merge(&inputs, file.path(), |document| removed.contains(&document)).expect("the inputs are intact");
        let merged = self.open(file);
        self.postings.set_segments(vec![merged]);
    }

    fn check(&self, keys: [u8; 3], max_bucket: usize, most: usize) {
        let keys = keys.map(key);
        let expected = self.oracle.candidates(&keys, max_bucket, most);
        for threads in [1, 2] {
            let found = self.postings.all_candidates(&keys, keys.len(), max_bucket, most, threads);
            assert_eq!(found.expect("the files are intact"), std::slice::from_ref(&expected));
        }
        let found = self.postings.search().holders(&keys).expect("the files are intact");
        let expected: Vec<Vec<u32>> = keys.iter().map(|&key| self.oracle.live(0..1, key)).collect();
        assert_eq!(found.documents, expected.concat());
        let ends: Vec<i64> = (0..=keys.len()).map(|end| expected[..end].concat().len() as i64).collect();
        assert_eq!(found.offsets, ends);
    }
}

/// Return one of a few keys: neighbours at both ends, spread ones, and the key that is in no bucket.
fn key(number: u8) -> u64 {
    match number % 16 {
        15 => NO_KEY,
        14 => NO_KEY - 1,
        small @ 0..=4 => u64::from(small),
        spread => minwise_kernel::hash::mix(u64::from(spread)),
    }
}
