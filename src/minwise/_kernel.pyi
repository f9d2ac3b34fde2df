"""The compiled kernel. Not part of the public surface; the rooms of ``minwise`` call it."""

from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "HAS_SIMD",
    "MAX_DOCUMENT_BYTES",
    "MAX_SLOTS",
    "UNICODE_VERSION",
    "VERSION",
    "DocumentError",
    "ShingleStream",
    "Shingler",
    "Sketcher",
    "character_properties",
    "count_matches",
    "count_packed_matches",
    "crc32c",
    "hash_integers",
    "hash_item",
    "intersection_sizes",
    "lowercase_table",
    "pack_bits",
]

VERSION: Final[str]
UNICODE_VERSION: Final[str]
MAX_SLOTS: Final[int]
MAX_DOCUMENT_BYTES: Final[int]
HAS_SIMD: Final[bool]

class DocumentError(ValueError): ...

@final
class Shingler:
    def __new__(
        cls,
        *,
        kind: str,
        size: int,
        bag: bool,
        hash_bits: int,
        seed: int,
        nfkc: bool,
        strip_accents: bool,
        lowercase: bool,
        strip_punctuation: bool,
        mask_digits: bool,
        collapse_whitespace: bool,
        simd: bool = True,
    ) -> Shingler: ...
    def shingle(
        self, offsets: NDArray[np.int32] | NDArray[np.int64], data: NDArray[np.uint8], threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]: ...
    def spans(self, document: bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]: ...

@final
class ShingleStream:
    def __new__(cls, shingler: Shingler) -> ShingleStream: ...
    def push(self, chunk: bytes) -> NDArray[np.uint64]: ...
    def finish(self) -> NDArray[np.uint64]: ...

@final
class Sketcher:
    def __new__(
        cls, *, scheme: str, slots: int, seed: int, densify: str | None = None, simd: bool = True
    ) -> Sketcher: ...
    def sketch_sets(
        self,
        offsets: NDArray[np.int64],
        elements: NDArray[np.uint64],
        slots: NDArray[Any],
        sizes: NDArray[np.uint64] | None,
        threads: int,
    ) -> None: ...
    def sketch_texts(
        self,
        shingler: Shingler,
        offsets: NDArray[np.int32] | NDArray[np.int64],
        data: NDArray[np.uint8],
        slots: NDArray[Any],
        sizes: NDArray[np.uint64] | None,
        threads: int,
    ) -> None: ...

def character_properties() -> bytes: ...
def lowercase_table() -> dict[int, str]: ...
def hash_integers(values: NDArray[np.int64], seed: int) -> NDArray[np.uint64]: ...
def hash_item(kind: str, data: bytes, seed: int) -> int: ...
def crc32c(data: NDArray[np.uint8], crc: int) -> int: ...
def pack_bits(slots: NDArray[Any], bits: int) -> NDArray[np.uint8]: ...
def count_matches(
    left: NDArray[Any], right: NDArray[Any], pairs: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...
def count_packed_matches(
    left: NDArray[np.uint8], right: NDArray[np.uint8], pairs: NDArray[np.int64], slots: int, bits: int
) -> NDArray[np.uint32]: ...
def intersection_sizes(
    offsets: NDArray[np.int64], elements: NDArray[np.uint64], pairs: NDArray[np.int64]
) -> NDArray[np.uint64]: ...
