//! Sets in files, and the comparison of pairs of them.
//!
//! This is the last step of verification: every candidate pair is compared exactly. Sets stay in memory if they fit,
//! otherwise they are read on demand. Three measures keep the cost low: a bitmap per set rules out most pairs without
//! reading the sets, a probe table replaces the merge of two sets when one set has several candidates, and sets are
//! prefetched into the processor's cache before they are compared.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rayon::prelude::*;

use crate::positioned::read_exact_at;
use crate::verify::{Measure, ProbeTable, SetBitmap};
use crate::weights::{Weigh as _, WeightTable};

/// Pairs per task; enough to make the overhead of a task negligible.
const TASK_PAIRS: usize = 1024;
/// Comparisons of one set for which a probe table pays: building it costs as much as merging two sets once.
const MIN_PROBES: usize = 2;
/// Pairs processed together: the sets of all are prefetched while the first is compared.
const PREFETCH_PAIRS: usize = 16;
/// Cache lines of eight elements that are prefetched; the processor fetches the following ones by itself.
const PREFETCH_LINES: usize = 8;
/// Largest set with a probe table; the table of a larger one does not fit the processor's cache.
const MAX_PROBED_ELEMENTS: usize = 1 << 12;

/// Largest set that is read as a whole if its file is not in memory: 8 MiB. Larger ones are compared in blocks.
const MAX_READ_ELEMENTS: usize = 1 << 20;
/// Elements that are read at a time.
const BLOCK_ELEMENTS: u64 = 1 << 16;

/// File of consecutive sets.
#[derive(Debug)]
pub struct SetFile {
    file: File,
    position: u64,
    /// Start of each set, counted in elements, and the end of the last.
    offsets: Vec<u64>,
    /// All elements, if they fit in memory.
    elements: Option<Vec<u64>>,
}

impl SetFile {
    /// Create the reader of an open file whose first element is at byte `position`; `offsets` must ascend.
    #[must_use]
    pub const fn new(file: File, position: u64, offsets: Vec<u64>) -> Self {
        Self { file, position, offsets, elements: None }
    }

    /// Read all elements into memory.
    fn load(&mut self) -> io::Result<()> {
        let (mut bytes, mut elements) = (Vec::new(), Vec::new());
        self.read(0, self.offsets[self.offsets.len() - 1], &mut bytes, &mut elements)?;
        self.elements = Some(elements);
        Ok(())
    }

    fn read(&self, start: u64, end: u64, bytes: &mut Vec<u8>, elements: &mut Vec<u64>) -> io::Result<()> {
        elements.clear();
        elements.reserve_exact((end - start) as usize);
        for block in (start..end).step_by(BLOCK_ELEMENTS as usize) {
            bytes.resize(BLOCK_ELEMENTS.min(end - block) as usize * 8, 0);
            read_exact_at(&self.file, bytes, self.position + block * 8)?;
            elements.extend(bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)));
        }
        Ok(())
    }
}

/// Sets of several files, numbered consecutively.
#[derive(Debug, Default)]
pub struct SetStore {
    files: Vec<SetFile>,
    /// Number of each file's first set.
    firsts: Vec<usize>,
    sets: usize,
    measure: Measure,
    /// Weights of elements; none if all weigh the same.
    weights: Option<Arc<WeightTable>>,
    /// Bitmaps of all sets, or of none if they do not fit in memory.
    bitmaps: Vec<SetBitmap>,
}

/// Elements of one set, read block by block.
struct SetBlocks<'f> {
    file: &'f SetFile,
    /// Range of the elements that are not read yet.
    next: u64,
    end: u64,
    bytes: Vec<u8>,
    elements: Vec<u64>,
    /// Index of the first element in `elements` that is not consumed.
    at: usize,
}

impl<'f> SetBlocks<'f> {
    const fn new(file: &'f SetFile, start: u64, end: u64) -> Self {
        Self { file, next: start, end, bytes: Vec::new(), elements: Vec::new(), at: 0 }
    }

    /// Return the smallest element that is not consumed; none at the end of the set.
    fn first(&mut self) -> io::Result<Option<u64>> {
        if self.at == self.elements.len() && self.next < self.end {
            let end = self.end.min(self.next + BLOCK_ELEMENTS);
            self.file.read(self.next, end, &mut self.bytes, &mut self.elements)?;
            (self.next, self.at) = (end, 0);
        }
        Ok(self.elements.get(self.at).copied())
    }
}

/// Similar pairs in columns.
#[derive(Debug, Default)]
pub struct SimilarPairs {
    /// The first number of each pair.
    pub low: Vec<u32>,
    /// The second number of each pair.
    pub high: Vec<u32>,
    /// Similarities: Jaccard, or containment.
    pub similarity: Vec<f64>,
}

