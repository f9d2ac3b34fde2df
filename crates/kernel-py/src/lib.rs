//! Python bindings of the kernel: they convert arguments, release the GIL and map errors. All computation is in
//! `minwise-kernel`.
//!
//! Arrays are passed without a copy: Arrow buffers arrive as `NumPy` views, and results are `NumPy` arrays that own
//! their memory. Settings are validated in Python, where a message can name the user's setting; the checks here only
//! prevent panics.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 passes extracted arguments by value")]

mod arrays;
mod band;
mod candidates;
mod cluster;
mod contamination;
mod join;
mod long_lines;
mod nearest;
mod passages;
mod postings;
mod records;
mod set_store;
mod shingle;
mod sketch;
mod streaming_dedup;
mod text_offsets;
mod thread_pool;
mod vectors;
mod weights;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use minwise_kernel::batch::Texts;
use minwise_kernel::hash::{BytesHasher, Domain, mix};
use minwise_kernel::unicode::{Properties, lowercase};

use crate::arrays::{Offsets, lists};

create_exception!(
    _kernel,
    DocumentError,
    PyValueError,
    "A document cannot be read: (its number or None, description)."
);

/// Return a byte of properties for every code point, for `minwise.reference`.
#[pyfunction]
fn character_properties(py: Python<'_>) -> Bound<'_, PyBytes> {
    let bytes: Vec<u8> = (0..0x11_0000).map(|code| char::from_u32(code).map_or(0, |c| Properties::of(c).0)).collect();
    PyBytes::new(py, &bytes)
}

/// Return the lower case of every code point that differs from it.
#[pyfunction]
fn lowercase_table(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let table = PyDict::new(py);
    for c in (0..0x11_0000).filter_map(char::from_u32) {
        let lower: String = lowercase(c).collect();
        if !lower.chars().eq([c]) {
            table.set_item(u32::from(c), lower)?;
        }
    }
    Ok(table)
}

/// Return the elements of 64-bit integers as members of sets.
#[pyfunction]
fn hash_integers<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, i64>,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let hasher = BytesHasher::new(seed, Domain::Integer);
    let hashes: Vec<u64> = values.as_slice()?.iter().map(|value| mix(hasher.hash(&value.to_le_bytes()))).collect();
    Ok(hashes.into_pyarray(py))
}

/// Return the elements of strings as members of sets, given in the layout of Arrow.
#[pyfunction]
fn hash_strings<'py>(
    py: Python<'py>,
    offsets: &Bound<'py, PyAny>,
    data: PyReadonlyArray1<'py, u8>,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let data = data.as_slice()?;
    let hashes = match &Offsets::of(offsets)? {
        Offsets::Narrow(offsets) => hash_lists(lists(offsets.as_slice()?, data)?, seed),
        Offsets::Wide(offsets) => hash_lists(lists(offsets.as_slice()?, data)?, seed),
    };
    Ok(hashes.into_pyarray(py))
}

fn hash_lists<O: Copy + TryInto<usize>>(strings: Texts<'_, O>, seed: u64) -> Vec<u64> {
    let hasher = BytesHasher::new(seed, Domain::String);
    (0..strings.len()).map(|i| mix(hasher.hash(strings.get(i)))).collect()
}

/// Return the element of one member of a set, given by its bytes; `kind` is `i`, `s` or `b`.
#[pyfunction]
fn hash_item(kind: char, data: &[u8], seed: u64) -> PyResult<u64> {
    let domain = match kind {
        'i' => Domain::Integer,
        's' => Domain::String,
        'b' => Domain::Bytes,
        _ => return Err(PyValueError::new_err("kind must be i, s or b")),
    };
    Ok(mix(BytesHasher::new(seed, domain).hash(data)))
}

/// Return the CRC-32C of `data`, continued from `crc`.
#[pyfunction]
fn crc32c(py: Python<'_>, data: PyReadonlyArray1<'_, u8>, crc: u32) -> PyResult<u32> {
    let bytes = data.as_slice()?;
    Ok(py.detach(|| minwise_kernel::crc32c_append(crc, bytes)))
}

/// The compiled kernel of minwise. Not part of the public API.
#[pymodule]
mod _kernel {
    #[pymodule_export]
    use super::{DocumentError, character_properties, crc32c, hash_integers, hash_item, hash_strings, lowercase_table};
    #[pymodule_export]
    use crate::band::Bander;
    #[pymodule_export]
    use crate::candidates::{Buckets, Copies, PairComparison, Proposals, divide_keys, pair_ranges};
    #[pymodule_export]
    use crate::cluster::{choose_witnesses, flatten_components, join_pairs, remove_neighbours};
    #[pymodule_export]
    use crate::contamination::ItemTable;
    #[pymodule_export]
    use crate::join::{PrefixIndex, Rarity, SetIndex};
    #[pymodule_export]
    use crate::long_lines::{
        csv_fields, csv_record_end, csv_spans, html_problem, json_numbered, json_outline, json_text,
    };
    #[pymodule_export]
    use crate::nearest::{NearestIndex, match_pairs};
    #[pymodule_export]
    use crate::passages::{PassageGroups, PassageScanner, cut_passages, renumber_passages};
    #[pymodule_export]
    use crate::postings::{DamagedError, Postings, check_segment, write_segment};
    #[pymodule_export]
    use crate::records::{
        find_broken_document, find_broken_seal, seal_documents, seal_rows, set_containments, set_similarities,
    };
    #[pymodule_export]
    use crate::set_store::SetStore;
    #[pymodule_export]
    use crate::shingle::{ShingleStream, Shingler, unit_starts};
    #[pymodule_export]
    use crate::sketch::{Sketcher, count_matches, count_packed_matches, intersection_sizes, pack_bits};
    #[pymodule_export]
    use crate::streaming_dedup::KeptDocuments;
    #[pymodule_export]
    use crate::text_offsets::{text_lengths, text_offsets};
    #[pymodule_export]
    use crate::vectors::{VectorBander, VectorTables, select_products, vector_distances};
    #[pymodule_export]
    use crate::weights::{Frequencies, Weights};

    use numpy::{PyArray1, PyArrayMethods as _};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Load the C API of NumPy now. On the first call it would run Python code in the middle of a computation, where
        // a Ctrl-C becomes a panic; importing NumPy first keeps the same from happening during this lookup.
        module.py().import("numpy.lib")?;
        drop(PyArray1::<u8>::zeros(module.py(), 0, false).try_readonly()?);
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("UNICODE_VERSION", minwise_kernel::unicode::UNICODE_VERSION)?;
        module.add("MAX_SLOTS", minwise_kernel::sketch::MAX_SLOTS)?;
        module.add("MAX_PASSAGE_TOKENS", minwise_kernel::passages::MAX_TOKENS)?;
        module.add("ITEM_TOKENS", minwise_kernel::contamination::MIN_TOKENS)?;
        module.add("MAX_NGRAM", minwise_kernel::contamination::MAX_NGRAM)?;
        module.add("PASSAGE_ENTRY_BYTES", minwise_kernel::passages::ENTRY_BYTES)?;
        module.add("MAX_UNIT_TOKENS", minwise_kernel::units::MAX_UNIT_WORDS)?;
        module.add("FIRST_MEMBERS", minwise_kernel::band::FIRST_MEMBERS)
    }
}
