//! Scanner: from texts to the entries of their segments, of the L-grams of regions, or of their units.

use std::mem::take;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::hashes::{Polynomials, select};
use super::{Entry, PARTITIONS, Regions};
use crate::batch::{Texts, run_tasks};
use crate::error::{TextError, TextFault};
use crate::shingle::{Scratch, Shingler};
use crate::units::{Unit, UnitReader};

/// Entries that a task holds: 2.8 MB.
const COLLECTED_ENTRIES: usize = 1 << 16;

/// Function from texts to entries, which it collects by partition.
pub struct Scanner {
    shingler: Arc<Shingler>,
    /// Tokens of an L-gram.
    size: usize,
    /// Tokens of a k-gram, and k-grams of an L-gram.
    gram: usize,
    width: usize,
    polynomials: Polynomials,
    partitions: Mutex<Vec<Vec<u8>>>,
}

/// Destination of entries that exceed a number of bytes.
#[derive(Clone, Copy)]
pub struct Spill<'s> {
    /// Bytes of collected entries that are spilled.
    pub bytes: usize,
    /// Receives the encoded entries of each partition.
    pub write: &'s (dyn Fn(Vec<Vec<u8>>) + Sync),
}

/// Entries of a task, with their partitions.
type Entries = Vec<(u8, Entry)>;

/// Tokens of a document that are not consumed yet.
struct Block<'b> {
    spans: &'b [[u32; 2]],
    prefixes: &'b [[u64; 2]],
    document: u32,
    /// Index of the first of these tokens in the document.
    base: usize,
}

impl Scanner {
    /// Create a scanner for L-grams of `size` tokens, from 1 to [`super::MAX_TOKENS`], of a shingler of words.
    #[must_use]
    pub fn new(shingler: Arc<Shingler>, size: usize, seed: u64) -> Self {
        let gram = (size / 2).max(1);
        let width = size - gram + 1;
        let polynomials = Polynomials::new(seed, size + width);
        Self { shingler, size, gram, width, polynomials, partitions: Mutex::new(vec![Vec::new(); PARTITIONS]) }
    }

    /// Add the segments of texts with these document numbers; return the number of tokens or the fault of each.
    pub fn scan<O>(
        &self,
        texts: Texts<'_, O>,
        numbers: &[u32],
        threads: usize,
        spill: Spill<'_>,
    ) -> Vec<Result<u32, TextFault>>
    where
        O: Copy + TryInto<usize> + Sync,
    {
        self.process(texts, threads, spill, |i, scratch, entries| {
            let mut base = 0;
            let (mut prefixes, mut grams) = (take(&mut scratch.prefixes), take(&mut scratch.grams));
            let counted = self.shingler.words::<true>(texts.get(i), scratch, |_, tokens, spans, last| {
                self.polynomials.fill(tokens, &mut prefixes);
                let block = Block { spans, prefixes: &prefixes, document: numbers[i], base };
                let consumed = self.segments(&block, last, &mut grams, entries);
                self.collect(entries, spill, COLLECTED_ENTRIES);
                base += consumed;
                consumed
            });
            (scratch.prefixes, scratch.grams) = (prefixes, grams);
            counted
        })
    }

    /// Add the L-grams of the regions of texts with these document numbers.
    pub fn scan_regions<O>(
        &self,
        texts: Texts<'_, O>,
        numbers: &[u32],
        regions: &Regions,
        threads: usize,
        spill: Spill<'_>,
    ) -> Vec<Result<u32, TextFault>>
    where
        O: Copy + TryInto<usize> + Sync,
    {
        self.process(texts, threads, spill, |i, scratch, entries| {
            let mut regions = regions.of_document(numbers[i]).peekable();
            if regions.peek().is_none() {
                return Ok(0);
            }
            let mut open = 0..0;
            let mut base = 0;
            let mut prefixes = take(&mut scratch.prefixes);
            let counted = self.shingler.words::<true>(texts.get(i), scratch, |_, tokens, spans, _| {
                let end = base + (tokens.len() + 1).saturating_sub(self.size);
                self.polynomials.fill(tokens, &mut prefixes);
                let block = Block { spans, prefixes: &prefixes, document: numbers[i], base };
                while open.start < end.min(open.end)
                    || regions.next_if(|next| next.start < end).map(|next| open = next).is_some()
                {
                    let partition = self.selected(&block, open.start - base) as u8;
                    let stop = end.min(open.end);
                    entries.extend((open.start..stop).map(|start| (partition, self.single(&block, start - base))));
                    open.start = stop;
                }
                self.collect(entries, spill, COLLECTED_ENTRIES);
                let consumed = end - base;
                base = end;
                consumed
            });
            scratch.prefixes = prefixes;
            counted
        })
    }

