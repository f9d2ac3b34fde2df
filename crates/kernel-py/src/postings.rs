//! The postings of an index for Python.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use numpy::ndarray::Dimension;
use numpy::{
    IntoPyArray as _, PyArray1, PyReadonlyArray, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods as _,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::pool;
use minwise_kernel::postings::{self, Removed};
use minwise_kernel::segment::{self, BlockCache, DOCUMENTS, Run, Segment, SegmentError};

create_exception!(_kernel, DamagedError, PyValueError, "A file does not hold what was written to it: (path, what).");

/// Rows that one thread is done with before others have woken up.
const FEW: usize = 4;

type Found<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u16>>, Bound<'py, PyArray1<bool>>);
type Held<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>);
type Rows<'py> = PyReadonlyArray2<'py, u64>;

/// The Python error of a segment: an `OSError` with number and file name, or a `DamagedError`.
fn segment_error(py: Python<'_>, error: SegmentError) -> PyErr {
    match error {
        SegmentError::Damaged(path, what) => DamagedError::new_err((name(&path), what)),
        SegmentError::Io(path, error) => os_error(py, &path, &error).unwrap_or_else(|failed| failed),
    }
}

fn os_error(py: Python<'_>, path: &Path, error: &std::io::Error) -> PyResult<PyErr> {
    const EIO: i32 = 5;
    let number = error.raw_os_error();
    let what = match number {
        Some(number) => py.import("os")?.call_method1("strerror", (number,))?.extract()?,
        None => error.to_string(),
    };
    // Called, OSError makes the subclass that fits the number.
    Ok(PyErr::from_value(py.get_type::<PyOSError>().call1((number.unwrap_or(EIO), what, name(path)))?))
}

fn name(path: &Path) -> OsString {
    path.as_os_str().to_owned()
}

/// Checks that a block of documents from `first` on has numbers that a document can have.
fn check_numbers(first: u32, documents: usize) -> PyResult<()> {
    if u64::from(first) + documents as u64 <= DOCUMENTS {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "a document's number must be below {DOCUMENTS}, got {documents} from {first} on"
    )))
}

/// The keys of an array in the order of its rows: borrowed, or copied if it is a part of another.
fn in_order<'a, D: Dimension>(keys: &'a PyReadonlyArray<'_, u64, D>) -> Cow<'a, [u64]> {
    match keys.as_slice() {
        Ok(keys) => Cow::Borrowed(keys),
        Err(_) => Cow::Owned(keys.as_array().iter().copied().collect()),
    }
}

/// Where the living documents with a key are.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct Postings {
    bands: usize,
    cache: Arc<BlockCache>,
    inner: RwLock<postings::Postings>,
}

impl Postings {
    /// Never called with the GIL held: who holds the lock may wait for it.
    fn read(&self) -> RwLockReadGuard<'_, postings::Postings> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, postings::Postings> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Postings {
    #[new]
    #[pyo3(signature = (bands, cache_bytes = 0))]
    fn new(bands: usize, cache_bytes: usize) -> PyResult<Self> {
        if bands == 0 || bands > usize::from(u16::MAX) {
            return Err(PyValueError::new_err(format!("bands must be between 1 and {}, got {bands}", u16::MAX)));
        }
        Ok(Self { bands, cache: Arc::new(BlockCache::new(cache_bytes)), inner: RwLock::default() })
    }

