//! Comparison of only those candidate pairs that decide clusters.
//!
//! A star group needs the pairs with a kept document: those with a kept smaller document decide which documents are
//! removed, those with any kept document decide the witnesses. Whether a document is kept is known when all pairs with
//! smaller documents have been compared, so [`CandidatePairs::next_of_kept`] advances in keep order, in windows. In a
//! window, the kept documents are found one after the other, with only those pairs that can remove a document of the
//! window; then their other pairs are compared in parallel. No pair is compared twice.
//! [`CandidatePairs::next_of_removed`] follows in a second pass, when all kept documents are known. One million passages had 51 million candidate pairs, of which 10 million
//! had a kept document: 0.9 instead of 6.2 CPU seconds.
//!
//! Connected components need no pair whose documents are connected already ([`CandidatePairs::next_unconnected`]).
//!
//! The alternatives were: ranges of keep order whose pairs are all compared, which needs 37 million comparisons in 16
//! ranges, since near-duplicates lie close together; and one task per connected component of the buckets, of which two
//! have 97 % of all pairs.

use std::collections::HashMap;
use std::io;

use rayon::prelude::*;

use crate::candidates::{CandidatePairs, DocumentRanges, SortedRuns};
use crate::cluster::{Pairs, join_pairs, root_of};
use crate::hash::mix;
use crate::set_store::{Buffers, SetStore, SimilarPairs};

/// Documents of a window. In a larger one, fewer pairs are compared in parallel; in a smaller one, threads wait for
/// each other more often.
const WINDOW_DOCUMENTS: usize = 1 << 10;
/// Documents per task.
const TASK_DOCUMENTS: usize = 16;

/// Comparison of a document with its candidate partners.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'s> {
    /// The sets, and the set number of each document; without them every candidate pair is similar.
    pub sets: Option<(&'s SetStore, &'s [u32])>,
    /// Similarity down to which pairs are returned.
    pub floor: f64,
    /// Minimum similarity of near-duplicates.
    pub threshold: f64,
}

impl Comparison<'_> {
    fn append_similar(
        &self,
        low: u32,
        partners: &[u32],
        floor: f64,
        buffers: &mut Buffers,
        found: &mut SimilarPairs,
    ) -> io::Result<()> {
        if let Some((store, set_numbers)) = self.sets {
            return store.compare_with_all(low, partners, set_numbers, floor, buffers, found);
        }
        for &high in partners {
            found.push(low, high, f64::NAN);
        }
        Ok(())
    }

    /// Return whether a similarity is that of near-duplicates; an unknown one is.
    fn is_reached(&self, similarity: f64) -> bool {
        similarity.is_nan() || similarity >= self.threshold
    }
}

/// Pairs that were compared together.
#[derive(Debug, Default)]
pub struct ComparedPairs {
    /// Pairs that reach the floor, ascending.
    pub similar: SimilarPairs,
    /// Number of pairs that were compared.
    pub examined: u64,
    /// Number of them that belong to the sample: pairs of two removed documents.
    pub sampled: u64,
    /// The smaller document of the last pair up to which all pairs are done.
    pub last: u32,
}

impl ComparedPairs {
    fn append(&mut self, other: Self) {
        self.similar.append(other.similar);
        self.examined += other.examined;
        self.sampled += other.sampled;
    }
}

/// Sample of the pairs of two removed documents: documents are divided into classes by a hash, and pairs of documents
/// of one class are compared.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'n> {
    /// Number of classes, a power of two; 0 if no pair belongs to the sample.
    pub classes: u64,
    /// The number of each document that decides its class, where it is not that of the candidate pairs: a part of a
    /// corpus numbers its documents from 0, and must choose the sample of the whole.
    pub numbers: Option<&'n [u64]>,
}

impl Sample<'_> {
    fn hash(self, document: u32) -> u64 {
        mix(self.numbers.map_or(u64::from(document), |numbers| numbers[document as usize]))
    }

    fn includes(self, low_hash: u64, high: u32) -> bool {
        self.classes > 0 && (low_hash ^ self.hash(high)) & (self.classes - 1) == 0
    }
}

