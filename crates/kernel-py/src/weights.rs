//! Weights of elements for Python.

use std::sync::Arc;

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::weights::{self, ONE, OWN_ONE, Weigh as _, WeightTable};

use crate::thread_pool;

/// Largest factor: a weight fits into 32 bits.
const MAX_FACTOR: f64 = 1000.0;

/// Number of sets that have an element.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct Frequencies {
    inner: weights::Frequencies,
}

#[pymethods]
impl Frequencies {
    /// Create a table of 2 to the power of `bits` slots; `own` for elements that hold their weights.
    #[new]
    #[pyo3(signature = (bits, own=false))]
    fn new(bits: u32, own: bool) -> PyResult<Self> {
        if !(1..=32).contains(&bits) {
            return Err(PyValueError::new_err("bits must be from 1 to 32"));
        }
        Ok(Self { inner: weights::Frequencies::new(bits, own) })
    }

    /// Count the elements of sets.
    fn add<'py>(&self, py: Python<'py>, elements: PyReadonlyArray1<'py, u64>, threads: usize) -> PyResult<()> {
        let elements = elements.as_slice()?;
        py.detach(|| thread_pool::install(threads, |_| self.inner.add(elements)))
    }

    /// Return the count of each slot.
    fn counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.inner.counts().into_pyarray(py)
    }
}

/// Weights of elements by their rarity.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct Weights {
    inner: Arc<WeightTable>,
}

impl Weights {
    pub fn table(&self) -> Arc<WeightTable> {
        Arc::clone(&self.inner)
    }
}

#[pymethods]
impl Weights {
    /// Create the weights of elements whose frequencies among `sets` sets are `counts`, times a factor for each class of
    /// elements, which is the lowest byte of an element, or times the weight that an element holds.
    #[new]
    #[pyo3(signature = (counts, sets, threads, factors=None, own=false))]
    fn new(
        py: Python<'_>,
        counts: PyReadonlyArray1<'_, u32>,
        sets: u64,
        threads: usize,
        factors: Option<Vec<f64>>,
        own: bool,
    ) -> PyResult<Self> {
        let counts = counts.as_slice()?;
        let table = py.detach(|| thread_pool::install(threads, |_| WeightTable::by_rarity(counts, sets)))?;
        let table = table.ok_or_else(|| PyValueError::new_err("the number of counts must be a power of two"))?;
        let table = if own { table.with_own() } else { table };
        let Some(factors) = factors else { return Ok(Self { inner: Arc::new(table) }) };
        if own {
            return Err(PyValueError::new_err("elements cannot both hold weights and have factors"));
        }
        if !factors.iter().all(|&factor| (0.0..=MAX_FACTOR).contains(&factor)) {
            return Err(PyValueError::new_err("factors must be from 0 to 1000"));
        }
        let factors: Vec<u32> = factors.iter().map(|&factor| (factor * f64::from(ONE)).round() as u32).collect();
        let table = table.with_factors(&factors);
        Ok(Self { inner: Arc::new(table.ok_or_else(|| PyValueError::new_err("there must be at most 256 factors"))?) })
    }

    /// Return the weight of each element.
    fn of<'py>(&self, py: Python<'py>, elements: PyReadonlyArray1<'py, u64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let one = f64::from(if self.inner.is_own() { OWN_ONE } else { ONE });
        let weight = |&element: &u64| f64::from(self.inner.weight(element)) / one;
        Ok(elements.as_slice()?.iter().map(weight).collect::<Vec<f64>>().into_pyarray(py))
    }
}
