//! Thread pool, created on first use.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::{PyErr, PyResult};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The current pool, with its process and size. A forked child has none of the threads of its parent's pool and would
/// wait for them forever, so it creates its own. Only one pool is kept, so that trying several sizes does not
/// accumulate threads.
static POOL: Mutex<Option<(u32, usize, Arc<ThreadPool>)>> = Mutex::new(None);

/// Run `work` with `threads` threads; 0 means all cores.
pub fn install<R: Send>(threads: usize, work: impl FnOnce(usize) -> R + Send) -> PyResult<R> {
    let threads = if threads == 0 { std::thread::available_parallelism().map_or(1, Into::into) } else { threads };
    if threads == 1 {
        return Ok(work(1));
    }
    Ok(pool(threads)?.install(|| work(threads)))
}

fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let mut current = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, size, pool)) = current.as_ref()
        && (*owner, *size) == (process, threads)
    {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("minwise-{i}")).build();
    let pool = Arc::new(pool.map_err(|error| -> PyErr { PyRuntimeError::new_err(error.to_string()) })?);
    if let Some((owner, _, old)) = current.replace((process, threads, Arc::clone(&pool)))
        && owner != process
    {
        std::mem::forget(old); // its threads exist only in the parent; dropping it would wait for them
    }
    Ok(pool)
}
