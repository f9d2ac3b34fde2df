//! Thread pools, one per size, made when first asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::{PyErr, PyResult};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Pools by process and size. A forked child has no threads of its parent's pools and would wait for them for ever, so
/// it makes its own.
static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

type Pools = HashMap<(u32, usize), Arc<ThreadPool>>;

/// Runs `work` with `threads` threads; 0 stands for all cores.
pub fn install<R: Send>(threads: usize, work: impl FnOnce(usize) -> R + Send) -> PyResult<R> {
    let threads = if threads == 0 { std::thread::available_parallelism().map_or(1, Into::into) } else { threads };
    if threads == 1 {
        return Ok(work(1));
    }
    Ok(pool(threads)?.install(|| work(threads)))
}

fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = pools.get_or_insert_default();
    let key = (std::process::id(), threads);
    if let Some(pool) = pools.get(&key) {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("minwise-{i}")).build();
    let pool = Arc::new(pool.map_err(|error| -> PyErr { PyRuntimeError::new_err(error.to_string()) })?);
    pools.insert(key, Arc::clone(&pool));
    Ok(pool)
}
