//! Exact comparison of sets, in memory and in files.
//!
//! Every way to compare two sets must give the same similarity, bit for bit, as counting common elements one by one.

use std::collections::BTreeSet;
use std::fs::File;

use arbitrary::Unstructured;
use minwise_kernel::set_store::{SetFile, SetStore};
use minwise_kernel::verify::{Measure, ProbeTable, SetBitmap, intersection_size};

use crate::scratch::ScratchFile;

/// Run one case.
///
/// # Panics
/// If a way to compare sets differs from counting.
pub fn run(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let Ok((flags, threshold)) = settings(&mut source) else { return };
    let Ok(sets) = sets(&mut source) else { return };
    check_pairs(&sets, threshold);
    check_store(&sets, threshold, flags);
}

fn settings(source: &mut Unstructured<'_>) -> arbitrary::Result<(u8, f64)> {
    Ok((source.arbitrary()?, threshold(source)?))
}

/// Return a threshold that sets of small sizes can reach exactly.
///
/// # Errors
/// If the bytes are used up.
pub fn threshold(source: &mut Unstructured<'_>) -> arbitrary::Result<f64> {
    let total: u8 = source.int_in_range(1..=120)?;
    let shared: u8 = source.int_in_range(1..=total)?;
    Ok(f64::from(shared) / f64::from(total))
}

/// Return sets over few elements, so that many are similar; some share the low bits, which the probe table uses.
///
/// # Errors
/// If the bytes are used up.
pub fn sets(source: &mut Unstructured<'_>) -> arbitrary::Result<Vec<Vec<u64>>> {
    let mut sets = Vec::new();
    let shift: u32 = source.int_in_range(0..=56)?;
    while !source.is_empty() && sets.len() < 24 {
        let (size, first, step): (u8, u8, u8) = source.arbitrary()?;
        let numbers = (0..u64::from(size)).map(|i| (u64::from(first) + i * u64::from(step)) % 509);
        // The last elements make sets of one arithmetic progression differ.
        let few: [u8; 2] = source.arbitrary()?;
        let all = numbers.chain(few.map(u64::from)).map(|number| number << shift | u64::from(size & 1));
        let distinct: BTreeSet<u64> = all.collect();
        sets.push(if size == 0 { Vec::new() } else { distinct.into_iter().collect() });
    }
    Ok(sets)
}

fn shared(left: &[u64], right: &[u64]) -> usize {
    left.iter().filter(|element| right.binary_search(element).is_ok()).count()
}

/// Return the similarity of two sets by definition.
#[must_use]
pub fn similarity(left: &[u64], right: &[u64]) -> f64 {
    let shared = shared(left, right);
    if shared == 0 { 0.0 } else { shared as f64 / (left.len() + right.len() - shared) as f64 }
}

/// Return the share of the smaller set that the other one has, by definition.
fn containment(left: &[u64], right: &[u64]) -> f64 {
    let shared = shared(left, right);
    if shared == 0 { 0.0 } else { shared as f64 / left.len().min(right.len()) as f64 }
}

fn reached(similarity: f64, threshold: f64) -> Option<u64> {
    (similarity >= threshold).then(|| similarity.to_bits())
}

fn check_pairs(sets: &[Vec<u64>], threshold: f64) {
    let mut table = ProbeTable::default();
    for left in sets.iter().take(8) {
        table.load(left);
        let bitmap = SetBitmap::of(left);
        for right in sets {
            assert_eq!(intersection_size(left, right), shared(left, right));
            for (measure, value) in
                [(Measure::Jaccard, similarity(left, right)), (Measure::Containment, containment(left, right))]
            {
                let expected = reached(value, threshold);
                assert_eq!(measure.at_least(left, right, threshold).map(f64::to_bits), expected, "merge");
                assert_eq!(
                    table.measure_at_least(right, measure, threshold).map(f64::to_bits),
                    expected,
                    "probe table"
                );
                assert!(expected.is_none() || bitmap.may_reach(&SetBitmap::of(right), measure, threshold), "bitmap");
            }
        }
    }
}

fn check_store(sets: &[Vec<u64>], threshold: f64, flags: u8) {
    let split = usize::from(flags >> 3) % (sets.len() + 1);
    let with_bitmaps = flags & 1 != 0;
    let mut store = SetStore::default();
    let parts = [&sets[..split], &sets[split..]];
    let files = parts.map(|part| (ScratchFile::new(), part));
    for (number, (file, part)) in files.iter().enumerate() {
        let loaded = flags & (2 << number) != 0;
        store.add(set_file(file, part, number as u64 * 8), with_bitmaps, loaded).expect("the file was just written");
    }
    assert_eq!(store.len(), sets.len());
    let pairs: Vec<(usize, usize)> =
        (0..sets.len()).flat_map(|low| (low + 1..sets.len()).map(move |high| (low, high))).collect();
    let packed: Vec<u64> = pairs.iter().map(|&(low, high)| (low as u64) << 32 | high as u64).collect();
    // Number n stands for the n-th set from the end.
    let numbers: Vec<u32> = (0..sets.len() as u32).rev().collect();
    let found = store.similar(&packed, &numbers, threshold, 1).expect("the files are intact");
    let of = |number: usize| sets[numbers[number] as usize].as_slice();
    let expected: Vec<(usize, usize, u64)> = pairs
        .iter()
        .filter_map(|&(low, high)| {
            reached(similarity(of(low), of(high)), threshold).map(|similarity| (low, high, similarity))
        })
        .collect();
    let columns = found.low.iter().zip(&found.high).zip(&found.similarity);
    let found: Vec<_> = columns.map(|((&low, &high), s)| (low as usize, high as usize, s.to_bits())).collect();
    assert_eq!(found, expected, "store, flags {flags}");
}

fn set_file(file: &ScratchFile, sets: &[Vec<u64>], position: u64) -> SetFile {
    let mut bytes = vec![0; position as usize];
    let mut offsets = vec![0];
    for set in sets {
        bytes.extend(set.iter().flat_map(|element| element.to_le_bytes()));
        offsets.push((bytes.len() as u64 - position) / 8);
    }
    file.write(&bytes);
    SetFile::new(File::open(file.path()).expect("the file was just written"), position, offsets)
}
