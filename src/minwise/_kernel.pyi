"""Compiled kernel. Private: only the modules of ``minwise`` call it, and they validate its arguments."""

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias, final, type_check_only

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FIRST_MEMBERS",
    "ITEM_TOKENS",
    "MAX_NGRAM",
    "MAX_PASSAGE_TOKENS",
    "MAX_SLOTS",
    "MAX_UNIT_TOKENS",
    "PASSAGE_ENTRY_BYTES",
    "UNICODE_VERSION",
    "Bander",
    "Buckets",
    "Copies",
    "DamagedError",
    "DocumentError",
    "Frequencies",
    "ItemTable",
    "KeptDocuments",
    "NearestIndex",
    "PairComparison",
    "PassageGroups",
    "PassageScanner",
    "Postings",
    "PrefixIndex",
    "Proposals",
    "Rarity",
    "SetIndex",
    "SetStore",
    "ShingleStream",
    "Shingler",
    "Sketcher",
    "VectorBander",
    "VectorTables",
    "Weights",
    "__version__",
    "character_properties",
    "check_segment",
    "choose_witnesses",
    "count_matches",
    "count_packed_matches",
    "crc32c",
    "csv_fields",
    "csv_record_end",
    "csv_spans",
    "cut_passages",
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
    "json_numbered",
    "json_outline",
    "json_text",
    "lowercase_table",
    "match_pairs",
    "pack_bits",
    "pair_ranges",
    "remove_neighbours",
    "renumber_passages",
    "seal_documents",
    "seal_rows",
    "select_products",
    "set_containments",
    "set_similarities",
    "text_lengths",
    "text_offsets",
    "unit_starts",
    "vector_distances",
    "write_segment",
]

__version__: Final[str]
UNICODE_VERSION: Final[str]
MAX_SLOTS: Final[int]
MAX_UNIT_TOKENS: Final[int]
FIRST_MEMBERS: Final[int]
ITEM_TOKENS: Final[int]
MAX_NGRAM: Final[int]
MAX_PASSAGE_TOKENS: Final[int]
PASSAGE_ENTRY_BYTES: Final[int]

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
        cls,
        *,
        scheme: str,
        slots: int,
        seed: int,
        densify: str | None = None,
        simd: bool = True,
        weights: Weights | None = None,
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
class ItemTable:
    def __new__(
        cls,
        shingler: Shingler,
        second: Shingler,
        heads: Shingler,
        size: int,
        offsets: NDArray[np.int32] | NDArray[np.int64],
        data: NDArray[np.uint8],
    ) -> ItemTable: ...
    @property
    def faults(self) -> list[tuple[int, str]]: ...
    @property
    def grams(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def token_counts(self) -> NDArray[np.uint32]: ...
    def item_grams(self) -> tuple[NDArray[np.int64], NDArray[np.uint32]]: ...
    def scan(
        self, offsets: NDArray[np.int32] | NDArray[np.int64], data: NDArray[np.uint8], threads: int
    ) -> tuple[
        NDArray[np.uint32], NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint32], list[tuple[int, str]]
    ]: ...
    def locate(
        self,
        offsets: NDArray[np.int32] | NDArray[np.int64],
        data: NDArray[np.uint8],
        wanted_offsets: NDArray[np.int64],
        wanted: NDArray[np.uint32],
        counts: NDArray[np.bool_],
        threads: int,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32]]: ...

@final
class PassageScanner:
    def __new__(
        cls,
        shingler: Shingler,
        min_tokens: int,
        seed: int,
        spill_bytes: int,
        spill: Callable[[list[NDArray[np.uint8]]], None],
        unit: str | None = None,
    ) -> PassageScanner: ...
    def drain(self) -> list[NDArray[np.uint8]]: ...
    def scan(
        self,
        offsets: NDArray[np.int32] | NDArray[np.int64],
        data: NDArray[np.uint8],
        numbers: NDArray[np.uint32],
        threads: int,
    ) -> tuple[NDArray[np.uint32], list[tuple[int, str]]]: ...
    def scan_regions(
        self,
        offsets: NDArray[np.int32] | NDArray[np.int64],
        data: NDArray[np.uint8],
        numbers: NDArray[np.uint32],
        keys: NDArray[np.uint64],
        counts: NDArray[np.uint32],
        threads: int,
    ) -> tuple[NDArray[np.uint32], list[tuple[int, str]]]: ...

@final
class PassageGroups:
    def __new__(cls, references: int | None, kind: str, part: int, parts: int, min_count: int) -> PassageGroups: ...
    def add(self, block: NDArray[np.uint8], rank_of: NDArray[np.uint32] | None) -> None: ...
    def resolve(
        self, block: NDArray[np.uint8], rank_of: NDArray[np.uint32] | None
    ) -> tuple[
        tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]],
        tuple[NDArray[np.uint64], NDArray[np.uint32]],
    ]: ...

