//! Candidate pairs of all bands, merged from bucket files in ascending order, each pair once.
//!
//! Writing the pairs of every band and sorting them was the first design. It fails on large buckets: a bucket of 1,000
//! members has 500,000 pairs, and a similar pair shares many buckets. One million passages gave 51 million distinct
//! pairs, which the bands repeated 122 million times; that took 979 MB and a quarter of the whole run. Therefore each
//! band writes its buckets ([`SharedBuckets`]) and this module expands them. It advances through all files in step, by
//! the smaller document of a pair, and merges the partners of one document while they are in the processor's cache.

use std::fs::File;
use std::io;
use std::mem::swap;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::band::{NO_DOCUMENT, PairRange, pack_pair};
use crate::positioned::read_exact_at;

#[cfg(doc)]
use crate::band::SharedBuckets;

/// Ranges read from a file at a time: 48 KiB.
const BLOCK_RANGES: usize = 1 << 12;
/// Documents per task; enough to make the overhead of a task negligible.
const TASK_DOCUMENTS: usize = 64;
/// Files that stay open at most: half of the smallest default limit per process (256 on macOS). A run has one file per
/// band, or per band and key range when memory is scarce, which can be thousands.
const MAX_OPEN_FILES: usize = 128;

/// Consecutive little-endian `u32` numbers in a file.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Byte offset of the first number.
    pub position: u64,
    /// Number of numbers.
    pub length: usize,
}

impl Section {
    /// Append the numbers from index `start` up to, not including, `end`.
    fn read(&self, file: &File, start: usize, end: usize, numbers: &mut Vec<u32>) -> io::Result<()> {
        if start > end || end > self.length {
            let message = format!("a bucket file must hold numbers {start} to {end}, it has {}", self.length);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let mut bytes = vec![0; 4 * (end - start)];
        read_exact_at(file, &mut bytes, self.position + 4 * start as u64)?;
        numbers.extend(bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)));
        Ok(())
    }
}

/// Bucket file of one band, or of one key range of a band.
#[derive(Debug)]
pub struct BucketFile {
    path: PathBuf,
    /// The open file; none if it is opened for each read.
    handle: Option<File>,
    /// Three numbers for each range.
    ranges: Section,
    members: Section,
    /// All members, if they fit in memory.
    loaded: Option<Vec<u32>>,
    /// The ranges read last, the index of the current one, and the numbers of `ranges` read so far.
    block: Vec<PairRange>,
    next: usize,
    read: usize,
}

impl BucketFile {
    /// Create the reader of two sections of a file; members are read now if `loaded`, otherwise on demand.
    ///
    /// # Errors
    /// If the members cannot be read.
    pub fn open(path: PathBuf, ranges: Section, members: Section, loaded: bool) -> io::Result<Self> {
        let mut file = Self { path, handle: None, ranges, members, loaded: None, block: Vec::new(), next: 0, read: 0 };
        if loaded {
            let mut numbers = Vec::with_capacity(members.length);
            file.read(members, 0, members.length, &mut numbers)?;
            file.loaded = Some(numbers);
        }
        Ok(file)
    }

    fn read(&self, section: Section, start: usize, end: usize, numbers: &mut Vec<u32>) -> io::Result<()> {
        match &self.handle {
            Some(file) => section.read(file, start, end, numbers),
            None => section.read(&File::open(&self.path)?, start, end, numbers),
        }
    }

    /// Return the current range without advancing; none at the end of the file.
    fn peek(&mut self) -> io::Result<Option<PairRange>> {
        if self.next == self.block.len() && self.read < self.ranges.length {
            let (end, mut numbers) = ((self.read + 3 * BLOCK_RANGES).min(self.ranges.length), Vec::new());
            self.read(self.ranges, self.read, end, &mut numbers)?;
            self.block = numbers.as_chunks().0.iter().map(|&[low, start, end]| PairRange { low, start, end }).collect();
            (self.next, self.read) = (0, end);
        }
        Ok(self.block.get(self.next).copied())
    }

