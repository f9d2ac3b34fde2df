//! Checksummed records of an index's database for Python, created in batches.

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyBytesMethods, PyList};

use minwise_kernel::crc32c_append;
use minwise_kernel::verify::Measure;

type Sealed<'py> = (Bound<'py, PyList>, u64);

/// Return the records of rows from number `first` on, each a checksum and the content; and the sum of number·2³² +
/// checksum.
#[pyfunction]
pub fn seal_rows(py: Python<'_>, first: u32, contents: Vec<PyBackedBytes>) -> PyResult<Sealed<'_>> {
    seal(py, first, contents.len(), |index| [&contents[index], &[], &[], &[]])
}

/// Return the records of documents: whether the id is an integer, the lengths of id and metadata, then id, metadata and
/// body.
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
        return Err(PyValueError::new_err("names, whole, metadata and bodies must be equally long"));
    }
    let headers: Vec<[u8; 9]> = (0..documents)
        .map(|index| {
            let mut header = [u8::from(whole[index]); 9];
            header[1..5].copy_from_slice(&(names[index].len() as u32).to_le_bytes());
            header[5..].copy_from_slice(&(metadata[index].len() as u32).to_le_bytes());
            header
        })
        .collect();
    seal(py, first, documents, |index| [&headers[index], &names[index], &metadata[index], &bodies[index]])
}

/// Return the index of the first record whose checksum does not match its content and number, or None.
#[pyfunction]
pub fn find_broken_seal(numbers: Vec<u32>, records: Vec<Bound<'_, PyAny>>) -> PyResult<Option<usize>> {
    find_broken(&numbers, &records, |_| true)
}

/// Return the index of the first record whose checksum does not match, or which is not that of a document, or None.
///
/// A document's id is UTF-8 and not empty. Its body has 8 bytes per element, or, with `body_bytes`, that many bytes or
/// none.
#[pyfunction]
#[pyo3(signature = (numbers, records, body_bytes = None))]
pub fn find_broken_document(
    numbers: Vec<u32>,
    records: Vec<Bound<'_, PyAny>>,
    body_bytes: Option<usize>,
) -> PyResult<Option<usize>> {
    find_broken(&numbers, &records, |record| {
        let fits =
            |body: &[u8]| body_bytes.map_or(body.len().is_multiple_of(8), |bytes| [0, bytes].contains(&body.len()));
        is_named(record) && body(record).is_some_and(fits)
    })
}

fn find_broken(
    numbers: &[u32],
    records: &[Bound<'_, PyAny>],
    is_valid: impl Fn(&[u8]) -> bool,
) -> PyResult<Option<usize>> {
    if numbers.len() != records.len() {
        return Err(PyValueError::new_err("numbers and records must be equally long"));
    }
    Ok(numbers.iter().zip(records).position(|(&number, record)| {
        let Ok(record) = record.cast::<PyBytes>().map(PyBytesMethods::as_bytes) else { return true };
        let Some((&crc, content)) = record.split_first_chunk() else { return true };
        crc32c_append(number, content) != u32::from_le_bytes(crc) || !is_valid(record)
    }))
}

/// Return whether the flag and the id of a document's record are valid.
fn is_named(record: &[u8]) -> bool {
    let length = record.get(5..9).and_then(<[u8]>::first_chunk).map_or(0, |&bytes| u32::from_le_bytes(bytes) as usize);
    let id = record.get(13..).and_then(|rest| rest.get(..length)).filter(|id| !id.is_empty());
    record.get(4).is_some_and(|&flag| flag <= 1) && id.is_some_and(|id| std::str::from_utf8(id).is_ok())
}

/// Return the Jaccard similarity of a set with the set in each document's record; NaN if it is below `threshold`.
#[pyfunction]
pub fn set_similarities<'py>(
    py: Python<'py>,
    elements: PyReadonlyArray1<'py, u64>,
    records: Vec<PyBackedBytes>,
    threshold: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    measure_records(py, elements.as_slice()?, &records, Measure::Jaccard, threshold)
}

/// Return the share of the smaller of a set and the set in each document's record that lies in the other one; NaN if it
/// is below `threshold`.
#[pyfunction]
pub fn set_containments<'py>(
    py: Python<'py>,
    elements: PyReadonlyArray1<'py, u64>,
    records: Vec<PyBackedBytes>,
    threshold: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    measure_records(py, elements.as_slice()?, &records, Measure::Containment, threshold)
}

fn measure_records<'py>(
    py: Python<'py>,
    elements: &[u64],
    records: &[PyBackedBytes],
    measure: Measure,
    threshold: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let mut set = Vec::new();
    let mut similarities = Vec::with_capacity(records.len());
    for record in records {
        let body = body(record).filter(|body| body.len() % 8 == 0);
        let body = body.ok_or_else(|| PyValueError::new_err("a record must end in 8 bytes per element"))?;
        let (small, large) = (elements.len().min(body.len() / 8), elements.len().max(body.len() / 8));
        // The ratio of the sizes is an upper bound of the Jaccard similarity.
        let similarity = if measure == Measure::Jaccard && (small as f64) / (large as f64) < threshold {
            None
        } else {
            set.clear();
            set.extend(body.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)));
            measure.at_least(elements, &set, threshold)
        };
        similarities.push(similarity.unwrap_or(f64::NAN));
    }
    Ok(similarities.into_pyarray(py))
}

/// Return the content after the id and the metadata of a document's record.
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
        return Err(PyValueError::new_err(format!(
            "row numbers must fit 32 bits, got {rows} rows starting at {first}"
        )));
    }
    let (records, mut digest) = (PyList::empty(py), 0u64);
    for (index, number) in (0..rows).zip(first..) {
        let parts = parts(index);
        let crc = parts.iter().fold(number, |crc, part| crc32c_append(crc, part));
        let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
        records.append(PyBytes::new_with(py, length, |record| {
            let mut rest = record;
            for part in [&crc.to_le_bytes()[..]].iter().chain(&parts) {
                let (header, tail) = rest.split_at_mut(part.len());
                header.copy_from_slice(part);
                rest = tail;
            }
            Ok(())
        })?)?;
        digest = digest.wrapping_add((u64::from(number) << 32) + u64::from(crc));
    }
    Ok((records, digest))
}
