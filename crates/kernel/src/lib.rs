//! The hot loops of minwise: normalise, shingle, sketch, band, verify, cluster.
//!
//! Plain Rust that does not know Python exists. What is computed is defined in DESIGN §3; `minwise.reference` is the
//! same in readable Python, and property tests hold the two equal bit for bit.

pub use crc32c::crc32c_append;

pub mod band;
pub mod batch;
pub mod cluster;
pub mod error;
pub mod hash;
pub mod join;
pub mod normalise;
pub mod postings;
pub mod proposals;
pub mod segment;
pub mod shingle;
mod simd;
pub mod sketch;
pub mod spill;
pub mod stream;
pub mod tokens;
pub mod unicode;
pub mod vectors;
pub mod verify;
pub mod words;
