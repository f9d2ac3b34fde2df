//! Spill: sets in files, and pairs of their numbers, in; the pairs that are similar enough out.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rayon::prelude::*;

use crate::verify::{Outline, Probe, jaccard, similarity_at_least};

/// Pairs per task: enough that a task's own cost does not show.
const TASK_PAIRS: usize = 1024;
/// From how many comparisons on laying a set out for them pays: that takes as long as walking two sets once.
const LEAST_PROBES: usize = 2;
/// Pairs that are looked at together, so that the processor can fetch the sets of all while it compares the first.
const AHEAD: usize = 16;
/// Lines of eight elements that are fetched ahead; what follows it fetches by itself.
const FETCHED_LINES: usize = 8;
/// Elements up to which a layout stays in the processor's cache.
const MOST_PROBED: usize = 1 << 12;

/// One file of sets, back to back.
#[derive(Debug)]
pub struct SetFile {
    file: File,
    position: u64,
    /// Where each set starts, counted in elements, and one past the end of the last.
    offsets: Vec<u64>,
    /// All its elements, if there was room for them in memory.
    elements: Option<Vec<u64>>,
}

impl SetFile {
    /// The sets of an open file, the first element of which stands at `position`; `offsets` must ascend.
    #[must_use]
    pub const fn new(file: File, position: u64, offsets: Vec<u64>) -> Self {
        Self { file, position, offsets, elements: None }
    }

    /// Reads all elements into memory.
    fn load(&mut self) -> io::Result<()> {
        let (mut bytes, mut elements) = (Vec::new(), Vec::new());
        self.read(0, self.offsets[self.offsets.len() - 1], &mut bytes, &mut elements)?;
        self.elements = Some(elements);
        Ok(())
    }

    fn read(&self, start: u64, end: u64, bytes: &mut Vec<u8>, elements: &mut Vec<u64>) -> io::Result<()> {
        bytes.resize((end - start) as usize * 8, 0);
        self.file.read_exact_at(bytes, self.position + start * 8)?;
        elements.clear();
        elements.extend(bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)));
        Ok(())
    }
}

/// Sets in several files, numbered through.
#[derive(Debug, Default)]
pub struct SetStore {
    files: Vec<SetFile>,
    /// The number of each file's first set.
    firsts: Vec<usize>,
    sets: usize,
    /// Of all sets, or of none if there is no room for them.
    outlines: Vec<Outline>,
}

/// Pairs that are similar enough, column by column.
#[derive(Debug, Default)]
pub struct Similar {
    /// The first number of each pair.
    pub low: Vec<u32>,
    /// The second.
    pub high: Vec<u32>,
    /// How similar they are.
    pub similarity: Vec<f64>,
}

impl SetStore {
    /// Adds the sets of a file behind those already there. If all are `outlined`, pairs that are far apart are told from their
    /// outlines; `loaded` sets are in memory, others are read when they are needed.
    ///
    /// # Errors
    /// If the file can not be read.
    pub fn add(&mut self, mut file: SetFile, outlined: bool, loaded: bool) -> io::Result<()> {
        if outlined || loaded {
            file.load()?;
        }
        if outlined {
            let elements = file.elements.as_deref().unwrap_or_default();
            let sets = file.offsets.windows(2).map(|two| &elements[two[0] as usize..two[1] as usize]);
            self.outlines.extend(sets.map(Outline::of));
        }
        if !loaded {
            file.elements = None;
        }
        self.firsts.push(self.sets);
        self.sets += file.offsets.len() - 1;
        self.files.push(file);
        Ok(())
    }

