//! Clusters and removals for Python.

use numpy::{PyReadonlyArray1, PyReadwriteArray1, PyUntypedArrayMethods as _};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::cluster;

/// Return pairs over borrowed arrays; an error if a number is not below `documents` or a pair is not ascending.
fn pairs<'p>(low: &'p [u32], high: &'p [u32], documents: usize) -> PyResult<cluster::Pairs<'p>> {
    let pairs = cluster::Pairs { low, high };
    if pairs.are_valid(documents) {
        return Ok(pairs);
    }
    Err(PyValueError::new_err("pairs must be of documents that exist, the smaller first"))
}

/// Mark every document that is paired with an earlier kept document as removed.
#[pyfunction]
pub fn remove_neighbours(
    low: PyReadonlyArray1<'_, u32>,
    high: PyReadonlyArray1<'_, u32>,
    mut removed: PyReadwriteArray1<'_, bool>,
) -> PyResult<()> {
    let pairs = pairs(low.as_slice()?, high.as_slice()?, removed.len())?;
    cluster::remove_neighbours(pairs, removed.as_slice_mut()?);
    Ok(())
}

/// Store the most similar kept partner of every removed document.
#[pyfunction]
pub fn choose_witnesses(
    low: PyReadonlyArray1<'_, u32>,
    high: PyReadonlyArray1<'_, u32>,
    similarities: PyReadonlyArray1<'_, f64>,
    removed: PyReadonlyArray1<'_, bool>,
    mut witness: PyReadwriteArray1<'_, u32>,
    mut best: PyReadwriteArray1<'_, f64>,
) -> PyResult<()> {
    let documents = removed.len();
    let pairs = pairs(low.as_slice()?, high.as_slice()?, documents)?;
    if witness.len() != documents || best.len() != documents || similarities.len() != low.len() {
        return Err(PyValueError::new_err(
            "witness, best and removed must be equally long, and similarities as long as the pairs",
        ));
    }
    let (witness, best) = (witness.as_slice_mut()?, best.as_slice_mut()?);
    cluster::choose_witnesses(pairs, similarities.as_slice()?, removed.as_slice()?, witness, best);
    Ok(())
}

/// Join the two documents of every pair into one component.
#[pyfunction]
pub fn join_pairs(
    low: PyReadonlyArray1<'_, u32>,
    high: PyReadonlyArray1<'_, u32>,
    mut parents: PyReadwriteArray1<'_, u32>,
) -> PyResult<()> {
    let pairs = pairs(low.as_slice()?, high.as_slice()?, parents.len())?;
    check_parents(parents.as_slice()?)?;
    cluster::join_pairs(pairs, parents.as_slice_mut()?);
    Ok(())
}

/// Replace every parent by the first member of its component.
#[pyfunction]
pub fn flatten_components(mut parents: PyReadwriteArray1<'_, u32>) -> PyResult<()> {
    check_parents(parents.as_slice()?)?;
    cluster::flatten(parents.as_slice_mut()?);
    Ok(())
}

pub fn check_parents(parents: &[u32]) -> PyResult<()> {
    if parents.iter().enumerate().all(|(i, &parent)| parent as usize <= i) {
        return Ok(());
    }
    Err(PyValueError::new_err("a parent must not come after its child"))
}