/// Working memory of a task.
#[derive(Default)]
struct Scratch {
    runs: SortedRuns,
    buffers: Buffers,
}

impl CandidatePairs {
    /// Compare the pairs of the next smaller documents that are kept, and mark their near-duplicates as removed.
    ///
    /// Returns none at the end. Documents are added until the bands have proposed `most` pairs. `removed` has a flag
    /// per document; when a run resumes, those that the pairs returned before have removed must be set.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn next_of_kept(
        &mut self,
        most: u64,
        comparison: Comparison<'_>,
        removed: &mut [bool],
        threads: usize,
    ) -> io::Result<Option<ComparedPairs>> {
        self.next_compared(most, |candidates, documents| {
            let last = documents.last().map_or(0, DocumentRanges::low);
            let (within, removers) = candidates.remove_within(documents, last, comparison, removed)?;
            let kept: Vec<_> = documents.iter().copied().filter(|one| !removed[one.low() as usize]).collect();
            let is_needed = |low: u32| {
                let (removers, removed) = (&removers, &*removed);
                // A document of the window was compared with `low` unless it was removed before the turn of `low`.
                move |high: u32| match removers.get(&high) {
                    Some(&remover) => remover < low,
                    None => high > last || removed[high as usize],
                }
            };
            let mut compared = candidates.compare_all(&kept, comparison, threads, is_needed, |_| false)?;
            compared.examined += within.examined;
            compared.similar = compared.similar.merge(&within.similar);
            for (&high, &similarity) in compared.similar.high.iter().zip(&compared.similar.similarity) {
                removed[high as usize] |= comparison.is_reached(similarity);
            }
            Ok(compared)
        })
    }

    /// Compare the pairs of the next smaller documents that are removed: with kept documents, and those of a sample.
    ///
    /// Returns none at the end. Documents are added until the bands have proposed `most` pairs.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn next_of_removed(
        &mut self,
        most: u64,
        comparison: Comparison<'_>,
        removed: &[bool],
        sample: Sample<'_>,
        threads: usize,
    ) -> io::Result<Option<ComparedPairs>> {
        self.next_compared(most, |candidates, documents| {
            let chosen: Vec<_> = documents.iter().copied().filter(|one| removed[one.low() as usize]).collect();
            let is_needed = |low: u32| {
                let hash = sample.hash(low);
                move |high: u32| !removed[high as usize] || sample.includes(hash, high)
            };
            candidates.compare_all(&chosen, comparison, threads, is_needed, |high| removed[high as usize])
        })
    }

    /// Compare the pairs of the next smaller documents that no similar pair of a smaller document connects already.
    ///
    /// Returns none at the end. `parents` is the state of [`crate::cluster::join_pairs`] and is updated.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn next_unconnected(
        &mut self,
        most: u64,
        comparison: Comparison<'_>,
        parents: &mut [u32],
        threads: usize,
    ) -> io::Result<Option<ComparedPairs>> {
        self.next_compared(most, |candidates, documents| {
            let unconnected = candidates.unconnected(documents, parents, threads)?;
            join_in_order(&unconnected, comparison, parents)
        })
    }

    /// Apply `compare` to windows of documents until the bands have proposed `most` pairs; none at the end.
    fn next_compared(
        &mut self,
        most: u64,
        mut compare: impl FnMut(&Self, &[DocumentRanges<'_>]) -> io::Result<ComparedPairs>,
    ) -> io::Result<Option<ComparedPairs>> {
        let (end, mut all, mut is_empty) = (self.passed().saturating_add(most), ComparedPairs::default(), true);
        while self.passed() < end {
            let window = self.next_window(WINDOW_DOCUMENTS, end - self.passed())?;
            let documents = window.documents();
            let Some(last) = documents.last() else { break };
            all.append(compare(self, &documents)?);
            (all.last, is_empty) = (last.low(), false);
        }
        Ok((!is_empty).then_some(all))
    }

    /// Mark the documents of a window, which ends with `last`, that have a kept near-duplicate in it as removed.
    ///
    /// Returns the pairs that were compared, and for each document that was removed the one that removed it.
    fn remove_within(
        &self,
        documents: &[DocumentRanges<'_>],
        last: u32,
        comparison: Comparison<'_>,
        removed: &mut [bool],
    ) -> io::Result<(ComparedPairs, HashMap<u32, u32>)> {
        let (Scratch { mut runs, mut buffers }, mut compared) = (Scratch::default(), ComparedPairs::default());
        let mut removers = HashMap::new();
        for &document in documents {
            let low = document.low();
            if removed[low as usize] {
                continue;
            }
            let can_be_removed = |high: u32| high <= last && !removed[high as usize];
            let partners = self.partners(document, can_be_removed, &mut runs)?;
            compared.examined += partners.len() as u64;
            let (first, found) = (compared.similar.high.len(), &mut compared.similar);
            comparison.append_similar(low, partners, comparison.floor, &mut buffers, found)?;
            for (&high, &similarity) in found.high[first..].iter().zip(&found.similarity[first..]) {
                if comparison.is_reached(similarity) {
                    removed[high as usize] = true;
                    removers.insert(high, low);
                }
            }
        }
        Ok((compared, removers))
    }

    /// Compare documents with those of their partners that are needed.
    ///
    /// `needed` returns, for a smaller document, which partners are needed; `is_sampled` whether a pair with this
    /// partner belongs to the sample.
    fn compare_all<Needed: Fn(u32) -> bool>(
        &self,
        documents: &[DocumentRanges<'_>],
        comparison: Comparison<'_>,
        threads: usize,
        needed: impl Fn(u32) -> Needed + Sync,
        is_sampled: impl Fn(u32) -> bool + Sync,
    ) -> io::Result<ComparedPairs> {
        let parts = map_documents(documents, threads, |scratch: &mut Scratch, documents| {
            let (Scratch { runs, buffers }, mut compared) = (scratch, ComparedPairs::default());
            for &document in documents {
                let partners = self.partners(document, needed(document.low()), runs)?;
                compared.examined += partners.len() as u64;
                compared.sampled += partners.iter().filter(|&&high| is_sampled(high)).count() as u64;
                let found = &mut compared.similar;
                comparison.append_similar(document.low(), partners, comparison.floor, buffers, found)?;
            }
            Ok(compared)
        });
        let mut all = ComparedPairs::default();
        for part in parts? {
            all.append(part);
        }
        Ok(all)
    }

    /// Return the documents of a window, each with its partners in other components.
    fn unconnected(
        &self,
        documents: &[DocumentRanges<'_>],
        parents: &[u32],
        threads: usize,
    ) -> io::Result<Vec<(u32, Vec<u32>)>> {
        let parts = map_documents(documents, threads, |runs: &mut SortedRuns, documents| {
            let partners_of = |document: &DocumentRanges<'_>| {
                let own = root_of(document.low(), parents);
                let partners = self.partners(*document, |high| root_of(high, parents) != own, runs)?;
                Ok((document.low(), partners.to_vec()))
            };
            documents.iter().map(partners_of).collect::<io::Result<Vec<_>>>()
        });
        Ok(parts?.concat())
    }
}

/// Apply `task` to a few documents at a time; the results are in their order.
fn map_documents<State: Default, Part: Send>(
    documents: &[DocumentRanges<'_>],
    threads: usize,
    task: impl Fn(&mut State, &[DocumentRanges<'_>]) -> io::Result<Part> + Send + Sync,
) -> io::Result<Vec<Part>> {
    if threads <= 1 {
        let mut state = State::default();
        return documents.chunks(TASK_DOCUMENTS).map(|documents| task(&mut state, documents)).collect();
    }
    documents.par_chunks(TASK_DOCUMENTS).map_init(State::default, task).collect()
}

/// Compare each document with the partners that are not connected with it yet, in order, and join the similar ones.
fn join_in_order(
    documents: &[(u32, Vec<u32>)],
    comparison: Comparison<'_>,
    parents: &mut [u32],
) -> io::Result<ComparedPairs> {
    let (mut buffers, mut compared) = (Buffers::default(), ComparedPairs::default());
    for (low, partners) in documents {
        let own = root_of(*low, parents);
        let partners: Vec<u32> = partners.iter().copied().filter(|&high| root_of(high, parents) != own).collect();
        compared.examined += partners.len() as u64;
        let (first, found) = (compared.similar.high.len(), &mut compared.similar);
        comparison.append_similar(*low, &partners, comparison.threshold, &mut buffers, found)?;
        join_pairs(Pairs { low: &found.low[first..], high: &found.high[first..] }, parents);
    }
    Ok(compared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::band::{Buckets, pack_pair};
    use crate::candidates::tests::write_shared;
    use crate::cluster::{choose_witnesses, flatten, remove_neighbours};
    use crate::set_store::SetFile;
    use std::fs::File;

    const DOCUMENTS: u32 = 3 * WINDOW_DOCUMENTS as u32;
    const THRESHOLD: f64 = 0.5;
    const FLOOR: f64 = 0.45;
    const WRITTEN: &str = "the file was just written";

    /// Candidate pairs in files, and the sets of all documents.
    struct Corpus {
        files: Vec<(std::path::PathBuf, crate::candidates::Section, crate::candidates::Section)>,
        store: SetStore,
        places: Vec<u32>,
        /// The group of each document, if pairs of one group are left out.
        groups: Option<Vec<u32>>,
    }

    impl Corpus {
        /// Create families of similar sets, the members of which are spread over the keep order or lie close together.
        fn new(name: &str, is_spread: bool) -> Self {
            let family = |i: u64| if is_spread { mix(i) % 97 } else { i / 31 };
            let set = |i: u64| {
                (0..12).map(move |k| {
                    if mix(i * 16 + k).is_multiple_of(3) { mix((i << 20) | k) } else { mix((family(i) << 40) | k) }
                })
            };
            let mut sets: Vec<Vec<u64>> = (0..u64::from(DOCUMENTS)).map(|i| set(i).collect()).collect();
            for set in &mut sets {
                set.sort_unstable();
            }
            let members: Vec<u32> = (0..DOCUMENTS).collect();
            let shared = (0..4).map(|band| {
                let keys: Vec<u64> =
                    (0..u64::from(DOCUMENTS)).map(|i| mix((family(i) << 8) | (mix(i ^ (band << 50)) % 3))).collect();
                let mut buckets = Buckets::default();
                buckets.push(&keys, &members, 0, 1);
                buckets.shared(40, 0, 1)
            });
            let files =
                shared.enumerate().map(|(band, shared)| write_shared(&format!("{name}-{band}"), &shared)).collect();
            let path = std::env::temp_dir().join(format!("minwise-needed-{}-{name}", std::process::id()));
            let bytes: Vec<u8> = sets.iter().flatten().flat_map(|element| element.to_le_bytes()).collect();
            std::fs::write(&path, bytes).expect(WRITTEN);
            let offsets = (0..=u64::from(DOCUMENTS)).map(|i| 12 * i).collect();
            let mut store = SetStore::default();
            store.add(SetFile::new(File::open(&path).expect(WRITTEN), 0, offsets), true, true).expect(WRITTEN);
            std::fs::remove_file(&path).expect(WRITTEN);
            Self { files, store, places: members, groups: None }
        }

        /// Leave out the pairs of documents of one of three groups.
        fn across(mut self) -> Self {
            self.groups = Some((0..u64::from(DOCUMENTS)).map(|document| mix(document) as u32 % 3).collect());
            self
        }

        fn candidates(&self, loaded: bool) -> CandidatePairs {
            let candidates = CandidatePairs::default();
            self.add_files(loaded, self.groups.iter().fold(candidates, |all, groups| all.across(groups.clone())))
        }

        fn add_files(&self, loaded: bool, mut candidates: CandidatePairs) -> CandidatePairs {
            for (path, ranges, members) in &self.files {
                let file = crate::candidates::BucketFile::open(path.clone(), *ranges, *members, loaded).expect(WRITTEN);
                candidates.add(file, None).expect(WRITTEN);
            }
            candidates
        }

        /// Return every candidate pair, and those that reach the floor.
        fn all(&self) -> (Vec<u64>, SimilarPairs) {
            let mut candidates = self.add_files(true, CandidatePairs::default());
            let mut pairs = candidates.next_pairs(u64::MAX, 1).expect(WRITTEN).expect("there are pairs");
            if let Some(groups) = &self.groups {
                pairs.retain(|&pair| groups[(pair >> 32) as usize] != groups[pair as u32 as usize]);
            }
            let similar = self.store.similar(&pairs, &self.places, FLOOR, 1).expect(WRITTEN);
            (pairs, similar)
        }

        fn comparison(&self) -> Comparison<'_> {
            Comparison { sets: Some((&self.store, &self.places)), floor: FLOOR, threshold: THRESHOLD }
        }
    }

    impl Drop for Corpus {
        fn drop(&mut self) {
            for (path, ..) in &self.files {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    fn columns(pairs: &SimilarPairs, reached: impl Fn(usize) -> bool) -> SimilarPairs {
        let mut chosen = SimilarPairs::default();
        for i in (0..pairs.low.len()).filter(|&i| reached(i)) {
            chosen.push(pairs.low[i], pairs.high[i], pairs.similarity[i]);
        }
        chosen
    }

    fn all_parts(mut next: impl FnMut() -> io::Result<Option<ComparedPairs>>) -> ComparedPairs {
        let mut all = ComparedPairs::default();
        while let Some(part) = next().expect(WRITTEN) {
            all.append(part);
        }
        all
    }

    fn packed(pairs: &SimilarPairs) -> Vec<u64> {
        pairs.low.iter().zip(&pairs.high).map(|(&low, &high)| pack_pair(low, high)).collect()
    }

    #[test]
    fn stars_of_needed_pairs_equal_those_of_all_pairs() {
        let corpora = [
            ("spread", Corpus::new("spread", true)),
            ("close", Corpus::new("close", false)),
            ("across", Corpus::new("across", true).across()),
        ];
        for (name, corpus) in corpora {
            let (pairs, similar) = corpus.all();
            let reached = columns(&similar, |i| similar.similarity[i] >= THRESHOLD);
            let mut expected = vec![false; DOCUMENTS as usize];
            remove_neighbours(Pairs { low: &reached.low, high: &reached.high }, &mut expected);
            assert!(expected.iter().filter(|&&removed| removed).count() > 500);
            for (most, threads, loaded) in [(1, 1, true), (5000, 2, false), (u64::MAX, 2, true)] {
                let mut removed = vec![false; DOCUMENTS as usize];
                let mut candidates = corpus.candidates(loaded);
                let kept = all_parts(|| candidates.next_of_kept(most, corpus.comparison(), &mut removed, threads));
                assert_eq!(removed, expected, "{name} {most} {threads}");
                let of_kept = columns(&similar, |i| !expected[similar.low[i] as usize]);
                assert_eq!(packed(&kept.similar), packed(&of_kept));
                assert_eq!(kept.similar.similarity, of_kept.similarity);
                let has_kept_low = |pair: &&u64| !expected[(**pair >> 32) as usize];
                assert_eq!(kept.examined, pairs.iter().filter(has_kept_low).count() as u64);

                let (mut candidates, sample) = (corpus.candidates(loaded), Sample { classes: 4, numbers: None });
                let next = || candidates.next_of_removed(most, corpus.comparison(), &removed, sample, threads);
                let rest = all_parts(next);
                let is_needed = |low: u32, high: u32| {
                    let is_sampled = (mix(u64::from(low)) ^ mix(u64::from(high))).is_multiple_of(4);
                    expected[low as usize] && (!expected[high as usize] || is_sampled)
                };
                let of_removed = columns(&similar, |i| is_needed(similar.low[i], similar.high[i]));
                assert_eq!(packed(&rest.similar), packed(&of_removed));
                let needed = |pair: &&u64| is_needed((**pair >> 32) as u32, **pair as u32);
                assert_eq!(rest.examined, pairs.iter().filter(needed).count() as u64);
                assert!(rest.sampled > 0 && rest.sampled < rest.examined);

                let witnesses = |parts: &[&SimilarPairs]| {
                    let (mut witness, mut best) = (vec![u32::MAX; DOCUMENTS as usize], vec![0.0; DOCUMENTS as usize]);
                    for part in parts {
                        let part = columns(part, |i| part.similarity[i] >= THRESHOLD);
                        let pairs = Pairs { low: &part.low, high: &part.high };
                        choose_witnesses(pairs, &part.similarity, &expected, &mut witness, &mut best);
                    }
                    (witness, best)
                };
                assert_eq!(witnesses(&[&kept.similar, &rest.similar]), witnesses(&[&reached]));
            }
        }
    }

    #[test]
    fn components_of_unconnected_pairs_equal_those_of_all_pairs() {
        assert_components(&Corpus::new("components", true));
        assert_components(&Corpus::new("components-across", true).across());
    }

    fn assert_components(corpus: &Corpus) {
        let (pairs, similar) = corpus.all();
        let reached = columns(&similar, |i| similar.similarity[i] >= THRESHOLD);
        let mut expected: Vec<u32> = (0..DOCUMENTS).collect();
        join_pairs(Pairs { low: &reached.low, high: &reached.high }, &mut expected);
        flatten(&mut expected);
        let (mut needed, mut state): (u64, Vec<u32>) = (0, (0..DOCUMENTS).collect());
        for group in pairs.chunk_by(|left, right| left >> 32 == right >> 32) {
            let low = (group[0] >> 32) as u32;
            let own = root_of(low, &state);
            needed += group.iter().filter(|&&pair| root_of(pair as u32, &state) != own).count() as u64;
            let found = columns(&reached, |i| reached.low[i] == low);
            join_pairs(Pairs { low: &found.low, high: &found.high }, &mut state);
        }
        assert!(needed < pairs.len() as u64);
        for (most, threads, loaded) in [(1, 1, true), (5000, 2, false), (u64::MAX, 2, true)] {
            let (mut parents, mut candidates): (Vec<u32>, _) = ((0..DOCUMENTS).collect(), corpus.candidates(loaded));
            let next = || candidates.next_unconnected(most, corpus.comparison(), &mut parents, threads);
            let compared = all_parts(next);
            flatten(&mut parents);
            assert_eq!(parents, expected, "{most} {threads}");
            assert_eq!(compared.examined, needed);
        }
    }

    #[test]
    fn without_sets_every_candidate_is_similar() {
        let corpus = Corpus::new("none", true);
        let comparison = Comparison { sets: None, ..corpus.comparison() };
        let (mut removed, mut candidates) = (vec![false; DOCUMENTS as usize], corpus.candidates(true));
        let kept = all_parts(|| candidates.next_of_kept(100, comparison, &mut removed, 2));
        let pairs = corpus.all().0;
        let mut expected = vec![false; DOCUMENTS as usize];
        for pair in pairs {
            expected[pair as u32 as usize] |= !expected[(pair >> 32) as usize];
        }
        assert_eq!(removed, expected);
        assert!(kept.similar.similarity.iter().all(|similarity| similarity.is_nan()));
    }
}
