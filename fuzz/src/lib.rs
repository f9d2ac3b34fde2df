//! Fuzz targets of the kernel.
//!
//! The body of each target is a plain function of bytes, [`TARGETS`]. libFuzzer calls it under a nightly compiler
//! (`make fuzz`); `cargo test` calls it under a stable one, with the stored corpus and seeded mutations of it. Targets
//! compare the kernel with the simplest possible implementation, so a wrong result is a finding, as a panic is.

pub mod join;
pub mod mutate;
pub mod postings;
pub mod scratch;
pub mod segment;
pub mod sets;
pub mod text;

/// Body of a target: runs one case.
pub type Body = fn(&[u8]);

/// Name and body of every target.
pub const TARGETS: [(&str, Body); 5] = [
    ("text", text::run),
    ("segment", segment::run),
    ("sets", sets::run),
    ("postings", postings::run),
    ("join", join::run),
];