impl SimilarPairs {
    /// Append a pair.
    #[inline(always)]
    pub fn push(&mut self, low: u32, high: u32, similarity: f64) {
        self.low.push(low);
        self.high.push(high);
        self.similarity.push(similarity);
    }

    /// Return the pairs of two ascending collections that have no pair in common, ascending.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        let (mut merged, mut j) = (Self::default(), 0);
        for i in 0..self.low.len() {
            while j < other.low.len() && other.pair(j) < self.pair(i) {
                merged.push(other.low[j], other.high[j], other.similarity[j]);
                j += 1;
            }
            merged.push(self.low[i], self.high[i], self.similarity[i]);
        }
        for j in j..other.low.len() {
            merged.push(other.low[j], other.high[j], other.similarity[j]);
        }
        merged
    }

    fn pair(&self, index: usize) -> (u32, u32) {
        (self.low[index], self.high[index])
    }

    /// Append all pairs of another collection.
    pub fn append(&mut self, mut other: Self) {
        self.low.append(&mut other.low);
        self.high.append(&mut other.high);
        self.similarity.append(&mut other.similarity);
    }
}

/// Buffers of a task that compares sets, kept from one set to the next.
#[derive(Debug, Default)]
pub struct Buffers {
    bytes: Vec<u8>,
    left: Vec<u64>,
    right: Vec<u64>,
    probe: ProbeTable,
    /// Partners that the bitmaps do not rule out, with their sets.
    remaining: Vec<(u32, usize)>,
}

impl SetStore {
    /// Create a store without sets, which are compared by `measure`.
    #[must_use]
    pub fn new(measure: Measure) -> Self {
        Self { measure, ..Self::default() }
    }

    /// Create a store without sets, which are compared by their weighted Jaccard similarity.
    #[must_use]
    pub fn weighted(weights: Arc<WeightTable>) -> Self {
        Self { weights: Some(weights), ..Self::default() }
    }

