//! Lookup of the documents that share a bucket in an index.
//!
//! The members of a bucket are in segment files, oldest documents first, and, for the most recent documents, in memory.
//! Removed documents stay in both until a merge drops them; a lookup skips them. The cost of a bucket is bounded: only
//! its first members up to a cap count, and a bounded number of removed members is read.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use crate::band::NO_KEY;
use crate::hash::PremixedMap;
use crate::segment::{Block, Run, Segment, SegmentError, SegmentWriter, Summary, pack};

/// Maximum number of removed documents read per bucket. They must not hide the live ones after them, nor make every
/// query read all of them: with 26 bands this many take about a millisecond.
const MAX_REMOVED: usize = 1 << 14;

/// Bitmap of removed documents; documents beyond its end are live.
#[derive(Clone, Debug, Default)]
pub struct Removed(Vec<u64>);

impl Removed {
    /// Create the bitmap from bytes; bit i of byte j is document 8·j + i.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        Self(bytes.chunks(8).map(word).collect())
    }

    /// Return whether a document is removed.
    #[inline(always)]
    #[must_use]
    pub fn contains(&self, document: u32) -> bool {
        self.0.get(document as usize / 64).is_some_and(|word| word >> (document % 64) & 1 == 1)
    }

    /// Mark a document as removed.
    pub fn insert(&mut self, document: u32) {
        let word = document as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (document % 64);
    }
}

/// Postings of the most recent documents: a linked list of documents per key, ascending.
#[derive(Default)]
struct Chains {
    /// Index of the first and last link of every key.
    ends: PremixedMap<u64, (u32, u32)>,
    /// A document, and the index of the next link or [`END_OF_CHAIN`].
    links: Vec<(u32, u32)>,
}

/// Index after the last link of a chain.
const END_OF_CHAIN: u32 = u32::MAX;

impl Chains {
    fn reserve(&mut self, postings: usize) {
        self.ends.reserve(postings);
        self.links.reserve(postings);
    }

    /// Append a document to the chain of a key. It must not come before the last one; if it equals the last one,
    /// nothing is added.
    fn push(&mut self, key: u64, document: u32) {
        let link = self.links.len() as u32;
        let ends = self.ends.entry(key).or_insert((link, link));
        if ends.1 != link {
            let last = &mut self.links[ends.1 as usize];
            if last.0 == document {
                return;
            }
            last.1 = link;
            ends.1 = link;
        }
        self.links.push((document, END_OF_CHAIN));
    }

    /// Call `visit` with the documents of `key`, ascending, until it breaks.
    fn members(&self, key: u64, mut visit: impl FnMut(u32) -> ControlFlow<()>) {
        let mut next = self.ends.get(&key).map_or(END_OF_CHAIN, |ends| ends.0);
        while let Some(&(document, after)) = self.links.get(next as usize) {
            if visit(document).is_break() {
                return;
            }
            next = after;
        }
    }

    fn resident_bytes(&self) -> usize {
        self.ends.capacity() * (size_of::<(u64, (u32, u32))>() + 1) + self.links.capacity() * size_of::<(u32, u32)>()
    }
}

/// Candidates of one query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Documents with the number of buckets shared with the query: those that share the most first, then ascending.
    pub documents: Vec<(u32, u16)>,
    /// Number of buckets that were not read completely.
    pub capped: u16,
    /// Number of candidates beyond the requested number.
    pub left_out: u32,
}

/// Live documents of several id hashes: those of hash i are `documents[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// Start of the documents of each hash, and the end of the last.
    pub offsets: Vec<i64>,
    /// Documents of all hashes, ascending for each hash.
    pub documents: Vec<u32>,
}

/// All postings of an index.
#[derive(Default)]
pub struct Postings {
    segments: Vec<Arc<Segment>>,
    recent: [Chains; 2],
    /// One past the last document pushed.
    recent_end: u64,
    removed: Removed,
}

impl Postings {
    /// Return the open segments, oldest documents first.
    #[must_use]
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// Replace the segments; the new ones must be given with the oldest documents first.
    pub fn set_segments(&mut self, segments: Vec<Arc<Segment>>) {
        self.segments = segments;
    }

    /// Replace the bitmap of removed documents.
    pub fn set_removed(&mut self, removed: Removed) {
        self.removed = removed;
    }

