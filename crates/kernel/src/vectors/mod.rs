//! Random projections of vectors to band keys, and exact distances.
//!
//! A vector is projected onto random directions. On each one the interval of a given width (Datar et al. 2004) or the
//! side of the origin (Charikar 2002) is a slot like that of a signature; bands, buckets and pairs are then the same as
//! for texts.
//!
//! The order of the arithmetic is fixed, so every processor, thread and batch gives the same bits (DESIGN, appendix).
//! Values and weights have 24 bits each, so their product is exact in 53 bits and a fused multiplication rounds like a
//! plain one.

use std::fmt;

use rayon::prelude::*;

use crate::band::{Banding, NO_KEY};
use crate::batch::{KeyRows, State};
use crate::hash::{ContentHasher, Domain, GOLDEN, key, mix};
use crate::ln::ln;

pub use self::distance::{Metric, distances};
pub use self::scan::select_products;
pub use self::tables::{Nearest, Tables};

mod distance;
mod scan;
mod tables;

/// Projections computed together: the sums of two vectors fill eight of the sixteen AVX2 registers.
const TILE_PROJECTIONS: usize = 16;
/// Vectors per task of a thread.
const TASK_ROWS: usize = 256;
/// The sign bit is flipped, so that negative intervals sort before positive ones and no usual slot is all ones.
const SIGN_BIT: u64 = 1 << 63;

/// Number type of a vector; every value is exact as a float32.
pub trait Value: Copy + Send + Sync {
    /// Return the value as a float32.
    fn narrow(self) -> f32;

    /// Return the bits of the value.
    fn bits(self) -> u32;
}

impl Value for f32 {
    fn narrow(self) -> f32 {
        self
    }

    fn bits(self) -> u32 {
        self.to_bits()
    }
}

impl Value for u8 {
    fn narrow(self) -> f32 {
        f32::from(self)
    }

    fn bits(self) -> u32 {
        u32::from(self)
    }
}

/// Reason why a vector cannot be processed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VectorFault {
    /// A value is infinite or not a number.
    NotFinite {
        /// Index of the value.
        column: usize,
        /// The value.
        value: f32,
    },
    /// All values are zero, but the metric needs a direction.
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

/// Random directions, and the intervals on them.
#[derive(Clone, Debug)]
pub struct Projections {
    dims: usize,
    count: usize,
    /// Weights by tile, then dimension, then projection; the last tile is padded with zeros.
    weights: Vec<f64>,
    /// Offset of the intervals of each projection.
    offsets: Vec<f64>,
    width: Option<f64>,
    simd: bool,
}

impl Projections {
    /// Create `projections` random directions in `dims` dimensions under `seed`: cut into intervals of `width`, or at
    /// the origin if there is none.
    #[must_use]
    pub fn new(dims: usize, projections: usize, width: Option<f64>, seed: u64, simd: bool) -> Self {
        let mut weights = vec![0.0; projections.div_ceil(TILE_PROJECTIONS) * TILE_PROJECTIONS * dims];
        for projection in 0..projections {
            let (tile, index) = (projection / TILE_PROJECTIONS, projection % TILE_PROJECTIONS);
            for (dim, weight) in projection_weights(dims, seed, projection as u64).into_iter().enumerate() {
                weights[(tile * dims + dim) * TILE_PROJECTIONS + index] = f64::from(weight);
            }
        }
        let offset = |projection: usize| unit(key(seed, Domain::Offset, projection as u64)) * width.unwrap_or(0.0);
        Self { dims, count: projections, weights, offsets: (0..projections).map(offset).collect(), width, simd }
    }

    /// Return the number of dimensions.
    #[must_use]
    pub const fn dims(&self) -> usize {
        self.dims
    }

    /// Compute the slots of two vectors, which are consecutive in `wide`.
    fn slots(&self, wide: &[f64], slots: &mut [Vec<u64>; 2]) {
        #[cfg(target_arch = "x86_64")]
        if self.simd && crate::simd::available() && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has the features that the function is compiled for.
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
        let (left, right) = wide.split_at(self.dims);
        for (tile, weights) in self.weights.chunks_exact(self.dims.max(1) * TILE_PROJECTIONS).enumerate() {
            let sums = project_tile::<FUSED>(weights, left, right);
            let projections = tile * TILE_PROJECTIONS..self.count.min((tile + 1) * TILE_PROJECTIONS);
            for (sums, slots) in sums.iter().zip(slots.iter_mut()) {
                for (projection, &sum) in projections.clone().zip(sums) {
                    slots[projection] = self.slot(projection, sum);
                }
            }
        }
    }

    #[inline(always)]
    fn slot(&self, projection: usize, sum: f64) -> u64 {
        match self.width {
            Some(width) => floor((sum + self.offsets[projection]) / width) as u64 ^ SIGN_BIT,
            None => u64::from(sum >= 0.0),
        }
    }
}

/// Return the largest integer that is at most `x`; saturates at 64 bits.
#[inline(always)]
fn floor(x: f64) -> i64 {
    let toward_zero = x as i64; // saturates
    toward_zero.saturating_sub(i64::from((toward_zero as f64) > x))
}

