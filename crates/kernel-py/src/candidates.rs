//! Buckets of a band, groups of equal documents and candidate pairs for Python.

use std::path::PathBuf;

use numpy::{
    IntoPyArray as _, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1,
    PyUntypedArrayMethods as _,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::band;
use minwise_kernel::candidates::{BucketFile, CandidatePairs, Section};
use minwise_kernel::needed_pairs::{ComparedPairs, Comparison, Sample};

use crate::arrays::matrix;
use crate::cluster::check_parents;
use crate::set_store::{SetStore, SimilarPairs};
use crate::thread_pool;

type PairArray<'py> = Bound<'py, PyArray1<u64>>;
type Compared<'py> = (SimilarPairs<'py>, u64, u64, u32);
type SharedBuckets<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<u32>>);
type Groups<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>);

/// Buckets of one band, filled by `push` and emptied by `shared` or `groups`.
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

    /// Add the keys of documents that are in range `part` of `parts` equal ranges of keys.
    ///
    /// Each document is added under its number in `members`.
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

    /// Return the buckets of at least two members as an array of ranges and an array of members.
    ///
    /// A row (low, start, end) of the ranges stands for the pairs of `low` with `members[start:end]`. Members below
    /// `protected` are not paired with each other.
    fn shared<'py>(
        &mut self,
        py: Python<'py>,
        max_bucket: usize,
        protected: u32,
        threads: usize,
    ) -> PyResult<SharedBuckets<'py>> {
        let shared =
            py.detach(|| thread_pool::install(threads, |threads| self.inner.shared(max_bucket, protected, threads)))?;
        let rows = shared.ranges.iter().flat_map(|range| [range.low, range.start, range.end]).collect();
        Ok((matrix(py, rows, 3)?, shared.members.into_pyarray(py)))
    }

    /// Return the pairs of a member below `split` and another one, in the arrays of `shared`.
    fn shared_across<'py>(
        &mut self,
        py: Python<'py>,
        max_bucket: usize,
        split: u32,
        threads: usize,
    ) -> PyResult<SharedBuckets<'py>> {
        let shared = py
            .detach(|| thread_pool::install(threads, |threads| self.inner.shared_across(max_bucket, split, threads)))?;
        let rows = shared.ranges.iter().flat_map(|range| [range.low, range.start, range.end]).collect();
        Ok((matrix(py, rows, 3)?, shared.members.into_pyarray(py)))
    }

    /// Return the buckets of at least two members as an array of buckets and an array of members.
    ///
    /// A row (size, heads, first partner) stands for the next `size` members, of which each of the first `heads` is
    /// paired with all later ones from the first partner on.
    fn groups<'py>(
        &mut self,
        py: Python<'py>,
        max_bucket: usize,
        protected: u32,
        threads: usize,
    ) -> PyResult<SharedBuckets<'py>> {
        let groups =
            py.detach(|| thread_pool::install(threads, |threads| self.inner.groups(max_bucket, protected, threads)))?;
        let rows = groups.buckets.iter().flat_map(|bucket| [bucket.size, bucket.heads, bucket.first_partner]).collect();
        Ok((matrix(py, rows, 3)?, groups.members.into_pyarray(py)))
    }

    /// Return the number of buckets above the cap, of their members and of the pairs left out, and the size of the
    /// largest bucket.
    fn counts(&self) -> (u64, u64, u64, u64) {
        let counts = self.inner.counts();
        (counts.capped, counts.capped_members, counts.left_out, counts.largest)
    }
}

type DividedKeys<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>);

/// Return keys, of which `keys` has a row per document, divided into `parts` equal ranges of keys: the keys of all
/// ranges, the index of the document of each, and the start of each range.
#[pyfunction]
pub fn divide_keys<'py>(py: Python<'py>, keys: PyReadonlyArray2<'py, u64>, parts: u64) -> PyResult<DividedKeys<'py>> {
    if parts == 0 || keys.shape()[0] > u32::MAX as usize {
        return Err(PyValueError::new_err("there must be at least one part, and fewer documents than 2^32"));
    }
    let (bands, flat) = (keys.shape()[1], keys.as_slice()?);
    let divided = py.detach(|| band::divide_keys(flat, bands, parts));
    Ok((divided.keys.into_pyarray(py), divided.documents.into_pyarray(py), divided.starts.into_pyarray(py)))
}

