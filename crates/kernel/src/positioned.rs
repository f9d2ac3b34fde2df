//! Reads and writes at a position of a file, which threads share without a lock.

use std::fs::File;
use std::io;

/// Fill `bytes` from `offset` on; the error is `UnexpectedEof` if the file is too short.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

/// Fill `bytes` from `offset` on; the error is `UnexpectedEof` if the file is too short.
#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    transfer(bytes.len(), io::ErrorKind::UnexpectedEof, |done| {
        std::os::windows::fs::FileExt::seek_read(file, &mut bytes[done..], offset + done as u64)
    })
}

/// Write all of `bytes` from `offset` on.
#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// Write all of `bytes` from `offset` on.
#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    transfer(bytes.len(), io::ErrorKind::WriteZero, |done| {
        std::os::windows::fs::FileExt::seek_write(file, &bytes[done..], offset + done as u64)
    })
}

/// Repeat a call that returns how many bytes it transferred until there are `length`; 0 is the error `at_end`.
#[cfg(any(windows, test))]
fn transfer(length: usize, at_end: io::ErrorKind, mut call: impl FnMut(usize) -> io::Result<usize>) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        match call(done) {
            Ok(0) => return Err(at_end.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: &[u8] = b"the content of a file";

    /// Read at most three bytes per call, and interrupt every other call.
    fn read_slowly(bytes: &mut [u8], offset: usize) -> io::Result<()> {
        let mut calls = 0;
        transfer(bytes.len(), io::ErrorKind::UnexpectedEof, |done| {
            calls += 1;
            if calls % 2 == 1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let (rest, target) = (&CONTENT[(offset + done).min(CONTENT.len())..], &mut bytes[done..]);
            let count = rest.len().min(target.len()).min(3);
            target[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        })
    }

    #[test]
    fn short_and_interrupted_transfers_are_continued() {
        let mut bytes = [0; 7];
        read_slowly(&mut bytes, 4).unwrap();
        assert_eq!(&bytes, b"content");
    }

    #[test]
    fn end_of_the_file_is_an_error() {
        let error = read_slowly(&mut [0; 8], CONTENT.len() - 7).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