    /// Mark documents as removed.
    pub fn remove(&mut self, documents: &[u32]) {
        for &document in documents {
            self.removed.insert(document);
        }
    }

    /// Add rows of an id hash and band keys for the documents `first`, `first + 1`, …
    ///
    /// Return false and add nothing if `first` is not after all documents pushed before.
    pub fn push(&mut self, first: u32, rows: &[u64], width: usize) -> bool {
        let first = u64::from(first);
        if first < self.recent_end {
            return false;
        }
        let documents = rows.len() / width;
        self.recent[Run::Bands as usize].reserve(documents * (width - 1));
        self.recent[Run::Ids as usize].reserve(documents);
        for (row, document) in rows.chunks_exact(width).zip(first as u32..) {
            for (i, &key) in row.iter().enumerate().filter(|&(_, &key)| key != NO_KEY) {
                self.recent[run_of(i) as usize].push(key, document);
            }
            self.recent_end = u64::from(document) + 1;
        }
        true
    }

    /// Drop all pushed documents.
    pub fn forget_recent(&mut self) {
        (self.recent, self.recent_end) = (Default::default(), 0);
    }

    /// Return the memory used, in bytes.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        let segments = self.segments.iter().map(|segment| segment.resident_bytes()).sum::<usize>();
        let recent = self.recent.iter().map(Chains::resident_bytes).sum::<usize>();
        segments + recent + self.removed.0.capacity() * 8
    }

    /// Create a search with its own buffers.
    #[must_use]
    pub fn search(&self) -> Search<'_> {
        let blocks = vec![Block::default(); self.segments.len()];
        Search { postings: self, blocks, keys: Vec::new(), members: Vec::new() }
    }

    /// Return the candidates of each row of `bands` keys, as [`Search::candidates`] does, on `threads` threads.
    ///
    /// # Errors
    /// If a segment cannot be read or is damaged.
    pub fn all_candidates(
        &self,
        rows: &[u64],
        bands: usize,
        max_bucket: usize,
        most: usize,
        threads: usize,
    ) -> Result<Vec<Candidates>, SegmentError> {
        let find = |part: &[u64]| {
            let mut search = self.search();
            let found = part.chunks_exact(bands).map(|keys| search.candidates(keys, max_bucket, most));
            found.collect::<Result<Vec<_>, _>>()
        };
        if threads == 1 {
            return find(rows); // on this thread: rayon would use its global pool and have to wake it up
        }
        let rows_per_thread = rows.len().div_ceil(bands).div_ceil(threads).max(1);
        let parts = rows.par_chunks(rows_per_thread * bands).map(find).collect::<Result<Vec<_>, _>>()?;
        Ok(parts.into_iter().flatten().collect())
    }
}

/// Return the run of column `i` in a row of an id hash and band keys.
const fn run_of(i: usize) -> Run {
    if i == 0 { Run::Ids } else { Run::Bands }
}

/// Lookup of keys that caches the last block read of each segment.
pub struct Search<'p> {
    postings: &'p Postings,
    blocks: Vec<Block>,
    keys: Vec<u64>,
    members: Vec<u32>,
}

