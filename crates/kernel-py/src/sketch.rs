//! Sketching and comparison of signatures for Python.

use numpy::{
    Element, IntoPyArray as _, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1,
    PyReadwriteArray2, PyUntypedArrayMethods as _,
};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use minwise_kernel::batch::{self, Rows};
use minwise_kernel::error::TextError;
use minwise_kernel::sketch::{
    self, Densify, FastSketch, MAX_SLOTS, MinHash, OnePermutation, Scheme, Slot, WeightedSketch, packed_row_bytes,
};
use minwise_kernel::verify::intersection_size;
use minwise_kernel::weights::WeightTable;

use crate::arrays::{Offsets, document_error, item_size, lists, matrix, sets};
use crate::shingle::Shingler;
use crate::thread_pool;
use crate::weights::Weights;

/// One of the schemes.
pub enum AnyScheme {
    /// The classic scheme.
    MinHash(MinHash),
    /// The scheme with one hash per element.
    OnePermutation(OnePermutation),
    /// The default scheme.
    Fast(FastSketch),
    /// The default scheme for weighted elements.
    Weighted(WeightedSketch<WeightTable>),
}

/// Rows of 32-bit or 64-bit slots.
pub enum Slots<'py> {
    /// Slots of the minhash scheme.
    Narrow(PyReadonlyArray2<'py, u32>),
    /// Slots of the schemes with bins.
    Wide(PyReadonlyArray2<'py, u64>),
}

impl<'py> Slots<'py> {
    /// Borrow the slots in `array`.
    pub fn of(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(if item_size(array)? == 4 { Self::Narrow(array.extract()?) } else { Self::Wide(array.extract()?) })
    }
}

type SizesOut<'py> = Option<PyReadwriteArray1<'py, u64>>;
type Counts<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>);
type Pairs<'py> = PyReadonlyArray2<'py, i64>;

/// Function from sets or texts to signatures.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct Sketcher {
    pub(crate) scheme: AnyScheme,
}

impl Sketcher {
    /// Return the number of slots per signature.
    pub fn slots(&self) -> usize {
        match &self.scheme {
            AnyScheme::MinHash(scheme) => scheme.slots(),
            AnyScheme::OnePermutation(scheme) => scheme.slots(),
            AnyScheme::Fast(scheme) => scheme.slots(),
            AnyScheme::Weighted(scheme) => scheme.slots(),
        }
    }
}

#[pymethods]
impl Sketcher {
    #[new]
    #[pyo3(signature = (*, scheme, slots, seed, densify=None, simd=true, weights=None))]
    fn new(
        scheme: &str,
        slots: usize,
        seed: u64,
        densify: Option<&str>,
        simd: bool,
        weights: Option<&Weights>,
    ) -> PyResult<Self> {
        if !(1..=MAX_SLOTS).contains(&slots) {
            return Err(PyValueError::new_err(format!("slots must be between 1 and {MAX_SLOTS}")));
        }
        let densify = match densify {
            None => None,
            Some("rotation") => Some(Densify::Rotation),
            Some("optimal") => Some(Densify::Optimal),
            Some(_) => return Err(PyValueError::new_err("densify must be rotation or optimal")),
        };
        let scheme = match (scheme, weights) {
            ("minhash", None) => AnyScheme::MinHash(MinHash::new(slots, seed, simd)),
            ("oph", None) => AnyScheme::OnePermutation(OnePermutation::new(slots, seed, densify)),
            ("fast", None) => AnyScheme::Fast(FastSketch::new(slots, seed, simd)),
            ("fast", Some(weights)) => AnyScheme::Weighted(WeightedSketch::new(slots, seed, weights.table())),
            _ => return Err(PyValueError::new_err("scheme must be minhash, oph or fast, and fast with weights")),
        };
        Ok(Self { scheme })
    }

