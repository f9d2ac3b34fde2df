//! Banding of texts, sets and signatures for Python.

use numpy::{PyReadonlyArray1, PyReadwriteArray1, PyReadwriteArray2, PyUntypedArrayMethods as _};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::band::Banding;
use minwise_kernel::batch::{self, KeyRows};
use minwise_kernel::error::TextError;
use minwise_kernel::hash::ContentHasher;
use minwise_kernel::sketch::Scheme;

use crate::arrays::{Offsets, lists, sets};
use crate::shingle::Shingler;
use crate::sketch::{AnyScheme, Sketcher, Slots};
use crate::thread_pool;

type Faults = Vec<(usize, String)>;

/// Function from texts, sets or signatures to band keys.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct Bander {
    sketcher: Py<Sketcher>,
    banding: Banding,
}

/// Output arrays of a batch, written from column `start` on.
#[derive(FromPyObject)]
pub struct KeyArrays<'py> {
    keys: PyReadwriteArray2<'py, u64>,
    contents: PyReadwriteArray2<'py, u64>,
    states: PyReadwriteArray1<'py, u8>,
    packed: Option<PyReadwriteArray2<'py, u8>>,
}

impl KeyArrays<'_> {
    /// Return the rows of `documents` documents from column `start` on.
    pub fn rows(&mut self, start: usize, documents: usize, banding: &Banding) -> PyResult<KeyRows<'_>> {
        let wrong_shape = || PyValueError::new_err("the arrays must have a row per document and a key per band");
        let (capacity, end) = (self.states.len(), start + documents);
        let bands = self.keys.shape()[0];
        let fits = end <= capacity && bands == banding.bands() && self.contents.shape() == [capacity, 2];
        let packed_fits = self.packed.as_ref().is_none_or(|packed| packed.shape() == [capacity, 2 * banding.slots()]);
        if !fits || !packed_fits || self.keys.shape()[1] != capacity {
            return Err(wrong_shape());
        }
        let keys = self.keys.as_slice_mut()?.chunks_exact_mut(capacity.max(1));
        let packed = match &mut self.packed {
            None => None,
            Some(packed) => {
                let row = 2 * banding.slots();
                Some(&mut packed.as_slice_mut()?[start * row..end * row])
            }
        };
        Ok(KeyRows {
            keys: keys.map(|row| &mut row[start..end]).collect(),
            contents: &mut self.contents.as_slice_mut()?[2 * start..2 * end],
            states: &mut self.states.as_slice_mut()?[start..end],
            packed,
        })
    }
}

#[pymethods]
impl Bander {
    #[new]
    fn new(py: Python<'_>, sketcher: Py<Sketcher>, bands: usize, rows: usize, seed: u64) -> PyResult<Self> {
        let slots = sketcher.borrow(py).slots();
        if bands == 0 || rows == 0 || bands.checked_mul(rows) != Some(slots) {
            return Err(PyValueError::new_err("bands times rows must equal the number of slots"));
        }
        Ok(Self { sketcher, banding: Banding::new(bands, rows, seed) })
    }