    /// Append the partners of a range that `is_needed`.
    fn append_partners(
        &self,
        range: PairRange,
        is_needed: impl Fn(u32) -> bool,
        partners: &mut Vec<u32>,
    ) -> io::Result<()> {
        let (start, end) = (range.start as usize, range.end as usize);
        if let Some(Some(members)) = self.loaded.as_ref().map(|members| members.get(start..end)) {
            partners.extend(members.iter().copied().filter(|&member| is_needed(member)));
            return Ok(());
        }
        let mut members = Vec::new();
        self.read(self.members, start, end, &mut members)?;
        partners.extend(members.into_iter().filter(|&member| is_needed(member)));
        Ok(())
    }
}

/// Iterator over the candidate pairs of all bands in ascending order.
#[derive(Debug)]
pub struct CandidatePairs {
    files: Vec<BucketFile>,
    /// The smaller document of each file's current range; [`NO_DOCUMENT`] at the end of the file.
    lows: Vec<u32>,
    passed: u64,
    /// Files that may still be kept open.
    open_budget: usize,
    /// The group of each document, if no two of one group are a pair.
    groups: Option<Vec<u32>>,
}

impl Default for CandidatePairs {
    fn default() -> Self {
        Self::with_open_files(MAX_OPEN_FILES)
    }
}

impl CandidatePairs {
    /// Create an iterator without files that keeps at most `limit` files open.
    fn with_open_files(limit: usize) -> Self {
        Self { files: Vec::new(), lows: Vec::new(), passed: 0, open_budget: limit, groups: None }
    }

    /// Leave out the pairs of two documents of one group; `groups` has the group of each document.
    ///
    /// This is done where partners are read, not where buckets are made: a range of partners would fall into as many
    /// pieces as its members change their group.
    #[must_use]
    pub fn across(mut self, groups: Vec<u32>) -> Self {
        self.groups = Some(groups);
        self
    }

