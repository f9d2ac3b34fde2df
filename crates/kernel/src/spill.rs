//! Spill: sets that do not fit memory, read back from files by number.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rayon::prelude::*;

use crate::verify::similarity_at_least;

/// Pairs per task: enough that a task's own cost does not show.
const TASK_PAIRS: usize = 1024;

/// One file of sets, back to back.
#[derive(Debug)]
pub struct SetFile {
    /// The open file.
    pub file: File,
    /// Where its first element stands.
    pub position: u64,
    /// Where each of its sets starts, counted in elements, and one past the end of the last.
    pub offsets: Vec<u64>,
    /// All its elements, if there was room for them in memory.
    pub elements: Option<Vec<u64>>,
}

impl SetFile {
    /// Reads all elements into memory.
    ///
    /// # Errors
    /// If the file can not be read.
    pub fn load(&mut self) -> io::Result<()> {
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
}

/// One worker's buffers.
#[derive(Default)]
struct Buffers {
    bytes: Vec<u8>,
    left: Vec<u64>,
    right: Vec<u64>,
}

impl SetStore {
    /// Adds the sets of a file behind those already there.
    pub fn add(&mut self, file: SetFile) {
        self.firsts.push(self.sets);
        self.sets += file.offsets.len() - 1;
        self.files.push(file);
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
    fn size(&self, set: usize) -> u64 {
        let (file, at) = self.place(set);
        file.offsets[at + 1] - file.offsets[at]
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

    /// The Jaccard similarity of every pair of sets that reaches `threshold`, NaN for those that do not.
    ///
    /// # Errors
    /// If a file can not be read.
    pub fn similarities(&self, left: &[u32], right: &[u32], threshold: f64, threads: usize) -> io::Result<Vec<f64>> {
        let task = |(left, right): (&[u32], &[u32])| self.compare(left, right, threshold);
        let parts: Vec<io::Result<Vec<f64>>> = if threads <= 1 {
            left.chunks(TASK_PAIRS).zip(right.chunks(TASK_PAIRS)).map(task).collect()
        } else {
            left.par_chunks(TASK_PAIRS).zip(right.par_chunks(TASK_PAIRS)).map(task).collect()
        };
        Ok(parts.into_iter().collect::<io::Result<Vec<_>>>()?.concat())
    }

    fn compare(&self, left: &[u32], right: &[u32], threshold: f64) -> io::Result<Vec<f64>> {
        let mut buffers = Buffers::default();
        let mut similarities = Vec::with_capacity(left.len());
        for (&l, &r) in left.iter().zip(right) {
            let (small, large) = {
                let (l, r) = (self.size(l as usize), self.size(r as usize));
                (l.min(r), l.max(r))
            };
            // No two sets of these sizes can be more alike.
            if small == 0 || (small as f64) / (large as f64) < threshold {
                similarities.push(if small == 0 && threshold <= 0.0 { 0.0 } else { f64::NAN });
                continue;
            }
            let one = self.get(l as usize, &mut buffers.bytes, &mut buffers.left)?;
            let other = self.get(r as usize, &mut buffers.bytes, &mut buffers.right)?;
            similarities.push(similarity_at_least(one, other, threshold).unwrap_or(f64::NAN));
        }
        Ok(similarities)
    }
}
