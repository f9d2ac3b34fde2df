//! The hot loops of minwise: normalise, shingle, sketch, band, verify, cluster.
//!
//! This crate is plain Rust without a dependency on Python. The appendix of DESIGN defines the results;
//! `minwise.reference` computes the same in readable Python, and property tests compare both bit for bit.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // what chooses the AVX2 code

pub use crc32c::crc32c_append;

pub mod band;
pub mod batch;
pub mod candidates;
pub mod cluster;
pub mod containment;
pub mod contamination;
pub mod error;
pub mod fast_words;
pub mod hash;
pub mod html_limits;
pub mod join;
mod ln;
pub mod long_lines;
pub mod nearest;
pub mod needed_pairs;
pub mod normalise;
pub mod passages;
mod positioned;
pub mod postings;
pub mod segment;
pub mod set_store;
pub mod shingle;
mod simd;
pub mod sketch;
pub mod streaming_dedup;
pub mod text_offsets;
pub mod tokens;
pub mod unicode;
pub mod units;
pub mod vectors;
pub mod verify;
pub mod weights;
