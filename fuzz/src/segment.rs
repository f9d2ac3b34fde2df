//! Segment files.
//!
//! The first byte chooses the kind of case: arbitrary bytes as a file, bytes with a correct frame around them, or
//! postings that are written, read, merged and damaged. Reading never panics, and what is read is what was written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use arbitrary::Unstructured;
use minwise_kernel::segment::{Block, RUNS, Run, Segment, SegmentError, SegmentWriter, key_of, merge, pack};

use crate::scratch::ScratchFile;

const BLOCK_BYTES: usize = 1024;
const MAGIC: &[u8; 8] = b"MWPOST\r\n";
/// Documents of a generated segment.
const DOCUMENTS: u32 = 200;
/// Postings of a generated segment: a few blocks, so that a case takes a millisecond.
const MAX_POSTINGS: u32 = 1500;

type Postings = BTreeMap<u64, BTreeSet<u32>>;

/// Run one case.
///
/// # Panics
/// If reading differs from what was written, or damage is not found.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 4 {
        0 => read_everything(rest),
        1 => read_everything(&framed(rest)),
        2 => drop(round_trip(rest)),
        _ => damaged(rest),
    }
}

/// Read a file in every way; errors are fine, panics are not.
fn read_everything(bytes: &[u8]) {
    let file = ScratchFile::new();
    file.write(bytes);
    let Ok(segment) = Segment::open(file.path()) else { return };
    let output = ScratchFile::new();
    if merge(&[&segment], output.path(), |document| document % 2 == 0).is_ok() {
        assert!(segment.check().is_ok(), "a damaged segment was merged");
    }
    for run in RUNS {
        for key in [0, 1, 5, u64::MAX / 2, u64::MAX] {
            let _ = look_up(&segment, run, key);
        }
    }
}

/// Return a file with a correct header, blocks with correct checksums, fences and trailer around arbitrary content.
fn framed(content: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes.resize(BLOCK_BYTES, 0);
    let numbers: Vec<u64> = content.chunks(8).map(word).collect();
    let limits = [numbers.first(), numbers.get(1), numbers.get(2)].map(|number| number.copied().unwrap_or(9) % 4096);
    let blocks: Vec<&[u8]> = content.chunks(97).collect();
    let split = limits[0] as usize % (blocks.len() + 1);
    let mut fences = Vec::new();
    for (block, number) in blocks.iter().zip(1_u64..) {
        let start = bytes.len();
        bytes.extend([0; 4]);
        bytes.extend(*block);
        bytes.resize(start + BLOCK_BYTES, 0);
        let body = crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &bytes[start + 4..]);
        bytes[start..start + 4].copy_from_slice(&body.to_le_bytes());
        fences.extend_from_slice(&bytes[start + 8..start + 16]);
    }
    bytes.extend(&fences);
    bytes.extend(trailer(limits, [split, blocks.len() - split], bytes.len(), &fences));
    bytes
}

