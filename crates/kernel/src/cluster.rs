//! Cluster: similar pairs in, groups out. Numbers are places in the keep order, so the smaller of two is kept first.

use crate::band::NOBODY;

/// Pairs with their similarity, column by column; the first number of each is the smaller.
#[derive(Clone, Copy)]
pub struct Pairs<'p> {
    /// The smaller numbers.
    pub low: &'p [u32],
    /// The larger numbers.
    pub high: &'p [u32],
}

impl Pairs<'_> {
    fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.low.iter().zip(self.high).map(|(&low, &high)| (low as usize, high as usize))
    }

    /// Whether every number is below `documents` and every pair has the smaller first.
    #[must_use]
    pub fn fit(&self, documents: usize) -> bool {
        self.low.len() == self.high.len() && self.iter().all(|(low, high)| low < high && high < documents)
    }
}

/// Marks as removed whoever is paired with a kept document before it. The pairs must come in ascending order, at once or in
/// chunks: when a document is met as the smaller one, everything before it has been decided.
pub fn remove_neighbours(pairs: Pairs<'_>, removed: &mut [bool]) {
    for (low, high) in pairs.iter() {
        removed[high] |= !removed[low];
    }
}

/// Notes for every removed document its most similar kept partner, the smaller number among equals. The pairs may come in
/// any order and in chunks; `witness` starts as [`NOBODY`] everywhere.
pub fn choose_witnesses(
    pairs: Pairs<'_>,
    similarities: &[f64],
    removed: &[bool],
    witness: &mut [u32],
    best: &mut [f64],
) {
    for ((low, high), &similarity) in pairs.iter().zip(similarities) {
        let (kept, gone) = match (removed[low], removed[high]) {
            (false, true) => (low, high),
            (true, false) => (high, low),
            _ => continue,
        };
        let better = witness[gone] == NOBODY
            || similarity > best[gone]
            || (similarity.total_cmp(&best[gone]).is_eq() && (kept as u32) < witness[gone]);
        if better {
            (witness[gone], best[gone]) = (kept as u32, similarity);
        }
    }
}

/// Joins the two sides of every pair. `parents[i]` is a smaller member of i's component, or i itself; it starts as `0, 1, 2, …`.
pub fn join_pairs(pairs: Pairs<'_>, parents: &mut [u32]) {
    for (low, high) in pairs.iter() {
        let (one, other) = (root(low as u32, parents), root(high as u32, parents));
        parents[one.max(other) as usize] = one.min(other);
    }
}

/// Makes every parent the first member of its component.
pub fn flatten(parents: &mut [u32]) {
    for i in 0..parents.len() {
        parents[i] = parents[parents[i] as usize];
    }
}

/// The first member of a component; the path to it is halved on the way.
fn root(mut member: u32, parents: &mut [u32]) -> u32 {
    while parents[member as usize] != member {
        let next = parents[parents[member as usize] as usize];
        parents[member as usize] = next;
        member = next;
    }
    member
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: [u32; 5] = [0, 1, 2, 3, 5];
    const HIGH: [u32; 5] = [1, 2, 3, 4, 6];

    #[test]
    fn in_a_chain_every_other_document_is_kept() {
        let pairs = Pairs { low: &LOW, high: &HIGH };
        assert!(pairs.fit(7));
        let mut removed = [false; 7];
        remove_neighbours(pairs, &mut removed);
        assert_eq!(removed, [false, true, false, true, false, false, true]);

        let (mut witness, mut best) = ([NOBODY; 7], [0.0; 7]);
        choose_witnesses(pairs, &[0.8, 0.9, 0.9, 0.9, 1.0], &removed, &mut witness, &mut best);
        assert_eq!(witness, [NOBODY, 2, NOBODY, 2, NOBODY, NOBODY, 5]);
    }

    #[test]
    fn components_are_named_after_their_first_member() {
        let mut parents: Vec<u32> = (0..7).collect();
        join_pairs(Pairs { low: &[3, 1, 5, 0], high: &[4, 3, 6, 4] }, &mut parents);
        flatten(&mut parents);
        assert_eq!(parents, [0, 0, 2, 0, 0, 5, 5]);
    }
}
