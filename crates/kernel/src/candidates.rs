//! Proposals: who shares a bucket with whom, band by band, in files, in; candidate pairs in order, each once, out.
//!
//! The plain way is to write the pairs of every band, and to sort them all. A bucket of a thousand members has half a million
//! pairs, though, and a similar pair shares many buckets: a million passages proposed 51 million pairs 122 million times, which
//! took 979 MB and a quarter of the whole run. So files hold the buckets themselves ([`Shared`]). The smaller sides of pairs are
//! met in order, all bands in step; what is gathered for one of them is sorted at once, in the processor's cache.

use std::fs::File;
use std::io;
use std::mem::swap;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::band::{First, NOBODY, pack_pair};

/// Firsts that are read from a file at a time.
const BLOCK_FIRSTS: usize = 1 << 12;
/// Smaller sides per task: enough that a task's own cost does not show.
const TASK_LOWS: usize = 64;

/// Numbers in a file, back to back, and how many.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Where the first of them starts.
    pub position: u64,
    /// How many there are.
    pub length: usize,
}

impl Section {
    /// The numbers between two places.
    fn read(&self, file: &File, start: usize, end: usize, numbers: &mut Vec<u32>) -> io::Result<()> {
        if start > end || end > self.length {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a proposal points outside of its file"));
        }
        let mut bytes = vec![0; 4 * (end - start)];
        file.read_exact_at(&mut bytes, self.position + 4 * start as u64)?;
        numbers.extend(bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)));
        Ok(())
    }
}

/// The buckets of a band, or of a part of one, in a file. It is opened whenever it is read from, since there may be thousands.
#[derive(Debug)]
pub struct ProposalFile {
    path: PathBuf,
    /// Three numbers for each first.
    firsts: Section,
    members: Section,
    /// All members, if there was room for them in memory.
    loaded: Option<Vec<u32>>,
    /// The firsts that are next, and the place in the file of the one behind them.
    block: Vec<First>,
    at: usize,
    read: usize,
}

impl ProposalFile {
    /// The buckets at two sections of a file; members that are not `loaded` are read when they are needed.
    ///
    /// # Errors
    /// If the file can not be read.
    pub fn open(path: PathBuf, firsts: Section, members: Section, loaded: bool) -> io::Result<Self> {
        let mut file = Self { path, firsts, members, loaded: None, block: Vec::new(), at: 0, read: 0 };
        if loaded {
            let mut numbers = Vec::with_capacity(members.length);
            members.read(&File::open(&file.path)?, 0, members.length, &mut numbers)?;
            file.loaded = Some(numbers);
        }
        Ok(file)
    }

    /// The next first, which stays so until it is passed.
    fn next(&mut self) -> io::Result<Option<First>> {
        if self.at == self.block.len() && self.read < self.firsts.length {
            let (end, mut numbers) = ((self.read + 3 * BLOCK_FIRSTS).min(self.firsts.length), Vec::new());
            self.firsts.read(&File::open(&self.path)?, self.read, end, &mut numbers)?;
            self.block = numbers.as_chunks().0.iter().map(|&[low, start, end]| First { low, start, end }).collect();
            (self.at, self.read) = (0, end);
        }
        Ok(self.block.get(self.at).copied())
    }

    /// Appends the partners of a first.
    fn gather(&self, first: First, partners: &mut Vec<u32>) -> io::Result<()> {
        let (start, end) = (first.start as usize, first.end as usize);
        match self.loaded.as_ref().map(|members| members.get(start..end)) {
            Some(Some(members)) => partners.extend_from_slice(members),
            _ => self.members.read(&File::open(&self.path)?, start, end, partners)?,
        }
        Ok(())
    }
}

/// The buckets of all bands, gone through in the order of the pairs they make.
#[derive(Debug, Default)]
pub struct Proposals {
    files: Vec<ProposalFile>,
    /// The smaller side that each file is at; `NOBODY` behind its end.
    lows: Vec<u32>,
    passed: u64,
}

