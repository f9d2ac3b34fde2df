//! Long lines of JSON and CSV, and large HTML pages, for Python.

use numpy::{IntoPyArray as _, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use minwise_kernel::html_limits;
use minwise_kernel::long_lines::{self, CsvFields, FieldEnd, Outline, RecordEnd};

/// Return start and end of every string of more than `limit` bytes in a JSON line, and a bound of its number of values.
#[pyfunction]
pub fn json_outline(line: &[u8], limit: usize) -> (Vec<(usize, usize)>, usize) {
    let Outline { strings, marks } = long_lines::json_outline(line, limit);
    (strings, marks + 1)
}

/// Return a valid JSON line with the number of each string in its place, and start and end of these strings.
#[pyfunction]
pub fn json_numbered<'py>(py: Python<'py>, line: &[u8]) -> (Bound<'py, PyBytes>, Bound<'py, PyArray1<i64>>) {
    let (numbered, strings) = long_lines::json_numbered(line);
    let spans: Vec<i64> = strings.into_iter().flat_map(|(start, end)| [start as i64, end as i64]).collect();
    (PyBytes::new(py, &numbered), spans.into_pyarray(py))
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

/// Return the offset at which a CSV record ends that begins or, `quoted`, continues at `start`; and how it ends.
///
/// It ends with 0; with 1 if its last quotation mark is not closed; with 2 if text follows a carriage return.
#[pyfunction]
pub fn csv_record_end(data: &[u8], start: usize, delimiter: u8, quoted: bool) -> (usize, u8) {
    let (offset, end) = long_lines::csv_record_end(data, start, delimiter, quoted);
    let code = match end {
        RecordEnd::Closed => 0,
        RecordEnd::Unclosed => 1,
        RecordEnd::LoneReturn => 2,
    };
    (offset, code)
}

/// Return the fields of the CSV record at `start`, none if it is blank; None if they are more than `most`.
///
/// Every field is read twice, first for its length, so that only one copy of it is made.
#[pyfunction]
pub fn csv_fields<'py>(
    py: Python<'py>,
    record: &[u8],
    start: usize,
    delimiter: u8,
    most: usize,
) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
    let mut fields = CsvFields::new(record, start, delimiter);
    let mut found = Vec::new();
    let mut more = !fields.is_blank();
    while more {
        if found.len() == most {
            return Ok(None);
        }
        let mut length = 0;
        { fields }.next_field(|part| length += part.len());
        let mut at = 0;
        let fill = |field: &mut [u8]| {
            more = fields.next_field(|part| {
                field[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }) == FieldEnd::Delimiter;
            Ok(())
        };
        found.push(PyBytes::new_with(py, length, fill)?);
    }
    Ok(Some(found))
}

/// Return start and end of every field of the CSV record at `start`, with its quotation marks.
#[pyfunction]
pub fn csv_spans(record: &[u8], start: usize, delimiter: u8) -> Vec<(usize, usize)> {
    let mut fields = CsvFields::new(record, start, delimiter);
    let mut spans = Vec::new();
    let mut more = true;
    while more {
        let start = fields.offset();
        more = fields.next_field(|_| ()) == FieldEnd::Delimiter;
        spans.push((start, fields.offset() - usize::from(more)));
    }
    spans
}

/// Return why an HTML page is not parsed; None if its cost is bounded.
#[pyfunction]
pub fn html_problem(page: &[u8]) -> Option<String> {
    html_limits::html_problem(page)
}
