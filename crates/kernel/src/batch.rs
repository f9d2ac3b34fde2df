//! Batches: many documents in, the same work on each, over all cores, in an order that does not show in the result.

use std::ops::Range;

use rayon::prelude::*;

use crate::band::{Banding, NO_KEY};
use crate::error::{Fault, TextError};
use crate::hash::ContentHasher;
use crate::shingle::{Scratch, Shingler};
use crate::sketch::{Scheme, Slot, pack_rows};

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

/// Where band keys go. Each field has a place per document but `keys`, which has one row of places per band.
pub struct KeyRows<'r> {
    /// The keys, band by band.
    pub keys: Vec<&'r mut [u64]>,
    /// Two words per document: the hash of its content.
    pub contents: &'r mut [u64],
    /// What became of each document.
    pub states: &'r mut [u8],
    /// The low 16 bits of every slot, little-endian, if they are wanted.
    pub packed: Option<&'r mut [u8]>,
}

/// The state of a document in [`KeyRows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has elements and keys.
    Filled = 0,
    /// It has no elements.
    Empty = 1,
    /// It could not be read.
    Faulty = 2,
}

impl KeyRows<'_> {
    /// The rows of the first documents, taken off these; none if there are not as many.
    pub(crate) fn take(&mut self, documents: usize, row_bytes: usize) -> Option<Self> {
        Some(Self {
            keys: self.keys.iter_mut().map(|row| row.split_off_mut(..documents)).collect::<Option<_>>()?,
            contents: self.contents.split_off_mut(..2 * documents)?,
            states: self.states.split_off_mut(..documents)?,
            packed: match &mut self.packed {
                Some(packed) => Some(packed.split_off_mut(..documents * row_bytes)?),
                None => None,
            },
        })
    }
}

/// Writes the band keys and the content hash of every text, without keeping its shingles or its signature.
///
/// Texts that can not be read are returned, in order, and marked [`State::Faulty`].
///
/// # Panics
/// If there are fewer places than texts, or fewer slots than the bands need.
pub fn band_texts<C, O>(
    scheme: &C,
    shingler: &Shingler,
    banding: &Banding,
    texts: Texts<'_, O>,
    rows: KeyRows<'_>,
    threads: usize,
) -> Vec<TextError>
where
    C: Scheme,
    O: Copy + TryInto<usize> + Sync,
{
    let hasher = shingler.content_hasher();
    band(scheme, banding, texts.tasks(), rows, threads, |document, scratch| {
        let text = texts.get(document);
        shingler.elements(text, scratch)?;
        Ok(shingler.content(text, &hasher, scratch))
    })
}

/// Writes the band keys and the content hash of every set.
///
/// # Panics
/// If there are fewer places than sets, or fewer slots than the bands need.
pub fn band_sets<C: Scheme>(
    scheme: &C,
    hasher: &ContentHasher,
    banding: &Banding,
    sets: Sets<'_>,
    rows: KeyRows<'_>,
    threads: usize,
) {
    band(scheme, banding, sets.tasks(), rows, threads, |document, scratch| {
        scratch.shingles.clear();
        scratch.shingles.extend_from_slice(sets.get(document));
        Ok(hasher.hash(sets.get(document)))
    });
}

/// Writes the band keys of signatures that were made before: a row of slots and a row of keys per document.
///
/// A signature of empty slots is one of no elements and has no keys.
///
/// # Panics
/// If there are fewer rows of keys than signatures.
pub fn band_signatures<S: Slot>(banding: &Banding, signatures: &[S], keys: &mut [u64]) {
    let rows = signatures.chunks_exact(banding.slots());
    assert!(rows.len() * banding.bands() <= keys.len(), "there is a row for every signature");
    for (signature, keys) in rows.zip(keys.chunks_exact_mut(banding.bands())) {
        if signature.iter().all(|&slot| slot == S::EMPTY) {
            keys.fill(NO_KEY);
        } else {
            keys.iter_mut().zip(banding.keys(signature)).for_each(|(place, key)| *place = key);
        }
    }
}

fn band<C: Scheme>(
    scheme: &C,
    banding: &Banding,
    tasks: Vec<Range<usize>>,
    mut rows: KeyRows<'_>,
    threads: usize,
    read: impl Fn(usize, &mut Scratch) -> Result<[u64; 2], Fault> + Sync,
) -> Vec<TextError> {
    assert_eq!(scheme.slots(), banding.slots(), "the bands use every slot");
    let row_bytes = 2 * scheme.slots();
    let mut take = |count| rows.take(count, row_bytes).expect("there is a place for every document");
    let work = tasks.into_iter().map(|documents| (take(documents.len()), documents)).collect();
    let results = run(threads, work, |scratch, (mut rows, documents): (KeyRows<'_>, Range<usize>)| {
        let mut signature = vec![C::Slot::EMPTY; scheme.slots()];
        let mut faults = Vec::new();
        for (i, document) in documents.enumerate() {
            let (state, content) = match read(document, scratch) {
                Ok(content) if scratch.shingles.is_empty() => (State::Empty, content),
                Ok(content) => (State::Filled, content),
                Err(fault) => {
                    faults.push(TextError { document, fault });
                    (State::Faulty, [0, 0])
                }
            };
            rows.states[i] = state as u8;
            rows.contents[2 * i..2 * i + 2].copy_from_slice(&content);
            if state != State::Filled {
                rows.keys.iter_mut().for_each(|row| row[i] = NO_KEY);
                continue;
            }
            scheme.sketch(&mut scratch.shingles, &mut signature);
            rows.keys.iter_mut().zip(banding.keys(&signature)).for_each(|(row, key)| row[i] = key);
            if let Some(packed) = &mut rows.packed {
                pack_rows(&signature, signature.len(), 16, &mut packed[i * row_bytes..(i + 1) * row_bytes]);
            }
        }
        Ok(faults)
    });
    results.into_iter().flatten().flatten().collect()
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