impl Proposals {
    /// Adds a file; pairs with a smaller side up to `after` are passed over.
    ///
    /// # Errors
    /// If the file can not be read.
    pub fn add(&mut self, file: ProposalFile, after: Option<u32>) -> io::Result<()> {
        let place = self.files.len();
        self.files.push(file);
        self.lows.push(NOBODY);
        while let Some(first) = self.meet(place)?
            && after.is_some_and(|after| first.low <= after)
        {
            self.pass(place, first);
        }
        Ok(())
    }

    /// How many pairs were passed, those that several bands proposed counted as often.
    #[must_use]
    pub const fn passed(&self) -> u64 {
        self.passed
    }

    fn meet(&mut self, place: usize) -> io::Result<Option<First>> {
        let first = self.files[place].next()?;
        self.lows[place] = first.map_or(NOBODY, |first| first.low);
        Ok(first)
    }

    fn pass(&mut self, place: usize, first: First) {
        self.files[place].at += 1;
        self.passed += u64::from(first.end.saturating_sub(first.start));
    }

    /// The next pairs `low << 32 | high`, ascending and distinct: those of as many smaller sides as are proposed in `most` pairs, and
    /// of one at least. None when there are no more.
    ///
    /// # Errors
    /// If a file can not be read, or points outside of itself.
    pub fn next_pairs(&mut self, most: u64, threads: usize) -> io::Result<Option<Vec<u64>>> {
        let (mut met, before) = (Vec::new(), self.passed);
        while self.passed - before < most
            && let Some(low) = self.lows.iter().copied().min().filter(|&low| low != NOBODY)
        {
            for place in 0..self.files.len() {
                if self.lows[place] == low
                    && let Some(first) = self.meet(place)?
                {
                    met.push((place, first));
                    self.pass(place, first);
                    self.meet(place)?;
                }
            }
        }
        if met.is_empty() {
            return Ok(None);
        }
        let lows: Vec<&[(usize, First)]> = met.chunk_by(|one, next| one.1.low == next.1.low).collect();
        let parts: Vec<io::Result<Vec<u64>>> = if threads <= 1 {
            lows.chunks(TASK_LOWS).map(|lows| self.pairs(lows)).collect()
        } else {
            lows.par_chunks(TASK_LOWS).map(|lows| self.pairs(lows)).collect()
        };
        let mut all = Vec::new();
        for part in parts {
            all.append(&mut part?);
        }
        Ok(Some(all))
    }

    fn pairs(&self, lows: &[&[(usize, First)]]) -> io::Result<Vec<u64>> {
        let (mut pairs, mut partners) = (Vec::new(), Runs::default());
        for &firsts in lows {
            for &(place, first) in firsts {
                self.files[place].gather(first, &mut partners.numbers)?;
                partners.ends.push(partners.numbers.len());
            }
            let low = firsts[0].1.low;
            pairs.extend(partners.union().iter().map(|&high| pack_pair(low, high)));
            partners.clear();
        }
        Ok(pairs)
    }
}

/// Ascending runs of distinct numbers, back to back.
#[derive(Debug, Default)]
struct Runs {
    numbers: Vec<u32>,
    ends: Vec<usize>,
    spare: Vec<u32>,
}

impl Runs {
    fn clear(&mut self) {
        self.numbers.clear();
        self.ends.clear();
    }

    /// All numbers, ascending, each once: two neighbouring runs become one until one is left. The runs of a group of near-duplicates
    /// are much the same in every band, so that each round halves what is left. For a million passages
    /// sorting took 1.5 s, and this takes 1.1.
    fn union(&mut self) -> &[u32] {
        while self.ends.len() > 1 {
            self.spare.clear();
            let mut start = 0;
            for two in (0..self.ends.len()).step_by(2) {
                let middle = self.ends[two];
                let end = self.ends.get(two + 1).copied().unwrap_or(middle);
                unite(&self.numbers[start..middle], &self.numbers[middle..end], &mut self.spare);
                start = end;
                self.ends[two / 2] = self.spare.len();
            }
            self.ends.truncate(self.ends.len().div_ceil(2));
            swap(&mut self.numbers, &mut self.spare);
        }
        &self.numbers
    }
}