    /// Replaces the segments by those at these paths, oldest documents first. Open ones stay open; on an error nothing changes.
    fn set_segments(&self, py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<()> {
        let opened = py.detach(|| {
            let mut inner = self.write();
            let open: HashMap<&Path, &Arc<Segment>> =
                inner.segments().iter().map(|segment| (segment.path(), segment)).collect();
            let segments = paths
                .iter()
                .map(|path| match open.get(path.as_path()) {
                    Some(&segment) => Ok(Arc::clone(segment)),
                    None => Segment::open(path).map(|segment| Arc::new(segment.cached(&self.cache))),
                })
                .collect::<Result<Vec<_>, _>>()?;
            inner.set_segments(segments);
            Ok(())
        });
        opened.map_err(|error| segment_error(py, error))
    }

    /// Replaces the removed documents: bit i of byte j is document 8 j + i. Those beyond the end live.
    fn set_removed(&self, py: Python<'_>, bits: PyReadonlyArray1<'_, u8>) -> PyResult<()> {
        let bits = bits.as_slice()?;
        py.detach(|| self.write().set_removed(Removed::from_bytes(bits)));
        Ok(())
    }

    /// Removes documents.
    fn remove(&self, py: Python<'_>, documents: PyReadonlyArray1<'_, u32>) -> PyResult<()> {
        let documents = documents.as_slice()?;
        py.detach(|| self.write().remove(documents));
        Ok(())
    }

    /// Takes id hash and band keys, a row per document, of the documents from `first` on.
    fn push(&self, py: Python<'_>, first: u32, keys: Rows<'_>) -> PyResult<()> {
        check_numbers(first, keys.shape()[0])?;
        let width = self.bands + 1;
        if keys.shape()[1] != width {
            return Err(PyValueError::new_err(format!("a row must have {width} keys, got {}", keys.shape()[1])));
        }
        let rows = in_order(&keys);
        if py.detach(|| self.write().push(first, &rows, width)) {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("documents must come in ascending order, got {first} after a later one")))
    }

    /// Forgets what was pushed.
    fn forget_recent(&self, py: Python<'_>) {
        py.detach(|| self.write().forget_recent());
    }

    /// For every row of band keys the living documents that share a bucket: where each row's start, and one past the end of the
    /// last; the documents, ascending; in how many buckets each is; for every row whether candidates were left out.
    fn candidates<'py>(
        &self,
        py: Python<'py>,
        keys: Rows<'py>,
        max_bucket: usize,
        most: usize,
        threads: usize,
    ) -> PyResult<Found<'py>> {
        if keys.shape()[1] != self.bands {
            let message = format!("a row must have {} keys, got {}", self.bands, keys.shape()[1]);
            return Err(PyValueError::new_err(message));
        }
        let rows = in_order(&keys);
        let threads = if keys.shape()[0] < FEW { 1 } else { threads };
        let found = py.detach(|| {
            let inner = self.read();
            pool::install(threads, |threads| inner.all_candidates(&rows, self.bands, max_bucket, most, threads))
        })?;
        let (mut offsets, mut documents, mut shared, mut truncated) = (vec![0], Vec::new(), Vec::new(), Vec::new());
        for candidates in found.map_err(|error| segment_error(py, error))? {
            documents.extend(candidates.documents.iter().map(|&(document, _)| document));
            shared.extend(candidates.documents.iter().map(|&(_, shared)| shared));
            truncated.push(candidates.truncated);
            offsets.push(documents.len() as i64);
        }
        Ok((offsets.into_pyarray(py), documents.into_pyarray(py), shared.into_pyarray(py), truncated.into_pyarray(py)))
    }

    /// For every hash of an id the living documents that have it: where each hash's start, and the documents, ascending.
    fn holders<'py>(&self, py: Python<'py>, hashes: PyReadonlyArray1<'py, u64>) -> PyResult<Held<'py>> {
        let hashes = in_order(&hashes);
        let holders = py.detach(|| self.read().search().holders(&hashes)).map_err(|error| segment_error(py, error))?;
        Ok((holders.offsets.into_pyarray(py), holders.documents.into_pyarray(py)))
    }

    /// Of every open segment, oldest documents first: lowest document, one past the highest, postings of both runs, bytes of the file.
    fn segments(&self, py: Python<'_>) -> Vec<(u64, u64, u64, u64)> {
        py.detach(|| {
            let facts = |segment: &Arc<Segment>| {
                let postings = segment.len(Run::Bands) + segment.len(Run::Ids);
                (segment.low(), segment.high(), postings, segment.bytes())
            };
            self.read().segments().iter().map(facts).collect()
        })
    }

    /// Reads the open segment at a place whole, whatever has become of its name; what is wrong with it.
    fn check_segment(&self, py: Python<'_>, place: usize) -> PyResult<Option<String>> {
        let segment = py.detach(|| self.read().segments().get(place).cloned());
        let segment = segment.ok_or_else(|| PyValueError::new_err(format!("there is no segment {place}")))?;
        match py.detach(|| segment.check()) {
            Ok(()) => Ok(None),
            Err(SegmentError::Damaged(_, what)) => Ok(Some(what)),
            Err(error) => Err(segment_error(py, error)),
        }
    }

    /// Bytes of memory that the postings take.
    #[getter]
    fn resident_bytes(&self, py: Python<'_>) -> usize {
        py.detach(|| self.read().resident_bytes() + self.cache.resident_bytes())
    }
}