/// Return the projections of two vectors on the directions of a tile, each summed in the order of the dimensions.
#[inline(always)]
fn project_tile<const FUSED: bool>(weights: &[f64], left: &[f64], right: &[f64]) -> [[f64; TILE_PROJECTIONS]; 2] {
    let mut sums = [[0.0; TILE_PROJECTIONS]; 2];
    for (weights, (&x, &y)) in weights.as_chunks::<TILE_PROJECTIONS>().0.iter().zip(left.iter().zip(right)) {
        for (index, &weight) in weights.iter().enumerate() {
            if FUSED {
                sums[0][index] = x.mul_add(weight, sums[0][index]);
                sums[1][index] = y.mul_add(weight, sums[1][index]);
            } else {
                sums[0][index] += x * weight;
                sums[1][index] += y * weight;
            }
        }
    }
    sums
}

/// Return the direction of a projection: normally distributed numbers by the polar method (Marsaglia & Bray 1964).
#[must_use]
pub fn projection_weights(dims: usize, seed: u64, projection: u64) -> Vec<f32> {
    let mut state = key(seed, Domain::Projection, projection);
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

/// Return the upper 53 bits of a word as a number in [0, 1).
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// Write the band keys and the content hash of every vector; return the faulty ones with their row.
///
/// Equal vectors have equal content hashes; -0 equals 0.
///
/// # Panics
/// If there are fewer rows than vectors, or the bands need a different number of projections.
pub fn band_vectors<V: Value>(
    projections: &Projections,
    hasher: &ContentHasher,
    banding: &Banding,
    values: &[V],
    mut rows: KeyRows<'_>,
    threads: usize,
) -> Vec<(usize, VectorFault)> {
    assert_eq!(projections.count, banding.slots(), "the bands use every projection");
    let mut take = |count| rows.take(count, 0).expect("every vector has a row");
    let tasks: Vec<_> = values
        .chunks(TASK_ROWS * projections.dims)
        .enumerate()
        .map(|(task, values)| (take(values.len() / projections.dims), values, task * TASK_ROWS))
        .collect();
    let work = |(rows, values, first)| band_task(projections, hasher, banding, values, rows, first);
    let faults: Vec<Vec<_>> =
        if threads <= 1 { tasks.into_iter().map(work).collect() } else { tasks.into_par_iter().map(work).collect() };
    faults.concat()
}

fn band_task<V: Value>(
    projections: &Projections,
    hasher: &ContentHasher,
    banding: &Banding,
    values: &[V],
    mut rows: KeyRows<'_>,
    first: usize,
) -> Vec<(usize, VectorFault)> {
    let dims = projections.dims;
    let (mut wide, mut words) = (vec![0.0; 2 * dims], Vec::with_capacity(dims.div_ceil(2)));
    let mut slots = [vec![0; projections.count], vec![0; projections.count]];
    let mut faults = Vec::new();
    for (pair, values) in values.chunks(2 * dims).enumerate() {
        wide.iter_mut().zip(values).for_each(|(target, value)| *target = f64::from(value.narrow()));
        projections.slots(&wide, &mut slots);
        for (i, (vector, slots)) in (2 * pair..).zip(values.chunks(dims).zip(&slots)) {
            if let Some(fault) = fault_of(vector, projections.width.is_none()) {
                faults.push((first + i, fault));
                rows.states[i] = State::Faulty as u8;
                rows.contents[2 * i..2 * i + 2].fill(0);
                rows.keys.iter_mut().for_each(|row| row[i] = NO_KEY);
                continue;
            }
            words.clear();
            words
                .extend(vector.chunks(2).map(|pair| bits(pair[0]) | pair.get(1).map_or(0, |&value| bits(value) << 32)));
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
    fn floor_equals_the_library_and_saturates() {
        for x in [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.999, -3.001, 1e17, -1e17] {
            assert_eq!(floor(x), x.floor() as i64, "{x}");
        }
        assert_eq!((floor(1e300), floor(-1e300)), (i64::MAX, i64::MIN));
    }

    #[test]
    fn weights_have_mean_0_and_variance_1() {
        // 40,000 numbers: six standard errors are 6/200 for the mean and 6·sqrt(2)/200 for the variance.
        let weights: Vec<f64> =
            (0..40).flat_map(|projection| projection_weights(1000, 1, projection)).map(f64::from).collect();
        let mean = weights.iter().sum::<f64>() / 40_000.0;
        let variance = weights.iter().map(|w| w * w).sum::<f64>() / 40_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.0425, "{mean} {variance}");
    }

    #[test]
    fn fused_and_plain_sums_have_the_same_bits() {
        let values: Vec<f64> = (0..200).map(|i| f64::from(unit(mix(i)) as f32 * 1e6)).collect();
        for projections in [1, 16, 33] {
            let projections = Projections::new(100, projections, Some(0.7), 3, true);
            let mut left = [vec![0; projections.count], vec![0; projections.count]];
            let mut right = left.clone();
            projections.slots(&values, &mut left);
            projections.slots_with::<false>(&values, &mut right);
            assert_eq!(left, right);
        }
    }
}