/// Return the ranges of `Buckets.shared` of the arrays of `Buckets.groups`.
#[pyfunction]
pub fn pair_ranges<'py>(
    py: Python<'py>,
    buckets: PyReadonlyArray2<'py, u32>,
    members: PyReadonlyArray1<'py, u32>,
) -> PyResult<Bound<'py, PyArray2<u32>>> {
    let rows = buckets.as_slice()?.as_chunks().0.iter();
    let buckets: Vec<_> =
        rows.map(|&[size, heads, first_partner]| band::Bucket { size, heads, first_partner }).collect();
    let groups = band::BucketGroups { buckets, members: members.as_slice()?.to_vec() };
    let size: u64 = groups.buckets.iter().map(|bucket| u64::from(bucket.size)).sum();
    if size > u64::from(u32::MAX)
        || size != groups.members.len() as u64
        || groups.buckets.iter().any(|bucket| bucket.heads > bucket.size)
    {
        return Err(PyValueError::new_err("buckets must have as many members as there are"));
    }
    let ranges = py.detach(|| groups.pair_ranges(1));
    matrix(py, ranges.iter().flat_map(|range| [range.low, range.start, range.end]).collect(), 3)
}

/// Comparison of candidate pairs: document n has set `places[n]` of `sets`; without sets every pair is similar.
///
/// Pairs that reach `floor` are returned; those that reach `threshold` are near-duplicates.
#[pyclass(module = "minwise._kernel", frozen)]
pub struct PairComparison {
    sets: Option<Py<SetStore>>,
    places: Vec<u32>,
    floor: f64,
    threshold: f64,
}

#[pymethods]
impl PairComparison {
    #[new]
    #[pyo3(signature = (sets, places, floor, threshold))]
    fn new(
        sets: Option<PyRef<'_, SetStore>>,
        places: PyReadonlyArray1<'_, u32>,
        floor: f64,
        threshold: f64,
    ) -> PyResult<Self> {
        let (places, count) = (places.as_slice()?.to_vec(), sets.as_ref().map_or(0, |sets| sets.inner().len()));
        if sets.is_some() && places.iter().any(|&set| set != band::NO_DOCUMENT && set as usize >= count) {
            return Err(PyValueError::new_err("places must be of sets that exist"));
        }
        Ok(Self { sets: sets.map(Into::into), places, floor, threshold })
    }
}

impl PairComparison {
    /// Return an error if there is not a place for each of `documents` documents.
    fn check(&self, documents: usize) -> PyResult<()> {
        if self.sets.is_none() || self.places.len() == documents {
            return Ok(());
        }
        Err(PyValueError::new_err("there must be a flag for each place"))
    }

    fn sets<'py>(&self, py: Python<'py>) -> Option<PyRef<'py, SetStore>> {
        self.sets.as_ref().map(|sets| sets.bind(py).borrow())
    }

    fn with<'s>(&'s self, sets: Option<&'s PyRef<'_, SetStore>>) -> Comparison<'s> {
        let sets = sets.map(|sets| (sets.inner(), self.places.as_slice()));
        Comparison { sets, floor: self.floor, threshold: self.threshold }
    }
}

/// Candidate pairs of all bands, read from bucket files.
#[pyclass(module = "minwise._kernel")]
pub struct Proposals {
    inner: CandidatePairs,
    after: Option<u32>,
}

#[pymethods]
impl Proposals {
    /// Create an iterator without files; pairs whose smaller document is at most `after` are skipped.
    ///
    /// With `groups`, which has the group of each document, pairs of two documents of one group are left out.
    #[new]
    #[pyo3(signature = (after, groups=None))]
    fn new(after: Option<u32>, groups: Option<PyReadonlyArray1<'_, u32>>) -> PyResult<Self> {
        let inner = CandidatePairs::default();
        let inner = match groups {
            Some(groups) => inner.across(groups.as_slice()?.to_vec()),
            None => inner,
        };
        Ok(Self { inner, after })
    }

    /// Add a file with the arrays of `Buckets.shared`, each given as its byte offset and its number of rows.
    ///
    /// The members are held in memory if `loaded`, otherwise read on demand.
    fn add(&mut self, path: PathBuf, rows: (u64, usize), members: (u64, usize), loaded: bool) -> PyResult<()> {
        let ranges = Section { position: rows.0, length: 3 * rows.1 };
        let members = Section { position: members.0, length: members.1 };
        Ok(self.inner.add(BucketFile::open(path, ranges, members, loaded)?, self.after)?)
    }

