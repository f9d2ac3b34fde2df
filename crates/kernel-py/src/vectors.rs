//! Keys, distances and nearest neighbours of vectors for Python.

use numpy::{IntoPyArray as _, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods as _};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use minwise_kernel::band::Banding;
use minwise_kernel::hash::ContentHasher;
use minwise_kernel::vectors::{self, Metric, Projections};

use crate::arrays::item_size;
use crate::band::KeyArrays;
use crate::thread_pool;

type Faults = Vec<(usize, String)>;
type NearestArrays<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>, u64);
type PairArrays<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>);

/// Matrix of vectors, a row each.
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

/// Evaluate an expression with the values of a matrix of either type.
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

fn metric(measure: &str) -> PyResult<Metric> {
    match measure {
        "euclidean" => Ok(Metric::Euclidean),
        "cosine" => Ok(Metric::Cosine),
        "hamming" => Ok(Metric::Hamming),
        _ => Err(PyValueError::new_err("measure must be euclidean, cosine or hamming")),
    }
}

/// Function from vectors to the keys of their tables.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct VectorBander {
    projections: Projections,
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
            projections: Projections::new(dims, hashes * tables, width, seed, simd),
            banding: Banding::new(tables, hashes, seed),
            hasher: ContentHasher::new(seed),
        })
    }

    /// Write keys, content hash and state of every vector; return the faulty vectors with their faults.
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
        if dims != self.projections.dims() {
            return Err(PyValueError::new_err("vectors must have as many columns as the projections"));
        }
        let rows = arrays.rows(start, count, &self.banding)?;
        let faults = with_values!(&vectors, values => py.detach(|| {
            thread_pool::install(threads, |threads| {
                vectors::band_vectors(&self.projections, &self.hasher, &self.banding, values, rows, threads)
            })
        })?);
        Ok(faults.into_iter().map(|(row, fault)| (row, fault.to_string())).collect())
    }
}

/// Return the distance of every pair of a row of one matrix and a row of another that is at most `most`, NaN for the
/// others.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "input buffers and limits")]
pub fn vector_distances<'py>(
    py: Python<'py>,
    vectors: &Bound<'py, PyAny>,
    others: &Bound<'py, PyAny>,
    left: PyReadonlyArray1<'py, u32>,
    right: PyReadonlyArray1<'py, u32>,
    measure: &str,
    most: f64,
    threads: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let metric = metric(measure)?;
    let (vectors, others) = (Matrix::of(vectors)?, Matrix::of(others)?);
    let ((count, dims), (other_count, other_dims)) = (vectors.shape(), others.shape());
    let (left, right) = (left.as_slice()?, right.as_slice()?);
    let exist = |rows: &[u32], count: usize| rows.iter().all(|&row| (row as usize) < count);
    if left.len() != right.len() || dims != other_dims || !exist(left, count) || !exist(right, other_count) {
        return Err(PyValueError::new_err("pairs must be of vectors that exist and have equally many columns"));
    }
    let found = with_values!(&vectors, values => with_values!(&others, other_values => py.detach(|| {
        thread_pool::install(threads, |threads| {
            vectors::distances(metric, (values, other_values), dims, (left, right), most, threads)
        })
    })?));
    Ok(found.into_pyarray(py))
}

/// Return row and column of every product that is not below the sum of the bounds of its row and its column.
#[pyfunction]
pub fn select_products<'py>(
    py: Python<'py>,
    products: PyReadonlyArray2<'py, f32>,
    rows: PyReadonlyArray1<'py, f32>,
    columns: PyReadonlyArray1<'py, f32>,
    threads: usize,
) -> PyResult<PairArrays<'py>> {
    let (row_bounds, column_bounds) = (rows.as_slice()?, columns.as_slice()?);
    if products.shape() != [row_bounds.len(), column_bounds.len()] || column_bounds.is_empty() {
        return Err(PyValueError::new_err("products must have a row and a column per bound, at least one"));
    }
    let products = products.as_slice()?;
    let (rows, columns) = py.detach(|| {
        thread_pool::install(threads, |threads| vectors::select_products(products, row_bounds, column_bounds, threads))
    })?;
    Ok((rows.into_pyarray(py), columns.into_pyarray(py)))
}

/// Hash tables of vectors for nearest-neighbour queries.
#[pyclass(frozen, module = "minwise._kernel")]
pub struct VectorTables {
    inner: vectors::Tables,
    rows: usize,
}

#[pymethods]
impl VectorTables {
    /// Create the tables from keys with a row per table.
    #[new]
    fn new(py: Python<'_>, keys: PyReadonlyArray2<'_, u64>, threads: usize) -> PyResult<Self> {
        let rows = keys.shape()[1];
        let keys = keys.as_slice()?;
        let inner = py.detach(|| thread_pool::install(threads, |threads| vectors::Tables::new(keys, rows, threads)))?;
        Ok(Self { inner, rows })
    }

    /// Return the number of results of every query, then their rows and distances, nearest first, and the number of
    /// comparisons.
    #[allow(clippy::too_many_arguments, reason = "input buffers and limits")]
    fn nearest<'py>(
        &self,
        py: Python<'py>,
        vectors: &Bound<'py, PyAny>,
        queries: &Bound<'py, PyAny>,
        keys: PyReadonlyArray2<'py, u64>,
        measure: &str,
        most: f64,
        top: usize,
        threads: usize,
    ) -> PyResult<NearestArrays<'py>> {
        let metric = metric(measure)?;
        let (vectors, queries) = (Matrix::of(vectors)?, Matrix::of(queries)?);
        let ((count, dims), (query_count, width)) = (vectors.shape(), queries.shape());
        let keyed = keys.shape() == [self.inner.len(), query_count] || query_count == 0 || self.rows == 0;
        if count != self.rows || dims != width || !keyed || top == 0 {
            return Err(PyValueError::new_err(
                "vectors and queries must have equally many columns, and keys a row per table and a column per query",
            ));
        }
        let keys = keys.as_slice()?;
        let found = with_values!(&vectors, values => with_values!(&queries, query_values => py.detach(|| {
            thread_pool::install(threads, |threads| {
                self.inner.nearest(metric, values, (query_values, keys), dims, (most, top), threads)
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
