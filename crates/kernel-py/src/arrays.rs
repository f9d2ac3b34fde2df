//! Arrays: `NumPy` views in, borrowed slices out; vectors in, `NumPy` arrays out.

use numpy::{IntoPyArray as _, PyArray2, PyArrayMethods as _, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::batch::{Lists, Sets};

use crate::DocumentError;

/// The offsets of Arrow strings (32-bit) or large strings (64-bit).
#[derive(FromPyObject)]
pub enum Offsets<'py> {
    /// `string`, `binary`.
    Narrow(PyReadonlyArray1<'py, i32>),
    /// `large_string`, `large_binary`.
    Wide(PyReadonlyArray1<'py, i64>),
}

/// Lists over borrowed buffers, or an error if the offsets do not fit the values.
pub fn lists<'l, T, O: Copy + TryInto<usize>>(offsets: &'l [O], values: &'l [T]) -> PyResult<Lists<'l, T, O>> {
    Lists::new(offsets, values).ok_or_else(|| PyValueError::new_err("offsets must ascend and stay inside the values"))
}

/// Sets over borrowed buffers.
pub fn sets<'l>(offsets: &'l [i64], elements: &'l [u64]) -> PyResult<Sets<'l>> {
    lists(offsets, elements)
}

/// Rows of equal length as a two-dimensional array, without a copy.
pub fn matrix<T: numpy::Element>(py: Python<'_>, rows: Vec<T>, width: usize) -> PyResult<Bound<'_, PyArray2<T>>> {
    let height = rows.len().checked_div(width).unwrap_or(0);
    rows.into_pyarray(py).reshape([height, width])
}

/// The Python error of a document that cannot be read.
pub fn document_error(document: Option<usize>, fault: minwise_kernel::error::Fault) -> PyErr {
    DocumentError::new_err((document, fault.to_string()))
}
