//! Postings of an index for Python.

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

use crate::thread_pool;
use minwise_kernel::postings::{self, Removed};
use minwise_kernel::segment::{self, BlockCache, MAX_DOCUMENTS, Run, Segment, SegmentError, Summary};

create_exception!(
    _kernel,
    DamagedError,
    PyValueError,
    "A file does not hold what was written to it: (path, description)."
);

/// Rows below which one thread finishes before others are awake.
const MIN_PARALLEL_ROWS: usize = 4;

type Found<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u16>>,
    Bound<'py, PyArray1<u16>>,
    Bound<'py, PyArray1<u32>>,
);
type Held<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>);
type Rows<'py> = PyReadonlyArray2<'py, u64>;
/// Postings, bytes, checksum of the trailer, and checksum of the blocks of a new segment.
type Written = (u64, u64, u32, u32);

fn written(py: Python<'_>, summary: Result<Summary, SegmentError>) -> PyResult<Written> {
    let summary = summary.map_err(|error| segment_error(py, error))?;
    Ok((summary.postings, summary.bytes, summary.trailer, summary.blocks))
}

/// Return the Python error of a segment: an `OSError` with number and file name, or a `DamagedError`.
fn segment_error(py: Python<'_>, error: SegmentError) -> PyErr {
    match error {
        SegmentError::Damaged(path, what) => DamagedError::new_err((os_string(&path), what)),
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
    // Calling OSError creates the subclass of the error number.
    Ok(PyErr::from_value(py.get_type::<PyOSError>().call1((number.unwrap_or(EIO), what, os_string(path)))?))
}

fn os_string(path: &Path) -> OsString {
    path.as_os_str().to_owned()
}

/// Check that consecutive documents from `first` on have valid numbers.
fn check_numbers(first: u32, documents: usize) -> PyResult<()> {
    if u64::from(first) + documents as u64 <= MAX_DOCUMENTS {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "document numbers must be below {MAX_DOCUMENTS}, got {documents} documents starting at {first}"
    )))
}

/// Return the keys of an array in row order: borrowed, or copied if the array is not contiguous.
fn contiguous<'a, D: Dimension>(keys: &'a PyReadonlyArray<'_, u64, D>) -> Cow<'a, [u64]> {
    match keys.as_slice() {
        Ok(keys) => Cow::Borrowed(keys),
        Err(_) => Cow::Owned(keys.as_array().iter().copied().collect()),
    }
}

/// Postings of live documents by key.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct Postings {
    bands: usize,
    cache: Arc<BlockCache>,
    inner: RwLock<postings::Postings>,
}

impl Postings {
    /// Lock for reading. The GIL must not be held: the holder of the lock may wait for it.
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

    /// Replace the segments by those at these paths, oldest documents first. Open segments stay open; an error changes
    /// nothing.
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

    /// Replace the bitmap of removed documents: bit i of byte j is document 8·j + i. Documents beyond its end are live.
    fn set_removed(&self, py: Python<'_>, bits: PyReadonlyArray1<'_, u8>) -> PyResult<()> {
        let bits = bits.as_slice()?;
        py.detach(|| self.write().set_removed(Removed::from_bytes(bits)));
        Ok(())
    }

    /// Mark documents as removed.
    fn remove(&self, py: Python<'_>, documents: PyReadonlyArray1<'_, u32>) -> PyResult<()> {
        let documents = documents.as_slice()?;
        py.detach(|| self.write().remove(documents));
        Ok(())
    }

