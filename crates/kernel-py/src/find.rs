//! Banding, verification and clustering for Python.

use std::fs::File;

use numpy::{
    IntoPyArray as _, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2,
    PyUntypedArrayMethods as _,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::band::{self, Banding};
use minwise_kernel::batch::{self, KeyRows};
use minwise_kernel::cluster;
use minwise_kernel::error::TextError;
use minwise_kernel::hash::ContentHasher;
use minwise_kernel::sketch::Scheme;
use minwise_kernel::spill::{SetFile, SetStore as Store};
use minwise_kernel::stream;

use crate::arrays::{Offsets, lists, sets};
use crate::pool;
use crate::shingle::Shingler;
use crate::sketch::{AnyScheme, Sketcher, Slots};

type Faults = Vec<(usize, String)>;
type PairArray<'py> = Bound<'py, PyArray1<u64>>;
type Groups<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>);

/// Turns texts or sets into the keys of their bands.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct Bander {
    sketcher: Py<Sketcher>,
    banding: Banding,
}

/// The places that a batch's results go to, from column `start` on.
#[derive(FromPyObject)]
pub struct KeyArrays<'py> {
    keys: PyReadwriteArray2<'py, u64>,
    contents: PyReadwriteArray2<'py, u64>,
    states: PyReadwriteArray1<'py, u8>,
    packed: Option<PyReadwriteArray2<'py, u8>>,
}

impl KeyArrays<'_> {
    pub fn rows(&mut self, start: usize, documents: usize, banding: &Banding) -> PyResult<KeyRows<'_>> {
        let wrong = || PyValueError::new_err("the arrays must have a place for every document");
        let (capacity, end) = (self.states.len(), start + documents);
        let bands = self.keys.shape()[0];
        let fits = end <= capacity && bands == banding.bands() && self.contents.shape() == [capacity, 2];
        let packed_fits = self.packed.as_ref().is_none_or(|packed| packed.shape() == [capacity, 2 * banding.slots()]);
        if !fits || !packed_fits || self.keys.shape()[1] != capacity {
            return Err(wrong());
        }
        let keys = self.keys.as_slice_mut()?.chunks_exact_mut(capacity.max(1));
        let packed = match &mut self.packed {
            None => None,
            Some(packed) => {
                let row = 2 * banding.slots();
                Some(&mut packed.as_slice_mut()?[start * row..end * row])
            }
        };
        Ok(KeyRows {
            keys: keys.map(|row| &mut row[start..end]).collect(),
            contents: &mut self.contents.as_slice_mut()?[2 * start..2 * end],
            states: &mut self.states.as_slice_mut()?[start..end],
            packed,
        })
    }
}

#[pymethods]
impl Bander {
    #[new]
    fn new(py: Python<'_>, sketcher: Py<Sketcher>, bands: usize, rows: usize, seed: u64) -> PyResult<Self> {
        let slots = sketcher.borrow(py).slots();
        if bands == 0 || rows == 0 || bands.checked_mul(rows) != Some(slots) {
            return Err(PyValueError::new_err("bands times rows must be the number of slots"));
        }
        Ok(Self { sketcher, banding: Banding::new(bands, rows, seed) })
    }

