//! What can be wrong with a document.

use std::fmt;

/// The first document that could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// Number of the document in its batch.
    pub document: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not UTF-8 from this byte on.
    InvalidUtf8 {
        /// Offset of the first byte that does not fit.
        byte: u64,
    },
    /// More bytes than one document may have in memory.
    TooLong {
        /// Its length.
        bytes: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidUtf8 { byte } => write!(f, "is not valid UTF-8 at byte {byte}"),
            Self::TooLong { bytes } => {
                write!(f, "has {bytes} bytes, more than {MAX_DOCUMENT_BYTES}; sketch it from a stream")
            }
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "document {} {}", self.document, self.fault)
    }
}

impl std::error::Error for TextError {}

/// Positions inside a document are 32-bit numbers in the hot loops; normalisation may lengthen a text before they do.
pub const MAX_DOCUMENT_BYTES: usize = 1 << 30;

/// `bytes` as text, if it is text and not too long.
///
/// # Errors
/// The fault, if it is neither.
pub fn checked_text(bytes: &[u8]) -> Result<&str, Fault> {
    check_length(bytes)?;
    // `basic` is fast and only says whether; where is worth a second look once.
    simdutf8::basic::from_utf8(bytes).map_err(|_| {
        let byte = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to() as u64, |_| 0);
        Fault::InvalidUtf8 { byte }
    })
}

/// Refuses a document that is too long to be held as one.
///
/// # Errors
/// [`Fault::TooLong`].
pub fn check_length(bytes: &[u8]) -> Result<(), Fault> {
    if bytes.len() > MAX_DOCUMENT_BYTES { Err(Fault::TooLong { bytes: bytes.len() as u64 }) } else { Ok(()) }
}
