//! Fast similarity sketching of weighted elements: the probability that a slot of two sets is equal is the weight of
//! their intersection divided by that of their union.
//!
//! The element that arrives first in a bin wins its slot. If the time until an element arrives is exponentially
//! distributed with its weight as the rate, it is the first of several with a probability in proportion to its weight.
//! [`super::FastSketch`] assigns an element to one of t bins per round, at a uniform offset. That becomes an exponential
//! time by −ln(1 − offset/t), with rounds that last −ln(1 − 1/t); dividing it by the weight gives the rate. So elements
//! of equal weight win the same slots as without weights, and a light element takes part in fewer rounds.
//!
//! If sets have weights of their own, the range of weights is divided into intervals: from 0 to 2⁻⁸, to 2⁻⁷, and so on.
//! Every interval of an element is an element whose weight is the length of the interval. A set has those below its
//! weight of the element as a whole, and a share of one: of that, only arrivals at a random height below the share count.
//! A round shows the first arrival; later ones in the same round follow at the rate of what is below the last height.
//! So a slot is the first of all arrivals below the weights of a set, as in `BagMinHash` (Ertl 2018), and those of two
//! sets are equal with the sum of the smaller weights divided by that of the larger ones as the probability.

use std::sync::Arc;

use super::bins::{AnyBins, Bins as _, OFFSET_BITS, Round};
use super::{Scheme, Slot as _};
use crate::hash::{GOLDEN, mix};
use crate::ln::ln;
use crate::weights::{ONE, OWN_ONE, Weigh};

/// Slots from which a series of four terms replaces the logarithm: its relative error is at most 64⁻⁴/5 = 1.2·10⁻⁸.
const SERIES_SLOTS: usize = 64;
/// Duration of a round with one slot, which every element fills in its first round.
const ONLY_ROUND: f64 = 1e300;
/// End of the first interval of weights.
const FIRST_INTERVAL: u32 = OWN_ONE >> 8;
/// Elements that take part at the same time: their state is 40 bytes each, and several times as many intervals.
const PART_ELEMENTS: usize = 1 << 16;
/// Largest offset plus one.
const OFFSETS: f64 = (1_u64 << OFFSET_BITS) as f64;

/// Weighted elements in rounds of bins; a slot has the bits of the earliest time in its bin, a positive number.
#[derive(Clone, Debug)]
pub struct WeightedSketch<W> {
    rounds: Box<[Round]>,
    weights: Arc<W>,
    /// Duration of a round for an element of weight 1.
    duration: f64,
    /// Offset of the first bin's end, as a multiple of an offset.
    scale: f64,
}

/// Element that has not arrived in all of its rounds.
#[derive(Clone, Copy)]
struct Arrivals {
    element: u64,
    /// One divided by the weight.
    pace: f64,
    round: usize,
    /// Time at which the round begins.
    start: f64,
    /// Share of its interval that the set has; 1 for all of it.
    share: f64,
}

impl Arrivals {
    const fn new(element: u64, pace: f64, share: f64) -> Self {
        Self { element, pace, round: 0, start: 0.0, share }
    }

    /// Return the first time from `time` on, and before `end`, of an arrival in the share that the set has.
    #[inline(always)]
    fn in_share(&self, time: f64, end: f64, hash: u64) -> Option<f64> {
        if self.share >= 1.0 { Some(time) } else { self.below_share(time, end, hash) }
    }

    fn below_share(&self, mut time: f64, end: f64, mut hash: u64) -> Option<f64> {
        let mut height = 1.0;
        let mut draw = || {
            hash = mix(hash.wrapping_add(GOLDEN));
            (hash >> 11) as f64 / (1_u64 << 53) as f64
        };
        while time < end {
            height *= draw();
            if height < self.share {
                return Some(time);
            }
            time += elapsed(draw()) / height;
        }
        None
    }
}

