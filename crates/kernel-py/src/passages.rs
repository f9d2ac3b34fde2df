//! Repeated passages for Python.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::batch::Texts;
use minwise_kernel::error::TextFault;
use minwise_kernel::passages::{self, Cut, Groups, Kind, MAX_TOKENS, Order, Regions, Scanner, Spill, cut_texts};
use minwise_kernel::units::Unit;

use crate::arrays::{Offsets, lists};
use crate::shingle::{Shingler, unit_of};
use crate::thread_pool;

type Scanned<'py> = (Bound<'py, PyArray1<u32>>, Vec<(usize, String)>);
type CoverArrays<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
);
type RegionArrays<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>);

/// Function from texts to entries of their segments or units, or of the L-grams of regions, which it collects by
/// partition.
///
/// When these take `spill_bytes`, `spill` is called with the entries of each partition.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct PassageScanner {
    inner: Scanner,
    unit: Option<Unit>,
    spill_bytes: usize,
    spill: Py<PyAny>,
}

#[pymethods]
impl PassageScanner {
    #[new]
    #[pyo3(signature = (shingler, min_tokens, seed, spill_bytes, spill, unit=None))]
    fn new(
        shingler: &Shingler,
        min_tokens: usize,
        seed: u64,
        spill_bytes: usize,
        spill: Py<PyAny>,
        unit: Option<&str>,
    ) -> PyResult<Self> {
        if !(1..=MAX_TOKENS).contains(&min_tokens) {
            return Err(PyValueError::new_err("min_tokens must be from 1 to MAX_PASSAGE_TOKENS"));
        }
        let unit = unit.map(unit_of).transpose()?;
        Ok(Self { inner: Scanner::new(Arc::clone(&shingler.inner), min_tokens, seed), unit, spill_bytes, spill })
    }

    /// Return the encoded entries of each partition, and forget them.
    fn drain<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<u8>>> {
        arrays(py, self.inner.drain())
    }

    /// Add the segments or units of texts; return the number of tokens of each, and the index and fault of each faulty one.
    fn scan<'py>(
        &self,
        py: Python<'py>,
        offsets: &Bound<'py, PyAny>,
        data: PyReadonlyArray1<'py, u8>,
        numbers: PyReadonlyArray1<'py, u32>,
        threads: usize,
    ) -> PyResult<Scanned<'py>> {
        self.add(py, offsets, data.as_slice()?, numbers.as_slice()?, None, threads)
    }

    /// Add the L-grams of regions, which are ordered by key.
    #[allow(clippy::too_many_arguments, reason = "arrays are passed one by one")]
    fn scan_regions<'py>(
        &self,
        py: Python<'py>,
        offsets: &Bound<'py, PyAny>,
        data: PyReadonlyArray1<'py, u8>,
        numbers: PyReadonlyArray1<'py, u32>,
        keys: PyReadonlyArray1<'py, u64>,
        counts: PyReadonlyArray1<'py, u32>,
        threads: usize,
    ) -> PyResult<Scanned<'py>> {
        let (keys, counts) = (keys.as_slice()?.to_vec(), counts.as_slice()?.to_vec());
        if keys.len() != counts.len() || !keys.is_sorted() {
            return Err(PyValueError::new_err("keys must ascend, with a count for each"));
        }
        self.add(py, offsets, data.as_slice()?, numbers.as_slice()?, Some(Regions { keys, counts }), threads)
    }
}

