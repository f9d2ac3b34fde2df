//! Vectors: rows of numbers in, slots of their projections out; and how far apart two rows are, exactly.
//!
//! A vector is projected onto random lines. On each line the place it falls on, in pieces of a width (Datar et al. 2004), or
//! the side it falls on (Charikar 2002), is a slot like those of a signature; from there on the bands, buckets and pairs
//! are those of texts.
//!
//! The arithmetic has one order, so that every processor, thread and batch gives the same bits (DESIGN §3). Values and
//! weights have 24 bits each, so their product is exact in 53 and a fused multiplication rounds as a plain one does.

use std::fmt;

use rayon::prelude::*;

use crate::band::{Banding, NO_KEY};
use crate::batch::{KeyRows, State};
use crate::hash::{ContentHasher, Domain, GOLDEN, key, mix};

pub use self::distance::{Measure, distances};
pub use self::tables::{Nearest, Tables};

mod distance;
mod tables;

/// Lines that are worked on together: the sums of two vectors fill eight of sixteen AVX2 registers.
const TILE: usize = 16;
/// Vectors that are one task of a thread.
const TASK_ROWS: usize = 256;
/// Flips the sign bit, so that places left of zero come before those right of it and none of the usual ones is all ones.
const SIGN: u64 = 1 << 63;

/// A number that a vector can be made of: what a float32 holds exactly.
pub trait Value: Copy + Send + Sync {
    /// The same number with 24 bits.
    fn narrow(self) -> f32;
}

impl Value for f32 {
    fn narrow(self) -> f32 {
        self
    }
}

impl Value for u8 {
    fn narrow(self) -> f32 {
        f32::from(self)
    }
}

/// What is wrong with a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VectorFault {
    /// A value that is infinite or not a number.
    NotFinite {
        /// Where.
        column: usize,
        /// Which.
        value: f32,
    },
    /// Nothing but zeros where a direction is asked for.
    Zero,
}

impl fmt::Display for VectorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFinite { column, value } => {
                write!(f, "values must be finite, got {value} at column {column}")
            }
            Self::Zero => write!(f, "a vector must have a direction, got zeros only"),
        }
    }
}

/// Random lines through the origin, and how places on them are numbered.
#[derive(Clone, Debug)]
pub struct Lines {
    dims: usize,
    count: usize,
    /// Tile after tile, value by value, line by line; lines that fill up the last tile are zero.
    weights: Vec<f64>,
    /// Where the pieces of each line begin.
    offsets: Vec<f64>,
    width: Option<f64>,
    simd: bool,
}

impl Lines {
    /// `lines` lines in `dims` dimensions under `seed`: cut into pieces of `width`, or in two at the origin without one.
    #[must_use]
    pub fn new(dims: usize, lines: usize, width: Option<f64>, seed: u64, simd: bool) -> Self {
        let mut weights = vec![0.0; lines.div_ceil(TILE) * TILE * dims];
        for line in 0..lines {
            let (tile, place) = (line / TILE, line % TILE);
            for (dim, weight) in line_weights(dims, seed, line as u64).into_iter().enumerate() {
                weights[(tile * dims + dim) * TILE + place] = f64::from(weight);
            }
        }
        let offset = |line: usize| unit(key(seed, Domain::Offset, line as u64)) * width.unwrap_or(0.0);
        Self { dims, count: lines, weights, offsets: (0..lines).map(offset).collect(), width, simd }
    }

    /// Numbers in a vector.
    #[must_use]
    pub const fn dims(&self) -> usize {
        self.dims
    }

