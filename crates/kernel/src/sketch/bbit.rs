//! b-bit signatures (Li, König 2010): the low `bits` of each slot, packed without gaps.

use super::Slot;

/// Return the size of a packed row in bytes.
#[must_use]
pub const fn packed_row_bytes(slots: usize, bits: usize) -> usize {
    (slots * bits).div_ceil(8)
}

/// Pack each row of `slots` into `out`; `bits` is 1, 2, 4, 8, 16 or 32, and at most the width of a slot.
pub fn pack_rows<S: Slot>(slots: &[S], row: usize, bits: usize, out: &mut [u8]) {
    let width = packed_row_bytes(row, bits);
    for (slots, packed) in slots.chunks_exact(row).zip(out.chunks_exact_mut(width)) {
        if bits < 8 {
            let mask = (1u64 << bits) - 1;
            for (byte, group) in packed.iter_mut().zip(slots.chunks(8 / bits)) {
                *byte = group.iter().rev().fold(0, |byte, &slot| byte << bits | (slot.into() & mask) as u8);
            }
        } else {
            for (bytes, &slot) in packed.chunks_exact_mut(bits / 8).zip(slots) {
                bytes.copy_from_slice(&slot.into().to_le_bytes()[..bits / 8]);
            }
        }
    }
}

/// Return how many of the `slots` fields of two packed rows are equal.
#[must_use]
pub fn count_packed_matches(left: &[u8], right: &[u8], slots: usize, bits: usize) -> u32 {
    let differ = |l: &[u8], r: &[u8]| -> u64 {
        let mut word = [0; 8];
        for (byte, (l, r)) in word.iter_mut().zip(l.iter().zip(r)) {
            *byte = l ^ r;
        }
        u64::from_le_bytes(word)
    };
    let unequal: u32 = left.chunks(8).zip(right.chunks(8)).map(|(l, r)| count_nonzero_fields(differ(l, r), bits)).sum();
    slots as u32 - unequal
}

/// Return how many `bits`-wide fields of `word` are not zero.
fn count_nonzero_fields(word: u64, bits: usize) -> u32 {
    let (mut folded, mut width) = (word, 1);
    while width < bits {
        folded |= folded >> width;
        width *= 2;
    }
    // The lowest bit of each field: a word of ones divided by a field of ones.
    let lowest_bits = if bits == 64 { 1 } else { u64::MAX / ((1 << bits) - 1) };
    (folded & lowest_bits).count_ones()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn packed_matches_equal_matches_of_truncated_slots() {
        let (row, rows) = (37, 20);
        let slots: Vec<u64> = (0..row * rows).map(|i| mix(i as u64 / 3)).collect();
        for bits in [1, 2, 4, 8, 16, 32] {
            let width = packed_row_bytes(row, bits);
            let mut packed = vec![0; width * rows];
            pack_rows(&slots, row, bits, &mut packed);
            let low = |slot: u64| slot & ((1 << bits) - 1);
            for i in 0..rows {
                for j in 0..rows {
                    let pairs = slots[i * row..][..row].iter().zip(&slots[j * row..][..row]);
                    let expected = pairs.filter(|&(&l, &r)| low(l) == low(r)).count();
                    let counted =
                        count_packed_matches(&packed[i * width..][..width], &packed[j * width..][..width], row, bits);
                    assert_eq!(counted as usize, expected, "bits {bits}, rows {i} and {j}");
                }
            }
        }
    }
}