impl PassageScanner {
    fn add<'py>(
        &self,
        py: Python<'py>,
        offsets: &Bound<'py, PyAny>,
        data: &[u8],
        numbers: &[u32],
        regions: Option<Regions>,
        threads: usize,
    ) -> PyResult<Scanned<'py>> {
        let found = match &Offsets::of(offsets)? {
            Offsets::Narrow(offsets) => {
                self.add_lists(py, lists(offsets.as_slice()?, data)?, numbers, regions, threads)
            }
            Offsets::Wide(offsets) => self.add_lists(py, lists(offsets.as_slice()?, data)?, numbers, regions, threads),
        }?;
        let faults = found.iter().enumerate().filter_map(|(i, one)| Some((i, one.as_ref().err()?.to_string())));
        let faults = faults.collect();
        let tokens: Vec<u32> = found.into_iter().map(|one| one.unwrap_or(0)).collect();
        Ok((tokens.into_pyarray(py), faults))
    }

    fn add_lists<O>(
        &self,
        py: Python<'_>,
        texts: Texts<'_, O>,
        numbers: &[u32],
        regions: Option<Regions>,
        threads: usize,
    ) -> PyResult<Vec<Result<u32, TextFault>>>
    where
        O: Copy + TryInto<usize> + Send + Sync,
    {
        if texts.len() != numbers.len() {
            return Err(PyValueError::new_err("there must be a number for each text"));
        }
        let failure = Mutex::new(None);
        let write = |partitions| {
            let written = Python::attach(|py| self.spill.call1(py, (arrays(py, partitions),)));
            if let Err(error) = written {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        };
        let spill = Spill { bytes: self.spill_bytes, write: &write };
        let found = py.detach(|| {
            thread_pool::install(threads, |threads| match (&regions, self.unit) {
                (Some(regions), _) => self.inner.scan_regions(texts, numbers, regions, threads, spill),
                (None, Some(unit)) => self.inner.scan_units(texts, numbers, unit, threads, spill),
                (None, None) => self.inner.scan(texts, numbers, threads, spill),
            })
        })?;
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(found), Err)
    }
}

fn arrays(py: Python<'_>, partitions: Vec<Vec<u8>>) -> Vec<Bound<'_, PyArray1<u8>>> {
    partitions.into_iter().map(|bytes| bytes.into_pyarray(py)).collect()
}

fn slice_of<'a>(array: Option<&'a PyReadonlyArray1<'_, u32>>) -> PyResult<Option<&'a [u32]>> {
    Ok(array.map(|array| array.as_slice()).transpose()?)
}

/// Return the entries of a block whose fingerprints are in range `part` of `parts`, with the numbers of their
/// documents replaced; those of documents whose number is that of no document are left out.
#[pyfunction]
pub fn renumber_passages<'py>(
    py: Python<'py>,
    block: PyReadonlyArray1<'py, u8>,
    numbers: PyReadonlyArray1<'py, u32>,
    part: u64,
    parts: u64,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let (block, numbers) = (block.as_slice()?, numbers.as_slice()?);
    let renumbered = py.detach(|| {
        let numbers: Vec<_> = numbers.iter().map(|&number| (number != u32::MAX).then_some(number)).collect();
        passages::renumber(block, &numbers, (part, parts))
    });
    Ok(renumbered.into_pyarray(py))
}

type CutArrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>);

/// Return the cuts of texts: start and end in code points, start and end in bytes of each, one after the other; the
/// number of cuts of each text; the tokens of each cut.
///
/// `covered` are spans of code points, ascending and disjoint in each text, and `counts` how many a text has.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "arrays are passed one by one")]
pub fn cut_passages<'py>(
    py: Python<'py>,
    shingler: &Shingler,
    offsets: &Bound<'py, PyAny>,
    data: PyReadonlyArray1<'py, u8>,
    covered: PyReadonlyArray1<'py, u32>,
    counts: PyReadonlyArray1<'py, i64>,
    snap: Option<&str>,
    threads: usize,
) -> PyResult<CutArrays<'py>> {
    let snap = snap.map(unit_of).transpose()?;
    let mut rest = covered.as_slice()?.as_chunks().0;
    let mut spans = Vec::new();
    for &count in counts.as_slice()? {
        let (own, after) = rest
            .split_at_checked(count as usize)
            .ok_or_else(|| PyValueError::new_err("counts must not exceed the spans"))?;
        spans.push(own);
        rest = after;
    }
    let (data, shingler) = (data.as_slice()?, &shingler.inner);
    let cuts = match &Offsets::of(offsets)? {
        Offsets::Narrow(offsets) => cuts_of(py, shingler, lists(offsets.as_slice()?, data)?, &spans, snap, threads),
        Offsets::Wide(offsets) => cuts_of(py, shingler, lists(offsets.as_slice()?, data)?, &spans, snap, threads),
    }?;
    let numbers: Vec<i64> = cuts.iter().map(|cuts| cuts.len() as i64).collect();
    let bounds = cuts
        .iter()
        .flatten()
        .flat_map(|cut| [i64::from(cut.points[0]), i64::from(cut.points[1]), cut.bytes[0] as i64, cut.bytes[1] as i64]);
    let bounds: Vec<i64> = bounds.collect();
    let tokens: Vec<u32> = cuts.iter().flatten().map(|cut| cut.tokens).collect();
    Ok((bounds.into_pyarray(py), numbers.into_pyarray(py), tokens.into_pyarray(py)))
}

