//! Hash tables of vector keys, for nearest-neighbour queries.

use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::{Metric, Value};
use crate::band::NO_KEY;

/// Buckets of every table: keys with their rows, sorted by key.
#[derive(Clone, Debug)]
pub struct Tables {
    rows: usize,
    tables: Vec<Vec<(u64, u32)>>,
}

/// Results of several queries, one query after the other, nearest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nearest {
    /// Number of results of each query.
    pub counts: Vec<u64>,
    /// Rows; equal distances are ordered by row.
    pub rows: Vec<u32>,
    /// Distances.
    pub distances: Vec<f64>,
    /// Number of distances computed.
    pub compared: u64,
}

/// A distance and a row. Distances are finite, so they have a total order.
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

/// For each row the last query of this thread that visited it.
struct VisitedRows {
    last: Vec<u32>,
    query: u32,
}

impl Tables {
    /// Create the tables of vectors from their keys, table by table.
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

    /// Return the number of tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Return whether there are no tables.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Return, for every query, the `top` nearest vectors that share a bucket with it and are at most `most` away.
    ///
    /// # Panics
    /// If a query has no key in some table, or a row has no values.
    #[must_use]
    pub fn nearest<V: Value, W: Value>(
        &self,
        metric: Metric,
        values: &[V],
        queries: (&[W], &[u64]),
        dims: usize,
        (most, top): (f64, usize),
        threads: usize,
    ) -> Nearest {
        let (vectors, keys) = queries;
        let query_count = vectors.len() / dims.max(1);
        let nearest_to = |visited: &mut VisitedRows, query: usize| {
            let vector = &vectors[query * dims..(query + 1) * dims];
            let keys = (0..self.tables.len()).map(|table| keys[table * query_count + query]);
            self.nearest_to(metric, values, vector, keys, (most, top), visited)
        };
        let new_visited = || VisitedRows { last: vec![0; self.rows], query: 0 };
        let found: Vec<(Vec<Hit>, u64)> = if threads <= 1 {
            let mut visited = new_visited();
            (0..query_count).map(|query| nearest_to(&mut visited, query)).collect()
        } else {
            // Few long tasks, because each allocates an entry per row.
            let task = query_count.div_ceil(4 * threads).max(1);
            (0..query_count).into_par_iter().with_min_len(task).map_init(new_visited, nearest_to).collect()
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

    fn nearest_to<V: Value, W: Value>(
        &self,
        metric: Metric,
        values: &[V],
        vector: &[W],
        keys: impl Iterator<Item = u64>,
        (most, top): (f64, usize),
        visited: &mut VisitedRows,
    ) -> (Vec<Hit>, u64) {
        visited.query += 1;
        let dims = vector.len();
        let (mut hits, mut compared, mut bound) = (BinaryHeap::new(), 0, most);
        for (table, key) in self.tables.iter().zip(keys).filter(|&(_, key)| key != NO_KEY) {
            let start = table.partition_point(|entry| entry.0 < key);
            for &(_, row) in table[start..].iter().take_while(|entry| entry.0 == key) {
                if std::mem::replace(&mut visited.last[row as usize], visited.query) == visited.query {
                    continue;
                }
                compared += 1;
                let other = &values[row as usize * dims..(row as usize + 1) * dims];
                let Some(distance) = metric.distance(vector, other, bound) else { continue };
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
    fn results_are_ordered_by_distance_then_row() {
        let values: Vec<f32> = vec![3.0, 1.0, 1.0, 2.0, 9.0];
        // All but the last row share the only bucket.
        let tables = Tables::new(&[7, 7, 7, 7, 8], 5, 1);
        for threads in [1, 2] {
            let queries: (&[f32], &[u64]) = (&[0.0, 0.0], &[7, NO_KEY]);
            let found = tables.nearest(Metric::Euclidean, &values, queries, 1, (2.0, 2), threads);
            assert_eq!((found.counts, found.rows, found.distances), (vec![2, 0], vec![1, 2], vec![1.0, 1.0]));
            let all = tables.nearest(Metric::Euclidean, &values, queries, 1, (2.0, usize::MAX), threads);
            assert_eq!((all.rows, all.compared), (vec![1, 2, 3], 4));
        }
    }
}
