//! Temporary files of a target.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Path of a temporary file that no other case uses; the file is deleted at the end of the case.
#[derive(Debug)]
pub struct ScratchFile(PathBuf);

impl ScratchFile {
    /// Create a path; the file does not exist yet.
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("minwise-fuzz-{}-{number}", std::process::id());
        // In memory if possible: on a busy disk a case takes 100 times as long.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Self(folder.join(name))
    }

    /// Return the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Write the file.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn write(&self, bytes: &[u8]) {
        std::fs::write(&self.0, bytes).expect("the temporary directory is writable");
    }
}

impl Default for ScratchFile {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