    /// Write keys, content hash and state of every text; return the faulty texts with their faults.
    #[allow(clippy::too_many_arguments, reason = "input and output buffers")]
    fn band_texts<'py>(
        &self,
        py: Python<'py>,
        shingler: &Shingler,
        offsets: &Bound<'py, PyAny>,
        data: PyReadonlyArray1<'py, u8>,
        mut arrays: KeyArrays<'py>,
        start: usize,
        threads: usize,
    ) -> PyResult<Faults> {
        let data = data.as_slice()?;
        match &Offsets::of(offsets)? {
            Offsets::Narrow(offsets) => {
                let texts = lists(offsets.as_slice()?, data)?;
                let rows = arrays.rows(start, texts.len(), &self.banding)?;
                self.run(py, BandTexts { shingler, texts }, rows, threads)
            }
            Offsets::Wide(offsets) => {
                let texts = lists(offsets.as_slice()?, data)?;
                let rows = arrays.rows(start, texts.len(), &self.banding)?;
                self.run(py, BandTexts { shingler, texts }, rows, threads)
            }
        }
    }

    /// Write keys, content hash and state of every set.
    #[allow(clippy::too_many_arguments, reason = "input and output buffers")]
    fn band_sets<'py>(
        &self,
        py: Python<'py>,
        offsets: PyReadonlyArray1<'py, i64>,
        elements: PyReadonlyArray1<'py, u64>,
        seed: u64,
        mut arrays: KeyArrays<'py>,
        start: usize,
        threads: usize,
    ) -> PyResult<Faults> {
        let sets = sets(offsets.as_slice()?, elements.as_slice()?)?;
        let rows = arrays.rows(start, sets.len(), &self.banding)?;
        self.run(py, BandSets { sets, hasher: ContentHasher::new(seed) }, rows, threads)
    }

    /// Write the keys of existing signatures, a row per document; all ones for those without elements.
    fn band_signatures<'py>(
        &self,
        py: Python<'py>,
        slots: &Bound<'py, PyAny>,
        mut keys: PyReadwriteArray2<'py, u64>,
    ) -> PyResult<()> {
        let narrow = matches!(self.sketcher.get().scheme, AnyScheme::MinHash(_));
        let fits =
            |shape: &[usize]| shape[1] == self.banding.slots() && keys.shape() == [shape[0], self.banding.bands()];
        let wrong_shape = || PyValueError::new_err("slots must be those of the scheme and keys have a column per band");
        match Slots::of(slots)? {
            Slots::Narrow(slots) if narrow && fits(slots.shape()) => {
                let (slots, keys) = (slots.as_slice()?, keys.as_slice_mut()?);
                py.detach(|| batch::band_signatures(&self.banding, slots, keys));
            }
            Slots::Wide(slots) if !narrow && fits(slots.shape()) => {
                let (slots, keys) = (slots.as_slice()?, keys.as_slice_mut()?);
                py.detach(|| batch::band_signatures(&self.banding, slots, keys));
            }
            _ => return Err(wrong_shape()),
        }
        Ok(())
    }
}

impl Bander {
    fn run(&self, py: Python<'_>, input: impl BandInput, rows: KeyRows<'_>, threads: usize) -> PyResult<Faults> {
        let scheme = &self.sketcher.get().scheme;
        let banding = &self.banding;
        let faults = py.detach(|| {
            thread_pool::install(threads, |threads| match scheme {
                AnyScheme::MinHash(scheme) => input.run(scheme, banding, rows, threads),
                AnyScheme::OnePermutation(scheme) => input.run(scheme, banding, rows, threads),
                AnyScheme::Fast(scheme) => input.run(scheme, banding, rows, threads),
                AnyScheme::Weighted(scheme) => input.run(scheme, banding, rows, threads),
            })
        })?;
        Ok(faults.into_iter().map(|TextError { document, fault }| (document, fault.to_string())).collect())
    }
}

/// Input of banding, for a scheme of any slot type.
trait BandInput: Send {
    fn run<C: Scheme>(self, scheme: &C, banding: &Banding, rows: KeyRows<'_>, threads: usize) -> Vec<TextError>;
}

struct BandTexts<'l, O> {
    shingler: &'l Shingler,
    texts: batch::Texts<'l, O>,
}

impl<O: Copy + TryInto<usize> + Send + Sync> BandInput for BandTexts<'_, O> {
    fn run<C: Scheme>(self, scheme: &C, banding: &Banding, rows: KeyRows<'_>, threads: usize) -> Vec<TextError> {
        batch::band_texts(scheme, &self.shingler.inner, banding, self.texts, rows, threads)
    }
}

struct BandSets<'l> {
    sets: batch::Sets<'l>,
    hasher: ContentHasher,
}

impl BandInput for BandSets<'_> {
    fn run<C: Scheme>(self, scheme: &C, banding: &Banding, rows: KeyRows<'_>, threads: usize) -> Vec<TextError> {
        batch::band_sets(scheme, &self.hasher, banding, self.sets, rows, threads);
        Vec::new()
    }
}
