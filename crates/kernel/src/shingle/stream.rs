//! A document that arrives in chunks: the same shingles as if it had come whole, in memory that does not grow with it.
//!
//! A chunk is cut where the text on both sides can be normalised and cut into tokens apart; what is behind the cut waits
//! for the next chunk. A text without any such place (one endless word) has to wait as a whole.

use std::sync::Arc;

use super::{Kind, Scratch, Shingler};
use crate::error::{Fault, MAX_DOCUMENT_BYTES};
use crate::normalise::Normaliser;
use crate::unicode::{Class, Folded, FoldedEntry, Properties};

/// Turns the chunks of one document into shingles.
pub struct ShingleStream {
    shingler: Arc<Shingler>,
    normaliser: Normaliser,
    /// Bytes that wait for what follows them.
    waiting: Vec<u8>,
    /// How much has to wait before a cut is looked for again, so that an endless word is not searched again and again.
    search_at: usize,
    /// Bytes that are done with, for naming the place of a fault.
    consumed: u64,
    /// Whether a full window has been seen, after which a short last window means nothing.
    rolling: bool,
    scratch: Scratch,
}

impl ShingleStream {
    /// A stream at the start of a document. Bags cannot be streamed: the number of an occurrence needs the whole text.
    #[must_use]
    pub fn new(shingler: Arc<Shingler>) -> Self {
        Self {
            normaliser: Normaliser::new(shingler.config.normalisation),
            shingler,
            waiting: Vec::new(),
            search_at: 0,
            consumed: 0,
            rolling: false,
            scratch: Scratch::default(),
        }
    }

    /// Takes the next chunk and returns the shingles that are now certain.
    ///
    /// # Errors
    /// If the document is not UTF-8, or has no place to cut it for too long.
    pub fn push(&mut self, chunk: &[u8]) -> Result<&[u64], Fault> {
        self.waiting.extend_from_slice(chunk);
        self.scratch.shingles.clear();
        if self.waiting.len() >= self.search_at {
            let cut = self.cut()?;
            self.search_at = 2 * (self.waiting.len() - cut);
            self.take(cut)?;
        }
        if self.waiting.len() > MAX_DOCUMENT_BYTES {
            return Err(Fault::TooLong { bytes: self.waiting.len() as u64 });
        }
        Ok(&self.scratch.shingles)
    }

    /// Ends the document and returns its last shingles.
    ///
    /// # Errors
    /// If the document is not UTF-8.
    pub fn finish(&mut self) -> Result<&[u64], Fault> {
        self.scratch.shingles.clear();
        self.take(self.waiting.len())?;
        if !self.rolling {
            self.shingler.roll(&self.scratch.tokens, |&hash| hash, &mut self.scratch.shingles);
        }
        Ok(&self.scratch.shingles)
    }

    /// The last place in the waiting bytes where the document may be cut; 0 if there is none.
    fn cut(&self) -> Result<usize, Fault> {
        if self.shingler.config.kind == Kind::Byte {
            return Ok(self.waiting.len());
        }
        let text = match std::str::from_utf8(&self.waiting) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&self.waiting[..error.valid_up_to()]).expect("it was valid up to here")
            }
            Err(error) => return Err(Fault::InvalidUtf8 { byte: self.consumed + error.valid_up_to() as u64 }),
        };
        let words = self.shingler.config.kind == Kind::Word;
        let place = text.char_indices().rev().find(|&(_, c)| if words { parts_words(c) } else { parts_segments(c) });
        Ok(place.map_or(0, |(place, _)| place))
    }

    fn take(&mut self, cut: usize) -> Result<(), Fault> {
        let Self { shingler, normaliser, waiting, scratch, .. } = self;
        let piece = &waiting[..cut];
        if shingler.config.kind == Kind::Byte {
            scratch.tokens.extend(piece.iter().map(|&byte| shingler.characters.byte(byte)));
        } else {
            let text = std::str::from_utf8(piece)
                .map_err(|error| Fault::InvalidUtf8 { byte: self.consumed + error.valid_up_to() as u64 })?;
            shingler.hash_tokens(text, normaliser, &mut scratch.words, &mut scratch.tokens);
        }
        self.consumed += cut as u64;
        self.waiting.drain(..cut);
        let size = self.shingler.config.size;
        if self.scratch.tokens.len() >= size {
            self.rolling = true;
            self.shingler.roll(&self.scratch.tokens, |&hash| hash, &mut self.scratch.shingles);
            self.scratch.tokens.drain(..=self.scratch.tokens.len() - size);
        }
        Ok(())
    }
}

fn parts_segments(c: char) -> bool {
    Properties::of(c).starts_segment()
}

/// Whether every option ends a word before `c`: white space is never dropped, and a character of a script without
/// spaces starts its own word, unless it is a digit, which may be masked by an ordinary one.
fn parts_words(c: char) -> bool {
    let properties = Properties::of(c);
    let alone = matches!(FoldedEntry::of(c).unpack(c), Folded::Simple(_, Class::Alone)) && !properties.is_digit();
    properties.starts_segment() && (properties.is_whitespace() || alone)
}