/// Return the elements that an element of a weight of its own consists of: one for each interval.
fn intervals(key: u64, weight: u32) -> impl Iterator<Item = Arrivals> {
    let starts = std::iter::once(0).chain((0..).map(|doubling| u64::from(FIRST_INTERVAL) << doubling));
    let numbered = (0..).zip(starts).take_while(move |&(_, start)| start < u64::from(weight));
    numbered.map(move |(number, start): (u64, u64)| {
        let length = start.max(u64::from(FIRST_INTERVAL)) as f64;
        let share = (f64::from(weight) - start as f64) / length;
        Arrivals::new(mix(key.wrapping_add(number.wrapping_mul(GOLDEN))), f64::from(OWN_ONE) / length, share.min(1.0))
    })
}

impl<W: Weigh> WeightedSketch<W> {
    /// Create a scheme of `slots` slots under `seed`.
    #[must_use]
    pub fn new(slots: usize, seed: u64, weights: Arc<W>) -> Self {
        let share = 1.0 / slots as f64;
        Self {
            rounds: (0..2 * slots as u64).map(|number| Round::new(seed, number)).collect(),
            weights,
            duration: if slots == 1 { ONLY_ROUND } else { -ln(1.0 - share) },
            scale: share / OFFSETS,
        }
    }

    fn arrivals(&self, elements: &[u64]) -> Vec<Arrivals> {
        let weighed = elements.iter().map(|&element| (self.weights.key(element), self.weights.weight(element)));
        if self.weights.is_own() {
            return weighed.flat_map(|(key, weight)| intervals(key, weight)).collect();
        }
        weighed.map(|(element, weight)| Arrivals::new(element, f64::from(ONE) / f64::from(weight), 1.0)).collect()
    }

    /// Return the time of an offset within a round.
    #[inline(always)]
    fn time(&self, offset: u64) -> f64 {
        let x = offset as f64 * self.scale;
        if self.slots() < SERIES_SLOTS {
            return elapsed(x);
        }
        x * (1.0 + x * (1.0 / 2.0 + x * (1.0 / 3.0 + x * 0.25)))
    }

    /// Let an element arrive in its next round.
    #[inline(always)]
    fn arrive(&self, one: &mut Arrivals, out: &mut [u64]) {
        let hash = self.rounds[one.round].hash(one.element);
        let (bin, offset) = AnyBins(out.len()).locate(hash);
        if let Some(time) = one.in_share(self.time(offset), self.duration, hash) {
            let time = (one.round as f64 * self.duration + time) * one.pace;
            out[bin] = out[bin].min(time.to_bits());
        }
        one.round += 1;
        one.start = one.round as f64 * self.duration * one.pace;
        if one.round == out.len() {
            self.arrive_everywhere(one, out);
            one.start = f64::INFINITY;
        }
    }

    /// Let an element arrive in every bin after its last round.
    fn arrive_everywhere(&self, one: &Arrivals, out: &mut [u64]) {
        let begin = one.round as f64 * self.duration;
        for (round, slot) in self.rounds[one.round..].iter().zip(out) {
            let hash = round.hash(one.element);
            let first = elapsed((hash >> (64 - OFFSET_BITS)) as f64 / OFFSETS);
            if let Some(time) = one.in_share(first, f64::INFINITY, hash) {
                *slot = (*slot).min(((begin + time) * one.pace).to_bits());
            }
        }
    }

    /// Sketch the elements of a large set in parts, so that the memory is bounded: a slot is the earliest time of all.
    #[inline(always)]
    fn sketch_parts(&self, elements: &[u64], out: &mut [u64]) {
        for part in elements.chunks(PART_ELEMENTS) {
            self.sketch_portable(part, out);
        }
    }