    /// The slots of two vectors, which lie one behind the other in `wide`.
    fn slots(&self, wide: &[f64], slots: &mut [Vec<u64>; 2]) {
        #[cfg(target_arch = "x86_64")]
        if self.simd && crate::simd::available() && is_x86_feature_detected!("fma") {
            // SAFETY: the features that the function is compiled for were just seen on this processor.
            unsafe { self.slots_fma(wide, slots) };
            return;
        }
        self.slots_with::<false>(wide, slots);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn slots_fma(&self, wide: &[f64], slots: &mut [Vec<u64>; 2]) {
        self.slots_with::<true>(wide, slots);
    }

    #[inline(always)]
    fn slots_with<const FUSED: bool>(&self, wide: &[f64], slots: &mut [Vec<u64>; 2]) {
        let (one, other) = wide.split_at(self.dims);
        for (tile, weights) in self.weights.chunks_exact(self.dims.max(1) * TILE).enumerate() {
            let sums = project::<FUSED>(weights, one, other);
            let lines = tile * TILE..self.count.min((tile + 1) * TILE);
            for (sums, slots) in sums.iter().zip(slots.iter_mut()) {
                for (line, &sum) in lines.clone().zip(sums) {
                    slots[line] = self.slot(line, sum);
                }
            }
        }
    }

    #[inline(always)]
    fn slot(&self, line: usize, sum: f64) -> u64 {
        match self.width {
            Some(width) => floor((sum + self.offsets[line]) / width) as u64 ^ SIGN,
            None => u64::from(sum >= 0.0),
        }
    }
}

/// The largest whole number that is not above `x`, at most what 64 bits hold.
#[inline(always)]
fn floor(x: f64) -> i64 {
    let toward_zero = x as i64; // saturates
    toward_zero.saturating_sub(i64::from((toward_zero as f64) > x))
}

/// The sums of two vectors on the lines of a tile, each added up value by value.
#[inline(always)]
fn project<const FUSED: bool>(weights: &[f64], one: &[f64], other: &[f64]) -> [[f64; TILE]; 2] {
    let mut sums = [[0.0; TILE]; 2];
    for (weights, (&x, &y)) in weights.as_chunks::<TILE>().0.iter().zip(one.iter().zip(other)) {
        for (place, &weight) in weights.iter().enumerate() {
            if FUSED {
                sums[0][place] = x.mul_add(weight, sums[0][place]);
                sums[1][place] = y.mul_add(weight, sums[1][place]);
            } else {
                sums[0][place] += x * weight;
                sums[1][place] += y * weight;
            }
        }
    }
    sums
}

/// The direction of a line: normally distributed numbers by the polar method (Marsaglia & Bray 1964).
#[must_use]
pub fn line_weights(dims: usize, seed: u64, line: u64) -> Vec<f32> {
    let mut state = key(seed, Domain::Line, line);
    let mut next = || {
        state = state.wrapping_add(GOLDEN);
        2.0 * unit(mix(state)) - 1.0
    };
    let mut weights = Vec::with_capacity(dims + 1);
    while weights.len() < dims {
        let (x, y) = (next(), next());
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            let factor = (-2.0 * ln(square) / square).sqrt();
            weights.extend([(x * factor) as f32, (y * factor) as f32]);
        }
    }
    weights.truncate(dims);
    weights
}

/// The upper 53 bits of a word as a number from 0 to 1, without 1.
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// The natural logarithm of a number between 0 and 1 in operations that every machine rounds alike; libraries do not agree.
///
/// x = m·2ᵉ with m from 0.5 to 1, and ln m = 2·(z + z³/3 + z⁵/5 + …) with z = (m−1)/(m+1), so |z| ≤ 1/3: 17 terms are
/// within 2⁻⁵³ of it.
fn ln(x: f64) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1022;
    let m = f64::from_bits(bits & 0x000F_FFFF_FFFF_FFFF | 1022 << 52);
    let z = (m - 1.0) / (m + 1.0);
    let square = z * z;
    let sum = (0..17).rev().fold(0.0, |sum, term| sum * square + 1.0 / f64::from(2 * term + 1));
    exponent as f64 * LN_2 + 2.0 * z * sum
}

/// Writes the band keys and the content hash of every vector; returns the faulty ones.
///
/// Equal vectors have equal content; -0 is 0.
///
/// # Panics
/// If there are fewer places than vectors, or not as many lines as the bands need.
pub fn band_vectors<V: Value>(
    lines: &Lines,
    hasher: &ContentHasher,
    banding: &Banding,
    values: &[V],
    mut rows: KeyRows<'_>,
    threads: usize,
) -> Vec<(usize, VectorFault)> {
    assert_eq!(lines.count, banding.slots(), "the bands use every line");
    let mut take = |count| rows.take(count, 0).expect("there is a place for every vector");
    let tasks: Vec<_> = values
        .chunks(TASK_ROWS * lines.dims)
        .enumerate()
        .map(|(task, values)| (take(values.len() / lines.dims), values, task * TASK_ROWS))
        .collect();
    let work = |(rows, values, first)| band_task(lines, hasher, banding, values, rows, first);
    let faults: Vec<Vec<_>> =
        if threads <= 1 { tasks.into_iter().map(work).collect() } else { tasks.into_par_iter().map(work).collect() };
    faults.concat()
}