fn trailer([entries, low, high]: [u64; 3], blocks: [usize; 2], before: usize, fences: &[u8]) -> Vec<u8> {
    let [first, second] = blocks.map(|blocks| blocks as u64);
    let counts = [first * (1 + entries % 3), second * (1 + entries % 5)];
    let words = [counts[0], counts[1], first, second, low.min(high), high, before as u64 + 72];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(crc32c::crc32c(fences).to_le_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes.extend(MAGIC);
    bytes
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Write arbitrary postings, compare lookups and scans with the oracle, and merge two halves of them.
fn round_trip(data: &[u8]) -> Option<[Postings; 2]> {
    let runs = postings(&mut Unstructured::new(data)).ok()?;
    let whole = ScratchFile::new();
    write(whole.path(), 0, DOCUMENTS, &runs);
    check_equal(whole.path(), &runs);
    let middle = u32::from(*data.first()?) % DOCUMENTS;
    let halves = [(0, middle), (middle, DOCUMENTS)].map(|(low, high)| {
        let file = ScratchFile::new();
        write(file.path(), low, high, &filtered(&runs, |document| (low..high).contains(&document)));
        file
    });
    let segments = halves.each_ref().map(|file| Segment::open(file.path()).expect("the file was just written"));
    let merged = ScratchFile::new();
    let is_removed = |document: u32| document % 3 == 1;
    merge(&segments.each_ref(), merged.path(), is_removed).expect("the halves are intact");
    check_equal(merged.path(), &filtered(&runs, |document| !is_removed(document)));
    Some(runs)
}

/// Change a byte of a written file: the check must find it, and a lookup is right or an error.
fn damaged(data: &[u8]) {
    let Some((at, data)) = data.split_at_checked(3) else { return };
    let Ok(runs) = postings(&mut Unstructured::new(data)) else { return };
    let file = ScratchFile::new();
    write(file.path(), 0, DOCUMENTS, &runs);
    let mut bytes = std::fs::read(file.path()).expect("the file was just written");
    let position = usize::from(u16::from_le_bytes([at[0], at[1]])) % bytes.len();
    bytes[position] ^= at[2].max(1);
    file.write(&bytes);
    let Ok(segment) = Segment::open(file.path()) else { return };
    assert!(segment.check().is_err(), "byte {position} of {}", bytes.len());
    for (run, postings) in RUNS.into_iter().zip(&runs) {
        for (&key, documents) in postings {
            let Ok(found) = look_up(&segment, run, key) else { continue };
            assert!(found.iter().eq(documents), "byte {position}: {run:?} {key}");
        }
    }
}

fn postings(source: &mut Unstructured<'_>) -> arbitrary::Result<[Postings; 2]> {
    let mut runs = [Postings::new(), Postings::new()];
    let shift: u32 = source.int_in_range(0..=63)?;
    let mut count = 0;
    while !source.is_empty() && count < MAX_POSTINGS {
        let (choice, low, repeat): (u8, u8, u8) = source.arbitrary()?;
        let run = &mut runs[usize::from(choice & 1)];
        let key = if choice & 2 == 0 { u64::from(low) << shift } else { u64::MAX - (u64::from(low) << shift) };
        // A long list of one key fills blocks of equal keys.
        let added = if choice & 0xC == 0 { u32::from(repeat) } else { 1 };
        let first = u32::from(repeat);
        count += added;
        run.entry(key).or_default().extend((first..first + added).map(|document| document % DOCUMENTS));
    }
    for run in &mut runs {
        run.retain(|_, documents| !documents.is_empty());
    }
    Ok(runs)
}

fn filtered(runs: &[Postings; 2], is_wanted: impl Fn(u32) -> bool) -> [Postings; 2] {
    let mut runs = runs.clone();
    for run in &mut runs {
        for documents in run.values_mut() {
            documents.retain(|&document| is_wanted(document));
        }
        run.retain(|_, documents| !documents.is_empty());
    }
    runs
}

fn packed(run: &Postings) -> Vec<u128> {
    let pairs = run.iter().flat_map(|(&key, documents)| documents.iter().map(move |&document| pack(key, document)));
    pairs.collect()
}

fn write(path: &Path, low: u32, high: u32, runs: &[Postings; 2]) {
    let mut writer = SegmentWriter::create(path, low.into(), high.into()).expect("the file is new");
    for run in runs {
        packed(run).into_iter().try_for_each(|posting| writer.push(posting)).expect("postings ascend");
        writer.end_run().expect("the file is writable");
    }
    writer.finish().expect("the file is writable");
}

fn look_up(segment: &Segment, run: Run, key: u64) -> Result<Vec<u32>, SegmentError> {
    let mut found = Vec::new();
    let _ = segment.members(run, key, &mut Block::default(), |document| {
        found.push(document);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

fn check_equal(path: &Path, runs: &[Postings; 2]) {
    let segment = Segment::open(path).expect("the file was just written");
    segment.check().expect("the file was just written");
    for (run, postings) in RUNS.into_iter().zip(runs) {
        let (mut entries, mut scanned) = (segment.entries(run), Vec::new());
        while entries.next_block(&mut scanned).expect("the file is intact") {}
        assert_eq!(scanned, packed(postings));
        assert_eq!(segment.len(run), scanned.len() as u64);
        let around = scanned.iter().flat_map(|&posting| {
            let key = key_of(posting);
            [key.saturating_sub(1), key, key.saturating_add(1)]
        });
        for key in around.take(200).chain([0, u64::MAX]) {
            let found = look_up(&segment, run, key).expect("the file is intact");
            assert!(found.iter().eq(postings.get(&key).into_iter().flatten()), "{run:?} {key}");
        }
    }
}