    #[inline(always)]
    fn sketch_portable(&self, elements: &[u64], out: &mut [u64]) {
        let mut waiting = self.arrivals(elements);
        let heaviest = waiting.iter().map(|one| one.pace).fold(f64::INFINITY, f64::min);
        for step in 1.. {
            let now = f64::from(step) * self.duration * heaviest;
            for one in waiting.iter_mut().filter(|one| one.start < now) {
                self.arrive(one, out);
            }
            let latest = out.iter().copied().max().unwrap_or(0);
            if latest <= now.to_bits() {
                return;
            }
            if latest != u64::EMPTY {
                waiting.retain(|one| one.start.to_bits() < latest);
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn sketch_bmi2(&self, elements: &[u64], out: &mut [u64]) {
        self.sketch_parts(elements, out);
    }
}

impl<W: Weigh> Scheme for WeightedSketch<W> {
    type Slot = u64;

    fn slots(&self) -> usize {
        self.rounds.len() / 2
    }

    fn sketch(&self, elements: &mut Vec<u64>, out: &mut [u64]) {
        out.fill(u64::EMPTY);
        if elements.is_empty() {
            return;
        }
        elements.sort_unstable();
        elements.dedup();
        #[cfg(target_arch = "x86_64")]
        if crate::simd::available() {
            // SAFETY: the processor has the features that the function is compiled for.
            unsafe { self.sketch_bmi2(elements, out) };
            return;
        }
        self.sketch_parts(elements, out);
    }
}

/// Return −ln(1 − x), at least 0: the bits of a negative number are in another order.
fn elapsed(x: f64) -> f64 {
    let time = -ln(1.0 - x);
    if time > 0.0 { time } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::weights::Uniform;

    /// Element e has the weight of its two lowest bits, from a quarter to 1.
    struct Quarters;

    impl Weigh for Quarters {
        fn weight(&self, element: u64) -> u32 {
            (element as u32 % 4 + 1) * (ONE / 4)
        }
    }

    #[test]
    fn equal_weights_win_the_slots_of_the_plain_scheme() {
        for slots in [1, 2, 5, 64, 200] {
            let plain = super::super::FastSketch::new(slots, 3, false);
            let weighted = WeightedSketch::new(slots, 3, Arc::new(Uniform));
            for size in [1, 3, 50, 1000] {
                let winners = |scheme: &dyn Fn(&mut Vec<u64>, &mut [u64])| {
                    let all: Vec<u64> = (0..size).map(mix).collect();
                    let mut out = vec![0; slots];
                    scheme(&mut all.clone(), &mut out);
                    let mut alone = vec![0; slots];
                    let of = |element: u64, alone: &mut [u64]| scheme(&mut vec![element], alone);
                    let won = |(bin, &slot): (usize, &u64), alone: &mut [u64]| {
                        all.iter().position(|&element| {
                            of(element, alone);
                            alone[bin] == slot
                        })
                    };
                    out.iter().enumerate().map(|slot| won(slot, &mut alone)).collect::<Vec<_>>()
                };
                if size * slots as u64 <= 10_000 {
                    let expected = winners(&|elements, out| plain.sketch(elements, out));
                    assert_eq!(winners(&|elements, out| weighted.sketch(elements, out)), expected, "{size} {slots}");
                }
            }
        }
    }

    #[test]
    fn slots_agree_as_often_as_the_weighted_similarity_says() {
        for (slots, seeds) in [(1, 4000), (16, 250), (128, 40)] {
            let left: Vec<u64> = (0..60).map(mix).collect();
            let right: Vec<u64> = (30..100).map(mix).collect();
            let total = |set: &[u64]| Quarters.total(set) as f64;
            let shared = total(&left[30..]);
            let expected = shared / (total(&left) + total(&right) - shared);
            let mut equal = 0;
            for seed in 0..seeds {
                let scheme = WeightedSketch::new(slots, seed, Arc::new(Quarters));
                let sketch = |set: &[u64]| {
                    let mut out = vec![0; slots];
                    scheme.sketch(&mut set.to_vec(), &mut out);
                    out
                };
                equal += sketch(&left).iter().zip(&sketch(&right)).filter(|(l, r)| l == r).count();
            }
            let trials = (slots as u64 * seeds) as f64;
            // Six standard errors of independent slots; those of one sketch are negatively correlated.
            let bound = 6.0 * (expected * (1.0 - expected) / trials).sqrt();
            let share = equal as f64 / trials;
            assert!((share - expected).abs() < bound, "{share} instead of {expected}, {slots} slots");
        }
    }

    /// Elements that hold their weights.
    struct Own;

    impl Weigh for Own {
        fn weight(&self, element: u64) -> u32 {
            element as u32 & 0x000F_FFFF
        }

        fn is_own(&self) -> bool {
            true
        }
    }

    #[test]
    fn slots_agree_as_often_as_the_smaller_weights_are_in_the_larger_ones() {
        // Weights from a tenth of the first interval to 64 times its length.
        let weight = |element: u64, set: u64| 1600 + mix(mix(element) ^ set) % (1 << (11 + element % 9));
        let set = |from: u64, to: u64, number: u64| -> Vec<u64> {
            (from..to).map(|element| mix(element) >> 24 << 24 | weight(element, number)).collect()
        };
        for (slots, seeds) in [(1, 4000), (2, 2000), (16, 250), (128, 60)] {
            let (left, right) = (set(0, 40, 1), set(10, 55, 2));
            let weights = |set: &[u64]| -> std::collections::HashMap<u64, u64> {
                set.iter().map(|&element| (Own.key(element), u64::from(Own.weight(element)))).collect()
            };
            let (l, r) = (weights(&left), weights(&right));
            let smaller: u64 = l.iter().map(|(key, &weight)| weight.min(r.get(key).copied().unwrap_or(0))).sum();
            let expected = smaller as f64 / (l.values().sum::<u64>() + r.values().sum::<u64>() - smaller) as f64;
            let mut equal = 0;
            for seed in 0..seeds {
                let scheme = WeightedSketch::new(slots, seed, Arc::new(Own));
                let sketch = |set: &[u64]| {
                    let mut out = vec![0; slots];
                    scheme.sketch(&mut set.to_vec(), &mut out);
                    out
                };
                equal += sketch(&left).iter().zip(&sketch(&right)).filter(|(l, r)| l == r).count();
            }
            let trials = (slots as u64 * seeds) as f64;
            // Six standard errors of independent slots; those of one sketch are negatively correlated.
            let bound = 6.0 * (expected * (1.0 - expected) / trials).sqrt();
            let share = equal as f64 / trials;
            assert!((share - expected).abs() < bound, "{share} instead of {expected}, {slots} slots");
        }
    }

    #[test]
    fn a_set_of_many_parts_has_the_earliest_time_of_each() {
        let elements: Vec<u64> = (0..3 * PART_ELEMENTS as u64 / 2).map(mix).collect();
        let scheme = WeightedSketch::new(64, 1, Arc::new(Quarters));
        let (mut whole, mut parts) = (vec![0; 64], vec![0; 64]);
        scheme.sketch(&mut elements.clone(), &mut whole);
        parts.fill(u64::EMPTY);
        scheme.sketch_portable(&elements, &mut parts);
        assert_eq!(whole, parts);
    }

    #[test]
    fn merging_takes_the_earlier_times() {
        let scheme = WeightedSketch::new(100, 1, Arc::new(Quarters));
        let sketch = |from: u64, to: u64| {
            let mut out = vec![0; 100];
            scheme.sketch(&mut (from..to).map(mix).collect(), &mut out);
            out
        };
        let merged: Vec<u64> = sketch(0, 30).iter().zip(sketch(20, 25)).map(|(&l, r)| l.min(r)).collect();
        assert_eq!(merged, sketch(0, 30));
        let merged: Vec<u64> = sketch(0, 3).iter().zip(sketch(3, 200)).map(|(&l, r)| l.min(r)).collect();
        assert_eq!(merged, sketch(0, 200));
    }
}
