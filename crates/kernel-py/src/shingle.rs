//! Shingling for Python.

use std::sync::Arc;

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::batch::{OwnedSets, shingle_texts};
use minwise_kernel::error::TextError;
use minwise_kernel::normalise::Normalisation;
use minwise_kernel::shingle::{self, Kind, ShingleConfig};
use minwise_kernel::units::{self, Unit};

use crate::arrays::{Offsets, document_error, lists};
use crate::thread_pool;

type Arrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u64>>);
type SpanArrays<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

/// Function from texts to shingle hashes.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct Shingler {
    pub(crate) inner: Arc<shingle::Shingler>,
}

#[pymethods]
impl Shingler {
    #[new]
    #[pyo3(signature = (
        *, kind, size, bag, hash_bits, seed, nfkc, strip_accents, lowercase, strip_punctuation, mask_digits,
        collapse_whitespace, simd=true
    ))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools, reason = "one argument per setting")]
    fn new(
        kind: &str,
        size: usize,
        bag: bool,
        hash_bits: u32,
        seed: u64,
        nfkc: bool,
        strip_accents: bool,
        lowercase: bool,
        strip_punctuation: bool,
        mask_digits: bool,
        collapse_whitespace: bool,
        simd: bool,
    ) -> PyResult<Self> {
        let kind = match kind {
            "word" => Kind::Word,
            "char" => Kind::Char,
            "byte" => Kind::Byte,
            _ => return Err(PyValueError::new_err("kind must be word, char or byte")),
        };
        if size == 0 || !matches!(hash_bits, 32 | 64) {
            return Err(PyValueError::new_err("size must be at least 1 and hash_bits 32 or 64"));
        }
        let normalisation =
            Normalisation { nfkc, strip_accents, lowercase, strip_punctuation, mask_digits, collapse_whitespace };
        let config = ShingleConfig { kind, size, bag, narrow: hash_bits == 32, seed, normalisation };
        Ok(Self { inner: Arc::new(shingle::Shingler::new(config, simd)) })
    }

    /// Return offsets and elements of the shingle set of every text.
    fn shingle<'py>(
        &self,
        py: Python<'py>,
        offsets: &Bound<'py, PyAny>,
        data: PyReadonlyArray1<'py, u8>,
        threads: usize,
    ) -> PyResult<Arrays<'py>> {
        let data = data.as_slice()?;
        let sets = match &Offsets::of(offsets)? {
            Offsets::Narrow(offsets) => self.shingle_lists(py, offsets.as_slice()?, data, threads),
            Offsets::Wide(offsets) => self.shingle_lists(py, offsets.as_slice()?, data, threads),
        }?;
        Ok((sets.offsets.into_pyarray(py), sets.elements.into_pyarray(py)))
    }

    /// Return element, start and end of every shingle of one document, in text order.
    fn spans<'py>(&self, py: Python<'py>, document: &[u8]) -> PyResult<SpanArrays<'py>> {
        let spans = py.detach(|| self.inner.spans(document)).map_err(|fault| document_error(None, fault))?;
        Ok((spans.elements.into_pyarray(py), spans.starts.into_pyarray(py), spans.ends.into_pyarray(py)))
    }
}

impl Shingler {
    fn shingle_lists<O>(&self, py: Python<'_>, offsets: &[O], data: &[u8], threads: usize) -> PyResult<OwnedSets>
    where
        O: Copy + TryInto<usize> + Send + Sync,
    {
        let texts = lists(offsets, data)?;
        py.detach(|| thread_pool::install(threads, |threads| shingle_texts(&self.inner, texts, threads)))?
            .map_err(|TextError { document, fault }| document_error(Some(document), fault))
    }
}

/// Return the unit called `name`.
pub fn unit_of(name: &str) -> PyResult<Unit> {
    match name {
        "line" => Ok(Unit::Line),
        "sentence" => Ok(Unit::Sentence),
        "paragraph" => Ok(Unit::Paragraph),
        _ => Err(PyValueError::new_err("unit must be line, sentence or paragraph")),
    }
}

/// Return the code point at which each line, sentence or paragraph of a text starts; the first is 0.
#[pyfunction]
pub fn unit_starts<'py>(py: Python<'py>, text: &str, unit: &str) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let unit = unit_of(unit)?;
    Ok(py.detach(|| units::unit_starts(text, unit)).into_pyarray(py))
}

/// Shingler of one document in chunks.
#[pyclass(module = "minwise._kernel")]
pub struct ShingleStream {
    inner: shingle::ShingleStream,
}

#[pymethods]
impl ShingleStream {
    #[new]
    fn new(shingler: &Shingler) -> PyResult<Self> {
        if shingler.inner.is_bag() {
            return Err(PyValueError::new_err("a bag cannot be streamed"));
        }
        Ok(Self { inner: shingle::ShingleStream::new(Arc::clone(&shingler.inner)) })
    }

    /// Process the next chunk and return the shingles that are final.
    fn push<'py>(&mut self, py: Python<'py>, chunk: &[u8]) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let shingles = py.detach(|| self.inner.push(chunk)).map_err(|fault| document_error(None, fault))?;
        Ok(PyArray1::from_slice(py, shingles))
    }

    /// End the document and return its last shingles.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let shingles = py.detach(|| self.inner.finish()).map_err(|fault| document_error(None, fault))?;
        Ok(PyArray1::from_slice(py, shingles))
    }
}
