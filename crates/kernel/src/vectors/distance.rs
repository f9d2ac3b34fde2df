//! Distance: two rows of numbers in, how far apart they are out.
//!
//! Sums have eight lanes: value i is added to lane i mod 8, and the lanes are added as
//! ((0+4)+(2+6))+((1+5)+(3+7)), in 53 bits.

use rayon::prelude::*;

use super::Value;

const LANES: usize = 8;
/// Values between two looks at whether a pair is too far apart already.
const STRIDE: usize = 32;
/// Values up to which a sum in 24 bits is near enough to tell what is far.
const MOST_QUICK: usize = 1 << 17;
/// Pairs that are one task of a thread.
const TASK_PAIRS: usize = 4096;

/// How distance is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The length of the difference.
    Euclidean,
    /// 1 minus the cosine of the angle, from 0 to 2.
    Cosine,
}

impl Measure {
    /// The distance of two vectors of equal length, if it is not above `most`.
    pub fn distance<V: Value, W: Value>(self, left: &[V], right: &[W], most: f64) -> Option<f64> {
        #[cfg(target_arch = "x86_64")]
        if crate::simd::available() {
            // SAFETY: the feature that the function is compiled for was just seen on this processor.
            return unsafe { self.distance_avx2(left, right, most) };
        }
        self.distance_with(left, right, most)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn distance_avx2<V: Value, W: Value>(self, left: &[V], right: &[W], most: f64) -> Option<f64> {
        self.distance_with(left, right, most)
    }

    #[inline(always)]
    fn distance_with<V: Value, W: Value>(self, left: &[V], right: &[W], most: f64) -> Option<f64> {
        let distance = match self {
            Self::Euclidean if surely_above(left, right, most) => return None,
            Self::Euclidean => squared(left, right, most)?.sqrt(),
            Self::Cosine => cosine(left, right),
        };
        (distance <= most).then_some(distance)
    }
}

#[inline(always)]
fn tree(s: [f64; LANES]) -> f64 {
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

#[inline(always)]
fn wide<V: Value>(value: V) -> f64 {
    f64::from(value.narrow())
}

/// Whether a sum in 24 bits, of which eight fit a register, proves that the distance is above `most`.
///
/// Most candidates are far, and this halves what they take: 94 ns instead of 198 for rows that are not in the cache. A
/// difference, its square and each addition are off by at most 2⁻²⁴ of themselves and no term is negative, so the sum is off
/// by less than a thousandth of itself up to 131,072 values in eight lanes. What is too small or too large for 24 bits proves
/// nothing.
#[inline(always)]
fn surely_above<V: Value, W: Value>(left: &[V], right: &[W], most: f64) -> bool {
    let bound = (most * most * 1.001) as f32;
    if left.len() > MOST_QUICK || !bound.is_normal() {
        return false;
    }
    let mut sums = [0.0f32; LANES];
    for (left, right) in left.chunks_exact(STRIDE).zip(right.chunks_exact(STRIDE)) {
        for (one, other) in left.as_chunks::<LANES>().0.iter().zip(right.as_chunks::<LANES>().0) {
            for lane in 0..LANES {
                let apart = one[lane].narrow() - other[lane].narrow();
                sums[lane] += apart * apart;
            }
        }
        let sum = sums.iter().sum::<f32>();
        if sum > bound {
            return sum.is_finite();
        }
    }
    false
}

/// The sum of squared differences; None as soon as it is sure to be above the square of `most`.
#[inline(always)]
fn squared<V: Value, W: Value>(left: &[V], right: &[W], most: f64) -> Option<f64> {
    // Sums only grow and rounding keeps their order, so a partial sum above the bound proves that the whole is. The square is
    // taken a little too large, because the root of the sum decides.
    let bound = most * most * (1.0 + 1e-9);
    let mut sums = [0.0; LANES];
    for (left, right) in left.chunks(STRIDE).zip(right.chunks(STRIDE)) {
        let ((ones, one), (others, other)) = (left.as_chunks::<LANES>(), right.as_chunks::<LANES>());
        for (one, other) in ones.iter().zip(others) {
            for lane in 0..LANES {
                let apart = wide(one[lane]) - wide(other[lane]);
                sums[lane] += apart * apart;
            }
        }
        for (sum, (&one, &other)) in sums.iter_mut().zip(one.iter().zip(other)) {
            let apart = wide(one) - wide(other);
            *sum += apart * apart;
        }
        if tree(sums) > bound {
            return None;
        }
    }
    Some(tree(sums))
}

/// 1 minus the cosine; 0 for equal vectors, since the root of a square is exact.
#[inline(always)]
fn cosine<V: Value, W: Value>(left: &[V], right: &[W]) -> f64 {
    let (mut dots, mut lefts, mut rights) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    let mut add = |lane: usize, one: f64, other: f64| {
        dots[lane] += one * other;
        lefts[lane] += one * one;
        rights[lane] += other * other;
    };
    let ((ones, one), (others, other)) = (left.as_chunks::<LANES>(), right.as_chunks::<LANES>());
    for (one, other) in ones.iter().zip(others) {
        for lane in 0..LANES {
            add(lane, wide(one[lane]), wide(other[lane]));
        }
    }
    for (lane, (&one, &other)) in one.iter().zip(other).enumerate() {
        add(lane, wide(one), wide(other));
    }
    (1.0 - tree(dots) / (tree(lefts) * tree(rights)).sqrt()).clamp(0.0, 2.0)
}

/// The distance of every pair of rows that is not above `most`, NaN for the others.
///
/// # Panics
/// If a row is not there.
#[must_use]
pub fn distances<V: Value>(
    measure: Measure,
    values: &[V],
    dims: usize,
    pairs: (&[u32], &[u32]),
    most: f64,
    threads: usize,
) -> Vec<f64> {
    let row = |number: u32| &values[number as usize * dims..(number as usize + 1) * dims];
    let compare = |(left, right): (&[u32], &[u32])| -> Vec<f64> {
        let pairs = left.iter().zip(right);
        pairs.map(|(&l, &r)| measure.distance(row(l), row(r), most).unwrap_or(f64::NAN)).collect()
    };
    let (left, right) = pairs;
    if threads <= 1 {
        return compare((left, right));
    }
    let parts: Vec<Vec<f64>> = left.par_chunks(TASK_PAIRS).zip(right.par_chunks(TASK_PAIRS)).map(compare).collect();
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn a_pair_is_given_up_only_if_it_is_too_far_apart() {
        let left: Vec<f32> = (0..300u16).map(|i| f32::from(i % 17) * 0.37).collect();
        let right: Vec<f32> = (0..300u16).map(|i| f32::from(i % 13) * 0.41).collect();
        for measure in [Measure::Euclidean, Measure::Cosine] {
            let exact = measure.distance(&left, &right, f64::INFINITY).expect("nothing is above infinity");
            assert_eq!(measure.distance(&left, &right, exact), Some(exact));
            assert_eq!(measure.distance(&left, &right, exact.next_down()), None);
            assert_eq!(measure.distance_with(&left, &right, exact), Some(exact));
            assert_eq!(measure.distance(&left, &left, 0.0), Some(0.0));
        }
    }

    #[test]
    fn a_quick_proof_is_never_wrong() {
        for trial in 0..2000u64 {
            let value = |i: u64| (mix(trial * 1000 + i) >> 40) as f32 * 10f32.powi((trial % 60) as i32 - 30);
            let left: Vec<f32> = (0..100).map(value).collect();
            let right: Vec<f32> = (0..100).map(|i| value(i) + value(500 + i) * 0.1).collect();
            let exact = squared(&left, &right, f64::INFINITY).expect("nothing is above infinity").sqrt();
            for most in [exact, exact * 0.99999, exact * 0.5, exact * 1.1] {
                assert!(!surely_above(&left, &right, most) || exact > most, "{trial} {most}");
            }
            assert!(
                !exact.is_normal() || trial % 60 < 20 || trial % 60 > 40 || surely_above(&left, &right, exact * 0.5)
            );
        }
    }

    #[test]
    fn bytes_are_as_far_apart_as_the_numbers_they_are() {
        let left: Vec<u8> = (0..77u8).collect();
        let right: Vec<u8> = (0..77u8).map(|i| i.wrapping_mul(31)).collect();
        let floats = |bytes: &[u8]| bytes.iter().map(|&byte| f32::from(byte)).collect::<Vec<f32>>();
        for measure in [Measure::Euclidean, Measure::Cosine] {
            let one = measure.distance(&left, &right, f64::INFINITY);
            assert_eq!(one, measure.distance(&floats(&left), &floats(&right), f64::INFINITY));
        }
    }
}
