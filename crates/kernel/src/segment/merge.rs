//! Merging segments: several in, one out, without the postings of removed documents.

use std::path::Path;

use super::{Entries, RUNS, Run, Segment, SegmentError, SegmentWriter};

/// Postings that an input holds ready: with the usual four inputs all of them fit the second-level cache.
const BATCH: usize = 4096;

/// Writes one segment of all postings of `inputs`, whose documents ascend from one to the next; gives back how many.
///
/// Each input is read once, from front to back. Of all inputs those postings are taken that no later block of any can precede,
/// and sorted together: they are a few ascending runs, which a stable sort finds and merges without mispredicted branches.
///
/// # Errors
/// If an input is damaged, the inputs are not in ascending order, or a file can not be read or written.
pub fn merge(inputs: &[&Segment], output: &Path, is_removed: impl Fn(u32) -> bool) -> Result<u64, SegmentError> {
    let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else {
        return Err(SegmentError::Damaged(output.to_owned(), "there is nothing to merge".to_owned()));
    };
    if let Some(pair) = inputs.windows(2).find(|pair| pair[0].high() > pair[1].low()) {
        let what = "its documents are not after those of the segment before it".to_owned();
        return Err(SegmentError::Damaged(pair[1].path().to_owned(), what));
    }
    let mut writer = SegmentWriter::create(output, first.low(), last.high())?;
    for run in RUNS {
        let mut sources: Vec<Source<'_>> = inputs.iter().map(|segment| Source::new(segment, run)).collect();
        let mut postings = Vec::new();
        while take_next(&mut sources, &mut postings)? {
            #[allow(clippy::stable_sort_primitive, reason = "the stable sort is the one that merges runs")]
            postings.sort();
            for &posting in postings.iter().filter(|&&posting| !is_removed(posting as u32)) {
                writer.push(posting)?;
            }
        }
        writer.end_run()?;
    }
    writer.finish()
}

/// Replaces `postings` by the next ones of all sources, those of each ascending; false if there are no more.
fn take_next(sources: &mut [Source<'_>], postings: &mut Vec<u128>) -> Result<bool, SegmentError> {
    postings.clear();
    for source in &mut *sources {
        source.refill()?;
    }
    let Some(border) = sources.iter().filter_map(|source| source.batch.last().copied()).min() else {
        return Ok(false);
    };
    for source in sources {
        let rest = &source.batch[source.start..];
        let taken = rest.partition_point(|&posting| posting <= border);
        postings.extend_from_slice(&rest[..taken]);
        source.start += taken;
    }
    Ok(true)
}

/// The postings of one input, some of them in memory.
struct Source<'s> {
    entries: Entries<'s>,
    batch: Vec<u128>,
    /// How many of the batch have been taken.
    start: usize,
}

impl<'s> Source<'s> {
    fn new(segment: &'s Segment, run: Run) -> Self {
        Self { entries: segment.entries(run), batch: Vec::new(), start: 0 }
    }

    /// Reads the next batch if this one is used up; an empty one at the end.
    fn refill(&mut self) -> Result<(), SegmentError> {
        if self.start == self.batch.len() {
            self.batch.clear();
            self.start = 0;
            while self.batch.len() < BATCH && self.entries.next_block(&mut self.batch)? {}
        }
        Ok(())
    }
}