/// Appends the union of two ascending runs, without a branch on which of them is behind.
fn unite(left: &[u32], right: &[u32], union: &mut Vec<u32>) {
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
mod tests {
    use super::*;
    use crate::band::Buckets;
    use crate::hash::mix;
    use std::collections::BTreeSet;
    use std::io::Write as _;

    /// A file as the engine writes it: firsts, then members.
    fn write(number: u64, firsts: &[First], members: &[u32]) -> (PathBuf, Section, Section) {
        let path = std::env::temp_dir().join(format!("minwise-proposals-{}-{number}", std::process::id()));
        let words: Vec<u32> = firsts.iter().flat_map(|first| [first.low, first.start, first.end]).collect();
        let bytes: Vec<u8> = words.iter().chain(members).flat_map(|word| word.to_le_bytes()).collect();
        File::create(&path).and_then(|mut file| file.write_all(&bytes)).expect("room in the temporary directory");
        let sections = [(0, words.len()), (4 * words.len() as u64, members.len())];
        let [firsts, members] = sections.map(|(position, length)| Section { position, length });
        (path, firsts, members)
    }

    #[test]
    fn pairs_are_the_union_of_all_bands_however_they_are_asked_for() {
        let documents = 3 * BLOCK_FIRSTS as u32; // more than are read at a time
        let bands: Vec<Vec<u64>> =
            (0..5).map(|band| (0..u64::from(documents)).map(|i| mix(mix(i ^ band << 40) % 4000)).collect()).collect();
        let members: Vec<u32> = (0..documents).collect();
        let (mut files, mut expected, mut proposed) = (Vec::new(), BTreeSet::new(), 0);
        for (number, keys) in bands.iter().enumerate() {
            let mut buckets = Buckets::default();
            buckets.push(keys, &members, 0, 1);
            let shared = buckets.shared(2000, 0, 1);
            for first in &shared.firsts {
                let partners = &shared.members[first.start as usize..first.end as usize];
                expected.extend(partners.iter().map(|&high| pack_pair(first.low, high)));
                proposed += partners.len() as u64;
            }
            files.push(write(number as u64, &shared.firsts, &shared.members));
        }
        for (most, threads, loaded, after) in
            [(1, 1, true, None), (500, 2, false, None), (u64::MAX, 2, true, Some(777)), (9, 1, false, Some(documents))]
        {
            let mut proposals = Proposals::default();
            for (path, firsts, members) in &files {
                let file = ProposalFile::open(path.clone(), *firsts, *members, loaded).expect("it was just written");
                proposals.add(file, after).expect("it was just written");
            }
            let mut pairs = Vec::new();
            while let Some(piece) = proposals.next_pairs(most, threads).expect("it was just written") {
                assert!(!piece.is_empty());
                pairs.extend(piece);
            }
            let wanted =
                expected.iter().copied().filter(|pair| after.is_none_or(|after| pair >> 32 > u64::from(after)));
            assert!(pairs.iter().copied().eq(wanted), "{most} {threads} {loaded} {after:?}");
            assert_eq!(proposals.passed(), proposed);
        }
        for (path, ..) in files {
            std::fs::remove_file(path).expect("it was just written");
        }
    }

    #[test]
    fn what_points_outside_of_its_file_is_an_error() {
        let (path, firsts, members) = write(99, &[First { low: 1, start: 0, end: 3 }], &[1, 2]);
        for loaded in [true, false] {
            let file = ProposalFile::open(path.clone(), firsts, members, loaded).expect("it was just written");
            let mut proposals = Proposals::default();
            proposals.add(file, None).expect("it was just written");
            let error = proposals.next_pairs(1, 1).expect_err("there are but two members");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
        std::fs::remove_file(path).expect("it was just written");
    }
}
