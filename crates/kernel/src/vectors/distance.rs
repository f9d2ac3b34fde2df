//! Euclidean, cosine and Hamming distances of two vectors.
//!
//! Sums have eight lanes: value i is added to lane i mod 8, and the lanes are added as ((0+4)+(2+6))+((1+5)+(3+7)), in
//! 53 bits.

use rayon::prelude::*;

use super::Value;

/// Lanes of a sum: eight float32 values fill an AVX2 register.
const LANES: usize = 8;
/// Values between two checks whether the distance exceeds the bound.
const CHECK_INTERVAL: usize = 32;
/// Maximum length of a vector for which a sum in 24 bits is accurate enough to exclude a pair.
const MAX_QUICK_VALUES: usize = 1 << 17;
/// Pairs per task of a thread.
const TASK_PAIRS: usize = 4096;

/// Distance metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Length of the difference.
    Euclidean,
    /// 1 minus the cosine of the angle, from 0 to 2.
    Cosine,
    /// Number of bits that differ.
    Hamming,
}

impl Metric {
    /// Return the distance of two vectors of equal length if it is at most `most`.
    pub fn distance<V: Value, W: Value>(self, left: &[V], right: &[W], most: f64) -> Option<f64> {
        #[cfg(target_arch = "x86_64")]
        if crate::simd::available() {
            // SAFETY: the processor has the feature that the function is compiled for.
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
            Self::Euclidean => squared_distance(left, right, most)?.sqrt(),
            Self::Cosine => cosine(left, right),
            Self::Hamming => differing_bits(left, right),
        };
        (distance <= most).then_some(distance)
    }
}

