//! Merging of segments without the postings of removed documents.

use std::path::Path;

use super::{Entries, RUNS, Run, Segment, SegmentError, SegmentWriter, Summary};

/// Postings buffered per input: with the usual four inputs all fit in the second-level cache.
const BATCH_POSTINGS: usize = 4096;

/// Write one segment of all postings of `inputs` that are not removed; return what identifies it.
///
/// The documents of each input must come after those of the previous one. Each input is read once, sequentially. In
/// every round all buffered postings up to the smallest last posting of any input are sorted together: they are a few
/// ascending runs, which a stable sort detects and merges without mispredicted branches.
///
/// # Errors
/// If an input is damaged, the inputs are not in ascending order, or a file cannot be read or written.
pub fn merge(inputs: &[&Segment], output: &Path, is_removed: impl Fn(u32) -> bool) -> Result<Summary, SegmentError> {
    let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else {
        return Err(SegmentError::Damaged(output.to_owned(), "there are no segments to merge".to_owned()));
    };
    if let Some(pair) = inputs.windows(2).find(|pair| pair[0].high() > pair[1].low()) {
        let what = "its documents must come after those of the previous segment".to_owned();
        return Err(SegmentError::Damaged(pair[1].path().to_owned(), what));
    }
    let mut writer = SegmentWriter::create(output, first.low(), last.high())?;
    for run in RUNS {
        let mut sources: Vec<Source<'_>> = inputs.iter().map(|segment| Source::new(segment, run)).collect();
        let mut postings = Vec::new();
        while take_next(&mut sources, &mut postings)? {
            #[allow(clippy::stable_sort_primitive, reason = "only the stable sort detects and merges runs")]
            postings.sort();
            for &posting in postings.iter().filter(|&&posting| !is_removed(posting as u32)) {
                writer.push(posting)?;
            }
        }
        writer.end_run()?;
    }
    writer.finish()
}

/// Replace `postings` by the next postings of all sources, ascending per source; return false at the end.
fn take_next(sources: &mut [Source<'_>], postings: &mut Vec<u128>) -> Result<bool, SegmentError> {
    postings.clear();
    for source in &mut *sources {
        source.refill()?;
    }
    let Some(limit) = sources.iter().filter_map(|source| source.batch.last().copied()).min() else {
        return Ok(false);
    };
    for source in sources {
        let rest = &source.batch[source.start..];
        let taken = rest.partition_point(|&posting| posting <= limit);
        postings.extend_from_slice(&rest[..taken]);
        source.start += taken;
    }
    Ok(true)
}

/// One input of a merge with its buffered postings.
struct Source<'s> {
    entries: Entries<'s>,
    batch: Vec<u128>,
    /// Number of postings of the batch that were taken.
    start: usize,
}

impl<'s> Source<'s> {
    fn new(segment: &'s Segment, run: Run) -> Self {
        Self { entries: segment.entries(run), batch: Vec::new(), start: 0 }
    }

    /// Read the next batch if the current one is used up; the batch is empty at the end.
    fn refill(&mut self) -> Result<(), SegmentError> {
        if self.start == self.batch.len() {
            self.batch.clear();
            self.start = 0;
            while self.batch.len() < BATCH_POSTINGS && self.entries.next_block(&mut self.batch)? {}
        }
        Ok(())
    }
}
