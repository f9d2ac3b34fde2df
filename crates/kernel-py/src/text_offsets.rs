//! Byte offsets of code points, for Python.

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::text_offsets::TextCursor;

/// Return the text between two offsets of the data.
fn text_of(data: &[u8], start: i64, end: i64) -> PyResult<&[u8]> {
    let span = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    span.and_then(|(start, end)| data.get(start..end)).ok_or_else(|| PyValueError::new_err("texts must be in the data"))
}

/// Return the number of code points of each text `data[start..end]`, whose escape sequences count as one each.
#[pyfunction]
pub fn text_lengths<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    starts: PyReadonlyArray1<'py, i64>,
    ends: PyReadonlyArray1<'py, i64>,
    escaped: bool,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (data, starts, ends) = (data.as_slice()?, starts.as_slice()?, ends.as_slice()?);
    let lengths: PyResult<Vec<i64>> = py.detach(|| {
        let texts = starts.iter().zip(ends).map(|(&start, &end)| text_of(data, start, end));
        texts.map(|text| Ok(TextCursor::new(text?, escaped).count() as i64)).collect()
    });
    Ok(lengths?.into_pyarray(py))
}

/// Return the offset in the data of each of `points`, the code points of the texts with the numbers `texts`.
///
/// Numbers ascend, and so do the points of a text.
#[pyfunction]
pub fn text_offsets<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    starts: PyReadonlyArray1<'py, i64>,
    ends: PyReadonlyArray1<'py, i64>,
    texts: PyReadonlyArray1<'py, i64>,
    points: PyReadonlyArray1<'py, i64>,
    escaped: bool,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (data, starts, ends) = (data.as_slice()?, starts.as_slice()?, ends.as_slice()?);
    let (texts, points) = (texts.as_slice()?, points.as_slice()?);
    let offsets: PyResult<Vec<i64>> = py.detach(|| {
        let mut cursor = (-1, 0, TextCursor::new(&[], escaped));
        let found = texts.iter().zip(points).map(|(&text, &point)| {
            if cursor.0 != text {
                let number = usize::try_from(text).unwrap_or(usize::MAX);
                let span = starts.get(number).zip(ends.get(number));
                let (&start, &end) = span.ok_or_else(|| PyValueError::new_err("texts must have numbers"))?;
                cursor = (text, start, TextCursor::new(text_of(data, start, end)?, escaped));
            }
            Ok(cursor.1 + cursor.2.offset_of(usize::try_from(point).unwrap_or(0)) as i64)
        });
        found.collect()
    });
    Ok(offsets?.into_pyarray(py))
}