fn band_task<V: Value>(
    lines: &Lines,
    hasher: &ContentHasher,
    banding: &Banding,
    values: &[V],
    mut rows: KeyRows<'_>,
    first: usize,
) -> Vec<(usize, VectorFault)> {
    let dims = lines.dims;
    let (mut wide, mut words) = (vec![0.0; 2 * dims], Vec::with_capacity(dims.div_ceil(2)));
    let mut slots = [vec![0; lines.count], vec![0; lines.count]];
    let mut faults = Vec::new();
    for (two, values) in values.chunks(2 * dims).enumerate() {
        wide.iter_mut().zip(values).for_each(|(place, value)| *place = f64::from(value.narrow()));
        lines.slots(&wide, &mut slots);
        for (i, (vector, slots)) in (2 * two..).zip(values.chunks(dims).zip(&slots)) {
            if let Some(fault) = fault_of(vector, lines.width.is_none()) {
                faults.push((first + i, fault));
                rows.states[i] = State::Faulty as u8;
                rows.contents[2 * i..2 * i + 2].fill(0);
                rows.keys.iter_mut().for_each(|row| row[i] = NO_KEY);
                continue;
            }
            words.clear();
            words.extend(vector.chunks(2).map(|two| bits(two[0]) | two.get(1).map_or(0, |&value| bits(value) << 32)));
            rows.states[i] = State::Filled as u8;
            rows.contents[2 * i..2 * i + 2].copy_from_slice(&hasher.hash(&words));
            rows.keys.iter_mut().zip(banding.keys(slots)).for_each(|(row, key)| row[i] = key);
        }
    }
    faults
}

fn bits<V: Value>(value: V) -> u64 {
    u64::from((value.narrow() + 0.0).to_bits())
}

fn fault_of<V: Value>(vector: &[V], needs_direction: bool) -> Option<VectorFault> {
    let values = || vector.iter().map(|value| value.narrow());
    if let Some((column, value)) = values().enumerate().find(|(_, value)| !value.is_finite()) {
        return Some(VectorFault::NotFinite { column, value });
    }
    (needs_direction && values().all(|value| value == 0.0)).then_some(VectorFault::Zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_is_that_of_the_library_but_for_its_last_bits() {
        for i in 1..10_000u64 {
            let x = unit(mix(i));
            assert!((ln(x) - x.ln()).abs() <= 4.0 * f64::EPSILON * x.ln().abs().max(1.0), "{x}");
        }
    }

    #[test]
    fn floor_is_that_of_the_library_and_saturates() {
        for x in [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.999, -3.001, 1e17, -1e17] {
            assert_eq!(floor(x), x.floor() as i64, "{x}");
        }
        assert_eq!((floor(1e300), floor(-1e300)), (i64::MAX, i64::MIN));
    }

    #[test]
    fn weights_have_mean_0_and_variance_1() {
        // 40,000 numbers: six standard errors are 6/200 for the mean and 6·sqrt(2)/200 for the variance.
        let weights: Vec<f64> = (0..40).flat_map(|line| line_weights(1000, 1, line)).map(f64::from).collect();
        let mean = weights.iter().sum::<f64>() / 40_000.0;
        let variance = weights.iter().map(|w| w * w).sum::<f64>() / 40_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.0425, "{mean} {variance}");
    }

    #[test]
    fn fused_and_plain_sums_have_the_same_bits() {
        let values: Vec<f64> = (0..200).map(|i| f64::from(unit(mix(i)) as f32 * 1e6)).collect();
        for lines in [1, 16, 33] {
            let lines = Lines::new(100, lines, Some(0.7), 3, true);
            let mut one = [vec![0; lines.count], vec![0; lines.count]];
            let mut other = one.clone();
            lines.slots(&values, &mut one);
            lines.slots_with::<false>(&values, &mut other);
            assert_eq!(one, other);
        }
    }
}
