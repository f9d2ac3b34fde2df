//! Processing of batches of documents on several threads.
//!
//! A batch is cut into tasks of about equal size. Results are in the order of the documents and do not depend on the
//! number of threads.

use std::mem::{swap, take};
use std::ops::Range;

use rayon::prelude::*;

use crate::band::{Banding, NO_KEY};
use crate::error::{MAX_ELEMENTS, TextError, TextFault};
use crate::hash::ContentHasher;
use crate::shingle::{Scratch, Shingler, is_long};
use crate::sketch::{Scheme, Slot, pack_rows};

/// Input bytes per task: small enough to balance the cores, large enough to make the overhead of a task negligible.
const TASK_BYTES: usize = 1 << 18;
/// Elements of a set above which its memory is moved, not copied: 8 MiB.
const MOVED_ELEMENTS: usize = 1 << 20;

/// Lists of bytes or elements in the layout of Arrow: list `i` is `values[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Copy)]
pub struct Lists<'l, T, O> {
    offsets: &'l [O],
    values: &'l [T],
}

impl<'l, T, O: Copy + TryInto<usize>> Lists<'l, T, O> {
    /// Create the lists; none if the offsets do not ascend or exceed the values.
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

    /// Return the number of lists.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Return whether there are no lists.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn offset(&self, i: usize) -> usize {
        self.offsets[i].try_into().unwrap_or(0)
    }

    /// Return the number of values of all lists.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.offset(self.len()) - self.offset(0)
    }

    /// Return list `i`.
    #[must_use]
    pub fn get(&self, i: usize) -> &'l [T] {
        &self.values[self.offset(i)..self.offset(i + 1)]
    }

    /// Cut the lists into ranges of about equal size.
    pub(crate) fn tasks(&self) -> Vec<Range<usize>> {
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

/// Batch of texts.
pub type Texts<'l, O> = Lists<'l, u8, O>;
/// Batch of sets, each ascending and without repetitions.
pub type Sets<'l> = Lists<'l, u64, i64>;

/// Sets that own their memory, in the layout of Arrow.
#[derive(Debug, Default)]
pub struct OwnedSets {
    /// Start of each set, and the end of the last.
    pub offsets: Vec<i64>,
    /// Elements of all sets.
    pub elements: Vec<u64>,
}

/// Output of sketching: a row of slots per document, and optionally its number of distinct elements.
pub struct Rows<'r, S> {
    /// Rows of slots; the previous content is ignored.
    pub slots: &'r mut [S],
    /// Number of distinct elements of each document, if requested.
    pub sizes: Option<&'r mut [u64]>,
}

/// Return the shingle set of every text.
///
/// # Errors
/// The first text, in order, that is not UTF-8 or too long.
pub fn shingle_texts<O>(shingler: &Shingler, texts: Texts<'_, O>, threads: usize) -> Result<OwnedSets, TextError>
where
    O: Copy + TryInto<usize> + Sync,
{
    let parts = run_tasks(threads, texts.tasks(), |scratch, documents| {
        let mut part = OwnedSets::default();
        for document in documents {
            shingler.distinct(texts.get(document), scratch).map_err(|fault| TextError { document, fault })?;
            part.append(&mut scratch.shingles);
            part.offsets.push(part.elements.len() as i64);
        }
        Ok(part)
    })?;
    Ok(concatenate(parts))
}

impl OwnedSets {
    /// Append elements; those of a long document are moved, because a copy of them would take as much memory again.
    fn append(&mut self, elements: &mut Vec<u64>) {
        if self.elements.is_empty() && elements.len() > MOVED_ELEMENTS {
            swap(&mut self.elements, elements);
        } else {
            self.elements.extend_from_slice(elements);
        }
    }
}

fn concatenate(mut parts: Vec<OwnedSets>) -> OwnedSets {
    let mut all = OwnedSets { offsets: vec![0], elements: Vec::new() };
    if parts.len() > 1 {
        all.elements.reserve_exact(parts.iter().map(|part| part.elements.len()).sum());
    }
    for part in &mut parts {
        let base = all.elements.len() as i64;
        all.offsets.extend(part.offsets.iter().map(|offset| base + offset));
        all.append(&mut take(&mut part.elements));
    }
    all
}

/// Write the signature of every text to its row, without storing its shingles.
///
/// # Errors
/// The first text, in order, that is not UTF-8 or too long.
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
    let hasher = shingler.content_hasher();
    sketch(scheme, texts.tasks(), rows, threads, |document, scratch, row| {
        let text = texts.get(document);
        if count {
            shingler.distinct(text, scratch)?;
        } else if is_long(text) {
            shingler.sketch_pieces(text, scheme, scratch, row, &mut hasher.start())?;
            return Ok(0);
        } else {
            shingler.elements(text, scratch)?;
        }
        let size = scratch.shingles.len();
        scheme.sketch(&mut scratch.shingles, row);
        Ok(size)
    })
}