    /// Append the sets of a file.
    ///
    /// Sets are held in memory if `loaded`, otherwise read on demand. If the sets of all files have bitmaps, most
    /// dissimilar pairs are ruled out without reading their sets.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn add(&mut self, mut file: SetFile, with_bitmaps: bool, loaded: bool) -> io::Result<()> {
        if with_bitmaps || loaded {
            file.load()?;
        }
        if with_bitmaps {
            let elements = file.elements.as_deref().unwrap_or_default();
            let sets = file.offsets.windows(2).map(|range| &elements[range[0] as usize..range[1] as usize]);
            match &self.weights {
                None => self.bitmaps.extend(sets.map(SetBitmap::of)),
                Some(weights) => self.bitmaps.extend(sets.map(|set| SetBitmap::of_weighted(set, &**weights))),
            }
        }
        if !loaded {
            file.elements = None;
        }
        self.firsts.push(self.sets);
        self.sets += file.offsets.len() - 1;
        self.files.push(file);
        Ok(())
    }

    /// Return the number of sets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.sets
    }

    /// Return whether there are no sets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.sets == 0
    }

    /// Return the file of a set and its index in the file.
    fn locate(&self, set: usize) -> (&SetFile, usize) {
        let file = self.firsts.partition_point(|&first| first <= set) - 1;
        (&self.files[file], set - self.firsts[file])
    }

    /// Return the number of elements of a set.
    fn size(&self, set: usize) -> usize {
        let (file, index) = self.locate(set);
        (file.offsets[index + 1] - file.offsets[index]) as usize
    }

    /// Return the elements of a set, from memory or read into `buffer`.
    fn get<'s>(&'s self, set: usize, bytes: &mut Vec<u8>, buffer: &'s mut Vec<u64>) -> io::Result<&'s [u64]> {
        let (file, index) = self.locate(set);
        let (start, end) = (file.offsets[index], file.offsets[index + 1]);
        if let Some(elements) = &file.elements {
            return Ok(&elements[start as usize..end as usize]);
        }
        file.read(start, end, bytes, buffer)?;
        Ok(buffer)
    }

    /// Return whether a set is so large that it is read in blocks.
    fn is_read_in_blocks(&self, set: usize) -> bool {
        self.size(set) > MAX_READ_ELEMENTS && self.locate(set).0.elements.is_none()
    }

    fn blocks(&self, set: usize) -> SetBlocks<'_> {
        let (file, index) = self.locate(set);
        SetBlocks::new(file, file.offsets[index], file.offsets[index + 1])
    }

    /// Return the similarity of two sets if it is at least `floor`, without holding either of them.
    fn similarity_in_blocks(&self, left: usize, right: usize, floor: f64) -> io::Result<Option<f64>> {
        let (mut left_blocks, mut right_blocks) = (self.blocks(left), self.blocks(right));
        let key = |element| self.weights.as_ref().map_or(element, |weights| weights.key(element));
        let mut shared = 0;
        while let (Some(low), Some(high)) = (left_blocks.first()?, right_blocks.first()?) {
            let order = key(low).cmp(&key(high));
            left_blocks.at += usize::from(order.is_le());
            right_blocks.at += usize::from(order.is_ge());
            if order.is_eq() {
                shared += self.weights.as_ref().map_or(1, |weights| weights.shared(low, high) as usize);
            }
        }
        let similarity = self.measure.of(shared, self.weight(left)?, self.weight(right)?);
        Ok((similarity >= floor).then_some(similarity))
    }

    /// Return the weight of a set; without weights, its number of elements.
    fn weight(&self, set: usize) -> io::Result<usize> {
        match (&self.weights, self.bitmaps.get(set)) {
            (None, _) => Ok(self.size(set)),
            (Some(_), Some(bitmap)) => Ok(bitmap.size()),
            (Some(weights), None) => {
                let (mut blocks, mut total) = (self.blocks(set), 0);
                while blocks.first()?.is_some() {
                    total += weights.total(&blocks.elements[blocks.at..]) as usize;
                    blocks.at = blocks.elements.len();
                }
                Ok(total)
            }
        }
    }

    /// Prefetch the elements of a set in memory into the processor's cache.
    #[inline(always)]
    fn prefetch(&self, set: usize) {
        let (file, index) = self.locate(set);
        let Some(elements) = &file.elements else { return };
        let set = &elements[file.offsets[index] as usize..file.offsets[index + 1] as usize];
        #[cfg(target_arch = "x86_64")]
        for line in set.chunks(8).take(PREFETCH_LINES) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch has no observable effect, and the address is that of an element.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = set;
    }

    /// Return the pairs `low << 32 | high` whose similarity is at least `floor`, in the order given.
    ///
    /// Number n stands for set `set_numbers[n]`. Pairs with an equal first number should be adjacent, so that they
    /// share one probe table.
    ///
    /// # Errors
    /// If a file cannot be read.
    ///
    /// # Panics
    /// If a number has no set.
    pub fn similar(&self, pairs: &[u64], set_numbers: &[u32], floor: f64, threads: usize) -> io::Result<SimilarPairs> {
        let task = |pairs: &[u64]| self.compare(pairs, set_numbers, floor);
        let parts: Vec<io::Result<SimilarPairs>> = if threads <= 1 {
            pairs.chunks(TASK_PAIRS).map(task).collect()
        } else {
            pairs.par_chunks(TASK_PAIRS).map(task).collect()
        };
        let mut all = SimilarPairs::default();
        for part in parts {
            all.append(part?);
        }
        Ok(all)
    }

    fn compare(&self, pairs: &[u64], set_numbers: &[u32], floor: f64) -> io::Result<SimilarPairs> {
        let (mut buffers, mut partners, mut found) = (Buffers::default(), Vec::new(), SimilarPairs::default());
        for group in pairs.chunk_by(|pair, next| pair >> 32 == next >> 32) {
            partners.clear();
            partners.extend(group.iter().map(|&pair| pair as u32));
            self.compare_with_all((group[0] >> 32) as u32, &partners, set_numbers, floor, &mut buffers, &mut found)?;
        }
        Ok(found)
    }

    /// Append the pairs of `low` with its `partners` whose similarity is at least `floor`, in their order.
    ///
    /// Number n stands for set `set_numbers[n]`.
    ///
    /// # Errors
    /// If a file cannot be read.
    ///
    /// # Panics
    /// If a number has no set.
    pub fn compare_with_all(
        &self,
        low: u32,
        partners: &[u32],
        set_numbers: &[u32],
        floor: f64,
        buffers: &mut Buffers,
        found: &mut SimilarPairs,
    ) -> io::Result<()> {
        #[cfg(target_arch = "x86_64")]
        if crate::simd::available() {
            // SAFETY: the processor has the features that the function is compiled for.
            return unsafe { self.compare_avx2(low, partners, set_numbers, floor, buffers, found) };
        }
        self.compare_portable(low, partners, set_numbers, floor, buffers, found)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn compare_avx2(
        &self,
        low: u32,
        partners: &[u32],
        set_numbers: &[u32],
        floor: f64,
        buffers: &mut Buffers,
        found: &mut SimilarPairs,
    ) -> io::Result<()> {
        self.compare_portable(low, partners, set_numbers, floor, buffers, found)
    }

    #[inline(always)]
    fn compare_portable(
        &self,
        low: u32,
        partners: &[u32],
        set_numbers: &[u32],
        floor: f64,
        buffers: &mut Buffers,
        found: &mut SimilarPairs,
    ) -> io::Result<()> {
        if let Some(weights) = &self.weights {
            return self.compare_weighted(weights, low, partners, set_numbers, floor, buffers, found);
        }
        let Buffers { bytes, left, right, probe, remaining } = buffers;
        let first = set_numbers[low as usize] as usize;
        let bitmap = self.bitmaps.get(first);
        let (size, in_blocks) = (self.size(first), self.is_read_in_blocks(first));
        let left_set = if in_blocks { &[] } else { self.get(first, bytes, left)? };
        let probed = partners.len() >= MIN_PROBES && size <= MAX_PROBED_ELEMENTS;
        if probed {
            probe.load(left_set);
        }
        for batch in partners.chunks(PREFETCH_PAIRS) {
            remaining.clear();
            remaining.extend(batch.iter().map(|&high| (high, set_numbers[high as usize] as usize)));
            remaining.retain(|&(_, set)| match bitmap.zip(self.bitmaps.get(set)) {
                Some((bitmap, right_bitmap)) => bitmap.may_reach(right_bitmap, self.measure, floor),
                None => self.measure.of(size.min(self.size(set)), size, self.size(set)) >= floor,
            });
            for &(_, set) in remaining.iter() {
                self.prefetch(set);
            }
            for &(high, set) in remaining.iter() {
                let similarity = if in_blocks || self.is_read_in_blocks(set) {
                    self.similarity_in_blocks(first, set, floor)?
                } else {
                    let right_set = self.get(set, bytes, right)?;
                    if probed {
                        probe.measure_at_least(right_set, self.measure, floor)
                    } else {
                        self.measure.at_least(left_set, right_set, floor)
                    }
                };
                if let Some(similarity) = similarity {
                    found.push(low, high, similarity);
                }
            }
        }
        Ok(())
    }
}