    /// How many sets there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.sets
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.sets == 0
    }

    fn place(&self, set: usize) -> (&SetFile, usize) {
        let file = self.firsts.partition_point(|&first| first <= set) - 1;
        (&self.files[file], set - self.firsts[file])
    }

    /// How many elements a set has.
    fn size(&self, set: usize) -> usize {
        let (file, at) = self.place(set);
        (file.offsets[at + 1] - file.offsets[at]) as usize
    }

    /// The elements of a set: where they lie in memory, or read into `buffer`.
    fn get<'s>(&'s self, set: usize, bytes: &mut Vec<u8>, buffer: &'s mut Vec<u64>) -> io::Result<&'s [u64]> {
        let (file, at) = self.place(set);
        let (start, end) = (file.offsets[at], file.offsets[at + 1]);
        if let Some(elements) = &file.elements {
            return Ok(&elements[start as usize..end as usize]);
        }
        file.read(start, end, bytes, buffer)?;
        Ok(buffer)
    }

    /// Asks the processor for the elements of a set in memory, so that they are there when it gets to them.
    #[inline(always)]
    fn fetch(&self, set: usize) {
        let (file, at) = self.place(set);
        let Some(elements) = &file.elements else { return };
        let set = &elements[file.offsets[at] as usize..file.offsets[at + 1] as usize];
        #[cfg(target_arch = "x86_64")]
        for line in set.chunks(8).take(FETCHED_LINES) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch does nothing a program could see, and the address is that of an element.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = set;
    }

    /// The pairs `low << 32 | high` whose similarity reaches `floor`, in their order. Number n stands for the set `places[n]`, and
    /// pairs with an equal first number should follow each other.
    ///
    /// # Errors
    /// If a file can not be read.
    ///
    /// # Panics
    /// If a pair has a number without a set.
    pub fn similar(&self, pairs: &[u64], places: &[u32], floor: f64, threads: usize) -> io::Result<Similar> {
        let task = |pairs: &[u64]| self.compare(pairs, places, floor);
        let parts: Vec<io::Result<Similar>> = if threads <= 1 {
            pairs.chunks(TASK_PAIRS).map(task).collect()
        } else {
            pairs.par_chunks(TASK_PAIRS).map(task).collect()
        };
        let mut all = Similar::default();
        for part in parts {
            let part = part?;
            all.low.extend(part.low);
            all.high.extend(part.high);
            all.similarity.extend(part.similarity);
        }
        Ok(all)
    }

    fn compare(&self, pairs: &[u64], places: &[u32], floor: f64) -> io::Result<Similar> {
        #[cfg(target_arch = "x86_64")]
        if crate::simd::available() {
            // SAFETY: the features that the function is compiled for were just seen on this processor.
            return unsafe { self.compare_avx2(pairs, places, floor) };
        }
        self.compare_portable(pairs, places, floor)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn compare_avx2(&self, pairs: &[u64], places: &[u32], floor: f64) -> io::Result<Similar> {
        self.compare_portable(pairs, places, floor)
    }

    #[inline(always)]
    fn compare_portable(&self, pairs: &[u64], places: &[u32], floor: f64) -> io::Result<Similar> {
        let (mut bytes, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
        let mut probe = Probe::default();
        let mut chosen = Vec::with_capacity(AHEAD);
        let mut found = Similar::default();
        for group in pairs.chunk_by(|one, next| one >> 32 == next >> 32) {
            let low = (group[0] >> 32) as usize;
            let first = places[low] as usize;
            let outline = self.outlines.get(first);
            let one = self.get(first, &mut bytes, &mut left)?;
            let probed = group.len() >= LEAST_PROBES && one.len() <= MOST_PROBED;
            if probed {
                probe.load(one);
            }
            for some in group.chunks(AHEAD) {
                chosen.clear();
                chosen.extend(some.iter().map(|&pair| (pair, places[pair as u32 as usize] as usize)));
                chosen.retain(|&(_, set)| match outline.zip(self.outlines.get(set)) {
                    Some((outline, other)) => outline.may_reach(other, floor),
                    None => jaccard(one.len().min(self.size(set)), one.len() + self.size(set)) >= floor,
                });
                for &(_, set) in &chosen {
                    self.fetch(set);
                }
                for &(pair, set) in &chosen {
                    let other = self.get(set, &mut bytes, &mut right)?;
                    let similarity = if probed {
                        probe.similarity_at_least(other, floor)
                    } else {
                        similarity_at_least(one, other, floor)
                    };
                    if let Some(similarity) = similarity {
                        found.low.push(low as u32);
                        found.high.push(pair as u32);
                        found.similarity.push(similarity);
                    }
                }
            }
        }
        Ok(found)
    }
}