    /// Writes keys, content hash and state of every text; returns the faulty ones with what is wrong.
    #[allow(clippy::too_many_arguments, reason = "buffers in and buffers out")]
    fn band_texts<'py>(
        &self,
        py: Python<'py>,
        shingler: &Shingler,
        offsets: &Bound<'py, PyAny>,
        data: PyReadonlyArray1<'py, u8>,
        mut arrays: KeyArrays<'py>,
        start: usize,
        threads: usize,
    ) -> PyResult<Faults> {
        let data = data.as_slice()?;
        match &Offsets::of(offsets)? {
            Offsets::Narrow(offsets) => {
                let texts = lists(offsets.as_slice()?, data)?;
                let rows = arrays.rows(start, texts.len(), &self.banding)?;
                self.run(py, BandTexts { shingler, texts }, rows, threads)
            }
            Offsets::Wide(offsets) => {
                let texts = lists(offsets.as_slice()?, data)?;
                let rows = arrays.rows(start, texts.len(), &self.banding)?;
                self.run(py, BandTexts { shingler, texts }, rows, threads)
            }
        }
    }

    /// Writes keys, content hash and state of every set.
    #[allow(clippy::too_many_arguments, reason = "buffers in and buffers out")]
    fn band_sets<'py>(
        &self,
        py: Python<'py>,
        offsets: PyReadonlyArray1<'py, i64>,
        elements: PyReadonlyArray1<'py, u64>,
        seed: u64,
        mut arrays: KeyArrays<'py>,
        start: usize,
        threads: usize,
    ) -> PyResult<Faults> {
        let sets = sets(offsets.as_slice()?, elements.as_slice()?)?;
        let rows = arrays.rows(start, sets.len(), &self.banding)?;
        self.run(py, BandSets { sets, hasher: ContentHasher::new(seed) }, rows, threads)
    }

    /// Writes the keys of signatures that were made before, a row per document; all ones for those of no elements.
    fn band_signatures<'py>(
        &self,
        py: Python<'py>,
        slots: &Bound<'py, PyAny>,
        mut keys: PyReadwriteArray2<'py, u64>,
    ) -> PyResult<()> {
        let narrow = matches!(self.sketcher.get().scheme, AnyScheme::MinHash(_));
        let fits =
            |shape: &[usize]| shape[1] == self.banding.slots() && keys.shape() == [shape[0], self.banding.bands()];
        let wrong = || PyValueError::new_err("every document must have the slots of the scheme and a place per band");
        match Slots::of(slots)? {
            Slots::Narrow(slots) if narrow && fits(slots.shape()) => {
                let (slots, keys) = (slots.as_slice()?, keys.as_slice_mut()?);
                py.detach(|| batch::band_signatures(&self.banding, slots, keys));
            }
            Slots::Wide(slots) if !narrow && fits(slots.shape()) => {
                let (slots, keys) = (slots.as_slice()?, keys.as_slice_mut()?);
                py.detach(|| batch::band_signatures(&self.banding, slots, keys));
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

impl Bander {
    fn run(&self, py: Python<'_>, feed: impl Feed, rows: KeyRows<'_>, threads: usize) -> PyResult<Faults> {
        let scheme = &self.sketcher.get().scheme;
        let banding = &self.banding;
        let faults = py.detach(|| {
            pool::install(threads, |threads| match scheme {
                AnyScheme::MinHash(scheme) => feed.run(scheme, banding, rows, threads),
                AnyScheme::OnePermutation(scheme) => feed.run(scheme, banding, rows, threads),
                AnyScheme::Fast(scheme) => feed.run(scheme, banding, rows, threads),
            })
        })?;
        Ok(faults.into_iter().map(|TextError { document, fault }| (document, fault.to_string())).collect())
    }
}

/// One way to feed the bands, whatever the scheme's slots are.
trait Feed: Send {
    fn run<C: Scheme>(self, scheme: &C, banding: &Banding, rows: KeyRows<'_>, threads: usize) -> Vec<TextError>;
}

struct BandTexts<'l, O> {
    shingler: &'l Shingler,
    texts: batch::Texts<'l, O>,
}

impl<O: Copy + TryInto<usize> + Send + Sync> Feed for BandTexts<'_, O> {
    fn run<C: Scheme>(self, scheme: &C, banding: &Banding, rows: KeyRows<'_>, threads: usize) -> Vec<TextError> {
        batch::band_texts(scheme, &self.shingler.inner, banding, self.texts, rows, threads)
    }
}

struct BandSets<'l> {
    sets: batch::Sets<'l>,
    hasher: ContentHasher,
}

impl Feed for BandSets<'_> {
    fn run<C: Scheme>(self, scheme: &C, banding: &Banding, rows: KeyRows<'_>, threads: usize) -> Vec<TextError> {
        batch::band_sets(scheme, &self.hasher, banding, self.sets, rows, threads);
        Vec::new()
    }
}

/// The buckets of one band; filled by `push`, emptied by `pairs`.
#[pyclass(module = "minwise._kernel")]
#[derive(Default)]
pub struct Buckets {
    inner: band::Buckets,
}