impl SetStore {
    /// Append the pairs of `low` with its `partners` whose weighted similarity is at least `floor`, in their order.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "as in compare_with_all, with the weights")]
    fn compare_weighted(
        &self,
        weights: &WeightTable,
        low: u32,
        partners: &[u32],
        set_numbers: &[u32],
        floor: f64,
        buffers: &mut Buffers,
        found: &mut SimilarPairs,
    ) -> io::Result<()> {
        let Buffers { bytes, left, right, probe, remaining } = buffers;
        let first = set_numbers[low as usize] as usize;
        let (bitmap, total) = (self.bitmaps.get(first), self.weight(first)?);
        let probed = !self.is_read_in_blocks(first);
        let mut loaded = false;
        for batch in partners.chunks(PREFETCH_PAIRS) {
            remaining.clear();
            remaining.extend(batch.iter().map(|&high| (high, set_numbers[high as usize] as usize)));
            remaining.retain(|&(_, set)| {
                bitmap.zip(self.bitmaps.get(set)).is_none_or(|(bitmap, other)| bitmap.may_reach_weighted(other, floor))
            });
            if probed && !loaded && !remaining.is_empty() {
                probe.load_weighted(self.get(first, bytes, left)?, weights);
                loaded = true;
            }
            for &(_, set) in remaining.iter() {
                self.prefetch(set);
            }
            for &(high, set) in remaining.iter() {
                let similarity = if probed && !self.is_read_in_blocks(set) {
                    let other_total = self.weight(set)?;
                    probe.weighted_at_least((self.get(set, bytes, right)?, weights), total, other_total, floor)
                } else {
                    self.similarity_in_blocks(first, set, floor)?
                };
                if let Some(similarity) = similarity {
                    found.push(low, high, similarity);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_sets_compare_equally_in_blocks_and_in_memory() {
        let large = MAX_READ_ELEMENTS as u64 + 100;
        let sets = [(0..large).collect(), (50_000..large + 50_000).map(|i| i * 2).collect(), (10..5000).collect()];
        let sets: [Vec<u64>; 3] = sets;
        let path = std::env::temp_dir().join(format!("minwise-sets-{}", std::process::id()));
        std::fs::write(&path, sets.iter().flatten().flat_map(|element| element.to_le_bytes()).collect::<Vec<_>>())
            .unwrap();
        let ends = sets.iter().scan(0, |end, set| {
            *end += set.len() as u64;
            Some(*end)
        });
        let offsets: Vec<u64> = [0].into_iter().chain(ends).collect();
        let pairs = [1, 2, 1 << 32 | 2];
        let found = [true, false].map(|loaded| {
            let mut store = SetStore::default();
            store.add(SetFile::new(File::open(&path).unwrap(), 0, offsets.clone()), false, loaded).unwrap();
            let found = store.similar(&pairs, &[0, 1, 2], 0.0, 1).unwrap();
            (found.low, found.high, found.similarity)
        });
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found[0], found[1]);
        assert_eq!(found[0].0.len(), 3);
    }
}
