//! Postings: keys in, the documents that share a bucket out.
//!
//! The members of a bucket lie in segments, oldest documents first, and, for those that came last, in memory. Removed documents
//! stay in both until a merge drops them and are passed over here. A bucket has bounded cost, as everywhere: above a cap only
//! its first few members count, and never are more postings read than a few times the cap.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use crate::band::{FIRST_MEMBERS, NO_KEY, NOBODY};
use crate::segment::{Block, Run, Segment, SegmentError, SegmentWriter, pack};
use crate::stream::Map;

/// How many postings of a bucket are read at most, in terms of the cap: removed documents must neither hide the living ones behind
/// them nor make every query walk through all of them.
const READ_FACTOR: usize = 64;

/// Documents of which one bit says that they are removed; those beyond the end are not.
#[derive(Clone, Debug, Default)]
pub struct Removed(Vec<u64>);

impl Removed {
    /// Of bytes whose lowest bit is the lowest document.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        Self(bytes.chunks(8).map(word).collect())
    }

    /// Whether the document is removed.
    #[inline(always)]
    #[must_use]
    pub fn contains(&self, document: u32) -> bool {
        self.0.get(document as usize / 64).is_some_and(|word| word >> (document % 64) & 1 == 1)
    }

    /// Removes a document.
    pub fn insert(&mut self, document: u32) {
        let word = document as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (document % 64);
    }
}

/// Postings of the documents that came last: from each key a chain of documents, ascending.
#[derive(Default)]
struct Chains {
    /// The first and the last link of every key.
    ends: Map<u64, (u32, u32)>,
    /// A document and the place of the next link.
    links: Vec<(u32, u32)>,
}

impl Chains {
    fn reserve(&mut self, postings: usize) {
        self.ends.reserve(postings);
        self.links.reserve(postings);
    }

    /// Adds a document that comes after all others of its key, or is the last of them again.
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
        self.links.push((document, NOBODY));
    }

    /// Shows `each` the documents with `key`, ascending, until it breaks off.
    fn members(&self, key: u64, mut each: impl FnMut(u32) -> ControlFlow<()>) {
        let mut next = self.ends.get(&key).map_or(NOBODY, |ends| ends.0);
        while let Some(&(document, after)) = self.links.get(next as usize) {
            if each(document).is_break() {
                return;
            }
            next = after;
        }
    }

    fn resident_bytes(&self) -> usize {
        self.ends.capacity() * (size_of::<(u64, (u32, u32))>() + 1) + self.links.capacity() * size_of::<(u32, u32)>()
    }
}

/// The candidates of one document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Documents, ascending, and in how many buckets each is.
    pub documents: Vec<(u32, u16)>,
    /// Whether a bucket was above the cap or there were more candidates than wanted.
    pub truncated: bool,
}

/// The living documents under each of several hashes: those of hash i are `documents[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// Where the documents of each hash start, and one past the end of the last.
    pub offsets: Vec<i64>,
    /// The documents of all hashes, ascending for each.
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
    /// The open segments, oldest documents first.
    #[must_use]
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// Replaces the segments by these, oldest documents first.
    pub fn set_segments(&mut self, segments: Vec<Arc<Segment>>) {
        self.segments = segments;
    }

    /// Replaces the removed documents by these.
    pub fn set_removed(&mut self, removed: Removed) {
        self.removed = removed;
    }

    /// Passes these documents over from now on.
    pub fn remove(&mut self, documents: &[u32]) {
        for &document in documents {
            self.removed.insert(document);
        }
    }

    /// Takes rows of an id hash and band keys, for the documents `first`, `first + 1`, …; false, and nothing is taken, if they do
    /// not come after those taken before.
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

    /// Forgets what was pushed.
    pub fn forget_recent(&mut self) {
        (self.recent, self.recent_end) = (Default::default(), 0);
    }

    /// Bytes of memory that all this takes.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        let segments = self.segments.iter().map(|segment| segment.resident_bytes()).sum::<usize>();
        let recent = self.recent.iter().map(Chains::resident_bytes).sum::<usize>();
        segments + recent + self.removed.0.capacity() * 8
    }

    /// A search over them, with room for what it reads.
    #[must_use]
    pub fn search(&self) -> Search<'_> {
        let blocks = vec![Block::default(); self.segments.len()];
        Search { postings: self, blocks, keys: Vec::new(), members: Vec::new() }
    }

    /// What [`Search::candidates`] finds for each row of `bands` keys, over as many threads.
    ///
    /// # Errors
    /// If a segment can not be read or is damaged.
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
            return find(rows); // on this thread: a pool that is not ours would have to be woken up
        }
        let each = rows.len().div_ceil(bands).div_ceil(threads).max(1);
        let parts = rows.par_chunks(each * bands).map(find).collect::<Result<Vec<_>, _>>()?;
        Ok(parts.into_iter().flatten().collect())
    }
}

