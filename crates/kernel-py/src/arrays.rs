//! Conversion between `NumPy` arrays and Rust slices, without copies.

use numpy::{
    IntoPyArray as _, PyArray2, PyArrayDescrMethods as _, PyArrayMethods as _, PyReadonlyArray1, PyUntypedArray,
    PyUntypedArrayMethods as _,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::batch::{Lists, Sets};

use crate::DocumentError;

/// Return the bytes per item of an array.
///
/// The width decides the type that an argument is converted to. Trying one type after the other would work too, but a
/// failed type check discards a pending Ctrl-C.
pub fn item_size(array: &Bound<'_, PyAny>) -> PyResult<usize> {
    Ok(array.cast::<PyUntypedArray>()?.dtype().itemsize())
}

/// Offsets of Arrow strings (32-bit) or large strings (64-bit).
pub enum Offsets<'py> {
    /// `string`, `binary`.
    Narrow(PyReadonlyArray1<'py, i32>),
    /// `large_string`, `large_binary`.
    Wide(PyReadonlyArray1<'py, i64>),
}

impl<'py> Offsets<'py> {
    /// Borrow the offsets in `array`.
    pub fn of(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(if item_size(array)? == 4 { Self::Narrow(array.extract()?) } else { Self::Wide(array.extract()?) })
    }
}

/// Return lists over borrowed buffers; an error if the offsets do not fit the values.
pub fn lists<'l, T, O: Copy + TryInto<usize>>(offsets: &'l [O], values: &'l [T]) -> PyResult<Lists<'l, T, O>> {
    Lists::new(offsets, values).ok_or_else(|| PyValueError::new_err("offsets must ascend and not exceed the values"))
}

/// Return sets over borrowed buffers.
pub fn sets<'l>(offsets: &'l [i64], elements: &'l [u64]) -> PyResult<Sets<'l>> {
    lists(offsets, elements)
}

/// Return rows of equal length as a two-dimensional array, without a copy.
pub fn matrix<T: numpy::Element>(py: Python<'_>, rows: Vec<T>, width: usize) -> PyResult<Bound<'_, PyArray2<T>>> {
    let height = rows.len().checked_div(width).unwrap_or(0);
    rows.into_pyarray(py).reshape([height, width])
}

/// Return the Python error of a document that cannot be read.
pub fn document_error(document: Option<usize>, fault: minwise_kernel::error::TextFault) -> PyErr {
    DocumentError::new_err((document, fault.to_string()))
}