#[pymethods]
impl Buckets {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Takes keys and the numbers under which their documents take part, of one of `parts` ranges of keys.
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        keys: PyReadonlyArray1<'py, u64>,
        members: PyReadonlyArray1<'py, u32>,
        part: u64,
        parts: u64,
    ) -> PyResult<()> {
        let (keys, members) = (keys.as_slice()?, members.as_slice()?);
        py.detach(|| self.inner.push(keys, members, part, parts));
        Ok(())
    }

    /// The candidate pairs of the next buckets, about `most` of them, ascending; None when there are no more.
    fn next_pairs<'py>(
        &mut self,
        py: Python<'py>,
        max_bucket: usize,
        most: usize,
        threads: usize,
    ) -> PyResult<Option<PairArray<'py>>> {
        let pairs = py.detach(|| pool::install(threads, |_| self.inner.next_pairs(max_bucket, most)))?;
        Ok(pairs.map(|pairs| pairs.into_pyarray(py)))
    }

    /// Buckets above the cap, their members, pairs left out, largest bucket.
    fn counts(&self) -> (u64, u64, u64, u64) {
        let counts = self.inner.counts();
        (counts.capped, counts.capped_members, counts.left_out, counts.largest)
    }
}

/// Documents of equal content; filled by `push`, emptied by `groups`.
#[pyclass(module = "minwise._kernel")]
#[derive(Default)]
pub struct Copies {
    inner: band::Copies,
}

#[pymethods]
impl Copies {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Takes content hashes and the numbers under which their documents take part, of one of `parts` ranges of hashes.
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        contents: PyReadonlyArray2<'py, u64>,
        members: PyReadonlyArray1<'py, u32>,
        part: u64,
        parts: u64,
    ) -> PyResult<()> {
        let (contents, members) = (contents.as_slice()?, members.as_slice()?);
        py.detach(|| self.inner.push(contents, members, part, parts));
        Ok(())
    }

    /// The members of every group of at least two, group after group, and where each group starts.
    fn groups<'py>(&mut self, py: Python<'py>, threads: usize) -> PyResult<Groups<'py>> {
        let inner = std::mem::take(&mut self.inner);
        let (members, starts) = py.detach(|| pool::install(threads, |_| inner.groups()))?;
        Ok((members.into_pyarray(py), starts.into_pyarray(py)))
    }
}

/// Sets in files, numbered through.
#[pyclass(module = "minwise._kernel")]
#[derive(Default)]
pub struct SetStore {
    inner: Store,
}

#[pymethods]
impl SetStore {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Adds the sets of a file: its first element stands at `position`, set i is elements `offsets[i]..offsets[i + 1]`. They are
    /// read into memory if `load`, else whenever they are needed.
    fn add(&mut self, path: &str, position: u64, offsets: PyReadonlyArray1<'_, u64>, load: bool) -> PyResult<()> {
        let offsets = offsets.as_slice()?.to_vec();
        if offsets.is_empty() || !offsets.is_sorted() {
            return Err(PyValueError::new_err("offsets must ascend"));
        }
        let mut file = SetFile { file: File::open(path)?, position, offsets, elements: None };
        if load {
            file.load()?;
        }
        self.inner.add(file);
        Ok(())
    }

    /// The similarity of every pair of sets that reaches `threshold`, NaN for the others.
    fn similarities<'py>(
        &self,
        py: Python<'py>,
        left: PyReadonlyArray1<'py, u32>,
        right: PyReadonlyArray1<'py, u32>,
        threshold: f64,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (left, right) = (left.as_slice()?, right.as_slice()?);
        let sets = self.inner.len();
        if left.len() != right.len() || left.iter().chain(right).any(|&set| set as usize >= sets) {
            return Err(PyValueError::new_err("pairs must be of sets that are there"));
        }
        let similarities =
            py.detach(|| pool::install(threads, |threads| self.inner.similarities(left, right, threshold, threads)))??;
        Ok(similarities.into_pyarray(py))
    }
}

/// The kept documents of a stream.
#[pyclass(module = "minwise._kernel")]
pub struct KeptDocuments {
    inner: stream::KeptDocuments,
    bands: usize,
}

#[pymethods]
impl KeptDocuments {
    /// None yet; their sets will be written to a new file at `path`.
    #[new]
    fn new(bands: usize, threshold: f64, max_bucket: u32, path: &str) -> PyResult<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        Ok(Self { inner: stream::KeptDocuments::new(bands, threshold, max_bucket, file), bands })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// How often a document met a bucket above the cap.
    #[getter]
    fn capped(&self) -> u64 {
        self.inner.capped()
    }

