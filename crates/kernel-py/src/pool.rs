//! The thread pool, made when first asked for.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::{PyErr, PyResult};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The last pool, with its process and size. A forked child has no threads of its parent's pool and would wait for them for
/// ever, so it makes its own. Only one is kept, so that trying out sizes does not gather threads.
static LAST: Mutex<Option<(u32, usize, Arc<ThreadPool>)>> = Mutex::new(None);

/// Runs `work` with `threads` threads; 0 stands for all cores.
pub fn install<R: Send>(threads: usize, work: impl FnOnce(usize) -> R + Send) -> PyResult<R> {
    let threads = if threads == 0 { std::thread::available_parallelism().map_or(1, Into::into) } else { threads };
    if threads == 1 {
        return Ok(work(1));
    }
    Ok(pool(threads)?.install(|| work(threads)))
}

fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, size, pool)) = last.as_ref()
        && (*owner, *size) == (process, threads)
    {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("minwise-{i}")).build();
    let pool = Arc::new(pool.map_err(|error| -> PyErr { PyRuntimeError::new_err(error.to_string()) })?);
    if let Some((owner, _, old)) = last.replace((process, threads, Arc::clone(&pool)))
        && owner != process
    {
        std::mem::forget(old); // its threads stayed behind in the parent
    }
    Ok(pool)
}
