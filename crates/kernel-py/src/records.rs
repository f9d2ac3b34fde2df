//! The rows of an index's database for Python, sealed many at a time.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use minwise_kernel::crc32c_append;

type Sealed<'py> = (Bound<'py, PyList>, u64);

/// The records of rows from number `first` on, each its checksum and its content; and the sum of number·2³² + checksum.
#[pyfunction]
pub fn seal_rows(py: Python<'_>, first: u32, contents: Vec<PyBackedBytes>) -> PyResult<Sealed<'_>> {
    seal(py, first, contents.len(), |place| [&contents[place], &[], &[], &[]])
}

/// The records of documents: whether the id is a whole number, the lengths of id and metadata, then id, metadata and body.
#[pyfunction]
pub fn seal_documents(
    py: Python<'_>,
    first: u32,
    names: Vec<PyBackedBytes>,
    whole: Vec<bool>,
    metadata: Vec<PyBackedBytes>,
    bodies: Vec<PyBackedBytes>,
) -> PyResult<Sealed<'_>> {
    let documents = names.len();
    if [whole.len(), metadata.len(), bodies.len()] != [documents; 3] {
        return Err(PyValueError::new_err("there must be as many of each"));
    }
    let heads: Vec<[u8; 9]> = (0..documents)
        .map(|place| {
            let mut head = [u8::from(whole[place]); 9];
            head[1..5].copy_from_slice(&(names[place].len() as u32).to_le_bytes());
            head[5..].copy_from_slice(&(metadata[place].len() as u32).to_le_bytes());
            head
        })
        .collect();
    seal(py, first, documents, |place| [&heads[place], &names[place], &metadata[place], &bodies[place]])
}

/// The place of the first record that is not what was sealed under its number.
#[pyfunction]
pub fn find_broken_seal(numbers: Vec<u32>, records: Vec<Bound<'_, PyAny>>) -> PyResult<Option<usize>> {
    if numbers.len() != records.len() {
        return Err(PyValueError::new_err("there must be a number for every record"));
    }
    Ok(numbers.iter().zip(&records).position(|(&number, record)| {
        let record = record.cast::<PyBytes>().map(|record| record.as_bytes().split_first_chunk());
        !matches!(record, Ok(Some((&crc, content))) if crc32c_append(number, content) == u32::from_le_bytes(crc))
    }))
}

fn seal<'py, 'p>(
    py: Python<'py>,
    first: u32,
    rows: usize,
    parts: impl Fn(usize) -> [&'p [u8]; 4],
) -> PyResult<Sealed<'py>> {
    if u64::from(first) + rows as u64 > u64::from(u32::MAX) {
        return Err(PyValueError::new_err(format!("a row's number must have 32 bits, got {rows} from {first} on")));
    }
    let (records, mut digest) = (PyList::empty(py), 0u64);
    for (place, number) in (0..rows).zip(first..) {
        let parts = parts(place);
        let crc = parts.iter().fold(number, |crc, part| crc32c_append(crc, part));
        let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
        records.append(PyBytes::new_with(py, length, |record| {
            let mut rest = record;
            for part in [&crc.to_le_bytes()[..]].iter().chain(&parts) {
                let (head, tail) = rest.split_at_mut(part.len());
                head.copy_from_slice(part);
                rest = tail;
            }
            Ok(())
        })?)?;
        digest = digest.wrapping_add((u64::from(number) << 32) + u64::from(crc));
    }
    Ok((records, digest))
}