/// Writes a new segment of blocks of documents that follow each other; returns how many postings it holds.
#[pyfunction]
pub fn write_segment(
    py: Python<'_>,
    path: PathBuf,
    blocks: Vec<(u32, Rows<'_>)>,
    low: u64,
    high: u64,
) -> PyResult<u64> {
    let width = blocks.first().map_or(1, |(_, keys)| keys.shape()[1]);
    if width == 0 || blocks.iter().any(|(_, keys)| keys.shape()[1] != width) {
        return Err(PyValueError::new_err("every block must have rows of an id hash and equally many keys"));
    }
    if low > high || high > DOCUMENTS {
        let message = format!("documents must be from low to below high, at most {DOCUMENTS}, got {low} and {high}");
        return Err(PyValueError::new_err(message));
    }
    let mut rows = Vec::with_capacity(blocks.len());
    for (first, keys) in &blocks {
        check_numbers(*first, keys.shape()[0])?;
        if u64::from(*first) < low || u64::from(*first) + keys.shape()[0] as u64 > high {
            return Err(PyValueError::new_err(format!("documents must be from {low} to below {high}, got {first}")));
        }
        rows.push((*first, in_order(keys)));
    }
    let rows: Vec<(u32, &[u64])> = rows.iter().map(|(first, keys)| (*first, keys.as_ref())).collect();
    let written = py.detach(|| postings::write_segment(&path, &rows, width, low, high));
    written.map_err(|error| segment_error(py, error))
}

/// Writes one segment of those at `inputs`, oldest documents first, without removed documents; returns how many postings it holds.
#[pyfunction]
pub fn merge_segments(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    removed: PyReadonlyArray1<'_, u8>,
) -> PyResult<u64> {
    if inputs.is_empty() {
        return Err(PyValueError::new_err("there must be a segment to merge"));
    }
    let removed = removed.as_slice()?;
    let merged = py.detach(|| {
        let removed = Removed::from_bytes(removed);
        let segments = inputs.iter().map(|path| Segment::open(path)).collect::<Result<Vec<_>, _>>()?;
        segment::merge(&segments.iter().collect::<Vec<_>>(), &output, |document| removed.contains(document))
    });
    merged.map_err(|error| segment_error(py, error))
}

/// Reads a whole segment and checks it; returns how many postings and ids it holds, and of which documents.
#[pyfunction]
pub fn check_segment(py: Python<'_>, path: PathBuf) -> PyResult<HashMap<&'static str, u64>> {
    let checked = py.detach(|| Segment::open(&path).and_then(|segment| segment.check().map(|()| segment)));
    let segment = checked.map_err(|error| segment_error(py, error))?;
    let (postings, ids) = (segment.len(Run::Bands), segment.len(Run::Ids));
    Ok(HashMap::from([("postings", postings), ("ids", ids), ("low", segment.low()), ("high", segment.high())]))
}
