//! Contamination: the n-grams of evaluation items in training texts.
//!
//! [`ItemTable`] holds the words of all items and every distinct n-gram of them; an item shorter than n is one n-gram
//! as a whole. Every word of a text is probed: the rolling hash of the n-gram that starts there is looked up in a bitmap
//! that stays in the cache, and what passes is looked up in a table and compared word by word. The bitmap decides
//! nothing. Whole items are few, so the first [`MIN_TOKENS`] words decide whether one of their lengths is tried.
//!
//! Words are compared by their 64-bit hashes, and those of a reported match by a second hash of another seed, too: two
//! different words are equal in both with a probability of 2⁻¹²⁸.

use std::collections::HashMap;
use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use crate::batch::{Texts, run_tasks};
use crate::error::{TextError, TextFault};
use crate::shingle::{Scratch, Shingler};

/// Tokens of the shortest item that can be found.
pub const MIN_TOKENS: usize = 5;
/// Maximum number of tokens of an n-gram: the lengths of shorter items are the bits of a word.
pub const MAX_NGRAM: usize = 100;
/// Bits of the bitmap for each n-gram: at most one of 16 words that are in no item passes it.
const BITS_PER_GRAM: usize = 16;
/// N-grams of a text after which repeated ones are dropped: 4 MiB.
const COLLECTED_GRAMS: usize = 1 << 20;
/// Free slot of the table, and token at which no n-gram starts.
const NONE: u32 = u32::MAX;

/// N-grams of evaluation items.
pub struct ItemTable {
    /// Shingler of words whose size is that of an n-gram.
    shingler: Arc<Shingler>,
    /// The same with another seed, to confirm matches.
    second: Arc<Shingler>,
    /// The same with a size of [`MIN_TOKENS`].
    heads: Arc<Shingler>,
    size: usize,
    /// Hashes of the words of all items, and second hashes.
    tokens: Vec<u64>,
    seconds: Vec<u64>,
    /// Span of each word in its item.
    spans: Vec<[u32; 2]>,
    /// First word of each item, and the end of the last.
    starts: Vec<usize>,
    /// First word, and the end, of an occurrence of each n-gram.
    grams: Vec<[u32; 2]>,
    /// N-gram that starts at each word.
    gram_at: Vec<u32>,
    /// N-gram of each slot.
    slots: Vec<u32>,
    /// Bits of the highest bits of hashes.
    bitmap: Vec<u64>,
    shift: u32,
    /// Lengths of the whole items that start with words of this hash, as bits.
    lengths: HashMap<u64, u128>,
}

/// What a text has of the items.
#[derive(Debug, Default)]
pub struct Scanned {
    /// Number of words.
    pub tokens: u32,
    /// Hash of all words.
    pub content: [u64; 2],
    /// Distinct n-grams, ascending.
    pub grams: Vec<u32>,
}

/// What a text has of one item.
#[derive(Debug, Default)]
pub struct Overlap {
    /// Number of distinct n-grams.
    pub matched: u32,
    /// Number of words of the item that are in one of them.
    pub covered: u32,
    /// Start and end in the text, then in the item, in code points, of each run of words.
    pub spans: Vec<[u32; 4]>,
}

/// N-gram in a text: index of its first word, and its span.
struct Match {
    at: usize,
    gram: u32,
    span: [u32; 2],
}

