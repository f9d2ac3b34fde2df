"""Shingle: texts in, sets of 64-bit shingle hashes out."""

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from operator import index
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy
from minwise.checks import check_choice, check_seed, check_threads, show
from minwise.errors import ConfigError, InputError
from minwise.text.chunks import Texts, naming_documents, read_texts, to_bytes

__all__ = ["ShingleSets", "ShingleSpans", "Shingler", "hash_member", "kernel_shingler"]

KINDS = ("word", "char", "byte")
NORMALISATION = ("nfkc", "strip_accents", "lowercase", "strip_punctuation", "mask_digits", "collapse_whitespace")
# Longer shingles than this compare nothing but whole documents.
MAX_SIZE = 10_000


class ShingleSpans(NamedTuple):
    """Where each shingle of a text stands, in text order.

    Attributes:
        hashes: The element that each shingle is, as in :class:`ShingleSets`.
        starts: Its first code point in the original text (its first byte, for ``byte`` shingles).
        ends: One past its last.
    """

    hashes: NDArray[np.uint64]
    starts: NDArray[np.uint64]
    ends: NDArray[np.uint64]

    def covered(self, chosen: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """The maximal stretches that chosen shingles cover, overlapping or touching, as (start, end)."""
        starts, ends = self.starts[chosen], self.ends[chosen]
        if not len(starts):
            return []
        gaps = np.flatnonzero(starts[1:] > ends[:-1])
        firsts, lasts = np.concatenate([[0], gaps + 1]), np.concatenate([gaps, [len(ends) - 1]])
        return list(zip(starts[firsts].tolist(), ends[lasts].tolist(), strict=True))

    def shared_with(self, other: "ShingleSpans") -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """What two texts cut by one shingler have in common: the stretches of this one, and those of the other.

        >>> spans = [Shingler("word:2").spans(text) for text in ("the cat sat on the mat", "a cat sat here")]
        >>> spans[0].shared_with(spans[1])
        ([(4, 11)], [(2, 9)])
        """
        here, there = _are_among(self.hashes, other.hashes), _are_among(other.hashes, self.hashes)
        return self.covered(here), other.covered(there)


def _are_among(some: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which elements are among others; ``numpy.isin`` takes eight times as long for a page of text."""
    if not len(others):
        return np.zeros(len(some), dtype=bool)
    ordered = np.sort(others)
    found: NDArray[np.bool_] = np.take(ordered, np.searchsorted(ordered, some), mode="clip") == some
    return found


@dataclass(frozen=True)
class Shingler:
    """Cuts texts into shingles: overlapping runs of tokens, each hashed to 64 bits.

    Normalisation happens before cutting, in the order of the attributes. ``byte`` shingles are cut from the bytes as
    they are, so no normalisation option may be given with them.

    Attributes:
        spec: ``"word:5"``, ``"char:9"`` or ``"byte:8"``: what a token is, and how many make a shingle. Five words
            suit web pages, nine characters short or noisy texts; shorter shingles find more and mistake more.
        bag: Whether repeated shingles count, so that similarity is that of multisets.
        hash_bits: 64, or 32 for the four-byte tokens of the literature. At 32 bits two different shingles of a
            collection collide as soon as it has some 100,000.
        seed: Seed of the hash. Texts are only comparable under the same seed.
        nfkc: Unicode normalisation form KC: full-width letters, ligatures, composed accents become ordinary ones.
        strip_accents: Drop the combining diacritical marks U+0300–U+036F.
        lowercase: Lower-case each character.
        strip_punctuation: Drop punctuation and symbols.
        mask_digits: Write each decimal digit as ``0``.
        collapse_whitespace: Write each run of white space as one space, and none at the ends.

    >>> import minwise as mw
    >>> sets = mw.Shingler("word:2").shingle(["to be or not to be", "to be"])
    >>> len(sets[0]), len(sets[1])
    (4, 1)
    """

    spec: str = "word:5"
    _: KW_ONLY
    bag: bool = False
    hash_bits: int = 64
    seed: int = field(default=1, repr=False)
    nfkc: bool = True
    strip_accents: bool = False
    lowercase: bool = True
    strip_punctuation: bool = False
    mask_digits: bool = False
    collapse_whitespace: bool = True

    def __post_init__(self) -> None:
        kind, _ = self._parse()
        plain: dict[str, Any] = {
            "hash_bits": check_choice("hash_bits", self.hash_bits, (64, 32)),
            "seed": check_seed("seed", self.seed),
        }
        for name in ("bag", *NORMALISATION):
            plain[name] = check_choice(name, getattr(self, name), (True, False))
            if name != "bag" and kind == "byte" and plain[name] != getattr(Shingler, name):
                raise ConfigError(f"{name} must be left out with {self.spec!r}: byte shingles are never normalised")
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    def _parse(self) -> tuple[str, int]:
        kind, _, size = str(self.spec).partition(":")
        number = int(size) if len(size) <= len(str(MAX_SIZE)) and size.isascii() and size.isdigit() else 0
        if kind not in KINDS or not 1 <= number <= MAX_SIZE or size != str(number):
            rule = f"shingle must be word:N, char:N or byte:N with N from 1 to {MAX_SIZE}"
            raise ConfigError(f"{rule}, got {show(self.spec)}")
        return kind, int(size)

    @property
    def kind(self) -> str:
        """What a token is: ``word``, ``char`` or ``byte``."""
        return self._parse()[0]

    @property
    def size(self) -> int:
        """How many tokens make a shingle."""
        return self._parse()[1]

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting under its public name, as signature files carry them."""
        names = ("bag", "hash_bits", "seed", *NORMALISATION)
        return {"shingle": self.spec, **{name: getattr(self, name) for name in names}}

    def shingle(self, texts: Texts, *, threads: int | None = None) -> "ShingleSets":
        """The shingle set of every text.

        Args:
            texts: A list of ``str`` or ``bytes``, a pyarrow string array or chunked array, a pandas or polars column.
            threads: How many threads work on it; all cores if not given. The result does not depend on it.

        Raises:
            InputError: If a text is null, not a string or not UTF-8; the message names its number.
        """
        kernel, workers = kernel_shingler(self), check_threads(threads)
        pieces = []
        for chunk in read_texts(texts):
            with naming_documents(chunk.first):
                pieces.append(kernel.shingle(chunk.offsets, chunk.data, workers))
        return ShingleSets._trusted(*_joined(pieces), self.settings)

    def spans(self, text: str | bytes) -> ShingleSpans:
        """Where each shingle of ``text`` stands in it: of every occurrence, in the order of the text.

        >>> import minwise as mw
        >>> text = "To be, or not to be"
        >>> spans = mw.Shingler("word:2").spans(text)
        >>> [text[start:end] for start, end in zip(spans.starts, spans.ends)]
        ['To be', 'be, or', 'or not', 'not to', 'to be']
        """
        with naming_documents():
            return ShingleSpans(*kernel_shingler(self).spans(to_bytes(text)))


def _joined(pieces: list[tuple[NDArray[np.int64], NDArray[np.uint64]]]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Offsets and elements of several groups of sets as those of one."""
    if len(pieces) == 1:
        return pieces[0]
    totals = np.cumsum([0, *(len(elements) for _, elements in pieces)])
    offsets = [starts[1:] + total for (starts, _), total in zip(pieces, totals, strict=False)]
    hashes = [elements for _, elements in pieces]
    return np.concatenate([np.zeros(1, dtype=np.int64), *offsets]), np.concatenate([np.empty(0, np.uint64), *hashes])


@lru_cache(maxsize=64)
def kernel_shingler(shingler: Shingler) -> "_kernel.Shingler":
    """The kernel's side of a shingler, made once for equal settings."""
    settings = shingler.settings
    del settings["shingle"]
    return _kernel.Shingler(kind=shingler.kind, size=shingler.size, **settings)


class ShingleSets:
    """The shingle sets of many documents, back to back in two arrays.

    ``sets[i]`` is the ascending array of the distinct elements of document ``i``, a view of ``hashes``. Elements given
    in another order, or more than once, are put right.

    Attributes:
        offsets: Where each set starts in ``hashes``, and one past the end of the last: int64.
        hashes: The elements of all sets: uint64.
        settings: What the sets were made with; sets with unequal settings cannot be compared.
    """

    def __init__(
        self, offsets: NDArray[np.int64], hashes: NDArray[np.uint64], *, settings: dict[str, Any] | None = None
    ) -> None:
        starts, elements = np.asarray(offsets), np.asarray(hashes)
        if starts.ndim != 1 or elements.ndim != 1 or starts.dtype.kind not in "iu" or elements.dtype.kind not in "iu":
            raise InputError("offsets must be integers in one dimension, and so must hashes")
        self.offsets = np.ascontiguousarray(starts, dtype=np.int64)
        self.hashes = np.ascontiguousarray(elements, dtype=np.uint64)
        self.settings = settings
        if not len(starts) or starts[0] < 0 or starts[-1] > len(elements) or (np.diff(self.offsets) < 0).any():
            raise InputError(f"offsets must ascend and end within the {len(elements)} hashes, got {show(offsets)}")
        self._sort_each()

    @classmethod
    def from_sets(cls, sets: Iterable[Iterable[object]], *, seed: int = 1) -> "ShingleSets":
        """Sets given directly, as collections of integers, strings or bytes. ``3`` and ``"3"`` differ.

        >>> import minwise as mw
        >>> sets = mw.ShingleSets.from_sets([[3, 5, "x"], [5, "x", "3"]])
        >>> mw.jaccard(sets[0], sets[1])
        0.5
        """
        seed = check_seed("seed", seed)
        if not isinstance(sets, Iterable):
            raise InputError(f"sets must be a collection of collections, got {type(sets).__name__}")
        hashed = [_hash_members(members, number, seed) for number, members in enumerate(sets)]
        offsets = np.cumsum([0, *(len(elements) for elements in hashed)], dtype=np.int64)
        hashes = np.concatenate([np.empty(0, dtype=np.uint64), *hashed])
        return cls._trusted(offsets, hashes, {"shingle": "set", "seed": seed})

    def _sort_each(self) -> None:
        """Puts the elements of each set in order and drops repetitions, if they are not so already."""
        owners = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        members = self.hashes[self.offsets[0] : self.offsets[-1]]
        same = owners[1:] == owners[:-1]
        if not (same & (members[1:] <= members[:-1])).any():
            return
        order = np.lexsort((members, owners))
        owners, members = owners[order], members[order]
        first = np.ones(len(members), dtype=bool)
        first[1:] = (owners[1:] != owners[:-1]) | (members[1:] != members[:-1])
        counts = np.bincount(owners[first], minlength=len(self))
        self.offsets, self.hashes = np.concatenate([[0], np.cumsum(counts)]), members[first]

    @classmethod
    def _trusted(
        cls, offsets: NDArray[np.int64], hashes: NDArray[np.uint64], settings: dict[str, Any]
    ) -> "ShingleSets":
        """Sets whose arrays are known to be right, without checking them again."""
        sets = cls.__new__(cls)
        sets.offsets, sets.hashes, sets.settings = offsets, hashes, settings
        return sets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[NDArray[np.uint64]]:
        return (self[document] for document in range(len(self)))

    def __getitem__(self, document: int) -> NDArray[np.uint64]:
        number = index(document)
        if not -len(self) <= number < len(self):
            raise IndexError(f"no document {number} among {len(self)}")
        number %= len(self)
        return self.hashes[self.offsets[number] : self.offsets[number + 1]]

    def __repr__(self) -> str:
        shingle = (self.settings or {}).get("shingle", "unknown")
        return f"ShingleSets({len(self)} documents, {len(self.hashes)} elements, shingle={shingle!r})"

    @property
    def sizes(self) -> NDArray[np.uint64]:
        """How many elements each set has."""
        return np.diff(self.offsets).astype(np.uint64)

    def to_arrow(self) -> pa.LargeListArray:
        """The sets as an Arrow list column, without a copy."""
        return pa.LargeListArray.from_arrays(from_numpy(self.offsets), from_numpy(self.hashes))


def _hash_members(members: Iterable[object], number: int, seed: int) -> NDArray[np.uint64]:
    dimensions = members.ndim if isinstance(members, np.ndarray) else 1
    if isinstance(members, (str, bytes)) or not isinstance(members, Iterable) or dimensions != 1:
        raise InputError(f"set {number} must be a collection of elements, got {type(members).__name__}")
    listed = members.tolist() if isinstance(members, np.ndarray) and members.dtype.kind in "iu" else list(members)
    if all(type(member) is int and -(2**63) <= member < 2**63 for member in listed):
        return np.unique(_kernel.hash_integers(np.array(listed, dtype=np.int64), seed))
    return np.unique(np.array([hash_member(member, number, seed) for member in listed], dtype=np.uint64))


def hash_member(member: object, number: int, seed: int) -> int:
    """The element that a member of set ``number`` is."""
    if isinstance(member, str):
        try:
            return _kernel.hash_item("s", member.encode(), seed)
        except UnicodeEncodeError:
            raise InputError(f"set {number} holds a string that is not valid Unicode: {member!r}") from None
    if isinstance(member, bytes):
        return _kernel.hash_item("b", member, seed)
    try:
        value = int(member) if isinstance(member, np.bool_) else index(member)  # type: ignore[arg-type]
    except TypeError:
        name = type(member).__name__
        raise InputError(f"set {number} holds a {name}; elements must be integers, strings or bytes") from None
    words = (value.bit_length() if value >= 0 else (~value).bit_length()) // 64 + 1
    return _kernel.hash_item("i", value.to_bytes(8 * words, "little", signed=True), seed)