    /// Return whether two documents may be a pair. Documents beyond the end of `groups` are one group.
    fn may_pair(&self, low: u32, high: u32) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.get(low as usize) != groups.get(high as usize))
    }

    /// Add a file and skip its pairs whose smaller document is at most `after`.
    ///
    /// A file whose members are not in memory is read once per range, so it stays open: opening it for each read took
    /// 5.6 s instead of 1.3 s for 2.7 million pairs of 32 bands. A file with its members in memory is read once per
    /// 4,096 ranges and needs no handle. Files beyond the limit are opened for each read: all files are read in turn,
    /// so a cache with eviction would close the file that is needed next.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn add(&mut self, mut file: BucketFile, after: Option<u32>) -> io::Result<()> {
        if file.loaded.is_none() && self.open_budget > 0 {
            file.handle = Some(File::open(&file.path)?);
            self.open_budget -= 1;
        }
        let index = self.files.len();
        self.files.push(file);
        self.lows.push(NO_DOCUMENT);
        while let Some(range) = self.peek(index)?
            && after.is_some_and(|after| range.low <= after)
        {
            self.advance(index, range);
        }
        Ok(())
    }

    /// Return the number of pairs passed so far; a pair that several bands propose counts once per band.
    #[must_use]
    pub const fn passed(&self) -> u64 {
        self.passed
    }

    fn peek(&mut self, index: usize) -> io::Result<Option<PairRange>> {
        let range = self.files[index].peek()?;
        self.lows[index] = range.map_or(NO_DOCUMENT, |range| range.low);
        Ok(range)
    }

    fn advance(&mut self, index: usize, range: PairRange) {
        self.files[index].next += 1;
        self.passed += u64::from(range.end.saturating_sub(range.start));
    }

    /// Return the next pairs `low << 32 | high`, ascending and distinct; none at the end.
    ///
    /// All pairs of a smaller document come together. Documents are added until the bands have proposed `most` pairs.
    ///
    /// # Errors
    /// If a file cannot be read, or a range points outside its file.
    pub fn next_pairs(&mut self, most: u64, threads: usize) -> io::Result<Option<Vec<u64>>> {
        loop {
            let window = self.next_window(usize::MAX, most)?;
            if window.is_empty() {
                return Ok(None);
            }
            let pairs = self.pairs_of(&window, threads)?;
            if !pairs.is_empty() {
                return Ok(Some(pairs));
            }
        }
    }

    fn pairs_of(&self, window: &Window, threads: usize) -> io::Result<Vec<u64>> {
        let documents = window.documents();
        let parts: Vec<io::Result<Vec<u64>>> = if threads <= 1 {
            documents.chunks(TASK_DOCUMENTS).map(|documents| self.pairs(documents)).collect()
        } else {
            documents.par_chunks(TASK_DOCUMENTS).map(|documents| self.pairs(documents)).collect()
        };
        let mut all = Vec::new();
        for part in parts {
            all.append(&mut part?);
        }
        Ok(all)
    }

    /// Return the next smaller documents: at most `documents`, and no more after the bands have proposed `most` pairs.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(crate) fn next_window(&mut self, documents: usize, most: u64) -> io::Result<Window> {
        let (mut ranges, before) = (Vec::new(), self.passed);
        for _ in 0..documents {
            let Some(low) = self.lows.iter().copied().min().filter(|&low| low != NO_DOCUMENT) else { break };
            if self.passed - before >= most {
                break;
            }
            self.take_ranges(low, &mut ranges)?;
        }
        Ok(Window { ranges })
    }

    /// Append the ranges of document `low` in all files, each with the index of its file.
    fn take_ranges(&mut self, low: u32, ranges: &mut Vec<(usize, PairRange)>) -> io::Result<()> {
        for index in 0..self.files.len() {
            // A file of several bands has several ranges of a document.
            while self.lows[index] == low
                && let Some(range) = self.peek(index)?
            {
                ranges.push((index, range));
                self.advance(index, range);
                self.peek(index)?;
            }
        }
        Ok(())
    }

    fn pairs(&self, documents: &[DocumentRanges<'_>]) -> io::Result<Vec<u64>> {
        let (mut pairs, mut runs) = (Vec::new(), SortedRuns::default());
        for &document in documents {
            let partners = self.partners(document, |_| true, &mut runs)?;
            pairs.extend(partners.iter().map(|&high| pack_pair(document.low(), high)));
        }
        Ok(pairs)
    }

    /// Return the partners of a document that `is_needed`, ascending and distinct.
    ///
    /// # Errors
    /// If a file cannot be read, or a range points outside its file.
    pub(crate) fn partners<'r>(
        &self,
        document: DocumentRanges<'_>,
        is_needed: impl Fn(u32) -> bool,
        runs: &'r mut SortedRuns,
    ) -> io::Result<&'r [u32]> {
        runs.clear();
        for &(index, range) in document.0 {
            let may_pair = |high: u32| is_needed(high) && self.may_pair(range.low, high);
            self.files[index].append_partners(range, may_pair, &mut runs.numbers)?;
            runs.ends.push(runs.numbers.len());
        }
        Ok(runs.union())
    }
}

/// Ranges of consecutive smaller documents, each with the index of its file.
#[derive(Debug)]
pub(crate) struct Window {
    ranges: Vec<(usize, PairRange)>,
}

impl Window {
    pub(crate) const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Return the ranges of each document.
    pub(crate) fn documents(&self) -> Vec<DocumentRanges<'_>> {
        self.ranges.chunk_by(|left, right| left.1.low == right.1.low).map(DocumentRanges).collect()
    }
}

/// Ranges of one smaller document in all files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentRanges<'w>(&'w [(usize, PairRange)]);

impl DocumentRanges<'_> {
    /// Return the smaller document of the pairs.
    pub(crate) const fn low(&self) -> u32 {
        self.0[0].1.low
    }
}

/// Ascending runs of distinct numbers, one after the other.
#[derive(Debug, Default)]
pub(crate) struct SortedRuns {
    numbers: Vec<u32>,
    ends: Vec<usize>,
    spare: Vec<u32>,
}

impl SortedRuns {
    fn clear(&mut self) {
        self.numbers.clear();
        self.ends.clear();
    }

