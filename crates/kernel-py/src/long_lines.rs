//! Long lines of JSON and CSV, and large HTML pages, for Python.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use minwise_kernel::html_limits;
use minwise_kernel::long_lines::{self, Outline};

/// Return start and end of every string of more than `limit` bytes in a JSON line, and a bound of its number of values.
#[pyfunction]
pub fn json_outline(line: &[u8], limit: usize) -> (Vec<(usize, usize)>, usize) {
    let Outline { strings, marks } = long_lines::json_outline(line, limit);
    (strings, marks + 1)
}

/// Return the UTF-8 text of the JSON string `line[start..end]`; None if it is not valid.
///
/// The text is decoded twice, first for its length, so that only one copy of it is made.
#[pyfunction]
pub fn json_text<'py>(py: Python<'py>, line: &[u8], start: usize, end: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let string = line.get(start..end).unwrap_or_default();
    let mut length = 0;
    if long_lines::json_text(string, |part| length += part.len()).is_none() {
        return Ok(None);
    }
    let mut at = 0;
    let fill = |text: &mut [u8]| {
        long_lines::json_text(string, |part| {
            text[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        });
        Ok(())
    };
    PyBytes::new_with(py, length, fill).map(Some)
}

/// Return how often the byte `mark` occurs outside quotation marks.
#[pyfunction]
pub fn count_unquoted(line: &[u8], mark: u8) -> usize {
    long_lines::count_unquoted(line, mark)
}

/// Return why an HTML page is not parsed; None if its cost is bounded.
#[pyfunction]
pub fn html_problem(page: &[u8]) -> Option<String> {
    html_limits::html_problem(page)
}
