"""Compiled kernel. Private: only the modules of ``minwise`` call it, and they validate its arguments."""

from typing import Any, Final, Protocol, TypeAlias, final, type_check_only

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FIRST_MEMBERS",
    "MAX_SLOTS",
    "UNICODE_VERSION",
    "VERSION",
    "Bander",
    "Buckets",
    "Copies",
    "DamagedError",
    "DocumentError",
    "KeptDocuments",
    "PairComparison",
    "Postings",
    "Proposals",
    "Rarity",
    "SetIndex",
    "SetStore",
    "ShingleStream",
    "Shingler",
    "Sketcher",
    "VectorBander",
    "VectorTables",
    "character_properties",
    "check_segment",
    "choose_witnesses",
    "count_matches",
    "count_packed_matches",
    "crc32c",
    "csv_fields",
    "csv_record_end",
    "divide_keys",
    "find_broken_document",
    "find_broken_seal",
    "flatten_components",
    "hash_integers",
    "hash_item",
    "hash_strings",
    "html_problem",
    "intersection_sizes",
    "join_pairs",
    "json_outline",
    "json_text",
    "lowercase_table",
    "pack_bits",
    "pair_ranges",
    "remove_neighbours",
    "seal_documents",
    "seal_rows",
    "select_products",
    "set_similarities",
    "vector_distances",
    "write_segment",
]

VERSION: Final[str]
UNICODE_VERSION: Final[str]
MAX_SLOTS: Final[int]
FIRST_MEMBERS: Final[int]

class DamagedError(ValueError): ...
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

@type_check_only
class KeyArrays(Protocol):
    keys: NDArray[np.uint64]
    contents: NDArray[np.uint64]
    states: NDArray[np.uint8]
    packed: NDArray[np.uint8] | None

@final
class Bander:
    def __new__(cls, sketcher: Sketcher, bands: int, rows: int, seed: int) -> Bander: ...
    def band_texts(
        self,
        shingler: Shingler,
        offsets: NDArray[np.int32] | NDArray[np.int64],
        data: NDArray[np.uint8],
        arrays: KeyArrays,
        start: int,
        threads: int,
    ) -> list[tuple[int, str]]: ...
    def band_sets(
        self,
        offsets: NDArray[np.int64],
        elements: NDArray[np.uint64],
        seed: int,
        arrays: KeyArrays,
        start: int,
        threads: int,
    ) -> list[tuple[int, str]]: ...
    def band_signatures(self, slots: NDArray[Any], keys: NDArray[np.uint64]) -> None: ...

@final
class Buckets:
    def __new__(cls) -> Buckets: ...
    def push(self, keys: NDArray[np.uint64], members: NDArray[np.uint32], part: int, parts: int) -> None: ...
    def shared(
        self, max_bucket: int, protected: int, threads: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...
    def groups(
        self, max_bucket: int, protected: int, threads: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...
    def counts(self) -> tuple[int, int, int, int]: ...

@final
class Copies:
    def __new__(cls) -> Copies: ...
    def push(self, contents: NDArray[np.uint64], members: NDArray[np.uint32], part: int, parts: int) -> None: ...
    def groups(self, threads: int) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]: ...

@final
class PairComparison:
    def __new__(
        cls, sets: SetStore | None, places: NDArray[np.uint32], floor: float, threshold: float
    ) -> PairComparison: ...

# Low, high and similarity of pairs; numbers of compared and of sampled pairs; the last smaller document.
_Compared: TypeAlias = tuple[tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]], int, int, int]

@final
class Proposals:
    def __new__(cls, after: int | None) -> Proposals: ...
    def add(self, path: str, rows: tuple[int, int], members: tuple[int, int], loaded: bool) -> None: ...
    def next_pairs(self, most: int, threads: int) -> NDArray[np.uint64] | None: ...
    def next_of_kept(
        self, most: int, comparison: PairComparison, removed: NDArray[np.bool_], threads: int
    ) -> _Compared | None: ...
    def next_of_removed(
        self,
        most: int,
        comparison: PairComparison,
        removed: NDArray[np.bool_],
        classes: int,
        threads: int,
        numbers: NDArray[np.uint64] | None = None,
    ) -> _Compared | None: ...
    def next_unconnected(
        self, most: int, comparison: PairComparison, parents: NDArray[np.uint32], threads: int
    ) -> _Compared | None: ...
    @property
    def passed(self) -> int: ...

@final
class SetStore:
    def __new__(cls) -> SetStore: ...
    def __len__(self) -> int: ...
    def add(self, path: str, position: int, offsets: NDArray[np.uint64], outlined: bool, loaded: bool) -> None: ...
    def similar(
        self, pairs: NDArray[np.uint64], places: NDArray[np.uint32], floor: float, threads: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]: ...

@final
class Rarity:
    def __new__(cls, elements: int, most_bytes: int) -> Rarity: ...
    def add(self, elements: NDArray[np.uint64], threads: int) -> None: ...

@final
class SetIndex:
    def __new__(
        cls,
        threshold: float,
        rarity: Rarity,
        all_counted: bool,
        batches: list[tuple[NDArray[np.int64], NDArray[np.uint64]]],
        numbers: NDArray[np.uint32],
        threads: int,
    ) -> SetIndex: ...
    def __len__(self) -> int: ...
    def matches(
        self,
        offsets: NDArray[np.int64],
        elements: NDArray[np.uint64],
        numbers: NDArray[np.uint32],
        most: int,
        threads: int,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64], int]: ...
    def matches_within(
        self, first: int, most: int, threads: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64], int]: ...

