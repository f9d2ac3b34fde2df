//! N-grams of evaluation items for Python.

use std::sync::Arc;

use numpy::{IntoPyArray as _, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::batch::Texts;
use minwise_kernel::contamination::{self, MAX_NGRAM, MIN_TOKENS, Overlap, Scanned};
use minwise_kernel::error::TextFault;

use crate::arrays::{Offsets, lists, matrix};
use crate::shingle::Shingler;
use crate::thread_pool;

type Faults = Vec<(usize, String)>;
type ScanArrays<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray2<u64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<u32>>,
    Faults,
);
type LocatedArrays<'py> =
    (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<u32>>);

/// N-grams of evaluation items, which are looked for in texts.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct ItemTable {
    inner: contamination::ItemTable,
    /// Index and fault of each item that cannot be read.
    #[pyo3(get)]
    faults: Faults,
}

#[pymethods]
impl ItemTable {
    /// Create the table of items from shinglers of `size` words, of as many with another seed, and of `ITEM_TOKENS`.
    #[new]
    fn new(
        py: Python<'_>,
        shingler: &Shingler,
        second: &Shingler,
        heads: &Shingler,
        size: usize,
        offsets: &Bound<'_, PyAny>,
        data: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<Self> {
        if !(MIN_TOKENS..=MAX_NGRAM).contains(&size) {
            return Err(PyValueError::new_err("size must be from ITEM_TOKENS to MAX_NGRAM"));
        }
        let shinglers = [shingler, second, heads].map(|one| Arc::clone(&one.inner));
        let data = data.as_slice()?;
        let (inner, faults) = match &Offsets::of(offsets)? {
            Offsets::Narrow(offsets) => {
                let items = lists(offsets.as_slice()?, data)?;
                py.detach(|| contamination::ItemTable::new(shinglers, size, items))
            }
            Offsets::Wide(offsets) => {
                let items = lists(offsets.as_slice()?, data)?;
                py.detach(|| contamination::ItemTable::new(shinglers, size, items))
            }
        };
        Ok(Self { inner, faults: faults.into_iter().map(|one| (one.document, one.fault.to_string())).collect() })
    }

    /// Number of distinct n-grams.
    #[getter]
    fn grams(&self) -> usize {
        self.inner.grams()
    }

    /// Bytes of memory that the table takes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.inner.bytes()
    }