/// The run of column `i` of a row of an id hash and band keys.
const fn run_of(i: usize) -> Run {
    if i == 0 { Run::Ids } else { Run::Bands }
}

/// Looks keys up and keeps, for each segment, the last block it read.
pub struct Search<'p> {
    postings: &'p Postings,
    blocks: Vec<Block>,
    keys: Vec<u64>,
    members: Vec<u32>,
}

impl Search<'_> {
    /// The living documents that share a bucket with a document of these keys.
    ///
    /// A bucket with more than `max_bucket` of them counts with its first [`FIRST_MEMBERS`]. If there are more than `most`
    /// candidates, those that share most buckets stay, and of equal ones those of lower number.
    ///
    /// # Errors
    /// If a segment can not be read or is damaged.
    pub fn candidates(&mut self, keys: &[u64], max_bucket: usize, most: usize) -> Result<Candidates, SegmentError> {
        let mut sorted = std::mem::take(&mut self.keys);
        sorted.clear();
        sorted.extend(keys.iter().filter(|&&key| key != NO_KEY));
        sorted.sort_unstable();
        sorted.dedup();
        self.members.clear();
        let mut truncated = false;
        for &key in &sorted {
            truncated |= self.add_bucket(key, max_bucket)?;
        }
        self.keys = sorted;
        self.members.sort_unstable();
        let buckets = self.members.chunk_by(|left, right| left == right);
        let mut documents: Vec<(u32, u16)> = buckets.map(|same| (same[0], same.len() as u16)).collect();
        if documents.len() > most {
            documents.sort_unstable_by_key(|&(document, shared)| (Reverse(shared), document));
            documents.truncate(most);
            documents.sort_unstable();
            truncated = true;
        }
        Ok(Candidates { documents, truncated })
    }

    /// Adds the members of a bucket to `members`; whether the cap left some out.
    fn add_bucket(&mut self, key: u64, max_bucket: usize) -> Result<bool, SegmentError> {
        let enough = max_bucket.saturating_add(1).max(FIRST_MEMBERS);
        let (start, mut left) = (self.members.len(), READ_FACTOR.saturating_mul(max_bucket.max(FIRST_MEMBERS)));
        let mut members = std::mem::take(&mut self.members);
        let broke_off = self.each_member(Run::Bands, key, |document, lives| {
            if left == 0 || members.len() - start == enough {
                return ControlFlow::Break(());
            }
            left -= 1;
            if lives {
                members.push(document);
            }
            ControlFlow::Continue(())
        });
        let capped = members.len() - start > max_bucket;
        self.members = members;
        let capped = broke_off?.is_break() || capped;
        if capped {
            self.members.truncate(start + FIRST_MEMBERS);
        }
        Ok(capped)
    }

    /// Shows `each` the documents with `key`, ascending, and whether they live, until it breaks off. Says whether it did.
    #[inline(always)]
    fn each_member(
        &mut self,
        run: Run,
        key: u64,
        mut each: impl FnMut(u32, bool) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, SegmentError> {
        let removed = &self.postings.removed;
        let mut state = ControlFlow::Continue(());
        for (segment, block) in self.postings.segments.iter().zip(&mut self.blocks) {
            state = segment.members(run, key, block, |document| each(document, !removed.contains(document)))?;
            if state.is_break() {
                return Ok(state);
            }
        }
        // Removed ones in memory do not count as read: there are few, and a page that changes often has many.
        self.postings.recent[run as usize].members(key, |document| {
            if removed.contains(document) {
                return ControlFlow::Continue(());
            }
            state = each(document, true);
            state
        });
        Ok(state)
    }

    /// The living documents under each hash of an id. The order of the hashes does not matter: no block is read twice.
    ///
    /// # Errors
    /// If a segment can not be read or is damaged.
    pub fn holders(&mut self, hashes: &[u64]) -> Result<Holders, SegmentError> {
        let mut order: Vec<usize> = (0..hashes.len()).filter(|&i| hashes[i] != NO_KEY).collect();
        order.sort_unstable_by_key(|&i| hashes[i]);
        let (mut found, mut places) = (Vec::new(), vec![0..0; hashes.len()]);
        for same in order.chunk_by(|&left, &right| hashes[left] == hashes[right]) {
            let start = found.len();
            // Breaking off never happens here: all holders are wanted.
            let _ = self.each_member(Run::Ids, hashes[same[0]], |document, lives| {
                if lives {
                    found.push(document);
                }
                ControlFlow::Continue(())
            })?;
            for &i in same {
                places[i] = start..found.len();
            }
        }
        let mut holders = Holders { offsets: vec![0], documents: Vec::with_capacity(found.len()) };
        for place in places {
            holders.documents.extend_from_slice(&found[place]);
            holders.offsets.push(holders.documents.len() as i64);
        }
        Ok(holders)
    }
}

