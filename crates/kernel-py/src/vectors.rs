//! Vectors for Python: their keys, their distances, their nearest ones.

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::band::Banding;
use minwise_kernel::hash::ContentHasher;
use minwise_kernel::vectors::{self, Lines, Measure};

use crate::arrays::item_size;
use crate::band::KeyArrays;
use crate::pool;

type Faults = Vec<(usize, String)>;
type Found<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>, u64);

/// A matrix of vectors, a row each.
enum Matrix<'py> {
    Floats(PyReadonlyArray2<'py, f32>),
    Bytes(PyReadonlyArray2<'py, u8>),
}

impl<'py> Matrix<'py> {
    fn of(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(if item_size(array)? == 4 { Self::Floats(array.extract()?) } else { Self::Bytes(array.extract()?) })
    }

    fn shape(&self) -> (usize, usize) {
        let shape = match self {
            Self::Floats(array) => array.shape(),
            Self::Bytes(array) => array.shape(),
        };
        (shape[0], shape[1])
    }
}

/// Runs an expression with the values of a matrix, whatever they are.
macro_rules! with_values {
    ($matrix:expr, $values:ident => $do:expr) => {
        match $matrix {
            Matrix::Floats(array) => {
                let $values = array.as_slice()?;
                $do
            }
            Matrix::Bytes(array) => {
                let $values = array.as_slice()?;
                $do
            }
        }
    };
}

fn measure(cosine: bool) -> Measure {
    if cosine { Measure::Cosine } else { Measure::Euclidean }
}

/// Turns vectors into the keys of their tables.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct VectorBander {
    lines: Lines,
    banding: Banding,
    hasher: ContentHasher,
}

#[pymethods]
impl VectorBander {
    #[new]
    #[pyo3(signature = (*, dims, hashes, tables, width, seed, simd = true))]
    fn new(dims: usize, hashes: usize, tables: usize, width: Option<f64>, seed: u64, simd: bool) -> PyResult<Self> {
        if dims == 0 || hashes == 0 || tables == 0 || width.is_some_and(|width| width.is_nan() || width <= 0.0) {
            return Err(PyValueError::new_err("dims, hashes, tables and width must be positive"));
        }
        Ok(Self {
            lines: Lines::new(dims, hashes * tables, width, seed, simd),
            banding: Banding::new(tables, hashes, seed),
            hasher: ContentHasher::new(seed),
        })
    }

    /// Writes keys, content hash and state of every vector; returns the faulty ones with what is wrong.
    fn band_vectors<'py>(
        &self,
        py: Python<'py>,
        vectors: &Bound<'py, PyAny>,
        mut arrays: KeyArrays<'py>,
        start: usize,
        threads: usize,
    ) -> PyResult<Faults> {
        let vectors = Matrix::of(vectors)?;
        let (count, dims) = vectors.shape();
        if dims != self.lines.dims() {
            return Err(PyValueError::new_err("vectors must have as many values as the lines"));
        }
        let rows = arrays.rows(start, count, &self.banding)?;
        let faults = with_values!(&vectors, values => py.detach(|| {
            pool::install(threads, |threads| {
                vectors::band_vectors(&self.lines, &self.hasher, &self.banding, values, rows, threads)
            })
        })?);
        Ok(faults.into_iter().map(|(row, fault)| (row, fault.to_string())).collect())
    }
}

/// The distance of every pair of rows that is not above `most`, NaN for the others.
#[pyfunction]
pub fn vector_distances<'py>(
    py: Python<'py>,
    vectors: &Bound<'py, PyAny>,
    left: PyReadonlyArray1<'py, u32>,
    right: PyReadonlyArray1<'py, u32>,
    cosine: bool,
    most: f64,
    threads: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let vectors = Matrix::of(vectors)?;
    let (count, dims) = vectors.shape();
    let (left, right) = (left.as_slice()?, right.as_slice()?);
    if left.len() != right.len() || left.iter().chain(right).any(|&row| row as usize >= count) {
        return Err(PyValueError::new_err("pairs must be of vectors that are there"));
    }
    let found = with_values!(&vectors, values => py.detach(|| {
        pool::install(threads, |threads| {
            vectors::distances(measure(cosine), values, dims, (left, right), most, threads)
        })
    })?);
    Ok(found.into_pyarray(py))
}

/// The buckets of vectors, to be asked for those near others.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct VectorTables {
    inner: vectors::Tables,
    rows: usize,
}

#[pymethods]
impl VectorTables {
    /// The tables of vectors whose keys have a row per table.
    #[new]
    fn new(py: Python<'_>, keys: PyReadonlyArray2<'_, u64>, threads: usize) -> PyResult<Self> {
        let rows = keys.shape()[1];
        let keys = keys.as_slice()?;
        let inner = py.detach(|| pool::install(threads, |threads| vectors::Tables::new(keys, rows, threads)))?;
        Ok(Self { inner, rows })
    }

    /// For every query: how many were found, then their rows and distances, nearest first; and how many were compared.
    #[allow(clippy::too_many_arguments, reason = "what is asked, whom, and how much of it")]
    fn nearest<'py>(
        &self,
        py: Python<'py>,
        vectors: &Bound<'py, PyAny>,
        queries: &Bound<'py, PyAny>,
        keys: PyReadonlyArray2<'py, u64>,
        cosine: bool,
        most: f64,
        top: usize,
        threads: usize,
    ) -> PyResult<Found<'py>> {
        let (vectors, queries) = (Matrix::of(vectors)?, Matrix::of(queries)?);
        let ((count, dims), (asked, width)) = (vectors.shape(), queries.shape());
        let keyed = keys.shape() == [self.inner.len(), asked] || asked == 0 || self.rows == 0;
        if count != self.rows || dims != width || !keyed || top == 0 {
            return Err(PyValueError::new_err("vectors and queries must be as long as each other and have their keys"));
        }
        let keys = keys.as_slice()?;
        let found = with_values!(&vectors, values => with_values!(&queries, asking => py.detach(|| {
            pool::install(threads, |threads| {
                self.inner.nearest(measure(cosine), values, (asking, keys), dims, (most, top), threads)
            })
        })?));
        Ok((
            found.counts.into_pyarray(py),
            found.rows.into_pyarray(py),
            found.distances.into_pyarray(py),
            found.compared,
        ))
    }
}
