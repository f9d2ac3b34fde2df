//! Search for the nearest sets for Python.

use std::sync::Arc;

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::batch::Sets;
use minwise_kernel::nearest::{self, Earlier, Wanted, match_greedily};
use minwise_kernel::verify::Measure;
use minwise_kernel::weights::{Uniform, WeightTable};

use crate::arrays::sets;
use crate::join::{Matches, SetArrays, check_numbered, columns, numbered_sets};
use crate::thread_pool;
use crate::weights::Weights;

/// Nearest sets of queries in other indexes: offsets, numbers and similarities.
type EarlierArrays<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>);

enum Index {
    Uniform(nearest::NearestIndex<Uniform>),
    Weighted(nearest::NearestIndex<WeightTable>),
}

/// Inverted index of sets, searched for the sets nearest to others.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct NearestIndex {
    inner: Index,
}

#[pymethods]
impl NearestIndex {
    /// Create an index of numbered sets; without `weights` every element has weight 1.
    #[new]
    fn new<'py>(
        py: Python<'py>,
        weights: Option<&Weights>,
        batches: Vec<SetArrays<'py>>,
        numbers: PyReadonlyArray1<'py, u32>,
        threads: usize,
    ) -> PyResult<Self> {
        let numbers = numbers.as_slice()?;
        let batches = numbered_sets(&batches, numbers)?;
        if batches.iter().map(Sets::elements).sum::<usize>() >= nearest::MAX_ELEMENTS {
            return Err(PyValueError::new_err("too many elements for one index"));
        }
        let table = weights.map(Weights::table);
        let work = |_| match table {
            None => Index::Uniform(nearest::NearestIndex::new(Arc::new(Uniform), &batches, numbers)),
            Some(table) => Index::Weighted(nearest::NearestIndex::new(table, &batches, numbers)),
        };
        Ok(Self { inner: py.detach(|| thread_pool::install(threads, work))? })
    }

    fn __len__(&self) -> usize {
        match &self.inner {
            Index::Uniform(index) => index.len(),
            Index::Weighted(index) => index.len(),
        }
    }

    /// Return queries, members and similarities of the `top` nearest sets of each query, best first.
    ///
    /// The sets in `earlier`, found in other indexes, count as members of this one. The member that has the number of a
    /// query is left out. With `containment` a similarity is the share of the set with fewer elements.
    #[pyo3(signature = (offsets, elements, numbers, earlier, top, at_least, threads, containment=false))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of one search")]
    fn nearest<'py>(
        &self,
        py: Python<'py>,
        offsets: PyReadonlyArray1<'py, i64>,
        elements: PyReadonlyArray1<'py, u64>,
        numbers: PyReadonlyArray1<'py, u32>,
        earlier: EarlierArrays<'py>,
        top: usize,
        at_least: f64,
        threads: usize,
        containment: bool,
    ) -> PyResult<Matches<'py>> {
        let (sets, numbers) = (sets(offsets.as_slice()?, elements.as_slice()?)?, numbers.as_slice()?);
        check_numbered(sets.len() == numbers.len())?;
        let (offsets, members, similarities) = (&earlier.0, &earlier.1, &earlier.2);
        let earlier = Earlier {
            offsets: offsets.as_slice()?,
            numbers: members.as_slice()?,
            similarities: similarities.as_slice()?,
        };
        if !earlier.fits(numbers.len()) {
            return Err(PyValueError::new_err("every query must have its earlier sets"));
        }
        let measure = if containment { Measure::Containment } else { Measure::Jaccard };
        let wanted = Wanted { top, at_least, measure };
        let work = |threads| match &self.inner {
            Index::Uniform(index) => index.nearest(sets, numbers, earlier, wanted, threads),
            Index::Weighted(index) => index.nearest(sets, numbers, earlier, wanted, threads),
        };
        let found = py.detach(|| thread_pool::install(threads, work))?;
        Ok(columns(py, (found, numbers.len())))
    }
}

/// Return a flag for each pair of documents that have no earlier pair, and mark them as taken.
#[pyfunction]
pub fn match_pairs<'py>(
    py: Python<'py>,
    left: PyReadonlyArray1<'py, u32>,
    right: PyReadonlyArray1<'py, u32>,
    mut taken: PyReadwriteArray1<'py, bool>,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let (left, right, taken) = (left.as_slice()?, right.as_slice()?, taken.as_slice_mut()?);
    let most = left.iter().chain(right).max().map_or(0, |&most| most as usize + 1);
    if left.len() != right.len() || most > taken.len() {
        return Err(PyValueError::new_err("pairs must be documents that have a flag"));
    }
    Ok(match_greedily(left, right, taken).into_pyarray(py))
}