    /// For every document: whether it is kept. `keys` has a row per band, `contents` a row per document.
    fn decide<'py>(
        &mut self,
        py: Python<'py>,
        keys: PyReadonlyArray2<'py, u64>,
        contents: PyReadonlyArray2<'py, u64>,
        offsets: PyReadonlyArray1<'py, i64>,
        elements: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let sets = sets(offsets.as_slice()?, elements.as_slice()?)?;
        let documents = sets.len();
        if keys.shape() != [self.bands, documents] || contents.shape() != [documents, 2] {
            return Err(PyValueError::new_err("every document must have its keys and its content hash"));
        }
        let (keys, contents) = (keys.as_slice()?, contents.as_slice()?);
        let kept = py.detach(|| {
            let mut own = vec![0; self.bands];
            let decide = |document: usize| {
                own.iter_mut().enumerate().for_each(|(band, key)| *key = keys[band * documents + document]);
                let set = sets.get(document);
                if set.is_empty() {
                    return Ok(true);
                }
                let content = [contents[2 * document], contents[2 * document + 1]];
                Ok(self.inner.decide(&own, content, set)? == stream::Decision::Kept)
            };
            (0..documents).map(decide).collect::<std::io::Result<Vec<bool>>>()
        })?;
        Ok(kept.into_pyarray(py))
    }
}

/// Pairs over borrowed arrays, if they fit the number of documents.
fn pairs<'p>(low: &'p [u32], high: &'p [u32], documents: usize) -> PyResult<cluster::Pairs<'p>> {
    let pairs = cluster::Pairs { low, high };
    if pairs.fit(documents) {
        return Ok(pairs);
    }
    Err(PyValueError::new_err("pairs must be of documents that are there, the smaller first"))
}

/// Marks as removed whoever is paired with a kept document before it.
#[pyfunction]
pub fn remove_neighbours(
    low: PyReadonlyArray1<'_, u32>,
    high: PyReadonlyArray1<'_, u32>,
    mut removed: PyReadwriteArray1<'_, bool>,
) -> PyResult<()> {
    let pairs = pairs(low.as_slice()?, high.as_slice()?, removed.len())?;
    cluster::remove_neighbours(pairs, removed.as_slice_mut()?);
    Ok(())
}

/// Notes for every removed document its most similar kept partner.
#[pyfunction]
pub fn choose_witnesses(
    low: PyReadonlyArray1<'_, u32>,
    high: PyReadonlyArray1<'_, u32>,
    similarities: PyReadonlyArray1<'_, f64>,
    removed: PyReadonlyArray1<'_, bool>,
    mut witness: PyReadwriteArray1<'_, u32>,
    mut best: PyReadwriteArray1<'_, f64>,
) -> PyResult<()> {
    let documents = removed.len();
    let pairs = pairs(low.as_slice()?, high.as_slice()?, documents)?;
    if witness.len() != documents || best.len() != documents || similarities.len() != low.len() {
        return Err(PyValueError::new_err("there must be a place for every document"));
    }
    let (witness, best) = (witness.as_slice_mut()?, best.as_slice_mut()?);
    cluster::choose_witnesses(pairs, similarities.as_slice()?, removed.as_slice()?, witness, best);
    Ok(())
}

/// Joins the two sides of every pair.
#[pyfunction]
pub fn join_pairs(
    low: PyReadonlyArray1<'_, u32>,
    high: PyReadonlyArray1<'_, u32>,
    mut parents: PyReadwriteArray1<'_, u32>,
) -> PyResult<()> {
    let pairs = pairs(low.as_slice()?, high.as_slice()?, parents.len())?;
    check_parents(parents.as_slice()?)?;
    cluster::join_pairs(pairs, parents.as_slice_mut()?);
    Ok(())
}

/// Makes every parent the first member of its component.
#[pyfunction]
pub fn flatten_components(mut parents: PyReadwriteArray1<'_, u32>) -> PyResult<()> {
    check_parents(parents.as_slice()?)?;
    cluster::flatten(parents.as_slice_mut()?);
    Ok(())
}

fn check_parents(parents: &[u32]) -> PyResult<()> {
    if parents.iter().enumerate().all(|(i, &parent)| parent as usize <= i) {
        return Ok(());
    }
    Err(PyValueError::new_err("a parent must not come after its child"))
}