    /// Return the next pairs `low << 32 | high`, ascending and distinct, or None at the end.
    ///
    /// All pairs of a smaller document come together. Documents are added until the bands have proposed `most` pairs.
    fn next_pairs<'py>(&mut self, py: Python<'py>, most: u64, threads: usize) -> PyResult<Option<PairArray<'py>>> {
        let pairs = py.detach(|| thread_pool::install(threads, |threads| self.inner.next_pairs(most, threads)))??;
        Ok(pairs.map(|pairs| pairs.into_pyarray(py)))
    }

    /// Compare the pairs of the next smaller documents that are kept, and mark their near-duplicates in `removed`.
    ///
    /// Returns the columns low, high and similarity of pairs that reach the floor, the number of pairs that were
    /// compared, the number of those that are sampled, and the last smaller document; None at the end.
    fn next_of_kept<'py>(
        &mut self,
        py: Python<'py>,
        most: u64,
        comparison: PyRef<'py, PairComparison>,
        mut removed: PyReadwriteArray1<'py, bool>,
        threads: usize,
    ) -> PyResult<Option<Compared<'py>>> {
        let removed = removed.as_slice_mut()?;
        comparison.check(removed.len())?;
        let sets = comparison.sets(py);
        let comparison = comparison.with(sets.as_ref());
        let work = |threads| self.inner.next_of_kept(most, comparison, removed, threads);
        let compared = py.detach(|| thread_pool::install(threads, work))??;
        Ok(compared.map(|compared| columns(py, compared)))
    }

    /// Compare the pairs of the next smaller documents that are removed: with kept ones, and those of a sample.
    ///
    /// Removed documents are divided into `classes`, a power of two; pairs of one class are sampled. 0 samples none.
    /// The class of a document depends on its number in `numbers`, if they are given.
    #[pyo3(signature = (most, comparison, removed, classes, threads, numbers=None))]
    #[expect(clippy::too_many_arguments, reason = "they are those of a Python method")]
    fn next_of_removed<'py>(
        &mut self,
        py: Python<'py>,
        most: u64,
        comparison: PyRef<'py, PairComparison>,
        removed: PyReadonlyArray1<'py, bool>,
        classes: u64,
        threads: usize,
        numbers: Option<PyReadonlyArray1<'py, u64>>,
    ) -> PyResult<Option<Compared<'py>>> {
        let removed = removed.as_slice()?;
        comparison.check(removed.len())?;
        let numbers = numbers.as_ref().map(|numbers| numbers.as_slice()).transpose()?;
        if numbers.is_some_and(|numbers| numbers.len() != removed.len()) {
            return Err(PyValueError::new_err("there must be a number for each flag"));
        }
        let (sets, sample) = (comparison.sets(py), Sample { classes, numbers });
        let comparison = comparison.with(sets.as_ref());
        let work = |threads| self.inner.next_of_removed(most, comparison, removed, sample, threads);
        let compared = py.detach(|| thread_pool::install(threads, work))??;
        Ok(compared.map(|compared| columns(py, compared)))
    }

    /// Compare the pairs of the next smaller documents that are in different components, and join the similar ones.
    fn next_unconnected<'py>(
        &mut self,
        py: Python<'py>,
        most: u64,
        comparison: PyRef<'py, PairComparison>,
        mut parents: PyReadwriteArray1<'py, u32>,
        threads: usize,
    ) -> PyResult<Option<Compared<'py>>> {
        let parents = parents.as_slice_mut()?;
        comparison.check(parents.len())?;
        check_parents(parents)?;
        let sets = comparison.sets(py);
        let comparison = comparison.with(sets.as_ref());
        let work = |threads| self.inner.next_unconnected(most, comparison, parents, threads);
        let compared = py.detach(|| thread_pool::install(threads, work))??;
        Ok(compared.map(|compared| columns(py, compared)))
    }

    /// Number of pairs passed so far; a pair that several bands propose counts once per band.
    #[getter]
    fn passed(&self) -> u64 {
        self.inner.passed()
    }
}

/// Return the columns of compared pairs, the numbers of compared and of sampled pairs, and the last document.
fn columns(py: Python<'_>, compared: ComparedPairs) -> Compared<'_> {
    let ComparedPairs { similar, examined, sampled, last } = compared;
    let pairs = (similar.low.into_pyarray(py), similar.high.into_pyarray(py), similar.similarity.into_pyarray(py));
    (pairs, examined, sampled, last)
}

/// Groups of documents with equal content, filled by `push` and emptied by `groups`.
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

    /// Add the documents whose content hash is in range `part` of `parts` equal ranges of hashes.
    ///
    /// Each document is added under its number in `members`.
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

    /// Return the members of every group of at least two, one group after the other, and the start of each group.
    fn groups<'py>(&mut self, py: Python<'py>, threads: usize) -> PyResult<Groups<'py>> {
        let inner = std::mem::take(&mut self.inner);
        let (members, starts) = py.detach(|| thread_pool::install(threads, |threads| inner.groups(threads)))?;
        Ok((members.into_pyarray(py), starts.into_pyarray(py)))
    }
}