    /// Write the slots of every set, and its size if `sizes` is given.
    #[pyo3(signature = (offsets, elements, slots, sizes, threads))]
    fn sketch_sets<'py>(
        &self,
        py: Python<'py>,
        offsets: PyReadonlyArray1<'py, i64>,
        elements: PyReadonlyArray1<'py, u64>,
        slots: &Bound<'py, PyAny>,
        sizes: SizesOut<'py>,
        threads: usize,
    ) -> PyResult<()> {
        let sets = sets(offsets.as_slice()?, elements.as_slice()?)?;
        self.run(py, SketchSets(sets), sets.len(), slots, sizes, threads)
    }

    /// Write the slots of every text, and the size of its set if `sizes` is given.
    #[pyo3(signature = (shingler, offsets, data, slots, sizes, threads))]
    #[allow(clippy::too_many_arguments, reason = "input and output buffers")]
    fn sketch_texts<'py>(
        &self,
        py: Python<'py>,
        shingler: &Shingler,
        offsets: &Bound<'py, PyAny>,
        data: PyReadonlyArray1<'py, u8>,
        slots: &Bound<'py, PyAny>,
        sizes: SizesOut<'py>,
        threads: usize,
    ) -> PyResult<()> {
        let (data, shingler) = (data.as_slice()?, &shingler.inner);
        match &Offsets::of(offsets)? {
            Offsets::Narrow(offsets) => {
                let texts = lists(offsets.as_slice()?, data)?;
                self.run(py, SketchTexts { shingler, texts }, texts.len(), slots, sizes, threads)
            }
            Offsets::Wide(offsets) => {
                let texts = lists(offsets.as_slice()?, data)?;
                self.run(py, SketchTexts { shingler, texts }, texts.len(), slots, sizes, threads)
            }
        }
    }
}

/// Input of sketching, for a scheme of any slot type.
trait SketchInput: Send {
    fn run<C: Scheme>(self, scheme: &C, rows: Rows<'_, C::Slot>, threads: usize) -> Result<(), TextError>;
}

struct SketchSets<'l>(batch::Sets<'l>);

impl SketchInput for SketchSets<'_> {
    fn run<C: Scheme>(self, scheme: &C, rows: Rows<'_, C::Slot>, threads: usize) -> Result<(), TextError> {
        batch::sketch_sets(scheme, self.0, rows, threads)
    }
}

struct SketchTexts<'l, O> {
    shingler: &'l minwise_kernel::shingle::Shingler,
    texts: batch::Texts<'l, O>,
}

impl<O: Copy + TryInto<usize> + Send + Sync> SketchInput for SketchTexts<'_, O> {
    fn run<C: Scheme>(self, scheme: &C, rows: Rows<'_, C::Slot>, threads: usize) -> Result<(), TextError> {
        batch::sketch_texts(scheme, self.shingler, self.texts, rows, threads)
    }
}

impl Sketcher {
    fn run(
        &self,
        py: Python<'_>,
        input: impl SketchInput,
        documents: usize,
        slots: &Bound<'_, PyAny>,
        sizes: SizesOut<'_>,
        threads: usize,
    ) -> PyResult<()> {
        match &self.scheme {
            AnyScheme::MinHash(scheme) => write(py, scheme, input, documents, slots, sizes, threads),
            AnyScheme::OnePermutation(scheme) => write(py, scheme, input, documents, slots, sizes, threads),
            AnyScheme::Fast(scheme) => write(py, scheme, input, documents, slots, sizes, threads),
            AnyScheme::Weighted(scheme) => write(py, scheme, input, documents, slots, sizes, threads),
        }
    }
}

fn write<C: Scheme>(
    py: Python<'_>,
    scheme: &C,
    input: impl SketchInput,
    documents: usize,
    slots: &Bound<'_, PyAny>,
    mut sizes: SizesOut<'_>,
    threads: usize,
) -> PyResult<()>
where
    C::Slot: Element,
{
    let mut slots: PyReadwriteArray2<'_, C::Slot> = slots.extract()?;
    if slots.shape() != [documents, scheme.slots()] || sizes.as_ref().is_some_and(|sizes| sizes.len() != documents) {
        return Err(PyValueError::new_err("slots and sizes must have a row per document"));
    }
    let slots = slots.as_slice_mut()?;
    let sizes = sizes.as_mut().map(|sizes| sizes.as_slice_mut()).transpose()?;
    py.detach(|| thread_pool::install(threads, |threads| input.run(scheme, Rows { slots, sizes }, threads)))?
        .map_err(|TextError { document, fault }| document_error(Some(document), fault))
}

/// Return the row numbers of a pair; an error if a row does not exist.
fn rows_of(pair: &[i64], left: usize, right: usize) -> PyResult<(usize, usize)> {
    let row = |number: i64, count: usize| {
        usize::try_from(number)
            .ok()
            .filter(|&row| row < count)
            .ok_or_else(|| PyIndexError::new_err(format!("no document {number} among {count}")))
    };
    Ok((row(pair[0], left)?, row(pair[1], right)?))
}

