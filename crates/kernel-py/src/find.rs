//! Buckets, verification and clustering for Python.

use std::fs::File;
use std::path::PathBuf;

use numpy::{
    IntoPyArray as _, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1,
    PyUntypedArrayMethods as _,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::band;
use minwise_kernel::cluster;
use minwise_kernel::proposals::{self, ProposalFile, Section};
use minwise_kernel::spill::{SetFile, SetStore as Store};
use minwise_kernel::stream;

use crate::arrays::{matrix, sets};
use crate::pool;

type PairArray<'py> = Bound<'py, PyArray1<u64>>;
type SharedBuckets<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<u32>>);
type SimilarPairs<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);
type Groups<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>);

/// The buckets of one band; filled by `push`, emptied by `shared`.
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

    /// Who shares a bucket with whom: a row (smaller side, first and one past the last place of its partners) for each that has
    /// partners, and the members that these places are of. Members below `protected` need not be paired with each other.
    fn shared<'py>(
        &mut self,
        py: Python<'py>,
        max_bucket: usize,
        protected: u32,
        threads: usize,
    ) -> PyResult<SharedBuckets<'py>> {
        let shared =
            py.detach(|| pool::install(threads, |threads| self.inner.shared(max_bucket, protected, threads)))?;
        let rows = shared.firsts.iter().flat_map(|first| [first.low, first.start, first.end]).collect();
        Ok((matrix(py, rows, 3)?, shared.members.into_pyarray(py)))
    }

    /// Buckets above the cap, their members, pairs left out, largest bucket.
    fn counts(&self) -> (u64, u64, u64, u64) {
        let counts = self.inner.counts();
        (counts.capped, counts.capped_members, counts.left_out, counts.largest)
    }
}

/// What the bands proposed, in files.
#[pyclass(module = "minwise._kernel")]
pub struct Proposals {
    inner: proposals::Proposals,
    after: Option<u32>,
}

#[pymethods]
impl Proposals {
    /// None yet; pairs with a smaller side up to `after` will be passed over.
    #[new]
    #[pyo3(signature = (after))]
    fn new(after: Option<u32>) -> Self {
        Self { inner: proposals::Proposals::default(), after }
    }

    /// Adds what `Buckets.shared` gave: the position in a file and the number of rows and of members. The members are held in memory
    /// if `loaded`, else read whenever they are needed.
    fn add(&mut self, path: PathBuf, rows: (u64, usize), members: (u64, usize), loaded: bool) -> PyResult<()> {
        let rows = Section { position: rows.0, length: 3 * rows.1 };
        let members = Section { position: members.0, length: members.1 };
        Ok(self.inner.add(ProposalFile::open(path, rows, members, loaded)?, self.after)?)
    }

    /// The next pairs `low << 32 | high`, ascending and distinct: those of as many smaller sides as are proposed in `most` pairs.
    /// None when there are no more.
    fn next_pairs<'py>(&mut self, py: Python<'py>, most: u64, threads: usize) -> PyResult<Option<PairArray<'py>>> {
        let pairs = py.detach(|| pool::install(threads, |threads| self.inner.next_pairs(most, threads)))??;
        Ok(pairs.map(|pairs| pairs.into_pyarray(py)))
    }

    /// How many pairs were passed, those that several bands proposed counted as often.
    #[getter]
    fn passed(&self) -> u64 {
        self.inner.passed()
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
        let (members, starts) = py.detach(|| pool::install(threads, |threads| inner.groups(threads)))?;
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
    /// held in memory if `loaded`, else read whenever they are needed; their outlines, 64 bytes each, are if `outlined`.
    fn add(
        &mut self,
        path: &str,
        position: u64,
        offsets: PyReadonlyArray1<'_, u64>,
        outlined: bool,
        loaded: bool,
    ) -> PyResult<()> {
        let offsets = offsets.as_slice()?.to_vec();
        if offsets.is_empty() || !offsets.is_sorted() {
            return Err(PyValueError::new_err("offsets must ascend"));
        }
        Ok(self.inner.add(SetFile::new(File::open(path)?, position, offsets), outlined, loaded)?)
    }

    /// The pairs `low << 32 | high` whose similarity reaches `floor`, in their order, as columns low, high and similarity. Number n
    /// stands for the set `places[n]`; pairs with an equal low number should follow each other.
    fn similar<'py>(
        &self,
        py: Python<'py>,
        pairs: PyReadonlyArray1<'py, u64>,
        places: PyReadonlyArray1<'py, u32>,
        floor: f64,
        threads: usize,
    ) -> PyResult<SimilarPairs<'py>> {
        let (pairs, places) = (pairs.as_slice()?, places.as_slice()?);
        let sets = self.inner.len();
        let there = |number: u64| places.get(number as usize).is_some_and(|&set| (set as usize) < sets);
        if !pairs.iter().all(|&pair| there(pair >> 32) && there(pair & u64::from(u32::MAX))) {
            return Err(PyValueError::new_err("pairs must be of sets that are there"));
        }
        let found =
            py.detach(|| pool::install(threads, |threads| self.inner.similar(pairs, places, floor, threads)))??;
        Ok((found.low.into_pyarray(py), found.high.into_pyarray(py), found.similarity.into_pyarray(py)))
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
