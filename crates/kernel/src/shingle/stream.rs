//! Shingling of a document in chunks: the same shingles as for the whole document, in bounded memory.
//!
//! A chunk is cut at the last position where the text on both sides can be normalised and tokenised separately; the
//! rest is kept for the next chunk. A text without such a position (one endless word) is buffered as a whole.

use std::sync::Arc;

use super::pieces::{RollingWindow, splits};
use super::{Kind, Scratch, Shingler};
use crate::error::{MAX_DOCUMENT_BYTES, TextFault};

/// Shingler of one document in chunks.
pub struct ShingleStream {
    shingler: Arc<Shingler>,
    window: RollingWindow,
    /// Bytes after the last cut.
    pending: Vec<u8>,
    /// Minimum length of `pending` before the next search for a cut, so that an endless word is not searched
    /// repeatedly.
    search_length: usize,
    /// Bytes processed, for the position of a fault.
    consumed: u64,
    scratch: Scratch,
}

impl ShingleStream {
    /// Create a stream at the start of a document. Bags cannot be streamed: numbering occurrences needs the whole text.
    #[must_use]
    pub fn new(shingler: Arc<Shingler>) -> Self {
        Self {
            window: RollingWindow::new(&shingler),
            shingler,
            pending: Vec::new(),
            search_length: 0,
            consumed: 0,
            scratch: Scratch::default(),
        }
    }

    /// Process the next chunk and return the shingles that are final.
    ///
    /// # Errors
    /// If the document is not UTF-8, or the bytes without a possible cut exceed the maximum length of a document.
    pub fn push(&mut self, chunk: &[u8]) -> Result<&[u64], TextFault> {
        self.pending.extend_from_slice(chunk);
        self.scratch.shingles.clear();
        if self.pending.len() >= self.search_length {
            let cut = self.cut()?;
            self.search_length = 2 * (self.pending.len() - cut);
            self.process(cut)?;
        }
        if self.pending.len() > MAX_DOCUMENT_BYTES {
            return Err(TextFault::TooLong { bytes: self.pending.len() as u64 });
        }
        Ok(&self.scratch.shingles)
    }

    /// End the document and return its last shingles.
    ///
    /// # Errors
    /// If the document is not UTF-8.
    pub fn finish(&mut self) -> Result<&[u64], TextFault> {
        self.scratch.shingles.clear();
        self.process(self.pending.len())?;
        self.window.finish(&self.shingler, &mut self.scratch);
        Ok(&self.scratch.shingles)
    }

    /// Return the last possible cut in the pending bytes; 0 if there is none.
    fn cut(&self) -> Result<usize, TextFault> {
        if self.shingler.config.kind == Kind::Byte {
            return Ok(self.pending.len());
        }
        let text = match std::str::from_utf8(&self.pending) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&self.pending[..error.valid_up_to()]).expect("the text is valid up to this byte")
            }
            Err(error) => return Err(TextFault::InvalidUtf8 { byte: self.consumed + error.valid_up_to() as u64 }),
        };
        let kind = self.shingler.config.kind;
        Ok(text.char_indices().rev().find(|&(_, c)| splits(kind, c)).map_or(0, |(offset, _)| offset))
    }

    fn process(&mut self, cut: usize) -> Result<(), TextFault> {
        let Self { shingler, window, pending, scratch, consumed, .. } = self;
        let piece = &pending[..cut];
        if shingler.config.kind == Kind::Byte {
            window.push_bytes(shingler, piece, scratch);
        } else {
            let text = std::str::from_utf8(piece)
                .map_err(|error| TextFault::InvalidUtf8 { byte: *consumed + error.valid_up_to() as u64 })?;
            window.push(shingler, text, scratch);
        }
        self.consumed += cut as u64;
        self.pending.drain(..cut);
        Ok(())
    }
}
