//! Exact similarity join for Python.

use std::sync::Arc;

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::batch::Sets;
use minwise_kernel::containment;
use minwise_kernel::join::{self, Match};
use minwise_kernel::weights::{Uniform, WeightTable};

use crate::arrays::sets;
use crate::thread_pool;
use crate::weights::Weights;

pub type SetArrays<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u64>);
pub type Matches<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>, usize);

/// Estimated frequency of elements.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct Rarity {
    inner: Arc<join::Rarity>,
}

#[pymethods]
impl Rarity {
    #[new]
    #[pyo3(signature = (elements, most_bytes, own=false))]
    fn new(elements: usize, most_bytes: usize, own: bool) -> Self {
        Self { inner: Arc::new(join::Rarity::new(elements, most_bytes, own)) }
    }

    /// Count the elements of sets.
    fn add<'py>(&self, py: Python<'py>, elements: PyReadonlyArray1<'py, u64>, threads: usize) -> PyResult<()> {
        let elements = elements.as_slice()?;
        py.detach(|| thread_pool::install(threads, |_| self.inner.add(elements)))
    }
}

/// Inverted index of sets, searched for sets similar to others.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct SetIndex {
    inner: AnyIndex,
}

/// Index of sets without and with weights.
enum AnyIndex {
    Uniform(join::SetIndex),
    Weighted(join::SetIndex<WeightTable>),
}

#[pymethods]
impl SetIndex {
    /// Create an index of numbered sets; `all_counted` means that `rarity` has counted every set that will be compared.
    #[new]
    #[pyo3(signature = (threshold, rarity, all_counted, batches, numbers, threads, weights=None))]
    #[allow(clippy::too_many_arguments, reason = "what an index is made of")]
    fn new<'py>(
        py: Python<'py>,
        threshold: f64,
        rarity: &Rarity,
        all_counted: bool,
        batches: Vec<SetArrays<'py>>,
        numbers: PyReadonlyArray1<'py, u32>,
        threads: usize,
        weights: Option<&Weights>,
    ) -> PyResult<Self> {
        let numbers = numbers.as_slice()?;
        let batches = numbered_sets(&batches, numbers)?;
        let (rarity, weights) = (Arc::clone(&rarity.inner), weights.map(Weights::table));
        let inner = py.detach(|| {
            thread_pool::install(threads, |_| match weights {
                None => {
                    let uniform = Arc::new(Uniform);
                    AnyIndex::Uniform(join::SetIndex::new(threshold, rarity, all_counted, &batches, numbers, uniform))
                }
                Some(weights) => {
                    AnyIndex::Weighted(join::SetIndex::new(threshold, rarity, all_counted, &batches, numbers, weights))
                }
            })
        })?;
        Ok(Self { inner })
    }

    fn __len__(&self) -> usize {
        match &self.inner {
            AnyIndex::Uniform(index) => index.len(),
            AnyIndex::Weighted(index) => index.len(),
        }
    }

    /// Return queries, members and similarities of about `most` matches, and the number of queries processed.
    fn matches<'py>(
        &self,
        py: Python<'py>,
        offsets: PyReadonlyArray1<'py, i64>,
        elements: PyReadonlyArray1<'py, u64>,
        numbers: PyReadonlyArray1<'py, u32>,
        most: usize,
        threads: usize,
    ) -> PyResult<Matches<'py>> {
        let (sets, numbers) = (sets(offsets.as_slice()?, elements.as_slice()?)?, numbers.as_slice()?);
        check_numbered(sets.len() == numbers.len())?;
        let work = |threads| match &self.inner {
            AnyIndex::Uniform(index) => index.matches(sets, numbers, most, threads),
            AnyIndex::Weighted(index) => index.matches(sets, numbers, most, threads),
        };
        Ok(columns(py, py.detach(|| thread_pool::install(threads, work))?))
    }

    /// Return the same for members among each other, starting at the member of rank `first`.
    fn matches_within<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        most: usize,
        threads: usize,
    ) -> PyResult<Matches<'py>> {
        let work = |threads| match &self.inner {
            AnyIndex::Uniform(index) => index.matches_within(first, most, threads),
            AnyIndex::Weighted(index) => index.matches_within(first, most, threads),
        };
        Ok(columns(py, py.detach(|| thread_pool::install(threads, work))?))
    }
}

/// Inverted index of the prefixes of sets, searched for sets that may lie in others.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct PrefixIndex {
    inner: containment::PrefixIndex,
}

#[pymethods]
impl PrefixIndex {
    /// Create an index of numbered sets; `rarity` must have counted every set that will be compared.
    #[new]
    fn new<'py>(
        py: Python<'py>,
        threshold: f64,
        rarity: &Rarity,
        batches: Vec<SetArrays<'py>>,
        numbers: PyReadonlyArray1<'py, u32>,
        threads: usize,
    ) -> PyResult<Self> {
        let numbers = numbers.as_slice()?;
        let batches = numbered_sets(&batches, numbers)?;
        let rarity = Arc::clone(&rarity.inner);
        let work = |_| containment::PrefixIndex::new(threshold, rarity, &batches, numbers);
        Ok(Self { inner: py.detach(|| thread_pool::install(threads, work))? })
    }

    /// Return about `most` pairs `query << 32 | member` of which the member may lie in the query, and the number of
    /// queries processed. The member has fewer elements, or as many and a smaller number.
    fn candidates<'py>(
        &self,
        py: Python<'py>,
        offsets: PyReadonlyArray1<'py, i64>,
        elements: PyReadonlyArray1<'py, u64>,
        numbers: PyReadonlyArray1<'py, u32>,
        most: usize,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray1<u64>>, usize)> {
        let (sets, numbers) = (sets(offsets.as_slice()?, elements.as_slice()?)?, numbers.as_slice()?);
        check_numbered(sets.len() == numbers.len())?;
        let work = |threads| self.inner.candidates(sets, numbers, most, threads);
        let (pairs, done) = py.detach(|| thread_pool::install(threads, work))?;
        Ok((pairs.into_pyarray(py), done))
    }
}

pub fn numbered_sets<'a>(batches: &'a [SetArrays<'_>], numbers: &[u32]) -> PyResult<Vec<Sets<'a>>> {
    let batches: Vec<Sets<'_>> = batches
        .iter()
        .map(|(offsets, elements)| sets(offsets.as_slice()?, elements.as_slice()?))
        .collect::<PyResult<_>>()?;
    check_numbered(batches.iter().map(Sets::len).sum::<usize>() == numbers.len())?;
    Ok(batches)
}

pub fn columns(py: Python<'_>, (found, done): (Vec<Match>, usize)) -> Matches<'_> {
    let queries: Vec<u32> = found.iter().map(|&Match { query, .. }| query).collect();
    let members: Vec<u32> = found.iter().map(|&Match { member, .. }| member).collect();
    let similarities: Vec<f64> = found.iter().map(|&Match { similarity, .. }| similarity).collect();
    (queries.into_pyarray(py), members.into_pyarray(py), similarities.into_pyarray(py), done)
}

pub fn check_numbered(numbered: bool) -> PyResult<()> {
    if numbered { Ok(()) } else { Err(PyValueError::new_err("every set must have a number")) }
}