    /// Return the encoded entries of each partition, and forget them.
    pub fn drain(&self) -> Vec<Vec<u8>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().map(take).collect()
    }

    /// Add the units of texts with these document numbers.
    pub fn scan_units<O>(
        &self,
        texts: Texts<'_, O>,
        numbers: &[u32],
        unit: Unit,
        threads: usize,
        spill: Spill<'_>,
    ) -> Vec<Result<u32, TextFault>>
    where
        O: Copy + TryInto<usize> + Sync,
    {
        self.process(texts, threads, spill, |i, scratch, entries| {
            let mut base = 0;
            let mut reader = UnitReader::new(unit);
            self.shingler.words::<true>(texts.get(i), scratch, |piece, tokens, spans, last| {
                let consumed =
                    reader.read(piece, spans, last, |words, span| {
                        if words.len() >= self.size {
                            let position = (base + words.start) as u32;
                            entries.push(self.unit(
                                &tokens[words],
                                Entry { document: numbers[i], position, span, ..Entry::default() },
                            ));
                        }
                    });
                self.collect(entries, spill, COLLECTED_ENTRIES);
                base += consumed;
                consumed
            })
        })
    }

    fn process<O>(
        &self,
        texts: Texts<'_, O>,
        threads: usize,
        spill: Spill<'_>,
        work: impl Fn(usize, &mut Scratch, &mut Entries) -> Result<usize, TextFault> + Sync + Send,
    ) -> Vec<Result<u32, TextFault>>
    where
        O: Copy + TryInto<usize> + Sync,
    {
        let parts = run_tasks(threads, texts.tasks(), |scratch, documents: Range<usize>| {
            let mut entries = Entries::new();
            let counts = documents.map(|i| work(i, scratch, &mut entries).map(|tokens| tokens as u32));
            let counts: Vec<_> = counts.collect();
            self.collect(&mut entries, spill, 0);
            Ok::<_, TextError>(counts)
        });
        parts.unwrap_or_default().into_iter().flatten().collect() // a task has no error of its own
    }

    /// Move entries of a task to the partitions if they are more than `most`; spill those if they are too many.
    fn collect(&self, entries: &mut Entries, spill: Spill<'_>, most: usize) {
        if entries.len() <= most {
            return;
        }
        let mut partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        for (partition, entry) in entries.drain(..) {
            entry.encode(&mut partitions[usize::from(partition)]);
        }
        if partitions.iter().map(Vec::len).sum::<usize>() >= spill.bytes {
            (spill.write)(partitions.iter_mut().map(take).collect());
        }
    }

    /// Add the segments of a block that are complete; return the number of tokens before the next one.
    fn segments(&self, block: &Block<'_>, last: bool, grams: &mut Vec<u64>, entries: &mut Entries) -> usize {
        let tokens = block.spans.len();
        if tokens < self.size {
            return 0;
        }
        let gram = |start: usize| self.polynomials.run(block.prefixes, 0, start, start + self.gram);
        grams.clear();
        grams.extend((0..=tokens - self.gram).map(gram));
        let mut next = 0;
        select(grams, self.width, |first, end, fingerprint| {
            next = first;
            if last || end + self.size <= tokens {
                entries.push(self.segment(block, first..end, fingerprint));
            }
        });
        next
    }

    fn segment(&self, block: &Block<'_>, starts: Range<usize>, fingerprint: u64) -> (u8, Entry) {
        let end = starts.end + self.size - 1;
        let hash = |lane| self.polynomials.run(block.prefixes, lane, starts.start, end);
        let entry = Entry {
            fingerprint: (fingerprint >> 8) as u32,
            hash: hash(0),
            check: hash(1) as u32,
            ..block.entry(starts, end)
        };
        (fingerprint as u8, entry)
    }

    /// Return the hash that an L-gram selects.
    fn selected(&self, block: &Block<'_>, start: usize) -> u64 {
        let gram = |start: usize| self.polynomials.run(block.prefixes, 0, start, start + self.gram);
        (start..start + self.width).map(gram).min().unwrap_or(0)
    }

    /// Return the entry of one L-gram.
    fn single(&self, block: &Block<'_>, start: usize) -> Entry {
        let end = start + self.size;
        let hashes = [0, 1].map(|lane| self.polynomials.run(block.prefixes, lane, start, end));
        by_hashes(hashes, block.entry(start..start + 1, end))
    }

    /// Return the entry of a unit with these tokens, at least L.
    fn unit(&self, tokens: &[u64], entry: Entry) -> (u8, Entry) {
        let count = (tokens.len() - self.size + 1) as u16;
        let hashes = self.polynomials.whole(tokens);
        (hashes[0] as u8, by_hashes(hashes, Entry { count, ..entry }))
    }
}

/// Return an entry that is grouped by its hashes; the bits of the second are fingerprint and check.
fn by_hashes([hash, second]: [u64; 2], entry: Entry) -> Entry {
    Entry { fingerprint: second as u32, hash, check: (second >> 32) as u32, ..entry }
}

impl Block<'_> {
    fn entry(&self, starts: Range<usize>, end: usize) -> Entry {
        Entry {
            count: starts.len() as u16,
            document: self.document,
            position: (self.base + starts.start) as u32,
            span: [self.spans[starts.start][0], self.spans[end - 1][1]],
            ..Entry::default()
        }
    }
}