def cut_passages(
    shingler: Shingler,
    offsets: NDArray[np.int32] | NDArray[np.int64],
    data: NDArray[np.uint8],
    covered: NDArray[np.uint32],
    counts: NDArray[np.int64],
    snap: str | None,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]: ...
def renumber_passages(
    block: NDArray[np.uint8], numbers: NDArray[np.uint32], part: int, parts: int
) -> NDArray[np.uint8]: ...

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
    def shared_across(
        self, max_bucket: int, split: int, threads: int
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
    def __new__(cls, after: int | None, groups: NDArray[np.uint32] | None = None) -> Proposals: ...
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
    def __new__(cls, containment: bool = False, weights: Weights | None = None) -> SetStore: ...
    def __len__(self) -> int: ...
    def add(self, path: str, position: int, offsets: NDArray[np.uint64], outlined: bool, loaded: bool) -> None: ...
    def similar(
        self, pairs: NDArray[np.uint64], places: NDArray[np.uint32], floor: float, threads: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]: ...

@final
class Rarity:
    def __new__(cls, elements: int, most_bytes: int, own: bool = False) -> Rarity: ...
    def add(self, elements: NDArray[np.uint64], threads: int) -> None: ...

@final
class Frequencies:
    def __new__(cls, bits: int, own: bool = False) -> Frequencies: ...
    def add(self, elements: NDArray[np.uint64], threads: int) -> None: ...
    def counts(self) -> NDArray[np.uint32]: ...

@final
class Weights:
    def __new__(
        cls,
        counts: NDArray[np.uint32],
        sets: int,
        threads: int,
        factors: list[float] | None = None,
        own: bool = False,
    ) -> Weights: ...
    def of(self, elements: NDArray[np.uint64]) -> NDArray[np.float64]: ...

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
        weights: Weights | None = None,
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
class NearestIndex:
    def __new__(
        cls,
        weights: Weights | None,
        batches: list[tuple[NDArray[np.int64], NDArray[np.uint64]]],
        numbers: NDArray[np.uint32],
        threads: int,
    ) -> NearestIndex: ...
    def __len__(self) -> int: ...
    def nearest(
        self,
        offsets: NDArray[np.int64],
        elements: NDArray[np.uint64],
        numbers: NDArray[np.uint32],
        earlier: tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]],
        top: int,
        at_least: float,
        threads: int,
        containment: bool = False,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64], int]: ...

@final
class PrefixIndex:
    def __new__(
        cls,
        threshold: float,
        rarity: Rarity,
        batches: list[tuple[NDArray[np.int64], NDArray[np.uint64]]],
        numbers: NDArray[np.uint32],
        threads: int,
    ) -> PrefixIndex: ...
    def candidates(
        self,
        offsets: NDArray[np.int64],
        elements: NDArray[np.uint64],
        numbers: NDArray[np.uint32],
        most: int,
        threads: int,
    ) -> tuple[NDArray[np.uint64], int]: ...

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
def match_pairs(left: NDArray[np.uint32], right: NDArray[np.uint32], taken: NDArray[np.bool_]) -> NDArray[np.bool_]: ...
def lowercase_table() -> dict[int, str]: ...
def hash_integers(values: NDArray[np.int64], seed: int) -> NDArray[np.uint64]: ...
def hash_item(kind: str, data: bytes, seed: int) -> int: ...
def hash_strings(
    offsets: NDArray[np.int32] | NDArray[np.int64], data: NDArray[np.uint8], seed: int
) -> NDArray[np.uint64]: ...
def html_problem(page: bytes) -> str | None: ...
def json_numbered(line: bytes) -> tuple[bytes, NDArray[np.int64]]: ...
def json_outline(line: bytes, limit: int) -> tuple[list[tuple[int, int]], int]: ...
def json_text(line: bytes, start: int, end: int) -> bytes | None: ...
def csv_record_end(data: bytes, start: int, delimiter: int, quoted: bool) -> tuple[int, int]: ...
def csv_fields(record: bytes, start: int, delimiter: int, most: int) -> list[bytes] | None: ...
def csv_spans(record: bytes, start: int, delimiter: int) -> list[tuple[int, int]]: ...
def text_lengths(
    data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64], escaped: bool
) -> NDArray[np.int64]: ...
def text_offsets(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    texts: NDArray[np.int64],
    points: NDArray[np.int64],
    escaped: bool,
) -> NDArray[np.int64]: ...
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
def set_containments(elements: NDArray[np.uint64], records: list[bytes], threshold: float) -> NDArray[np.float64]: ...
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
def unit_starts(text: str, unit: str) -> NDArray[np.uint64]: ...
def find_broken_seal(numbers: list[int], records: list[Any]) -> int | None: ...
def find_broken_document(numbers: list[int], records: list[Any], body_bytes: int | None = None) -> int | None: ...
