//! Comparison of sets in files for Python.

use std::fs::File;

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::set_store::{self, SetFile};
use minwise_kernel::verify::Measure;

use crate::thread_pool;
use crate::weights::Weights;

pub type SimilarPairs<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);

/// Sets of several files, numbered consecutively, and compared by Jaccard similarity or by containment.
#[pyclass(module = "minwise._kernel")]
pub struct SetStore {
    inner: set_store::SetStore,
}

impl SetStore {
    pub const fn inner(&self) -> &set_store::SetStore {
        &self.inner
    }
}

#[pymethods]
impl SetStore {
    #[new]
    #[pyo3(signature = (containment=false, weights=None))]
    fn new(containment: bool, weights: Option<&Weights>) -> PyResult<Self> {
        let inner = match (containment, weights) {
            (false, None) => set_store::SetStore::new(Measure::Jaccard),
            (true, None) => set_store::SetStore::new(Measure::Containment),
            (false, Some(weights)) => set_store::SetStore::weighted(weights.table()),
            (true, Some(_)) => return Err(PyValueError::new_err("containment has no weights")),
        };
        Ok(Self { inner })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Append the sets of a file: the first element is at byte `position`, set i is elements `offsets[i]..offsets[i +
    /// 1]`.
    ///
    /// Sets are held in memory if `loaded`, otherwise read on demand. If `outlined`, a bitmap of 64 bytes per set is
    /// held in memory.
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
            return Err(PyValueError::new_err("offsets must ascend and not be empty"));
        }
        Ok(self.inner.add(SetFile::new(File::open(path)?, position, offsets), outlined, loaded)?)
    }

    /// Return the pairs `low << 32 | high` whose similarity is at least `floor`, in order, as columns low, high and
    /// similarity.
    ///
    /// Number n stands for set `places[n]`. Pairs with an equal low number should be adjacent.
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
        let exists = |number: u64| places.get(number as usize).is_some_and(|&set| (set as usize) < sets);
        if !pairs.iter().all(|&pair| exists(pair >> 32) && exists(pair & u64::from(u32::MAX))) {
            return Err(PyValueError::new_err("pairs must be of sets that exist"));
        }
        let found =
            py.detach(|| thread_pool::install(threads, |threads| self.inner.similar(pairs, places, floor, threads)))??;
        Ok((found.low.into_pyarray(py), found.high.into_pyarray(py), found.similarity.into_pyarray(py)))
    }
}