    /// Add the id hash and the band keys, a row per document, of consecutive documents from `first` on.
    fn push(&self, py: Python<'_>, first: u32, keys: Rows<'_>) -> PyResult<()> {
        check_numbers(first, keys.shape()[0])?;
        let width = self.bands + 1;
        if keys.shape()[1] != width {
            return Err(PyValueError::new_err(format!("keys must have {width} columns, got {}", keys.shape()[1])));
        }
        let rows = contiguous(&keys);
        if py.detach(|| self.write().push(first, &rows, width)) {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "documents must be pushed in ascending order, got {first} after a larger one"
        )))
    }

    /// Drop all pushed documents.
    fn forget_recent(&self, py: Python<'_>) {
        py.detach(|| self.write().forget_recent());
    }

    /// Return the live documents that share a bucket with each row of band keys.
    ///
    /// A bucket counts with its first `max_bucket` live documents, and a row has at most `most` candidates. The result
    /// is the start of each row's documents and the end of the last; the documents, those that share the most buckets
    /// first, then ascending; the number of buckets that each shares; and for every row the number of buckets that were
    /// not read completely, and of candidates beyond `most`.
    fn candidates<'py>(
        &self,
        py: Python<'py>,
        keys: Rows<'py>,
        max_bucket: usize,
        most: usize,
        threads: usize,
    ) -> PyResult<Found<'py>> {
        if keys.shape()[1] != self.bands {
            let message = format!("keys must have {} columns, got {}", self.bands, keys.shape()[1]);
            return Err(PyValueError::new_err(message));
        }
        let rows = contiguous(&keys);
        let threads = if keys.shape()[0] < MIN_PARALLEL_ROWS { 1 } else { threads };
        let found = py.detach(|| {
            let inner = self.read();
            thread_pool::install(threads, |threads| inner.all_candidates(&rows, self.bands, max_bucket, most, threads))
        })?;
        let (mut offsets, mut documents, mut shared) = (vec![0], Vec::new(), Vec::new());
        let (mut capped, mut left_out) = (Vec::new(), Vec::new());
        for candidates in found.map_err(|error| segment_error(py, error))? {
            documents.extend(candidates.documents.iter().map(|&(document, _)| document));
            shared.extend(candidates.documents.iter().map(|&(_, shared)| shared));
            capped.push(candidates.capped);
            left_out.push(candidates.left_out);
            offsets.push(documents.len() as i64);
        }
        Ok((
            offsets.into_pyarray(py),
            documents.into_pyarray(py),
            shared.into_pyarray(py),
            capped.into_pyarray(py),
            left_out.into_pyarray(py),
        ))
    }

    /// Return the live documents of each id hash: the start of each hash's documents and the end of the last, and the
    /// documents, ascending.
    fn holders<'py>(&self, py: Python<'py>, hashes: PyReadonlyArray1<'py, u64>) -> PyResult<Held<'py>> {
        let hashes = contiguous(&hashes);
        let holders = py.detach(|| self.read().search().holders(&hashes)).map_err(|error| segment_error(py, error))?;
        Ok((holders.offsets.into_pyarray(py), holders.documents.into_pyarray(py)))
    }

    /// Return for every open segment, oldest documents first: lowest document, one past the highest, number of postings
    /// in both runs, size of the file, checksum of the trailer.
    fn segments(&self, py: Python<'_>) -> Vec<(u64, u64, u64, u64, u32)> {
        py.detach(|| {
            let statistics = |segment: &Arc<Segment>| {
                let postings = segment.len(Run::Bands) + segment.len(Run::Ids);
                (segment.low(), segment.high(), postings, segment.bytes(), segment.checksum())
            };
            self.read().segments().iter().map(statistics).collect()
        })
    }

    /// Read an open segment completely, even if its file was deleted; return what is wrong with it, or None. `blocks`
    /// is the checksum of its blocks, if it is known.
    #[pyo3(signature = (place, blocks = None))]
    fn check_segment(&self, py: Python<'_>, place: usize, blocks: Option<u32>) -> PyResult<Option<String>> {
        let segment = py.detach(|| self.read().segments().get(place).cloned());
        let segment = segment.ok_or_else(|| PyValueError::new_err(format!("no segment {place}")))?;
        match py.detach(|| segment.check()) {
            Ok(found) if blocks.is_some_and(|blocks| blocks != found) => {
                Ok(Some("its blocks are those of another segment".to_owned()))
            }
            Ok(_) => Ok(None),
            Err(SegmentError::Damaged(_, what)) => Ok(Some(what)),
            Err(error) => Err(segment_error(py, error)),
        }
    }

    /// Write one segment of the open ones from `start` up to `end`, without removed documents; return its number of
    /// postings, size and checksums.
    fn merge_segments(
        &self,
        py: Python<'_>,
        start: usize,
        end: usize,
        output: PathBuf,
        removed: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<Written> {
        let inputs = py.detach(|| self.read().segments().get(start..end).map(<[_]>::to_vec)).unwrap_or_default();
        if inputs.is_empty() {
            return Err(PyValueError::new_err(format!("there must be open segments from {start} to {end}")));
        }
        let removed = removed.as_slice()?;
        let merged = py.detach(|| {
            let removed = Removed::from_bytes(removed);
            let inputs: Vec<&Segment> = inputs.iter().map(AsRef::as_ref).collect();
            segment::merge(&inputs, &output, |document| removed.contains(document))
        });
        written(py, merged)
    }

    /// Memory used by the postings, in bytes.
    #[getter]
    fn resident_bytes(&self, py: Python<'_>) -> usize {
        py.detach(|| self.read().resident_bytes() + self.cache.resident_bytes())
    }
}

/// Write a new segment of blocks of consecutive documents; return its number of postings, size and checksums.
#[pyfunction]
pub fn write_segment(
    py: Python<'_>,
    path: PathBuf,
    blocks: Vec<(u32, Rows<'_>)>,
    low: u64,
    high: u64,
) -> PyResult<Written> {
    let width = blocks.first().map_or(1, |(_, keys)| keys.shape()[1]);
    if width == 0 || blocks.iter().any(|(_, keys)| keys.shape()[1] != width) {
        return Err(PyValueError::new_err("the rows of all blocks must have an id hash and equally many keys"));
    }
    if low > high || high > MAX_DOCUMENTS {
        let message = format!("low must be at most high, and high at most {MAX_DOCUMENTS}, got {low} and {high}");
        return Err(PyValueError::new_err(message));
    }
    let mut rows = Vec::with_capacity(blocks.len());
    for (first, keys) in &blocks {
        check_numbers(*first, keys.shape()[0])?;
        if u64::from(*first) < low || u64::from(*first) + keys.shape()[0] as u64 > high {
            return Err(PyValueError::new_err(format!(
                "documents must be at least {low} and below {high}, got a block starting at {first}"
            )));
        }
        rows.push((*first, contiguous(keys)));
    }
    let rows: Vec<(u32, &[u64])> = rows.iter().map(|(first, keys)| (*first, keys.as_ref())).collect();
    let summary = py.detach(|| postings::write_segment(&path, &rows, width, low, high));
    written(py, summary)
}

/// Read and check a whole segment; return its numbers of postings and ids, and its range of documents.
#[pyfunction]
pub fn check_segment(py: Python<'_>, path: PathBuf) -> PyResult<HashMap<&'static str, u64>> {
    let checked = py.detach(|| Segment::open(&path).and_then(|segment| segment.check().map(|_| segment)));
    let segment = checked.map_err(|error| segment_error(py, error))?;
    let (postings, ids) = (segment.len(Run::Bands), segment.len(Run::Ids));
    Ok(HashMap::from([("postings", postings), ("ids", ids), ("low", segment.low()), ("high", segment.high())]))
}