fn cuts_of<O>(
    py: Python<'_>,
    shingler: &minwise_kernel::shingle::Shingler,
    texts: Texts<'_, O>,
    covered: &[&[[u32; 2]]],
    snap: Option<Unit>,
    threads: usize,
) -> PyResult<Vec<Vec<Cut>>>
where
    O: Copy + TryInto<usize> + Send + Sync,
{
    if texts.len() != covered.len() {
        return Err(PyValueError::new_err("there must be a count for each text"));
    }
    let cut = || thread_pool::install(threads, |threads| cut_texts(shingler, texts, covered, snap, threads));
    py.detach(cut)?
        .into_iter()
        .enumerate()
        .map(|(i, found)| found.map_err(|fault| crate::arrays::document_error(Some(i), fault)))
        .collect()
}

/// Groups of the entries of a partition.
#[pyclass(module = "minwise._kernel")]
pub struct PassageGroups {
    inner: Groups,
    references: Option<u32>,
}

#[pymethods]
impl PassageGroups {
    #[new]
    fn new(references: Option<u32>, kind: &str, part: u64, parts: u64, min_count: u32) -> PyResult<Self> {
        let kind = match kind {
            "segments" => Kind::Segments,
            "grams" => Kind::Grams,
            "units" => Kind::Units,
            _ => return Err(PyValueError::new_err("kind must be segments, grams or units")),
        };
        Ok(Self { inner: Groups::new(kind, (part, parts), min_count), references })
    }

    /// Add a block of entries.
    fn add(
        &mut self,
        py: Python<'_>,
        block: PyReadonlyArray1<'_, u8>,
        rank_of: Option<PyReadonlyArray1<'_, u32>>,
    ) -> PyResult<()> {
        let (block, rank_of) = (block.as_slice()?, slice_of(rank_of.as_ref())?);
        let order = Order { rank_of, references: self.references };
        py.detach(|| self.inner.add(block, order));
        Ok(())
    }

    /// Return the entries of a block that repeat the first of their group, and the unresolved ones.
    fn resolve<'py>(
        &self,
        py: Python<'py>,
        block: PyReadonlyArray1<'py, u8>,
        rank_of: Option<PyReadonlyArray1<'py, u32>>,
    ) -> PyResult<(CoverArrays<'py>, RegionArrays<'py>)> {
        let (block, rank_of) = (block.as_slice()?, slice_of(rank_of.as_ref())?);
        let order = Order { rank_of, references: self.references };
        let (covers, regions) = py.detach(|| self.inner.resolve(block, order));
        let regions = (regions.keys.into_pyarray(py), regions.counts.into_pyarray(py));
        let (keys, counts) = (covers.keys.into_pyarray(py), covers.counts.into_pyarray(py));
        let (others, spans) = (covers.others.into_pyarray(py), covers.spans.into_pyarray(py));
        Ok(((keys, counts, others, spans, covers.occurrences.into_pyarray(py)), regions))
    }
}
