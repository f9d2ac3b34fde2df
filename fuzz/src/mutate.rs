//! Seeded mutations of corpus files, for runs without libFuzzer.

use minwise_kernel::hash::mix;

/// Longest input that mutations make.
const MAX_BYTES: usize = 8192;
/// Numbers at the edges of types and of the limits of formats.
const EDGES: [u64; 8] = [0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, u64::MAX];
/// Text that is special to the tokenisers: a combining mark, Hangul parts, a ligature of 18 characters, a digit and a
/// letter of scripts without spaces, white space, invalid UTF-8.
const PIECES: [&[u8]; 10] = [
    "\u{301}".as_bytes(),
    "\u{1100}\u{1161}\u{11A8}".as_bytes(),
    "\u{FDFA}".as_bytes(),
    "\u{0E51}\u{0E01}".as_bytes(),
    "\u{6F22}".as_bytes(),
    "\u{3000}".as_bytes(),
    "\u{130}".as_bytes(),
    b"word word word word word word word word ",
    b"\xF0\x9F",
    b"\xFF",
];

/// Deterministic generator of mutations.
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// Create a generator.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Return a mutation of one corpus file; `other` is a file from which pieces are taken.
    #[must_use]
    pub fn mutate(&mut self, file: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = file.to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, other);
        }
        bytes.truncate(MAX_BYTES);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(bytes.len() + 1);
        let end = at + self.below(bytes.len() - at + 1);
        match self.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            1 if at < bytes.len() => bytes[at] = self.next() as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let copy = bytes[at..end].to_vec();
                insert(bytes, at, &copy);
            }
            5 => {
                let start = self.below(other.len() + 1);
                let length = self.below(other.len() - start + 1);
                insert(bytes, at, &other[start..start + length]);
            }
            6 => insert(bytes, at, PIECES[self.below(PIECES.len())]),
            _ => {
                let width = 1 << self.below(4);
                let edge = EDGES[self.below(EDGES.len())].to_le_bytes();
                insert(bytes, at, &edge[..width]);
            }
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}