#[inline(always)]
fn sum_lanes(s: [f64; LANES]) -> f64 {
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

#[inline(always)]
fn widen<V: Value>(value: V) -> f64 {
    f64::from(value.narrow())
}

/// Return whether a sum in 24 bits, of which eight fit a register, proves that the distance is above `most`.
///
/// Most candidates are far away, and this halves their cost: 94 ns instead of 198 ns for rows that are not in the
/// cache. The difference, its square and each addition have a relative error of at most 2⁻²⁴ and no term is negative,
/// so the relative error of the sum is below a thousandth for up to 131,072 values in eight lanes. Values too small or
/// too large for 24 bits prove nothing.
#[inline(always)]
fn surely_above<V: Value, W: Value>(left: &[V], right: &[W], most: f64) -> bool {
    let bound = (most * most * 1.001) as f32;
    if left.len() > MAX_QUICK_VALUES || !bound.is_normal() {
        return false;
    }
    let mut sums = [0.0f32; LANES];
    for (left, right) in left.chunks_exact(CHECK_INTERVAL).zip(right.chunks_exact(CHECK_INTERVAL)) {
        for (left, right) in left.as_chunks::<LANES>().0.iter().zip(right.as_chunks::<LANES>().0) {
            for lane in 0..LANES {
                let difference = left[lane].narrow() - right[lane].narrow();
                sums[lane] += difference * difference;
            }
        }
        let sum = sums.iter().sum::<f32>();
        if sum > bound {
            return sum.is_finite();
        }
    }
    false
}

/// Return the sum of squared differences; none as soon as it is certainly above the square of `most`.
#[inline(always)]
fn squared_distance<V: Value, W: Value>(left: &[V], right: &[W], most: f64) -> Option<f64> {
    // Sums only grow and rounding keeps their order, so a partial sum above the bound proves that the whole sum is. The
    // bound is slightly larger than the square, because the root of the sum decides.
    let bound = most * most * (1.0 + 1e-9);
    let mut sums = [0.0; LANES];
    for (left, right) in left.chunks(CHECK_INTERVAL).zip(right.chunks(CHECK_INTERVAL)) {
        let ((left_chunks, left_rest), (right_chunks, right_rest)) =
            (left.as_chunks::<LANES>(), right.as_chunks::<LANES>());
        for (left, right) in left_chunks.iter().zip(right_chunks) {
            for lane in 0..LANES {
                let difference = widen(left[lane]) - widen(right[lane]);
                sums[lane] += difference * difference;
            }
        }
        for (sum, (&left_value, &right_value)) in sums.iter_mut().zip(left_rest.iter().zip(right_rest)) {
            let difference = widen(left_value) - widen(right_value);
            *sum += difference * difference;
        }
        if sum_lanes(sums) > bound {
            return None;
        }
    }
    Some(sum_lanes(sums))
}

/// Return 1 minus the cosine; 0 for equal vectors, since the root of a square is exact.
#[inline(always)]
fn cosine<V: Value, W: Value>(left: &[V], right: &[W]) -> f64 {
    let (mut dots, mut lefts, mut rights) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    let mut add = |lane: usize, left_value: f64, right_value: f64| {
        dots[lane] += left_value * right_value;
        lefts[lane] += left_value * left_value;
        rights[lane] += right_value * right_value;
    };
    let ((left_chunks, left_rest), (right_chunks, right_rest)) =
        (left.as_chunks::<LANES>(), right.as_chunks::<LANES>());
    for (left, right) in left_chunks.iter().zip(right_chunks) {
        for lane in 0..LANES {
            add(lane, widen(left[lane]), widen(right[lane]));
        }
    }
    for (lane, (&left_value, &right_value)) in left_rest.iter().zip(right_rest).enumerate() {
        add(lane, widen(left_value), widen(right_value));
    }
    (1.0 - sum_lanes(dots) / (sum_lanes(lefts) * sum_lanes(rights)).sqrt()).clamp(0.0, 2.0)
}

#[inline(always)]
fn differing_bits<V: Value, W: Value>(left: &[V], right: &[W]) -> f64 {
    let differing = left.iter().zip(right).map(|(&left, &right)| (left.bits() ^ right.bits()).count_ones());
    f64::from(differing.sum::<u32>())
}

/// Return the distance of every pair of a row of one matrix and a row of another that is at most `most`, NaN for the
/// others.
///
/// # Panics
/// If a row does not exist.
#[must_use]
pub fn distances<V: Value, W: Value>(
    metric: Metric,
    values: (&[V], &[W]),
    dims: usize,
    pairs: (&[u32], &[u32]),
    most: f64,
    threads: usize,
) -> Vec<f64> {
    let span = |number: u32| number as usize * dims..(number as usize + 1) * dims;
    let compare = |(left, right): (&[u32], &[u32])| -> Vec<f64> {
        let pairs = left.iter().zip(right).map(|(&l, &r)| (&values.0[span(l)], &values.1[span(r)]));
        pairs.map(|(left, right)| metric.distance(left, right, most).unwrap_or(f64::NAN)).collect()
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
    fn only_distances_above_the_bound_are_dropped() {
        let left: Vec<f32> = (0..300u16).map(|i| f32::from(i % 17) * 0.37).collect();
        let right: Vec<f32> = (0..300u16).map(|i| f32::from(i % 13) * 0.41).collect();
        for metric in [Metric::Euclidean, Metric::Cosine] {
            let exact = metric.distance(&left, &right, f64::INFINITY).expect("no distance is above infinity");
            assert_eq!(metric.distance(&left, &right, exact), Some(exact));
            assert_eq!(metric.distance(&left, &right, exact.next_down()), None);
            assert_eq!(metric.distance_with(&left, &right, exact), Some(exact));
            assert_eq!(metric.distance(&left, &left, 0.0), Some(0.0));
        }
    }

    #[test]
    fn the_quick_check_never_excludes_a_close_pair() {
        for trial in 0..2000u64 {
            let value = |i: u64| (mix(trial * 1000 + i) >> 40) as f32 * 10f32.powi((trial % 60) as i32 - 30);
            let left: Vec<f32> = (0..100).map(value).collect();
            let right: Vec<f32> = (0..100).map(|i| value(i) + value(500 + i) * 0.1).collect();
            let exact = squared_distance(&left, &right, f64::INFINITY).expect("no distance is above infinity").sqrt();
            for most in [exact, exact * 0.99999, exact * 0.5, exact * 1.1] {
                assert!(!surely_above(&left, &right, most) || exact > most, "{trial} {most}");
            }
            assert!(
                !exact.is_normal() || trial % 60 < 20 || trial % 60 > 40 || surely_above(&left, &right, exact * 0.5)
            );
        }
    }

    #[test]
    fn hamming_distance_counts_differing_bits_of_bytes() {
        let (left, right): ([u8; 3], [u8; 3]) = ([0b1010, 0xff, 7], [0b0110, 0x00, 7]);
        assert_eq!(Metric::Hamming.distance(&left, &right, 10.0), Some(10.0));
        assert_eq!(Metric::Hamming.distance(&left, &right, 9.0), None);
    }

    #[test]
    fn bytes_have_the_distance_of_equal_floats() {
        let left: Vec<u8> = (0..77u8).collect();
        let right: Vec<u8> = (0..77u8).map(|i| i.wrapping_mul(31)).collect();
        let floats = |bytes: &[u8]| bytes.iter().map(|&byte| f32::from(byte)).collect::<Vec<f32>>();
        for metric in [Metric::Euclidean, Metric::Cosine] {
            let left_value = metric.distance(&left, &right, f64::INFINITY);
            assert_eq!(left_value, metric.distance(&floats(&left), &floats(&right), f64::INFINITY));
        }
    }
}