/// Writes a segment of rows of an id hash and `width - 1` band keys. A block of rows is of documents that follow each other
/// from its first on. Gives back how many postings there are; equal keys of one document are one.
///
/// # Errors
/// If a document is not in `low..high`, or the file can not be written.
pub fn write_segment(
    path: &Path,
    blocks: &[(u32, &[u64])],
    width: usize,
    low: u64,
    high: u64,
) -> Result<u64, SegmentError> {
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

    /// A segment of the documents from 0 on, whose file has no name any more.
    fn segment(name: &str, rows: &[u64], width: usize, documents: u64) -> Arc<Segment> {
        let path = std::env::temp_dir().join(format!("minwise-postings-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        write_segment(&path, &[(0, rows)], width, 0, documents).expect("the file is new");
        let segment = Segment::open(&path).expect("it was just written");
        std::fs::remove_file(&path).expect("an open file can be read on");
        Arc::new(segment)
    }

    /// One bucket of 40 documents, two per id: ten in a segment, the rest in memory.
    fn one_bucket(name: &str) -> Postings {
        let rows: Vec<u64> = (0..40).flat_map(|document| [document / 2, 7, NO_KEY]).collect();
        let (old, new) = rows.split_at(30);
        let mut postings = Postings::default();
        postings.set_segments(vec![segment(name, old, 3, 10)]);
        assert!(postings.push(10, new, 3));
        postings
    }

    #[test]
    fn a_bucket_above_the_cap_gives_its_first_living_members() {
        let mut postings = one_bucket("cap");
        postings.remove(&[0, 9, 12]);
        let ask = |max_bucket| postings.search().candidates(&[7, NO_KEY, 8], max_bucket, 100).expect("it is whole");
        let all: Vec<(u32, u16)> = (0..40).filter(|document| ![0, 9, 12].contains(document)).map(|d| (d, 1)).collect();
        assert_eq!(ask(37), Candidates { documents: all.clone(), truncated: false });
        for max_bucket in [36, 16, 15, 1, 0] {
            assert_eq!(ask(max_bucket), Candidates { documents: all[..16].to_vec(), truncated: true }, "{max_bucket}");
        }
    }

    #[test]
    fn removed_members_in_a_file_are_not_read_without_end() {
        let mut postings = Postings::default();
        let rows = [NO_KEY, 7].repeat(1600);
        postings.set_segments(vec![segment("read", &rows, 2, 1600)]);
        postings.remove(&(0..1150).collect::<Vec<u32>>());
        let ask = |max_bucket| postings.search().candidates(&[7], max_bucket, 1000).expect("it is whole");
        // 64 · 18 = 1,152 postings are read, of which two live; 64 · 25 is all.
        assert_eq!(ask(18), Candidates { documents: vec![(1150, 1), (1151, 1)], truncated: true });
        assert_eq!(ask(25).documents.len(), FIRST_MEMBERS);
        assert_eq!(ask(450), Candidates { documents: (1150..1600).map(|d| (d, 1)).collect(), truncated: false });
    }

    #[test]
    fn holders_come_in_the_order_of_the_hashes() {
        let mut postings = one_bucket("holders");
        postings.remove(&[3, 10]);
        let holders = postings.search().holders(&[5, 1, 5, NO_KEY, 19, 20]).expect("it is whole");
        let expected = Holders { offsets: vec![0, 1, 2, 3, 3, 5, 5], documents: vec![11, 2, 11, 38, 39] };
        assert_eq!(holders, expected);
    }

    #[test]
    fn documents_are_pushed_in_order() {
        let mut postings = one_bucket("order");
        assert!(!postings.push(39, &[1, 7, 8], 3));
        postings.forget_recent();
        assert!(postings.push(39, &[1, 7, 7], 3));
        assert_eq!(postings.search().candidates(&[7], 100, 100).map(|found| found.documents.len()).ok(), Some(11));
    }
}
