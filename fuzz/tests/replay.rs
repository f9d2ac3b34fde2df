//! Replay of the stored corpora, and of seeded mutations of them, on a stable compiler.
//!
//! `MINWISE_FUZZ_ROUNDS` is the number of mutations per target. A case that fails is printed as hexadecimal bytes.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use minwise_fuzz::TARGETS;
use minwise_fuzz::mutate::Mutator;

const DEFAULT_ROUNDS: usize = 2000;

fn rounds() -> usize {
    std::env::var("MINWISE_FUZZ_ROUNDS").map_or(DEFAULT_ROUNDS, |text| text.parse().expect("a number of rounds"))
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = std::fs::read_dir(&folder).expect("every target has a corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("the file is readable")).collect()
}

fn replay(name: &str) {
    let (_, body) = TARGETS.into_iter().find(|&(target, _)| target == name).expect("a target");
    let corpus = corpus(name);
    let mut mutator = Mutator::new(18);
    let mutations = (0..rounds()).map(|round| {
        let (file, other) = (&corpus[round % corpus.len()], &corpus[round * 7 % corpus.len()]);
        mutator.mutate(file, other)
    });
    for case in corpus.iter().cloned().chain(mutations) {
        let outcome = catch_unwind(|| body(&case));
        assert!(outcome.is_ok(), "{name}: {}", hexadecimal(&case));
    }
    println!("{name}: {} cases, no findings", corpus.len() + rounds());
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn text() {
    replay("text");
}

#[test]
fn segment() {
    replay("segment");
}

#[test]
fn sets() {
    replay("sets");
}

#[test]
fn postings() {
    replay("postings");
}

#[test]
fn join() {
    replay("join");
}