impl ItemTable {
    /// Create the table of items, and return the index and the fault of each that cannot be read.
    ///
    /// # Panics
    /// If there are more than 2³² words.
    #[must_use]
    pub fn new<O>(shinglers: [Arc<Shingler>; 3], size: usize, items: Texts<'_, O>) -> (Self, Vec<TextError>)
    where
        O: Copy + TryInto<usize>,
    {
        let [shingler, second, heads] = shinglers;
        let mut table = Self {
            shingler,
            second,
            heads,
            size,
            tokens: Vec::new(),
            seconds: Vec::new(),
            spans: Vec::new(),
            starts: vec![0],
            grams: Vec::new(),
            gram_at: Vec::new(),
            slots: Vec::new(),
            bitmap: Vec::new(),
            shift: 63,
            lengths: HashMap::new(),
        };
        let mut scratch = Scratch::default();
        let faults = (0..items.len()).filter_map(|item| {
            let fault = table.add(items.get(item), &mut scratch).err()?;
            Some(TextError { document: item, fault })
        });
        let faults = faults.collect();
        assert!(table.tokens.len() < NONE as usize, "words are numbered in 32 bits");
        table.index();
        (table, faults)
    }

    /// Add the words of an item; none if it has a fault.
    fn add(&mut self, item: &[u8], scratch: &mut Scratch) -> Result<(), TextFault> {
        let added = self.shingler.words::<true>(item, scratch, |_, tokens, spans, _| {
            self.tokens.extend_from_slice(tokens);
            self.spans.extend_from_slice(spans);
            tokens.len()
        });
        let seconds = &mut self.seconds;
        let confirmed = added.and_then(|_| {
            self.second.words::<false>(item, scratch, |_, tokens, _, _| {
                seconds.extend_from_slice(tokens);
                tokens.len()
            })
        });
        self.starts.push(self.tokens.len());
        confirmed.map(drop)
    }

    /// Number the n-grams, and make the table and the bitmap.
    fn index(&mut self) {
        self.gram_at = vec![NONE; self.tokens.len()];
        let ranges: Vec<_> = (0..self.items()).flat_map(|item| self.windows(item)).collect();
        self.slots = vec![NONE; (2 * ranges.len()).next_power_of_two()];
        let bits = (BITS_PER_GRAM * ranges.len()).next_power_of_two().max(128);
        self.bitmap = vec![0; bits / 64];
        self.shift = 64 - bits.trailing_zeros();
        for range in ranges {
            let hash = self.hash(&self.tokens[range.clone()]);
            let (slot, gram) = self.slot(hash, &self.tokens[range.clone()]);
            let gram = gram.unwrap_or(self.grams.len() as u32);
            if gram as usize == self.grams.len() {
                self.slots[slot] = gram;
                self.grams.push([range.start as u32, range.end as u32]);
                self.note(hash, range.clone());
            }
            self.gram_at[range.start] = gram;
        }
    }

    /// Return the words of each n-gram of an item.
    fn windows(&self, item: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let words = self.words(item);
        let size = self.size.min(words.len());
        let last = if size < MIN_TOKENS { words.start } else { words.end - size + 1 };
        (words.start..last).map(move |start| start..start + size)
    }

    fn words(&self, item: usize) -> Range<usize> {
        self.starts[item]..self.starts[item + 1]
    }

    /// Set the bit of an n-gram, of a whole item that of its first words.
    fn note(&mut self, hash: u64, range: Range<usize>) {
        let mut noted = hash;
        if range.len() < self.size {
            let mut head = Vec::new();
            self.heads.roll(&self.tokens[range.start..range.start + MIN_TOKENS], |&hash| hash, &mut head);
            noted = head[0];
            *self.lengths.entry(noted).or_default() |= 1 << range.len();
        }
        let bit = (noted >> self.shift) as usize;
        self.bitmap[bit / 64] |= 1 << (bit % 64);
    }

    /// Return whether the bit of a hash is set.
    #[inline(always)]
    fn may_have(&self, hash: u64) -> bool {
        let bit = (hash >> self.shift) as usize;
        self.bitmap[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Return the hash of an n-gram, as rolling over a text gives it.
    fn hash(&self, window: &[u64]) -> u64 {
        let mut hash = Vec::with_capacity(1);
        self.shingler.roll(window, |&hash| hash, &mut hash);
        hash[0]
    }

    /// Return the slot of an n-gram, and its number if it is in the table.
    fn slot(&self, hash: u64, window: &[u64]) -> (usize, Option<u32>) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot] {
                NONE => return (slot, None),
                gram if self.tokens[self.range(gram)] == *window => return (slot, Some(gram)),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    fn range(&self, gram: u32) -> Range<usize> {
        let [start, end] = self.grams[gram as usize];
        start as usize..end as usize
    }

    /// Return the number of items.
    #[must_use]
    pub const fn items(&self) -> usize {
        self.starts.len() - 1
    }

    /// Return the number of distinct n-grams.
    #[must_use]
    pub const fn grams(&self) -> usize {
        self.grams.len()
    }

    /// Return the number of words of each item.
    #[must_use]
    pub fn token_counts(&self) -> Vec<u32> {
        self.starts.windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect()
    }

    /// Return the n-grams of each item in its order, with repetitions: offsets, and values.
    #[must_use]
    pub fn item_grams(&self) -> (Vec<i64>, Vec<u32>) {
        let (mut offsets, mut grams) = (vec![0], Vec::new());
        for item in 0..self.items() {
            grams.extend(self.windows(item).map(|range| self.gram_at[range.start]));
            offsets.push(grams.len() as i64);
        }
        (offsets, grams)
    }

    /// Return the bytes of memory that the table takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let words = size_of_val(&*self.tokens) + size_of_val(&*self.seconds) + size_of_val(&*self.spans);
        let grams = size_of_val(&*self.grams) + size_of_val(&*self.gram_at) + size_of_val(&*self.slots);
        words + grams + size_of_val(&*self.starts) + size_of_val(&*self.bitmap) + 32 * self.lengths.capacity()
    }

    /// Return what each text has of the items.
    #[must_use]
    pub fn scan<O>(&self, texts: Texts<'_, O>, threads: usize) -> Vec<Result<Scanned, TextFault>>
    where
        O: Copy + TryInto<usize> + Sync,
    {
        let parts = run_tasks(threads, texts.tasks(), |scratch, documents: Range<usize>| {
            Ok::<_, TextError>(documents.map(|i| self.scan_text(texts.get(i), scratch)).collect::<Vec<_>>())
        });
        parts.unwrap_or_default().into_iter().flatten().collect() // a task has no error of its own
    }

    fn scan_text(&self, text: &[u8], scratch: &mut Scratch) -> Result<Scanned, TextFault> {
        let hasher = self.shingler.content_hasher();
        let (mut content, mut grams, mut limit) = (hasher.start(), Vec::new(), COLLECTED_GRAMS);
        let mut buffers = (take(&mut scratch.grams), take(&mut scratch.shingles));
        let tokens = self.shingler.words::<false>(text, scratch, |_, tokens, _, last| {
            let consumed = self.probe(tokens, last, &mut buffers, |_, gram| grams.push(gram));
            content.push(&tokens[..consumed]);
            if grams.len() > limit {
                distinct(&mut grams);
                limit = 2 * grams.len() + COLLECTED_GRAMS;
            }
            consumed
        });
        (scratch.grams, scratch.shingles) = buffers;
        distinct(&mut grams);
        Ok(Scanned { tokens: tokens? as u32, content: content.finish(), grams })
    }

    /// Call `emit` with the first word and the number of each n-gram of the items that starts among these words; return
    /// the number of words before the first at which an n-gram may be incomplete.
    fn probe(
        &self,
        tokens: &[u64],
        last: bool,
        (windows, heads): &mut (Vec<u64>, Vec<u64>),
        mut emit: impl FnMut(usize, u32),
    ) -> usize {
        let end = if last { tokens.len() } else { (tokens.len() + 1).saturating_sub(self.size) };
        if tokens.len() >= self.size {
            windows.clear();
            self.shingler.roll(tokens, |&hash| hash, windows);
            for (start, &hash) in windows.iter().enumerate() {
                if self.may_have(hash)
                    && let (_, Some(gram)) = self.slot(hash, &tokens[start..start + self.size])
                {
                    emit(start, gram);
                }
            }
        }
        if !self.lengths.is_empty() && tokens.len() >= MIN_TOKENS {
            heads.clear();
            self.heads.roll(tokens, |&hash| hash, heads);
            for (start, head) in heads.iter().enumerate().take(end).filter(|(_, head)| self.may_have(**head)) {
                self.lengths.get(head).into_iter().for_each(|&lengths| {
                    self.whole_items(&tokens[start..], lengths, |gram| emit(start, gram));
                });
            }
        }
        end
    }

    /// Call `emit` with each whole item of one of these lengths at the start of the words.
    fn whole_items(&self, tokens: &[u64], lengths: u128, mut emit: impl FnMut(u32)) {
        let most = tokens.len().min(self.size - 1);
        for window in (MIN_TOKENS..=most).filter(|length| lengths >> length & 1 == 1).map(|length| &tokens[..length]) {
            if let (_, Some(gram)) = self.slot(self.hash(window), window) {
                emit(gram);
            }
        }
    }

    /// Return what each text has of the items that are wanted from it, by n-grams that count.
    ///
    /// # Panics
    /// If there is not a list of wanted items for each text, or not a flag for each n-gram.
    #[must_use]
    pub fn locate<O>(
        &self,
        texts: Texts<'_, O>,
        wanted: &[&[u32]],
        counts: &[bool],
        threads: usize,
    ) -> Vec<Result<Vec<Overlap>, TextFault>>
    where
        O: Copy + TryInto<usize> + Sync,
    {
        assert!(wanted.len() == texts.len() && counts.len() == self.grams(), "every text and n-gram has its entry");
        let parts = run_tasks(threads, texts.tasks(), |scratch, documents: Range<usize>| {
            let located = documents.map(|i| {
                let matches =
                    if wanted[i].is_empty() { Vec::new() } else { self.matches(texts.get(i), counts, scratch)? };
                Ok(wanted[i].iter().map(|&item| self.overlap(item as usize, &matches)).collect())
            });
            Ok::<_, TextError>(located.collect::<Vec<_>>())
        });
        parts.unwrap_or_default().into_iter().flatten().collect()
    }

    /// Return the n-grams of the items in a text that count, in its order, equal in both hashes of every word.
    fn matches(&self, text: &[u8], counts: &[bool], scratch: &mut Scratch) -> Result<Vec<Match>, TextFault> {
        let (mut base, mut matches) = (0, Vec::new());
        let mut buffers = (take(&mut scratch.grams), take(&mut scratch.shingles));
        let read = self.shingler.words::<true>(text, scratch, |_, tokens, spans, last| {
            let first = matches.len();
            let consumed = self.probe(tokens, last, &mut buffers, |start, gram| {
                if counts[gram as usize] {
                    let span = [spans[start][0], spans[start + self.range(gram).len() - 1][1]];
                    matches.push(Match { at: base + start, gram, span });
                }
            });
            matches[first..].sort_unstable_by_key(|found: &Match| (found.at, found.gram));
            base += consumed;
            consumed
        });
        (scratch.grams, scratch.shingles) = buffers;
        read?;
        self.confirm(text, matches, scratch)
    }

    /// Return the matches whose second hashes are equal, too.
    fn confirm(&self, text: &[u8], matches: Vec<Match>, scratch: &mut Scratch) -> Result<Vec<Match>, TextFault> {
        if matches.is_empty() {
            return Ok(matches);
        }
        let (mut base, mut confirmed) = (0, Vec::with_capacity(matches.len()));
        let mut left = matches.into_iter().peekable();
        self.second.words::<false>(text, scratch, |_, tokens, _, last| {
            let end = if last { tokens.len() } else { (tokens.len() + 1).saturating_sub(self.size) };
            while let Some(found) = left.next_if(|found| found.at < base + end) {
                let (start, range) = (found.at - base, self.range(found.gram));
                if tokens[start..start + range.len()] == self.seconds[range] {
                    confirmed.push(found);
                }
            }
            base += end;
            end
        })?;
        Ok(confirmed)
    }

    /// Return what a text with these matches has of an item.
    ///
    /// An n-gram continues the run before it if it can; otherwise a run starts at its first occurrence in the item.
    fn overlap(&self, item: usize, matches: &[Match]) -> Overlap {
        let words = self.words(item);
        let mut places: Vec<(u32, usize)> = words.clone().map(|word| (self.gram_at[word], word)).collect();
        places.retain(|&(gram, _)| gram != NONE);
        places.sort_unstable();
        let (mut found, mut covered) = (vec![false; places.len()], vec![false; words.len()]);
        let mut overlap = Overlap::default();
        let mut open: Option<(usize, usize)> = None;
        for one in matches {
            let first = places.partition_point(|&(gram, _)| gram < one.gram);
            let Some(&(_, place)) = places.get(first).filter(|&&(gram, _)| gram == one.gram) else { continue };
            let length = self.range(one.gram).len();
            if !found[first] {
                found[first] = true;
                overlap.matched += 1;
                for &(_, place) in places[first..].iter().take_while(|&&(gram, _)| gram == one.gram) {
                    covered[place - words.start..][..length].fill(true);
                }
            }
            let next = open.map(|(at, place)| (at + 1, place + 1));
            let continues = next.filter(|&(at, place)| at == one.at && self.gram_at.get(place) == Some(&one.gram));
            let place = continues.filter(|&(_, place)| place < words.end).map_or(place, |(_, place)| place);
            let end = self.spans[place + length - 1][1];
            match overlap.spans.last_mut() {
                Some(last) if next == Some((one.at, place)) => (last[1], last[3]) = (one.span[1], end),
                _ => overlap.spans.push([one.span[0], one.span[1], self.spans[place][0], end]),
            }
            open = Some((one.at, place));
        }
        overlap.covered = covered.iter().map(|&covered| u32::from(covered)).sum();
        overlap
    }
}

fn distinct(grams: &mut Vec<u32>) {
    grams.sort_unstable();
    grams.dedup();
}
