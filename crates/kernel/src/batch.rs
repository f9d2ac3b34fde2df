//! Batches: many documents in, the same work on each, over all cores, in an order that does not show in the result.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::{Fault, TextError};
use crate::shingle::{Scratch, Shingler};
use crate::sketch::Scheme;

/// Input per task: small enough to balance the cores, large enough that a task's own cost does not show.
const TASK_BYTES: usize = 1 << 18;

/// Lists of bytes or of elements, back to back, as Arrow lays them out: list `i` is `values[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Copy)]
pub struct Lists<'l, T, O> {
    offsets: &'l [O],
    values: &'l [T],
}

impl<'l, T, O: Copy + TryInto<usize>> Lists<'l, T, O> {
    /// The lists, if the offsets ascend and stay inside the values.
    #[must_use]
    pub fn new(offsets: &'l [O], values: &'l [T]) -> Option<Self> {
        let lists = Self { offsets, values };
        let inside = |at: usize| offsets[at].try_into().ok().filter(|&offset| offset <= values.len());
        let mut previous = 0;
        for at in 0..offsets.len() {
            previous = inside(at).filter(|&offset| offset >= previous)?;
        }
        (!offsets.is_empty()).then_some(lists)
    }

    /// How many lists there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn offset(&self, i: usize) -> usize {
        self.offsets[i].try_into().unwrap_or(0)
    }

    /// List `i`.
    #[must_use]
    pub fn get(&self, i: usize) -> &'l [T] {
        &self.values[self.offset(i)..self.offset(i + 1)]
    }

    /// Cuts the lists into ranges of about equal size.
    fn tasks(&self) -> Vec<Range<usize>> {
        let per_task = TASK_BYTES / size_of::<T>();
        let mut tasks = Vec::new();
        let mut start = 0;
        while start < self.len() {
            let limit = self.offset(start) + per_task;
            let more = self.offsets[start + 1..].partition_point(|&o| o.try_into().unwrap_or(0) <= limit);
            let end = (start + more).clamp(start + 1, (start + per_task).min(self.len()));
            tasks.push(start..end);
            start = end;
        }
        tasks
    }
}

/// A batch of texts.
pub type Texts<'l, O> = Lists<'l, u8, O>;
/// A batch of sets, each ascending and without repetition.
pub type Sets<'l> = Lists<'l, u64, i64>;

/// Sets back to back, ready for Arrow.
#[derive(Debug, Default)]
pub struct OwnedSets {
    /// Where each set starts, and one past the end of the last.
    pub offsets: Vec<i64>,
    /// The elements of all sets.
    pub elements: Vec<u64>,
}

/// Where signatures go: a row of slots per document, and its number of distinct elements if that is wanted.
pub struct Rows<'r, S> {
    /// Rows of slots, whatever they hold now.
    pub slots: &'r mut [S],
    /// A place per document, or none.
    pub sizes: Option<&'r mut [u64]>,
}

/// The shingle set of every text.
///
/// # Errors
/// The first text, in order, that is not text or too long.
pub fn shingle_texts<O>(shingler: &Shingler, texts: Texts<'_, O>, threads: usize) -> Result<OwnedSets, TextError>
where
    O: Copy + TryInto<usize> + Sync,
{
    let parts = run(threads, texts.tasks(), |scratch, documents| {
        let mut part = OwnedSets::default();
        for document in documents {
            shingler.distinct(texts.get(document), scratch).map_err(|fault| TextError { document, fault })?;
            part.elements.extend_from_slice(&scratch.shingles);
            part.offsets.push(part.elements.len() as i64);
        }
        Ok(part)
    })?;
    Ok(join(&parts))
}

fn join(parts: &[OwnedSets]) -> OwnedSets {
    let mut joined = OwnedSets { offsets: vec![0], elements: Vec::new() };
    joined.elements.reserve_exact(parts.iter().map(|part| part.elements.len()).sum());
    for part in parts {
        let base = joined.elements.len() as i64;
        joined.offsets.extend(part.offsets.iter().map(|offset| base + offset));
        joined.elements.extend_from_slice(&part.elements);
    }
    joined
}

/// Writes the signature of every text to its row, without keeping its shingles.
///
/// # Errors
/// The first text, in order, that is not text or too long.
///
/// # Panics
/// If there are fewer rows than texts.
pub fn sketch_texts<C, O>(
    scheme: &C,
    shingler: &Shingler,
    texts: Texts<'_, O>,
    rows: Rows<'_, C::Slot>,
    threads: usize,
) -> Result<(), TextError>
where
    C: Scheme,
    O: Copy + TryInto<usize> + Sync,
{
    let count = rows.sizes.is_some();
    sketch(scheme, texts.tasks(), rows, threads, |document, scratch| {
        if count {
            shingler.distinct(texts.get(document), scratch)
        } else {
            shingler.elements(texts.get(document), scratch)
        }
    })
}

/// Writes the signature of every set to its row.
///
/// # Errors
/// None; the type is that of [`sketch_texts`].
///
/// # Panics
/// If there are fewer rows than sets.
pub fn sketch_sets<C: Scheme>(
    scheme: &C,
    sets: Sets<'_>,
    rows: Rows<'_, C::Slot>,
    threads: usize,
) -> Result<(), TextError> {
    sketch(scheme, sets.tasks(), rows, threads, |document, scratch| {
        scratch.shingles.clear();
        scratch.shingles.extend_from_slice(sets.get(document));
        Ok(())
    })
}

fn sketch<C: Scheme>(
    scheme: &C,
    tasks: Vec<Range<usize>>,
    rows: Rows<'_, C::Slot>,
    threads: usize,
    elements: impl Fn(usize, &mut Scratch) -> Result<(), Fault> + Sync,
) -> Result<(), TextError> {
    let width = scheme.slots();
    let Rows { mut slots, mut sizes } = rows;
    let mut work = Vec::with_capacity(tasks.len());
    for documents in tasks {
        let slots = slots.split_off_mut(..documents.len() * width).expect("there is a row for every document");
        let sizes = sizes.as_mut().and_then(|sizes| sizes.split_off_mut(..documents.len()));
        work.push((documents, slots, sizes));
    }
    run(threads, work, |scratch, (documents, slots, mut sizes)| {
        for (i, (document, row)) in documents.zip(slots.chunks_exact_mut(width)).enumerate() {
            elements(document, scratch).map_err(|fault| TextError { document, fault })?;
            if let Some(sizes) = &mut sizes {
                sizes[i] = scratch.shingles.len() as u64;
            }
            scheme.sketch(&mut scratch.shingles, row);
        }
        Ok(())
    })?;
    Ok(())
}

/// Does every task, over `threads` threads; results in the order of the tasks, or the first task's error.
fn run<T: Send, R: Send>(
    threads: usize,
    tasks: Vec<T>,
    work: impl Fn(&mut Scratch, T) -> Result<R, TextError> + Sync + Send,
) -> Result<Vec<R>, TextError> {
    if threads <= 1 || tasks.len() <= 1 {
        let mut scratch = Scratch::default();
        return tasks.into_iter().map(|task| work(&mut scratch, task)).collect();
    }
    let results: Vec<_> =
        tasks.into_par_iter().with_max_len(1).map_init(Scratch::default, |scratch, task| work(scratch, task)).collect();
    results.into_iter().collect()
}
