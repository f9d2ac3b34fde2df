//! Deduplication of a stream for Python.

use std::fs::File;

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::streaming_dedup::{self, Decision};

use crate::arrays::sets;

/// The documents kept so far.
#[pyclass(module = "minwise._kernel")]
pub struct KeptDocuments {
    inner: streaming_dedup::KeptDocuments,
    bands: usize,
}

#[pymethods]
impl KeptDocuments {
    /// Create an empty store that writes sets to a new file at `path`.
    #[new]
    fn new(bands: usize, threshold: f64, max_bucket: u32, path: &str) -> PyResult<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        Ok(Self { inner: streaming_dedup::KeptDocuments::new(bands, threshold, max_bucket, file), bands })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Number of times a document was looked up in a bucket above the cap.
    #[getter]
    fn capped(&self) -> u64 {
        self.inner.capped()
    }

    /// Return for every document whether it is kept. `keys` has a row per band, `contents` a row per document.
    fn decide<'py>(
        &mut self,
        py: Python<'py>,
        keys: PyReadonlyArray2<'py, u64>,
        contents: PyReadonlyArray2<'py, u64>,
        offsets: PyReadonlyArray1<'py, i64>,
        elements: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let sets = sets(offsets.as_slice()?, elements.as_slice()?)?;
        let documents = sets.len();
        if keys.shape() != [self.bands, documents] || contents.shape() != [documents, 2] {
            return Err(PyValueError::new_err("keys must have a row per band and contents a row per document"));
        }
        let (keys, contents) = (keys.as_slice()?, contents.as_slice()?);
        let kept = py.detach(|| {
            let mut document_keys = vec![0; self.bands];
            let decide = |document: usize| {
                document_keys.iter_mut().enumerate().for_each(|(band, key)| *key = keys[band * documents + document]);
                let set = sets.get(document);
                if set.is_empty() {
                    return Ok(true);
                }
                let content = [contents[2 * document], contents[2 * document + 1]];
                Ok(self.inner.decide(&document_keys, content, set)? == Decision::Kept)
            };
            (0..documents).map(decide).collect::<std::io::Result<Vec<bool>>>()
        })?;
        Ok(kept.into_pyarray(py))
    }
}