impl Search<'_> {
    /// Return the live documents that share a bucket with a document of these keys.
    ///
    /// A bucket counts with its first `max_bucket` live documents. Of the candidates, the first `most` in the order of
    /// [`Candidates::documents`] are returned.
    ///
    /// # Errors
    /// If a segment cannot be read or is damaged.
    pub fn candidates(&mut self, keys: &[u64], max_bucket: usize, most: usize) -> Result<Candidates, SegmentError> {
        let mut sorted = std::mem::take(&mut self.keys);
        sorted.clear();
        sorted.extend(keys.iter().filter(|&&key| key != NO_KEY));
        sorted.sort_unstable();
        sorted.dedup();
        self.members.clear();
        let mut capped = 0;
        for &key in &sorted {
            capped += u16::from(self.add_bucket(key, max_bucket)?);
        }
        self.keys = sorted;
        self.members.sort_unstable();
        let buckets = self.members.chunk_by(|left, right| left == right);
        let mut documents: Vec<(u32, u16)> = buckets.map(|same| (same[0], same.len() as u16)).collect();
        documents.sort_by_key(|&(_, shared)| Reverse(shared)); // stable: equal ones stay ascending
        let left_out = documents.len().saturating_sub(most) as u32;
        documents.truncate(most);
        Ok(Candidates { documents, capped, left_out })
    }

    /// Append the first members of a bucket to `members`; return whether there may be more.
    fn add_bucket(&mut self, key: u64, max_bucket: usize) -> Result<bool, SegmentError> {
        let mut members = std::mem::take(&mut self.members);
        let (end, mut removed) = (members.len().saturating_add(max_bucket), 0);
        let state = self.for_each_member(Run::Bands, key, |document, is_live| {
            if if is_live { members.len() == end } else { removed == MAX_REMOVED } {
                return ControlFlow::Break(());
            }
            if is_live {
                members.push(document);
            } else {
                removed += 1;
            }
            ControlFlow::Continue(())
        });
        self.members = members;
        Ok(state?.is_break())
    }

    /// Call `visit` with each document of `key`, ascending, and whether it is live, until it breaks; return whether it
    /// did.
    #[inline(always)]
    fn for_each_member(
        &mut self,
        run: Run,
        key: u64,
        mut visit: impl FnMut(u32, bool) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SegmentError> {
        let removed = &self.postings.removed;
        let mut state = ControlFlow::Continue(());
        for (segment, block) in self.postings.segments.iter().zip(&mut self.blocks) {
            state = segment.members(run, key, block, |document| visit(document, !removed.contains(document)))?;
            if state.is_break() {
                return Ok(state);
            }
        }
        // Removed documents in memory do not count as read: there are few, except for a document that is updated often.
        self.postings.recent[run as usize].members(key, |document| {
            if removed.contains(document) {
                return ControlFlow::Continue(());
            }
            state = visit(document, true);
            state
        });
        Ok(state)
    }

    /// Return the live documents of each id hash. The hashes may come in any order; each block is read once.
    ///
    /// # Errors
    /// If a segment cannot be read or is damaged.
    pub fn holders(&mut self, hashes: &[u64]) -> Result<Holders, SegmentError> {
        let mut order: Vec<usize> = (0..hashes.len()).filter(|&i| hashes[i] != NO_KEY).collect();
        order.sort_unstable_by_key(|&i| hashes[i]);
        let (mut found, mut ranges) = (Vec::new(), vec![0..0; hashes.len()]);
        for same in order.chunk_by(|&left, &right| hashes[left] == hashes[right]) {
            let start = found.len();
            // The closure never breaks: all documents are requested.
            let _ = self.for_each_member(Run::Ids, hashes[same[0]], |document, is_live| {
                if is_live {
                    found.push(document);
                }
                ControlFlow::Continue(())
            })?;
            for &i in same {
                ranges[i] = start..found.len();
            }
        }
        let mut holders = Holders { offsets: vec![0], documents: Vec::with_capacity(found.len()) };
        for range in ranges {
            holders.documents.extend_from_slice(&found[range]);
            holders.offsets.push(holders.documents.len() as i64);
        }
        Ok(holders)
    }
}

