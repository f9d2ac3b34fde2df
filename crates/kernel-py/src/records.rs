//! The rows of an index's database for Python, sealed many at a time.

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use minwise_kernel::crc32c_append;
use minwise_kernel::verify::similarity_at_least;

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

/// The Jaccard similarity of a set with that of each document, given by its record, if it reaches `threshold`; NaN if it does not.
#[pyfunction]
pub fn set_similarities<'py>(
    py: Python<'py>,
    elements: PyReadonlyArray1<'py, u64>,
    records: Vec<PyBackedBytes>,
    threshold: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let elements = elements.as_slice()?;
    let mut set = Vec::new();
    let mut similarities = Vec::with_capacity(records.len());
    for record in &records {
        let body = body(record).filter(|body| body.len() % 8 == 0);
        let body = body.ok_or_else(|| PyValueError::new_err("a record must end in 8 bytes per element"))?;
        let (small, large) = (elements.len().min(body.len() / 8), elements.len().max(body.len() / 8));
        // No two sets of these sizes can be more alike.
        let similarity = if (small as f64) / (large as f64) < threshold {
            None
        } else {
            set.clear();
            set.extend(body.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)));
            similarity_at_least(elements, &set, threshold)
        };
        similarities.push(similarity.unwrap_or(f64::NAN));
    }
    Ok(similarities.into_pyarray(py))
}

/// What stands behind the id and the metadata of a document's record.
fn body(record: &[u8]) -> Option<&[u8]> {
    let length = |at: usize| Some(u32::from_le_bytes(*record.get(at..at + 4)?.first_chunk()?) as usize);
    record.get(13 + length(5)? + length(9)?..)
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