    /// Merge all runs and return their numbers, ascending and distinct.
    ///
    /// Neighbouring runs are merged in pairs until one is left. The runs of a group of near-duplicates are almost the
    /// same in every band, so each round halves the numbers. For one million passages sorting took 1.5 s; this takes
    /// 1.1 s.
    fn union(&mut self) -> &[u32] {
        while self.ends.len() > 1 {
            self.spare.clear();
            let mut start = 0;
            for run in (0..self.ends.len()).step_by(2) {
                let middle = self.ends[run];
                let end = self.ends.get(run + 1).copied().unwrap_or(middle);
                append_union(&self.numbers[start..middle], &self.numbers[middle..end], &mut self.spare);
                start = end;
                self.ends[run / 2] = self.spare.len();
            }
            self.ends.truncate(self.ends.len().div_ceil(2));
            swap(&mut self.numbers, &mut self.spare);
        }
        &self.numbers
    }
}

/// Append the union of two ascending runs, without a branch on which number is smaller.
fn append_union(left: &[u32], right: &[u32], union: &mut Vec<u32>) {
    if left == right {
        union.extend_from_slice(left);
        return;
    }
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        let (l, r) = (left[i], right[j]);
        union.push(l.min(r));
        i += usize::from(l <= r);
        j += usize::from(r <= l);
    }
    union.extend_from_slice(&left[i..]);
    union.extend_from_slice(&right[j..]);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::band::{Buckets, SharedBuckets};
    use crate::hash::mix;
    use std::collections::BTreeSet;
    use std::io::Write as _;

    const WRITTEN: &str = "the file was just written";

    /// Write a file in the layout of the engine: ranges, then members.
    fn write(name: &str, ranges: &[PairRange], members: &[u32]) -> (PathBuf, Section, Section) {
        let path = std::env::temp_dir().join(format!("minwise-candidates-{}-{name}", std::process::id()));
        let words: Vec<u32> = ranges.iter().flat_map(|range| [range.low, range.start, range.end]).collect();
        let bytes: Vec<u8> = words.iter().chain(members).flat_map(|word| word.to_le_bytes()).collect();
        File::create(&path).and_then(|mut file| file.write_all(&bytes)).expect("the temporary directory is writable");
        let sections = [(0, words.len()), (4 * words.len() as u64, members.len())];
        let [ranges, members] = sections.map(|(position, length)| Section { position, length });
        (path, ranges, members)
    }

    /// Write the buckets of a band.
    pub(crate) fn write_shared(name: &str, shared: &SharedBuckets) -> (PathBuf, Section, Section) {
        write(name, &shared.ranges, &shared.members)
    }

    /// Write a file in which each of `documents` documents has its successor as its only partner.
    fn write_successors(name: &str, documents: u32) -> (PathBuf, Section, Section) {
        let ranges: Vec<PairRange> = (0..documents).map(|low| PairRange { low, start: low, end: low + 1 }).collect();
        write(name, &ranges, &(1..=documents).collect::<Vec<u32>>())
    }

    fn all_pairs(candidates: &mut CandidatePairs, most: u64, threads: usize) -> Vec<u64> {
        let mut pairs = Vec::new();
        while let Some(part) = candidates.next_pairs(most, threads).expect("the files can be read") {
            assert!(!part.is_empty());
            pairs.extend(part);
        }
        pairs
    }

    #[test]
    fn pairs_are_the_union_of_all_bands_for_every_chunk_size() {
        let documents = 3 * BLOCK_RANGES as u32; // more than one block
        let bands: Vec<Vec<u64>> =
            (0..5).map(|band| (0..u64::from(documents)).map(|i| mix(mix(i ^ band << 40) % 4000)).collect()).collect();
        let members: Vec<u32> = (0..documents).collect();
        let (mut files, mut expected, mut proposed) = (Vec::new(), BTreeSet::new(), 0);
        for (number, keys) in bands.iter().enumerate() {
            let mut buckets = Buckets::default();
            buckets.push(keys, &members, 0, 1);
            let shared = buckets.shared(2000, 0, 1);
            for range in &shared.ranges {
                let partners = &shared.members[range.start as usize..range.end as usize];
                expected.extend(partners.iter().map(|&high| pack_pair(range.low, high)));
                proposed += partners.len() as u64;
            }
            files.push(write(&format!("union-{number}"), &shared.ranges, &shared.members));
        }
        for (most, threads, loaded, after) in
            [(1, 1, true, None), (500, 2, false, None), (u64::MAX, 2, true, Some(777)), (9, 1, false, Some(documents))]
        {
            let mut candidates = CandidatePairs::default();
            for (path, ranges, members) in &files {
                let file = BucketFile::open(path.clone(), *ranges, *members, loaded).expect(WRITTEN);
                candidates.add(file, after).expect(WRITTEN);
            }
            let pairs = all_pairs(&mut candidates, most, threads);
            let wanted =
                expected.iter().copied().filter(|pair| after.is_none_or(|after| pair >> 32 > u64::from(after)));
            assert!(pairs.iter().copied().eq(wanted), "{most} {threads} {loaded} {after:?}");
            assert_eq!(candidates.passed(), proposed);
        }
        for (path, ..) in files {
            std::fs::remove_file(path).expect(WRITTEN);
        }
    }

    #[test]
    fn no_pair_has_two_documents_of_one_group() {
        let shared = |name: &str, members: u32| {
            let ranges: Vec<_> = (0..members - 1).map(|low| PairRange { low, start: low + 1, end: members }).collect();
            write(name, &ranges, &(0..members).collect::<Vec<u32>>())
        };
        let (path, ranges, members) = shared("groups", 40);
        let group = |document: u32| mix(u64::from(document)) as u32 % 3;
        for loaded in [true, false] {
            // Documents 38 and 39 are beyond the groups.
            let mut candidates = CandidatePairs::default().across((0..38).map(group).collect());
            let file = BucketFile::open(path.clone(), ranges, members, loaded).expect(WRITTEN);
            candidates.add(file, None).expect(WRITTEN);
            let pairs = all_pairs(&mut candidates, 1, 2);
            let all = (0..40).flat_map(|low| (low + 1..40).map(move |high| (low, high)));
            let wanted = all.filter(|&(low, high)| low < 38 && (high > 37 || group(low) != group(high)));
            let wanted: Vec<u64> = wanted.map(|(low, high)| pack_pair(low, high)).collect();
            assert!((400..780).contains(&wanted.len()));
            assert_eq!(pairs, wanted);
        }
        std::fs::remove_file(path).expect(WRITTEN);
    }

    #[test]
    fn a_range_outside_its_file_is_an_error() {
        let (path, ranges, members) = write("outside", &[PairRange { low: 1, start: 0, end: 3 }], &[1, 2]);
        for loaded in [true, false] {
            let file = BucketFile::open(path.clone(), ranges, members, loaded).expect(WRITTEN);
            let mut candidates = CandidatePairs::default();
            candidates.add(file, None).expect(WRITTEN);
            let error = candidates.next_pairs(1, 1).expect_err("the file has two members");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
        std::fs::remove_file(path).expect(WRITTEN);
    }

    /// The file is deleted after `add`, so a second open would fail.
    #[test]
    fn a_file_whose_members_are_not_in_memory_is_opened_once() {
        let documents = 3 * BLOCK_RANGES as u32;
        let (path, ranges, members) = write_successors("once", documents);
        let mut candidates = CandidatePairs::default();
        let file = BucketFile::open(path.clone(), ranges, members, false).expect(WRITTEN);
        candidates.add(file, None).expect(WRITTEN);
        std::fs::remove_file(path).expect(WRITTEN);
        assert_eq!(all_pairs(&mut candidates, 100, 2).len(), documents as usize);
    }

    #[test]
    fn files_above_the_limit_are_read_without_staying_open() {
        let files: Vec<_> = (0..5).map(|number| write_successors(&format!("limit-{number}"), 300)).collect();
        for limit in [0, 2, 9] {
            let mut candidates = CandidatePairs::with_open_files(limit);
            for (number, (path, ranges, members)) in files.iter().enumerate() {
                let file = BucketFile::open(path.clone(), *ranges, *members, number == 0).expect(WRITTEN);
                candidates.add(file, None).expect(WRITTEN);
            }
            assert_eq!(all_pairs(&mut candidates, 100, 2).len(), 300);
            let open = candidates.files.iter().filter(|file| file.handle.is_some()).count();
            assert_eq!(open, limit.min(4), "four files have their members on disk");
        }
        for (path, ..) in files {
            std::fs::remove_file(path).expect(WRITTEN);
        }
    }
}