@final
class VectorBander:
    def __new__(
        cls, *, dims: int, hashes: int, tables: int, width: float | None, seed: int, simd: bool = True
    ) -> VectorBander: ...
    def band_vectors(
        self, vectors: NDArray[Any], arrays: KeyArrays, start: int, threads: int
    ) -> list[tuple[int, str]]: ...

@final
class VectorTables:
    def __new__(cls, keys: NDArray[np.uint64], threads: int) -> VectorTables: ...
    def nearest(
        self,
        vectors: NDArray[Any],
        queries: NDArray[Any],
        keys: NDArray[np.uint64],
        measure: str,
        most: float,
        top: int,
        threads: int,
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float64], int]: ...

@final
class KeptDocuments:
    def __new__(cls, bands: int, threshold: float, max_bucket: int, path: str) -> KeptDocuments: ...
    def __len__(self) -> int: ...
    @property
    def capped(self) -> int: ...
    def decide(
        self,
        keys: NDArray[np.uint64],
        contents: NDArray[np.uint64],
        offsets: NDArray[np.int64],
        elements: NDArray[np.uint64],
    ) -> NDArray[np.bool_]: ...

@final
class Postings:
    def __new__(cls, bands: int, cache_bytes: int = 0) -> Postings: ...
    def set_segments(self, paths: list[str]) -> None: ...
    def set_removed(self, bits: NDArray[np.uint8]) -> None: ...
    def remove(self, documents: NDArray[np.uint32]) -> None: ...
    def push(self, first: int, keys: NDArray[np.uint64]) -> None: ...
    def forget_recent(self) -> None: ...
    def candidates(
        self, keys: NDArray[np.uint64], max_bucket: int, most: int, threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint16], NDArray[np.uint16], NDArray[np.uint32]]: ...
    def segments(self) -> list[tuple[int, int, int, int, int]]: ...
    def check_segment(self, place: int, blocks: int | None = None) -> str | None: ...
    def merge_segments(
        self, start: int, end: int, output: str, removed: NDArray[np.uint8]
    ) -> tuple[int, int, int, int]: ...
    def holders(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint32]]: ...
    @property
    def resident_bytes(self) -> int: ...

def character_properties() -> bytes: ...
def lowercase_table() -> dict[int, str]: ...
def hash_integers(values: NDArray[np.int64], seed: int) -> NDArray[np.uint64]: ...
def hash_item(kind: str, data: bytes, seed: int) -> int: ...
def hash_strings(
    offsets: NDArray[np.int32] | NDArray[np.int64], data: NDArray[np.uint8], seed: int
) -> NDArray[np.uint64]: ...
def html_problem(page: bytes) -> str | None: ...
def json_outline(line: bytes, limit: int) -> tuple[list[tuple[int, int]], int]: ...
def json_text(line: bytes, start: int, end: int) -> bytes | None: ...
def csv_record_end(data: bytes, start: int, delimiter: int, quoted: bool) -> tuple[int, int]: ...
def csv_fields(record: bytes, start: int, delimiter: int, most: int) -> list[bytes] | None: ...
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
def divide_keys(
    keys: NDArray[np.uint64], parts: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint64]]: ...
def pair_ranges(buckets: NDArray[np.uint32], members: NDArray[np.uint32]) -> NDArray[np.uint32]: ...
def remove_neighbours(low: NDArray[np.uint32], high: NDArray[np.uint32], removed: NDArray[np.bool_]) -> None: ...
def choose_witnesses(
    low: NDArray[np.uint32],
    high: NDArray[np.uint32],
    similarities: NDArray[np.float64],
    removed: NDArray[np.bool_],
    witness: NDArray[np.uint32],
    best: NDArray[np.float64],
) -> None: ...
def join_pairs(low: NDArray[np.uint32], high: NDArray[np.uint32], parents: NDArray[np.uint32]) -> None: ...
def flatten_components(parents: NDArray[np.uint32]) -> None: ...
def write_segment(
    path: str, blocks: list[tuple[int, NDArray[np.uint64]]], low: int, high: int
) -> tuple[int, int, int, int]: ...
def check_segment(path: str) -> dict[str, int]: ...
def set_similarities(elements: NDArray[np.uint64], records: list[bytes], threshold: float) -> NDArray[np.float64]: ...
def seal_rows(first: int, contents: list[bytes]) -> tuple[list[bytes], int]: ...
def seal_documents(
    first: int, names: list[bytes], whole: list[bool], metadata: list[bytes], bodies: list[bytes]
) -> tuple[list[bytes], int]: ...
def select_products(
    products: NDArray[np.float32], rows: NDArray[np.float32], columns: NDArray[np.float32], threads: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]: ...
def vector_distances(
    vectors: NDArray[Any],
    others: NDArray[Any],
    left: NDArray[np.uint32],
    right: NDArray[np.uint32],
    measure: str,
    most: float,
    threads: int,
) -> NDArray[np.float64]: ...
def find_broken_seal(numbers: list[int], records: list[Any]) -> int | None: ...
def find_broken_document(numbers: list[int], records: list[Any], body_bytes: int | None = None) -> int | None: ...