    /// Return the number of words of each item.
    fn token_counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.inner.token_counts().into_pyarray(py)
    }

    /// Return the n-grams of each item in its order: offsets, and values.
    fn item_grams<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>) {
        let (offsets, grams) = self.inner.item_grams();
        (offsets.into_pyarray(py), grams.into_pyarray(py))
    }

    /// Return words, content hash, and offsets and values of the distinct n-grams of each text; and the faults.
    fn scan<'py>(
        &self,
        py: Python<'py>,
        offsets: &Bound<'py, PyAny>,
        data: PyReadonlyArray1<'py, u8>,
        threads: usize,
    ) -> PyResult<ScanArrays<'py>> {
        let data = data.as_slice()?;
        let found = match &Offsets::of(offsets)? {
            Offsets::Narrow(offsets) => self.scan_lists(py, lists(offsets.as_slice()?, data)?, threads),
            Offsets::Wide(offsets) => self.scan_lists(py, lists(offsets.as_slice()?, data)?, threads),
        }?;
        let (found, faults) = split(found);
        let tokens: Vec<u32> = found.iter().map(|one| one.tokens).collect();
        let contents: Vec<u64> = found.iter().flat_map(|one| one.content).collect();
        let ends = ends(found.iter().map(|one| one.grams.len()));
        let grams: Vec<u32> = found.into_iter().flat_map(|one| one.grams).collect();
        Ok((tokens.into_pyarray(py), matrix(py, contents, 2)?, ends.into_pyarray(py), grams.into_pyarray(py), faults))
    }

    /// Return matched n-grams, covered words, and offsets and values of the spans of each wanted item of each text.
    #[allow(clippy::too_many_arguments, reason = "arrays are passed one by one")]
    fn locate<'py>(
        &self,
        py: Python<'py>,
        offsets: &Bound<'py, PyAny>,
        data: PyReadonlyArray1<'py, u8>,
        wanted_offsets: PyReadonlyArray1<'py, i64>,
        wanted: PyReadonlyArray1<'py, u32>,
        counts: PyReadonlyArray1<'py, bool>,
        threads: usize,
    ) -> PyResult<LocatedArrays<'py>> {
        let (data, counts) = (data.as_slice()?, counts.as_slice()?);
        let items = lists(wanted_offsets.as_slice()?, wanted.as_slice()?)?;
        let wanted: Vec<&[u32]> = (0..items.len()).map(|i| items.get(i)).collect();
        let in_table = wanted.iter().all(|items| items.iter().all(|&item| (item as usize) < self.inner.items()));
        if !in_table || counts.len() != self.inner.grams() {
            return Err(PyValueError::new_err("wanted must be items of the table, with a flag for each n-gram"));
        }
        let found = match &Offsets::of(offsets)? {
            Offsets::Narrow(offsets) => {
                self.locate_lists(py, lists(offsets.as_slice()?, data)?, &wanted, counts, threads)
            }
            Offsets::Wide(offsets) => {
                self.locate_lists(py, lists(offsets.as_slice()?, data)?, &wanted, counts, threads)
            }
        }?;
        let found: Vec<Overlap> = found.into_iter().flatten().collect();
        let numbers = |number: fn(&Overlap) -> u32| -> Vec<u32> { found.iter().map(number).collect() };
        let (matched, covered) = (numbers(|one| one.matched), numbers(|one| one.covered));
        let ends = ends(found.iter().map(|one| one.spans.len()));
        let spans: Vec<u32> = found.into_iter().flat_map(|one| one.spans).flatten().collect();
        Ok((matched.into_pyarray(py), covered.into_pyarray(py), ends.into_pyarray(py), matrix(py, spans, 4)?))
    }
}

impl ItemTable {
    fn scan_lists<O>(
        &self,
        py: Python<'_>,
        texts: Texts<'_, O>,
        threads: usize,
    ) -> PyResult<Vec<Result<Scanned, TextFault>>>
    where
        O: Copy + TryInto<usize> + Send + Sync,
    {
        py.detach(|| thread_pool::install(threads, |threads| self.inner.scan(texts, threads)))
    }

    /// Return the overlaps of each text; a text with a fault has none, because no item is wanted from it.
    fn locate_lists<O>(
        &self,
        py: Python<'_>,
        texts: Texts<'_, O>,
        wanted: &[&[u32]],
        counts: &[bool],
        threads: usize,
    ) -> PyResult<Vec<Vec<Overlap>>>
    where
        O: Copy + TryInto<usize> + Send + Sync,
    {
        if texts.len() != wanted.len() {
            return Err(PyValueError::new_err("there must be a list of wanted items for each text"));
        }
        let found =
            py.detach(|| thread_pool::install(threads, |threads| self.inner.locate(texts, wanted, counts, threads)))?;
        let located: Result<Vec<_>, _> = found.into_iter().collect();
        located.map_err(|fault| PyValueError::new_err(fault.to_string()))
    }
}

/// Return what was found, with nothing for each fault, and the faults.
fn split(found: Vec<Result<Scanned, TextFault>>) -> (Vec<Scanned>, Faults) {
    let faults = found.iter().enumerate().filter_map(|(i, one)| Some((i, one.as_ref().err()?.to_string()))).collect();
    (found.into_iter().map(Result::unwrap_or_default).collect(), faults)
}

/// Return offsets of lists of these lengths.
fn ends(lengths: impl Iterator<Item = usize>) -> Vec<i64> {
    let mut offsets = vec![0];
    let mut end = 0;
    offsets.extend(lengths.map(|length| {
        end += length as i64;
        end
    }));
    offsets
}
