//! Tables: the keys of vectors in; for the keys of others, which of them are nearest out.

use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::{Measure, Value};
use crate::band::NO_KEY;

/// The buckets of every table, as sorted keys with the rows that have them.
#[derive(Clone, Debug)]
pub struct Tables {
    rows: usize,
    tables: Vec<Vec<(u64, u32)>>,
}

/// What was found for each of several queries: their rows one after the other, nearest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nearest {
    /// How many rows each query has.
    pub counts: Vec<u64>,
    /// Rows; of equally near ones the first.
    pub rows: Vec<u32>,
    /// How far each is.
    pub distances: Vec<f64>,
    /// How many were compared.
    pub compared: u64,
}

/// A distance and a row; distances are finite, so they have an order.
#[derive(Clone, Copy, PartialEq)]
struct Hit(f64, u32);

impl Eq for Hit {}

impl PartialOrd for Hit {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Hit {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// What a thread remembers from one query to the next: for each row the last query that met it.
struct Seen {
    last: Vec<u32>,
    query: u32,
}

impl Tables {
    /// The tables of vectors whose `keys` are given table after table.
    #[must_use]
    pub fn new(keys: &[u64], rows: usize, threads: usize) -> Self {
        let table = |keys: &[u64]| {
            let mut table: Vec<(u64, u32)> = keys.iter().copied().zip(0..).filter(|&(key, _)| key != NO_KEY).collect();
            table.sort_unstable();
            table
        };
        let (width, chunks) = (rows.max(1), keys.len() / rows.max(1));
        let tables = if threads <= 1 {
            keys.chunks_exact(width).map(table).collect()
        } else {
            keys.par_chunks_exact(width).map(table).collect::<Vec<_>>()
        };
        debug_assert_eq!(tables.len(), chunks);
        Self { rows, tables }
    }

    /// How many tables there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The `top` nearest of those that share a bucket with a query and are not farther than `most`, for every query.
    ///
    /// # Panics
    /// If a query has no key in some table, or a row no values.
    #[must_use]
    pub fn nearest<V: Value, W: Value>(
        &self,
        measure: Measure,
        values: &[V],
        queries: (&[W], &[u64]),
        dims: usize,
        (most, top): (f64, usize),
        threads: usize,
    ) -> Nearest {
        let (vectors, keys) = queries;
        let asked = vectors.len() / dims.max(1);
        let ask = |seen: &mut Seen, query: usize| {
            let vector = &vectors[query * dims..(query + 1) * dims];
            let keys = (0..self.tables.len()).map(|table| keys[table * asked + query]);
            self.ask(measure, values, vector, keys, (most, top), seen)
        };
        let fresh = || Seen { last: vec![0; self.rows], query: 0 };
        let found: Vec<(Vec<Hit>, u64)> = if threads <= 1 {
            let mut seen = fresh();
            (0..asked).map(|query| ask(&mut seen, query)).collect()
        } else {
            // Long runs, because each begins with a table of all rows.
            let run = asked.div_ceil(4 * threads).max(1);
            (0..asked).into_par_iter().with_min_len(run).map_init(fresh, ask).collect()
        };
        let mut nearest = Nearest::default();
        for (hits, compared) in found {
            nearest.counts.push(hits.len() as u64);
            nearest.rows.extend(hits.iter().map(|hit| hit.1));
            nearest.distances.extend(hits.iter().map(|hit| hit.0));
            nearest.compared += compared;
        }
        nearest
    }

    fn ask<V: Value, W: Value>(
        &self,
        measure: Measure,
        values: &[V],
        vector: &[W],
        keys: impl Iterator<Item = u64>,
        (most, top): (f64, usize),
        seen: &mut Seen,
    ) -> (Vec<Hit>, u64) {
        seen.query += 1;
        let dims = vector.len();
        let (mut hits, mut compared, mut bound) = (BinaryHeap::new(), 0, most);
        for (table, key) in self.tables.iter().zip(keys).filter(|&(_, key)| key != NO_KEY) {
            let start = table.partition_point(|entry| entry.0 < key);
            for &(_, row) in table[start..].iter().take_while(|entry| entry.0 == key) {
                if std::mem::replace(&mut seen.last[row as usize], seen.query) == seen.query {
                    continue;
                }
                compared += 1;
                let other = &values[row as usize * dims..(row as usize + 1) * dims];
                let Some(distance) = measure.distance(vector, other, bound) else { continue };
                hits.push(Hit(distance, row));
                if hits.len() > top {
                    hits.pop();
                }
                if hits.len() == top {
                    bound = hits.peek().map_or(bound, |hit| hit.0);
                }
            }
        }
        (hits.into_sorted_vec(), compared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_of_a_bucket_come_in_order_and_ties_by_row() {
        let values: Vec<f32> = vec![3.0, 1.0, 1.0, 2.0, 9.0];
        // All but the last share the only bucket.
        let tables = Tables::new(&[7, 7, 7, 7, 8], 5, 1);
        for threads in [1, 2] {
            let queries: (&[f32], &[u64]) = (&[0.0, 0.0], &[7, NO_KEY]);
            let found = tables.nearest(Measure::Euclidean, &values, queries, 1, (2.0, 2), threads);
            assert_eq!((found.counts, found.rows, found.distances), (vec![2, 0], vec![1, 2], vec![1.0, 1.0]));
            let all = tables.nearest(Measure::Euclidean, &values, queries, 1, (2.0, usize::MAX), threads);
            assert_eq!((all.rows, all.compared), (vec![1, 2, 3], 4));
        }
    }
}