/// Call `compare` with the two rows of every pair.
fn for_pairs<T: Element + Sync, R: Send>(
    py: Python<'_>,
    left: &PyReadonlyArray2<'_, T>,
    right: &PyReadonlyArray2<'_, T>,
    pairs: &Pairs<'_>,
    compare: impl Fn(&[T], &[T]) -> R + Send + Sync,
) -> PyResult<Vec<R>> {
    let width = left.shape()[1];
    if right.shape()[1] != width || pairs.shape()[1] != 2 {
        return Err(PyValueError::new_err("left and right must have equally many columns, and pairs two"));
    }
    let (heights, left, right) = ((left.shape()[0], right.shape()[0]), left.as_slice()?, right.as_slice()?);
    let pairs = pairs.as_slice()?;
    py.detach(|| {
        let compare_pair = |pair: &[i64]| {
            let (i, j) = rows_of(pair, heights.0, heights.1)?;
            Ok(compare(&left[i * width..(i + 1) * width], &right[j * width..(j + 1) * width]))
        };
        pairs.chunks_exact(2).map(compare_pair).collect()
    })
}

fn count_in<'py, S: Slot + Element>(
    py: Python<'py>,
    left: &PyReadonlyArray2<'py, S>,
    right: &PyReadonlyArray2<'py, S>,
    pairs: &Pairs<'py>,
) -> PyResult<Counts<'py>> {
    let matches = for_pairs(py, left, right, pairs, sketch::count_matches)?;
    let (equal, empty): (Vec<u32>, Vec<u32>) = matches.into_iter().map(|m| (m.equal, m.both_empty)).unzip();
    Ok((equal.into_pyarray(py), empty.into_pyarray(py)))
}

/// Return the number of equal slots and of slots empty in both, for every pair of a row of `left` and a row of `right`.
#[pyfunction]
pub fn count_matches<'py>(
    py: Python<'py>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
    pairs: Pairs<'py>,
) -> PyResult<Counts<'py>> {
    match (&Slots::of(left)?, &Slots::of(right)?) {
        (Slots::Narrow(left), Slots::Narrow(right)) => count_in(py, left, right, &pairs),
        (Slots::Wide(left), Slots::Wide(right)) => count_in(py, left, right, &pairs),
        _ => Err(PyValueError::new_err("left and right must have the same type")),
    }
}

/// Return the number of equal fields of every pair of packed rows.
#[pyfunction]
pub fn count_packed_matches<'py>(
    py: Python<'py>,
    left: PyReadonlyArray2<'py, u8>,
    right: PyReadonlyArray2<'py, u8>,
    pairs: Pairs<'py>,
    slots: usize,
    bits: usize,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    check_bits(bits, 32)?;
    if left.shape()[1] != packed_row_bytes(slots, bits) {
        return Err(PyValueError::new_err("left must have the columns that slots and bits need"));
    }
    let equal = for_pairs(py, &left, &right, &pairs, |l, r| sketch::count_packed_matches(l, r, slots, bits))?;
    Ok(equal.into_pyarray(py))
}

/// Return the low `bits` of every slot, packed.
#[pyfunction]
pub fn pack_bits<'py>(py: Python<'py>, slots: &Bound<'py, PyAny>, bits: usize) -> PyResult<Bound<'py, PyArray2<u8>>> {
    match &Slots::of(slots)? {
        Slots::Narrow(slots) => pack(py, slots, bits),
        Slots::Wide(slots) => pack(py, slots, bits),
    }
}

fn pack<'py, S: Slot + Element>(
    py: Python<'py>,
    slots: &PyReadonlyArray2<'py, S>,
    bits: usize,
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    check_bits(bits, 8 * size_of::<S>())?;
    let (height, row) = (slots.shape()[0], slots.shape()[1]);
    let width = packed_row_bytes(row, bits);
    let mut packed = vec![0; height * width];
    let slots = slots.as_slice()?;
    py.detach(|| sketch::pack_rows(slots, row, bits, &mut packed));
    matrix(py, packed, width)
}

fn check_bits(bits: usize, most: usize) -> PyResult<()> {
    if bits.is_power_of_two() && bits <= most {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("bits must be a power of two up to {most}")))
}

/// Return the number of common elements of the two sets of every pair.
#[pyfunction]
pub fn intersection_sizes<'py>(
    py: Python<'py>,
    offsets: PyReadonlyArray1<'py, i64>,
    elements: PyReadonlyArray1<'py, u64>,
    pairs: Pairs<'py>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let sets = sets(offsets.as_slice()?, elements.as_slice()?)?;
    let pairs = pairs.as_slice()?;
    let sizes: Vec<u64> = py.detach(|| {
        let shared = |pair: &[i64]| {
            let (i, j) = rows_of(pair, sets.len(), sets.len())?;
            PyResult::Ok(intersection_size(sets.get(i), sets.get(j)) as u64)
        };
        pairs.chunks_exact(2).map(shared).collect::<PyResult<_>>()
    })?;
    Ok(sizes.into_pyarray(py))
}
