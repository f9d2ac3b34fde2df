//! Buckets of a band, groups of equal documents and candidate pairs for Python.

use std::path::PathBuf;

use numpy::{IntoPyArray as _, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use minwise_kernel::band;
use minwise_kernel::candidates::{BucketFile, CandidatePairs, Section};

use crate::arrays::matrix;
use crate::thread_pool;

type PairArray<'py> = Bound<'py, PyArray1<u64>>;
type SharedBuckets<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<u32>>);
type Groups<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>);

/// Buckets of one band, filled by `push` and emptied by `shared`.
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

    /// Return the number of buckets above the cap, of their members and of the pairs left out, and the size of the
    /// largest bucket.
    fn counts(&self) -> (u64, u64, u64, u64) {
        let counts = self.inner.counts();
        (counts.capped, counts.capped_members, counts.left_out, counts.largest)
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
    #[new]
    #[pyo3(signature = (after))]
    fn new(after: Option<u32>) -> Self {
        Self { inner: CandidatePairs::default(), after }
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

    /// Number of pairs passed so far; a pair that several bands propose counts once per band.
    #[getter]
    fn passed(&self) -> u64 {
        self.inner.passed()
    }
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
