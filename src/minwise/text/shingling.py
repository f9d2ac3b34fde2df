"""Shingles of texts, hashed to 64 bits, and sets of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from operator import index
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy
from minwise._internal.sorted_arrays import distinct
from minwise.checks import check_choice, check_seed, check_threads, show
from minwise.errors import ConfigError, InputError
from minwise.text.chunks import Texts, read_texts, to_bytes, translate_kernel_errors

__all__ = ["NORMALISATION", "ShingleSets", "ShingleSpans", "Shingler", "hash_member", "kernel_shingler"]

TokenKind = Literal["word", "char", "byte"]
KINDS: tuple[TokenKind, ...] = ("word", "char", "byte")
NORMALISATION = ("nfkc", "strip_accents", "lowercase", "strip_punctuation", "mask_digits", "collapse_whitespace")
# Longer shingles would compare only whole documents.
MAX_SIZE = 10_000


class ShingleSpans(NamedTuple):
    """Positions of the shingles of a text, in text order.

    Attributes:
        hashes: Hash of each shingle, as in :class:`ShingleSets`.
        starts: Offset of its first code point in the original text (of its first byte, for ``byte`` shingles).
        ends: Offset one past its last.
    """

    hashes: NDArray[np.uint64]
    starts: NDArray[np.uint64]
    ends: NDArray[np.uint64]

    def covered_ranges(self, mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Return the ranges covered by some of the shingles, with overlapping and adjacent ones merged.

        Args:
            mask: Which shingles to use, a flag for each.

        Returns:
            Start and end offset of each range, ascending.
        """
        starts, ends = self.starts[mask], self.ends[mask]
        if not len(starts):
            return []
        gaps = np.flatnonzero(starts[1:] > ends[:-1])
        firsts, lasts = np.concatenate([[0], gaps + 1]), np.concatenate([gaps, [len(ends) - 1]])
        return list(zip(starts[firsts].tolist(), ends[lasts].tolist(), strict=True))

    def shared_ranges(self, other: "ShingleSpans") -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the ranges covered by shingles that two texts share.

        Args:
            other: Shingles of the other text, made by an equal :class:`Shingler`.

        Returns:
            The ranges of this text, and those of the other.

        >>> spans = [Shingler("word:2").spans(text) for text in ("the cat sat on the mat", "a cat sat here")]
        >>> spans[0].shared_ranges(spans[1])
        ([(4, 11)], [(2, 9)])
        """
        left, right = _is_in(self.hashes, other.hashes), _is_in(other.hashes, self.hashes)
        return self.covered_ranges(left), other.covered_ranges(right)


def _is_in(values: NDArray[np.uint64], members: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which values are members; ``numpy.isin`` takes eight times as long for a page of text."""
    if not len(members):
        return np.zeros(len(values), dtype=bool)
    ordered = np.sort(members)
    found: NDArray[np.bool_] = np.take(ordered, np.searchsorted(ordered, values), mode="clip") == values
    return found


@dataclass(frozen=True)
class Shingler:
    """Converter of texts to shingles: overlapping runs of tokens, each hashed to 64 bits.

    A text is normalised first: the steps ``nfkc`` to ``collapse_whitespace`` are applied in the order below. ``byte``
    shingles are made of the bytes as they are, so no normalisation option may be set with them.

    Attributes:
        spec: Token kind and tokens per shingle: ``"word:5"``, ``"char:9"`` or ``"byte:8"``. Five words suit web pages,
            nine characters short or noisy texts; shorter shingles find more pairs, of which more are false.
            Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        hash_bits: Bits per hash, 64 or 32. With 32 bits, two different shingles of a collection of about 100,000
            collide. Default: 64.
        seed: Seed of the hash, an unsigned 64-bit number. Texts are comparable only under the same seed. Default: 1.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by ``0``. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.

    Raises:
        ConfigError: If a setting has an invalid value.

    >>> import minwise as mw
    >>> sets = mw.Shingler("word:2").shingle(["to be or not to be", "to be"])
    >>> len(sets[0]), len(sets[1])
    (4, 1)
    """

    spec: str = "word:5"
    _: KW_ONLY
    bag: bool = False
    hash_bits: Literal[64, 32] = 64
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

    def _parse(self) -> tuple[TokenKind, int]:
        name, _, size = str(self.spec).partition(":")
        kind = next((kind for kind in KINDS if kind == name), None)
        number = int(size) if len(size) <= len(str(MAX_SIZE)) and size.isascii() and size.isdigit() else 0
        if kind is None or not 1 <= number <= MAX_SIZE or size != str(number):
            rule = f"shingle must be word:N, char:N or byte:N with N from 1 to {MAX_SIZE}"
            raise ConfigError(f"{rule}, got {show(self.spec)}")
        return kind, number

    @property
    def kind(self) -> TokenKind:
        """Token kind: ``word``, ``char`` or ``byte``."""
        return self._parse()[0]

    @property
    def size(self) -> int:
        """Tokens per shingle."""
        return self._parse()[1]

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting by its public name, as stored in signature files."""
        names = ("bag", "hash_bits", "seed", *NORMALISATION)
        return {"shingle": self.spec, **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Shingler":
        """Return the shingler with these settings, such as those of a report; other names among them are ignored."""
        names = ("bag", "hash_bits", "seed", *NORMALISATION)
        return cls(settings["shingle"], **{name: settings[name] for name in names if name in settings})

    def shingle(self, texts: Texts, *, threads: int | None = None) -> "ShingleSets":
        """Return the shingle set of every text.

        Args:
            texts: A list of ``str`` or ``bytes``, a pyarrow string array or chunked array, a pandas or polars column.
            threads: Number of threads; default: all cores. The result does not depend on it.

        Returns:
            The sets, in the order of the texts.

        Raises:
            InputError: If a text is null, not a string or not UTF-8; the message contains its document number.

        >>> import minwise as mw
        >>> mw.Shingler("char:2").shingle(["abcab", ""]).sizes.tolist()
        [3, 0]
        """
        kernel, workers = kernel_shingler(self), check_threads(threads)
        pieces = []
        for chunk in read_texts(texts):
            with translate_kernel_errors(chunk.first):
                pieces.append(kernel.shingle(chunk.offsets, chunk.data, workers))
        return ShingleSets._unchecked(*_concatenate(pieces), self.settings)

    def spans(self, text: str | bytes) -> ShingleSpans:
        """Return the position of every shingle of a text, with repetitions.

        Args:
            text: The text; bytes are decoded as UTF-8, except for ``byte`` shingles.

        Raises:
            InputError: If the text is not a string or not UTF-8.

        >>> import minwise as mw
        >>> text = "To be, or not to be"
        >>> spans = mw.Shingler("word:2").spans(text)
        >>> [text[start:end] for start, end in zip(spans.starts, spans.ends)]
        ['To be', 'be, or', 'or not', 'not to', 'to be']
        """
        with translate_kernel_errors():
            return ShingleSpans(*kernel_shingler(self).spans(to_bytes(text)))


def _concatenate(
    pieces: list[tuple[NDArray[np.int64], NDArray[np.uint64]]],
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Concatenate groups of sets, each given as offsets and elements."""
    if len(pieces) == 1:
        return pieces[0]
    totals = np.cumsum([0, *(len(elements) for _, elements in pieces)])
    offsets = [starts[1:] + total for (starts, _), total in zip(pieces, totals, strict=False)]
    hashes = [elements for _, elements in pieces]
    return np.concatenate([np.zeros(1, dtype=np.int64), *offsets]), np.concatenate([np.empty(0, np.uint64), *hashes])


