//! Clusters and removals from similar pairs.
//!
//! Documents are numbered by rank in the keep order, so the smaller document of a pair is preferred.

use crate::band::NO_DOCUMENT;

/// Pairs of documents in columns; `low` is the smaller document of each pair.
#[derive(Clone, Copy)]
pub struct Pairs<'p> {
    /// The smaller documents.
    pub low: &'p [u32],
    /// The larger documents.
    pub high: &'p [u32],
}

impl Pairs<'_> {
    fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.low.iter().zip(self.high).map(|(&low, &high)| (low as usize, high as usize))
    }

    /// Return whether every number is below `documents` and `low` is smaller than `high` in every pair.
    #[must_use]
    pub fn are_valid(&self, documents: usize) -> bool {
        self.low.len() == self.high.len() && self.iter().all(|(low, high)| low < high && high < documents)
    }
}

/// Mark every document that is paired with an earlier kept document as removed.
///
/// The pairs must come in ascending order, in one call or in several: when a document occurs as `low`, all pairs that
/// could remove it have been processed.
pub fn remove_neighbours(pairs: Pairs<'_>, removed: &mut [bool]) {
    for (low, high) in pairs.iter() {
        removed[high] |= !removed[low];
    }
}

/// Store the most similar kept partner of every removed document; of equally similar partners the smaller number.
///
/// The pairs may come in any order, in one call or in several. `witness` must start as [`NO_DOCUMENT`].
pub fn choose_witnesses(
    pairs: Pairs<'_>,
    similarities: &[f64],
    removed: &[bool],
    witness: &mut [u32],
    best: &mut [f64],
) {
    for ((low, high), &similarity) in pairs.iter().zip(similarities) {
        let (kept, removed_document) = match (removed[low], removed[high]) {
            (false, true) => (low, high),
            (true, false) => (high, low),
            _ => continue,
        };
        let better = witness[removed_document] == NO_DOCUMENT
            || similarity > best[removed_document]
            || (similarity.total_cmp(&best[removed_document]).is_eq() && (kept as u32) < witness[removed_document]);
        if better {
            (witness[removed_document], best[removed_document]) = (kept as u32, similarity);
        }
    }
}

/// Join the two documents of every pair into one component.
///
/// `parents[i]` is a smaller member of i's component, or i itself; it must start as `0, 1, 2, …`.
pub fn join_pairs(pairs: Pairs<'_>, parents: &mut [u32]) {
    for (low, high) in pairs.iter() {
        let (left, right) = (root(low as u32, parents), root(high as u32, parents));
        parents[left.max(right) as usize] = left.min(right);
    }
}

/// Replace every parent by the first member of its component.
pub fn flatten(parents: &mut [u32]) {
    for i in 0..parents.len() {
        parents[i] = parents[parents[i] as usize];
    }
}

/// Return the first member of a component; the path to it is halved.
fn root(mut member: u32, parents: &mut [u32]) -> u32 {
    while parents[member as usize] != member {
        let next = parents[parents[member as usize] as usize];
        parents[member as usize] = next;
        member = next;
    }
    member
}

/// Return the first member of a component; paths stay as they are.
pub(crate) fn root_of(mut member: u32, parents: &[u32]) -> u32 {
    while parents[member as usize] != member {
        member = parents[member as usize];
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
        assert!(pairs.are_valid(7));
        let mut removed = [false; 7];
        remove_neighbours(pairs, &mut removed);
        assert_eq!(removed, [false, true, false, true, false, false, true]);

        let (mut witness, mut best) = ([NO_DOCUMENT; 7], [0.0; 7]);
        choose_witnesses(pairs, &[0.8, 0.9, 0.9, 0.9, 1.0], &removed, &mut witness, &mut best);
        assert_eq!(witness, [NO_DOCUMENT, 2, NO_DOCUMENT, 2, NO_DOCUMENT, NO_DOCUMENT, 5]);
    }

    #[test]
    fn components_are_named_after_their_first_member() {
        let mut parents: Vec<u32> = (0..7).collect();
        join_pairs(Pairs { low: &[3, 1, 5, 0], high: &[4, 3, 6, 4] }, &mut parents);
        flatten(&mut parents);
        assert_eq!(parents, [0, 0, 2, 0, 0, 5, 5]);
    }
}