/// Write a segment of rows of an id hash and `width - 1` band keys; return what identifies it.
///
/// A block is a first document and the rows of consecutive documents. Equal keys of one document are one posting.
///
/// # Errors
/// If a document is not in `low..high`, or the file cannot be written.
pub fn write_segment(
    path: &Path,
    blocks: &[(u32, &[u64])],
    width: usize,
    low: u64,
    high: u64,
) -> Result<Summary, SegmentError> {
    let documents = blocks.iter().map(|(_, rows)| rows.len() / width).sum::<usize>();
    let mut runs = [Vec::with_capacity(documents * (width - 1)), Vec::with_capacity(documents)];
    for &(first, rows) in blocks {
        for (row, document) in rows.chunks_exact(width).zip(first..) {
            for (i, &key) in row.iter().enumerate().filter(|&(_, &key)| key != NO_KEY) {
                runs[run_of(i) as usize].push(pack(key, document));
            }
        }
    }
    let mut writer = SegmentWriter::create(path, low, high)?;
    for mut run in runs {
        run.sort_unstable();
        run.dedup();
        run.into_iter().try_for_each(|posting| writer.push(posting))?;
        writer.end_run()?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Create a segment of the documents from 0 on; its file is deleted while it is open.
    fn segment(name: &str, rows: &[u64], width: usize, documents: u64) -> Arc<Segment> {
        let path = std::env::temp_dir().join(format!("minwise-postings-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        write_segment(&path, &[(0, rows)], width, 0, documents).expect("the file is new");
        let segment = Segment::open(&path).expect("the file was just written");
        std::fs::remove_file(&path).expect("an open file can be deleted");
        Arc::new(segment)
    }

    /// Return one bucket of 40 documents, two per id: ten in a segment, the rest in memory.
    fn one_bucket(name: &str) -> Postings {
        let rows: Vec<u64> = (0..40).flat_map(|document| [document / 2, 7, NO_KEY]).collect();
        let (old, new) = rows.split_at(30);
        let mut postings = Postings::default();
        postings.set_segments(vec![segment(name, old, 3, 10)]);
        assert!(postings.push(10, new, 3));
        postings
    }

    #[test]
    fn a_bucket_above_the_cap_returns_its_first_live_members() {
        let mut postings = one_bucket("cap");
        postings.remove(&[0, 9, 12, 39]);
        let query =
            |max_bucket| postings.search().candidates(&[7, NO_KEY, 8], max_bucket, 100).expect("the segment is intact");
        let live: Vec<(u32, u16)> =
            (0..40).filter(|document| ![0, 9, 12, 39].contains(document)).map(|d| (d, 1)).collect();
        for max_bucket in [36, 35, 16, 1, 0] {
            let (documents, capped) = (live[..max_bucket].to_vec(), u16::from(max_bucket < 36));
            assert_eq!(query(max_bucket), Candidates { documents, capped, left_out: 0 }, "{max_bucket}");
        }
    }

    #[test]
    fn candidates_that_share_the_most_buckets_come_first() {
        let mut postings = Postings::default();
        assert!(postings.push(0, &[[1, 10, 20, 31], [2, 11, 20, 30], [3, 10, 20, 30], [4, 11, 21, 30]].concat(), 4));
        let query = |most| postings.search().candidates(&[10, 20, 30], 100, most).expect("there is no segment");
        let all = [(2, 3), (0, 2), (1, 2), (3, 1)];
        for most in 0..=5 {
            let expected = Candidates {
                documents: all[..most.min(4)].to_vec(),
                capped: 0,
                left_out: 4_u32.saturating_sub(most as u32),
            };
            assert_eq!(query(most), expected, "{most}");
        }
    }

    #[test]
    fn reading_removed_members_of_a_segment_is_bounded() {
        let count = MAX_REMOVED as u32 + 3;
        let rows = [NO_KEY, 7].repeat(count as usize);
        let segment = segment("read", &rows, 2, u64::from(count));
        for (removed, capped) in [(MAX_REMOVED as u32, false), (MAX_REMOVED as u32 + 1, true)] {
            let mut postings = Postings::default();
            postings.set_segments(vec![Arc::clone(&segment)]);
            postings.remove(&(1..=removed).collect::<Vec<u32>>());
            let live =
                if capped { vec![(0, 1)] } else { [0].into_iter().chain(removed + 1..count).map(|d| (d, 1)).collect() };
            let found = postings.search().candidates(&[7], 100, 100).expect("the segment is intact");
            assert_eq!(found, Candidates { documents: live, capped: u16::from(capped), left_out: 0 });
        }
    }

    #[test]
    fn holders_are_in_the_order_of_the_hashes() {
        let mut postings = one_bucket("holders");
        postings.remove(&[3, 10]);
        let holders = postings.search().holders(&[5, 1, 5, NO_KEY, 19, 20]).expect("the segment is intact");
        let expected = Holders { offsets: vec![0, 1, 2, 3, 3, 5, 5], documents: vec![11, 2, 11, 38, 39] };
        assert_eq!(holders, expected);
    }

    #[test]
    fn documents_out_of_order_are_not_pushed() {
        let mut postings = one_bucket("order");
        assert!(!postings.push(39, &[1, 7, 8], 3));
        postings.forget_recent();
        assert!(postings.push(39, &[1, 7, 7], 3));
        assert_eq!(postings.search().candidates(&[7], 100, 100).map(|found| found.documents.len()).ok(), Some(11));
    }
}
