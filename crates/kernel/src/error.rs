//! Errors of input texts, and the checks that find them.

use std::fmt;

/// The first faulty text of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// Index of the text in its batch.
    pub document: usize,
    /// The fault.
    pub fault: TextFault,
}

/// Reason why a text cannot be processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFault {
    /// The text is not valid UTF-8.
    InvalidUtf8 {
        /// Offset of the first invalid byte.
        byte: u64,
    },
    /// The text is longer than [`MAX_DOCUMENT_BYTES`].
    TooLong {
        /// Length of the text.
        bytes: u64,
    },
    /// The text has more than [`MAX_ELEMENTS`] distinct elements.
    TooManyElements,
    /// The text has more than [`MAX_SEGMENT_BYTES`] in a row that must be normalised together.
    LongSegment,
}

impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidUtf8 { byte } => write!(f, "is not valid UTF-8 at byte {byte}"),
            Self::TooLong { bytes } => {
                write!(f, "has {bytes} bytes, more than {MAX_DOCUMENT_BYTES}; sketch it from a stream")
            }
            Self::TooManyElements => write!(f, "has more than {MAX_ELEMENTS} distinct shingles"),
            Self::LongSegment => write!(f, "has more than {MAX_SEGMENT_BYTES} bytes of combining marks in a row"),
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "document {} {}", self.document, self.fault)
    }
}

impl std::error::Error for TextError {}

/// Maximum length of a text. The hot loops use 32-bit positions, and normalisation can lengthen a text.
pub const MAX_DOCUMENT_BYTES: usize = 1 << 30;

/// Maximum number of distinct elements of a text: 128 MiB, which is held as a whole.
pub const MAX_ELEMENTS: usize = 1 << 24;

/// Maximum length of a base character and its marks. The normaliser sorts the marks, at about 20 bytes for each.
pub const MAX_SEGMENT_BYTES: usize = 1 << 20;

/// Return `bytes` as a string.
///
/// # Errors
/// [`TextFault`] if the text is not UTF-8 or too long.
pub fn checked_text(bytes: &[u8]) -> Result<&str, TextFault> {
    check_length(bytes)?;
    // `basic` is the fastest check but gives no position; the second scan runs only on invalid text.
    simdutf8::basic::from_utf8(bytes).map_err(|_| {
        let byte = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to() as u64, |_| 0);
        TextFault::InvalidUtf8 { byte }
    })
}

/// Check the length of a text.
///
/// # Errors
/// [`TextFault::TooLong`].
pub fn check_length(bytes: &[u8]) -> Result<(), TextFault> {
    if bytes.len() > MAX_DOCUMENT_BYTES { Err(TextFault::TooLong { bytes: bytes.len() as u64 }) } else { Ok(()) }
}