/// Write the signature of every set to its row.
///
/// # Errors
/// None; the return type is that of [`sketch_texts`].
///
/// # Panics
/// If there are fewer rows than sets.
pub fn sketch_sets<C: Scheme>(
    scheme: &C,
    sets: Sets<'_>,
    rows: Rows<'_, C::Slot>,
    threads: usize,
) -> Result<(), TextError> {
    sketch(scheme, sets.tasks(), rows, threads, |document, scratch, row| {
        scratch.shingles.clear();
        scratch.shingles.extend_from_slice(sets.get(document));
        scheme.sketch(&mut scratch.shingles, row);
        Ok(sets.get(document).len())
    })
}

/// Call `write` with every document and its row; it returns the number of elements.
fn sketch<C: Scheme>(
    scheme: &C,
    tasks: Vec<Range<usize>>,
    rows: Rows<'_, C::Slot>,
    threads: usize,
    write: impl Fn(usize, &mut Scratch, &mut [C::Slot]) -> Result<usize, TextFault> + Sync,
) -> Result<(), TextError> {
    let width = scheme.slots();
    let Rows { mut slots, mut sizes } = rows;
    let mut work = Vec::with_capacity(tasks.len());
    for documents in tasks {
        let slots = slots.split_off_mut(..documents.len() * width).expect("every document has a row");
        let sizes = sizes.as_mut().and_then(|sizes| sizes.split_off_mut(..documents.len()));
        work.push((documents, slots, sizes));
    }
    run_tasks(threads, work, |scratch, (documents, slots, mut sizes)| {
        for (i, (document, row)) in documents.zip(slots.chunks_exact_mut(width)).enumerate() {
            let size = write(document, scratch, row).map_err(|fault| TextError { document, fault })?;
            if let Some(sizes) = &mut sizes {
                sizes[i] = size as u64;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Output of banding. `keys` has one row per band with an entry per document; the other fields have one row per
/// document.
pub struct KeyRows<'r> {
    /// Band keys, band by band.
    pub keys: Vec<&'r mut [u64]>,
    /// Content hashes, two words per document.
    pub contents: &'r mut [u64],
    /// [`State`] of each document.
    pub states: &'r mut [u8],
    /// The low 16 bits of every slot, little-endian, if requested.
    pub packed: Option<&'r mut [u8]>,
}

/// State of a document in [`KeyRows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has elements and keys.
    Filled = 0,
    /// It has no elements.
    Empty = 1,
    /// It cannot be read.
    Faulty = 2,
}

impl KeyRows<'_> {
    /// Split off the rows of the first documents; none if there are fewer.
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

/// Write the band keys and the content hash of every text, without storing its shingles or its signature.
///
/// Texts that cannot be read are returned in order and marked [`State::Faulty`].
///
/// # Panics
/// If there are fewer rows than texts, or fewer slots than the bands need.
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
    band(scheme, banding, texts.tasks(), rows, threads, |document, scratch, signature| {
        let text = texts.get(document);
        if is_long(text) {
            return band_pieces(scheme, shingler, text, &hasher, scratch, signature);
        }
        shingler.elements(text, scratch)?;
        let content = shingler.content(text, &hasher, scratch);
        Ok(signed(scheme, scratch, signature, content))
    })
}

/// Write the signature of a long text; return its content hash, none if it has no elements.
///
/// Whether a text has too many elements must not depend on its being compared, so they are counted here.
fn band_pieces<C: Scheme>(
    scheme: &C,
    shingler: &Shingler,
    text: &[u8],
    hasher: &ContentHasher,
    scratch: &mut Scratch,
    signature: &mut [C::Slot],
) -> Result<Option<[u64; 2]>, TextFault> {
    let mut content = hasher.start();
    shingler.sketch_pieces(text, scheme, scratch, signature, &mut content)?;
    if content.count > MAX_ELEMENTS {
        shingler.distinct(text, scratch)?;
    }
    Ok((content.count > 0).then(|| content.finish()))
}

/// Write the signature of the elements in `scratch`; return `content`, none if there are no elements.
fn signed<C: Scheme>(
    scheme: &C,
    scratch: &mut Scratch,
    signature: &mut [C::Slot],
    content: [u64; 2],
) -> Option<[u64; 2]> {
    if scratch.shingles.is_empty() {
        return None;
    }
    scheme.sketch(&mut scratch.shingles, signature);
    Some(content)
}

/// Write the band keys and the content hash of every set.
///
/// # Panics
/// If there are fewer rows than sets, or fewer slots than the bands need.
pub fn band_sets<C: Scheme>(
    scheme: &C,
    hasher: &ContentHasher,
    banding: &Banding,
    sets: Sets<'_>,
    rows: KeyRows<'_>,
    threads: usize,
) {
    band(scheme, banding, sets.tasks(), rows, threads, |document, scratch, signature| {
        scratch.shingles.clear();
        scratch.shingles.extend_from_slice(sets.get(document));
        Ok(signed(scheme, scratch, signature, hasher.hash(sets.get(document))))
    });
}

/// Write the band keys of existing signatures: a row of slots and a row of keys per document.
///
/// A signature with all slots empty belongs to a set without elements and has no keys.
///
/// # Panics
/// If there are fewer rows of keys than signatures.
pub fn band_signatures<S: Slot>(banding: &Banding, signatures: &[S], keys: &mut [u64]) {
    let rows = signatures.chunks_exact(banding.slots());
    assert!(rows.len() * banding.bands() <= keys.len(), "every signature has a row of keys");
    for (signature, keys) in rows.zip(keys.chunks_exact_mut(banding.bands())) {
        if signature.iter().all(|&slot| slot == S::EMPTY) {
            keys.fill(NO_KEY);
        } else {
            keys.iter_mut().zip(banding.keys(signature)).for_each(|(entry, key)| *entry = key);
        }
    }
}

fn band<C: Scheme>(
    scheme: &C,
    banding: &Banding,
    tasks: Vec<Range<usize>>,
    mut rows: KeyRows<'_>,
    threads: usize,
    read: impl Fn(usize, &mut Scratch, &mut [C::Slot]) -> Result<Option<[u64; 2]>, TextFault> + Sync,
) -> Vec<TextError> {
    assert_eq!(scheme.slots(), banding.slots(), "the bands use every slot");
    let row_bytes = 2 * scheme.slots();
    let mut take = |count| rows.take(count, row_bytes).expect("every document has a row");
    let work = tasks.into_iter().map(|documents| (take(documents.len()), documents)).collect();
    let results = run_tasks(threads, work, |scratch, (mut rows, documents): (KeyRows<'_>, Range<usize>)| {
        let mut signature = vec![C::Slot::EMPTY; scheme.slots()];
        let mut faults = Vec::new();
        for (i, document) in documents.enumerate() {
            let (state, content) = match read(document, scratch, &mut signature) {
                Ok(None) => (State::Empty, [0, 0]),
                Ok(Some(content)) => (State::Filled, content),
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
            rows.keys.iter_mut().zip(banding.keys(&signature)).for_each(|(row, key)| row[i] = key);
            if let Some(packed) = &mut rows.packed {
                pack_rows(&signature, signature.len(), 16, &mut packed[i * row_bytes..(i + 1) * row_bytes]);
            }
        }
        Ok(faults)
    });
    results.into_iter().flatten().flatten().collect()
}

/// Run every task on `threads` threads; return the results in the order of the tasks, or the error of the first failing
/// task.
pub(crate) fn run_tasks<T: Send, R: Send>(
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