@lru_cache(maxsize=64)
def kernel_shingler(shingler: Shingler) -> "_kernel.Shingler":
    """Return the kernel object of a shingler; equal shinglers share one."""
    settings = shingler.settings
    del settings["shingle"]
    return _kernel.Shingler(kind=shingler.kind, size=shingler.size, **settings)


class ShingleSets:
    """Shingle sets of many documents, stored in two arrays.

    ``sets[i]`` is the ascending array of the distinct elements of document ``i``, a view of ``hashes``. The constructor
    sorts the elements of each set and removes repetitions if necessary.

    Attributes:
        offsets: Offset of each set in ``hashes``, and the end of the last: int64.
        hashes: Elements of all sets: uint64.
        settings: Settings the sets were made with, None if unknown; sets with different settings cannot be compared.

    Raises:
        InputError: If the arrays are not one-dimensional integers or the offsets do not ascend within ``hashes``.
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
        """Return the sets of given collections of integers, strings or bytes. ``3`` and ``"3"`` are different elements.

        Args:
            sets: A collection of elements for each document.
            seed: Seed of the hash. Sets are comparable only under the same seed.

        Raises:
            InputError: If a set is not a collection, or holds an element of another type.

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
        return cls._unchecked(offsets, hashes, {"shingle": "set", "seed": seed})

    def _sort_each(self) -> None:
        """Sort the elements of each set and remove repetitions, unless they are strictly ascending already."""
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
    def _unchecked(
        cls, offsets: NDArray[np.int64], hashes: NDArray[np.uint64], settings: dict[str, Any]
    ) -> "ShingleSets":
        """Return the sets of arrays that are known to be valid."""
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
        return f"ShingleSets({len(self):,} documents, {len(self.hashes):,} elements, shingle={shingle!r})"

    def _repr_html_(self) -> str:
        """Return size and settings for a notebook."""
        from minwise._internal.display import facts_html  # imported here because few callers display
        from minwise._internal.formatting import plural

        facts = {"elements": f"{len(self.hashes):,}", **(self.settings or {})}
        return facts_html(f"Shingle sets of {plural(len(self), 'document')}", facts, hide=("seed",))

    @property
    def sizes(self) -> NDArray[np.uint64]:
        """Number of elements of each set."""
        return np.diff(self.offsets).astype(np.uint64)

    def to_arrow(self) -> pa.LargeListArray:
        """Return the sets as an Arrow list column, without a copy."""
        return pa.LargeListArray.from_arrays(from_numpy(self.offsets), from_numpy(self.hashes))


def _hash_members(members: Iterable[object], number: int, seed: int) -> NDArray[np.uint64]:
    dimensions = members.ndim if isinstance(members, np.ndarray) else 1
    if isinstance(members, (str, bytes)) or not isinstance(members, Iterable) or dimensions != 1:
        raise InputError(f"set {number} must be a collection of elements, got {type(members).__name__}")
    listed = members.tolist() if isinstance(members, np.ndarray) and members.dtype.kind in "iu" else list(members)
    if all(type(member) is int and -(2**63) <= member < 2**63 for member in listed):
        return distinct(_kernel.hash_integers(np.array(listed, dtype=np.int64), seed))
    return distinct(np.array([hash_member(member, number, seed) for member in listed], dtype=np.uint64))


def hash_member(member: object, number: int, seed: int) -> int:
    """Return the hash of an element.

    Args:
        member: The element: an integer, a string or bytes.
        number: Number of its set, for the error message.
        seed: Seed of the hash.
    """
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
