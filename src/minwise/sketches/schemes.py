"""Sketch: sets or texts in, signatures out. Three schemes, one interface."""

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import length_hint
from typing import IO, Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise.checks import check_choice, check_seed, check_threads, check_type, check_whole
from minwise.errors import ConfigError, InputError
from minwise.sketches.signatures import BITS, Signatures, SignatureSettings
from minwise.text.chunks import Texts, naming_documents, read_texts, to_bytes
from minwise.text.shingling import Shingler, ShingleSets, kernel_shingler

__all__ = ["FastSketch", "MinHash", "OnePermutation", "Scheme"]

SchemeType = TypeVar("SchemeType", bound="Scheme")

# What is read at once from a document that is sketched from a stream.
STREAM_BYTES = 1 << 22
# Shingles of a stream that are sketched together; a sketch of few costs as much as one of many.
STREAM_SHINGLES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """What the three schemes share. Use one of them.

    Attributes:
        seed: Seed of the hash functions. Signatures are only comparable under the same seed.
        bits: Bits kept of each slot, or None for all; see :meth:`bbit`.
    """

    name: ClassVar[str] = ""
    seed: int = field(default=1, repr=False)
    bits: int | None = None

    def __post_init__(self) -> None:
        slots = "bins" if self.name == "oph" else "slots"
        if not hasattr(self, slots):
            raise ConfigError("scheme must be MinHash, OnePermutation or FastSketch, got their common base")
        plain = {
            slots: check_whole(slots, getattr(self, slots), 1, _kernel.MAX_SLOTS),
            "seed": check_seed("seed", self.seed),
            "bits": check_choice("bits", self.bits, (*BITS, None)),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    @property
    def settings(self) -> SignatureSettings:
        """What the signatures are made with, as their files carry it."""
        raise ConfigError("scheme must be MinHash, OnePermutation or FastSketch, got their common base")

    def bbit(self: SchemeType, bits: int) -> SchemeType:
        """The scheme with only the low ``bits`` of each slot kept: 1, 2, 4, 8, 16 or 32 (Li, König 2010).

        A slot has 64 bits otherwise, 32 in MinHash. The variance rises, for 1 bit and similarity 0.5 by a factor of 3.
        """
        return replace(self, bits=check_choice("bits", bits, BITS))

    def sketch(self, sets: ShingleSets, *, threads: int | None = None) -> Signatures:
        """The signature of every set."""
        check_type("sets", sets, ShingleSets, "; use ShingleSets.from_sets")
        rows = _Rows(self, len(sets), sizes=True)
        slots, sizes = rows.next(len(sets))
        _kernel_sketcher(self).sketch_sets(sets.offsets, sets.hashes, slots, sizes, check_threads(threads))
        return rows.signatures(sets.settings)

    def sketch_texts(
        self, texts: Texts, shingler: Shingler | None = None, *, sizes: bool = False, threads: int | None = None
    ) -> Signatures:
        """The signature of every text, in one pass that never keeps the shingles.

        Equal to ``sketch(shingler.shingle(texts))`` and several times faster.

        Args:
            texts: What :meth:`Shingler.shingle` takes.
            shingler: How texts are cut; ``Shingler()`` if not given.
            sizes: Whether to count the distinct shingles of each text, which estimates of intersections, containment
                and Hamming distance need, and which costs a sort per text.
            threads: How many threads work on it; all cores if not given. The result does not depend on it.

        Raises:
            InputError: If a text is null, not a string or not UTF-8; the message names its number.
        """
        shingler = check_type("shingler", shingler or Shingler(), Shingler)
        kernel, sketcher = kernel_shingler(shingler), _kernel_sketcher(self)
        rows = _Rows(self, length_hint(texts, 0), sizes=sizes)
        for chunk in read_texts(texts):
            slots, counts = rows.next(len(chunk))
            with naming_documents(chunk.first):
                sketcher.sketch_texts(kernel, chunk.offsets, chunk.data, slots, counts, check_threads(threads))
        return rows.signatures(shingler.settings)

    def sketch_stream(
        self, document: IO[str] | IO[bytes] | Iterable[str] | Iterable[bytes], shingler: Shingler | None = None
    ) -> Signatures:
        """The signature of one document that comes in chunks, such as an open file too large for memory.

        Equal to ``sketch_texts([whole document], shingler)``: the signature of a union is the slotwise minimum. Bags
        and densified signatures are refused, since for them it is not.

        Args:
            document: An open text or binary file, or an iterable of chunks cut anywhere.
            shingler: How the text is cut; ``Shingler()`` if not given.
        """
        shingler = check_type("shingler", shingler or Shingler(), Shingler)
        if shingler.bag:
            raise ConfigError(
                "bag must be False for a stream, got True: an occurrence is numbered within the whole text"
            )
        whole = replace(self, bits=None)
        if not whole.settings.merges:
            raise ConfigError(
                "densify must be left out for a stream: densified signatures do not merge; use FastSketch"
            )
        slots = whole.sketch(_one_set([], shingler)).slots
        for shingles in _stream_shingles(document, shingler):
            slots = np.minimum(slots, whole.sketch(_one_set(shingles, shingler), threads=1).slots)
        signature = Signatures(slots, settings=whole.settings, shingle_settings=shingler.settings)
        return signature if self.bits is None else signature.bbit(self.bits)


@dataclass(frozen=True, kw_only=True)
class MinHash(Scheme):
    """The classic (Broder 1997): ``slots`` independent hash functions, a slot each, the least value of the set.

    An element costs ``slots`` hashes. Each slot agrees with probability J; Var = J(1−J)/slots. Slots have 32 bits, so
    unequal minima of sets of n elements agree by accident with a chance of about n/2³²; for sets of a hundred million
    elements and more use FastSketch.

    Attributes:
        slots: How many functions. :func:`minwise.slots_for` says how many a given error needs.
    """

    name: ClassVar[str] = "minhash"
    slots: int = 256

    @property
    def settings(self) -> SignatureSettings:
        """What the signatures are made with, as their files carry it."""
        return SignatureSettings(scheme=self.name, slots=self.slots, seed=self.seed, bits=self.bits)


@dataclass(frozen=True, kw_only=True)
class OnePermutation(Scheme):
    """One permutation hashing (Li, Owen, Zhang 2012): one hash per element sends it to one of ``bins`` slots.

    The cheapest scheme; but a set much smaller than ``bins`` leaves most of them empty, and empty bins say nothing:
    the estimate is matches / (bins − jointly empty). FastSketch has no empty bins at hardly more cost.

    Attributes:
        bins: How many bins, a slot each.
        densify: ``"rotation"`` (Shrivastava, Li 2014) or ``"optimal"`` (Shrivastava 2017) fills empty bins from full
            ones, so that every slot can be banded or packed; such signatures do not merge.
    """

    name: ClassVar[str] = "oph"
    bins: int = 256
    densify: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("densify", self.densify, ("rotation", "optimal", None))
        if self.bits is not None and self.densify is None:
            raise ConfigError("bbit needs densify='rotation' or 'optimal': an empty bin has no bits, got densify=None")

    @property
    def settings(self) -> SignatureSettings:
        """What the signatures are made with, as their files carry it."""
        return SignatureSettings(
            scheme=self.name, slots=self.bins, seed=self.seed, bits=self.bits, densify=self.densify
        )


@dataclass(frozen=True, kw_only=True)
class FastSketch(Scheme):
    """Fast similarity sketching (Dahlgaard, Knudsen, Thorup 2017): one permutation hashing until no bin is empty.

    The default scheme. A long document costs one hash per element whatever ``slots`` is, a short one about
    ``slots · ln(slots)`` hashes. Each slot agrees with probability exactly J, and the variance is at most that of
    MinHash, clearly less for sets smaller than ``slots``.

    Attributes:
        slots: Slots per signature.
    """

    name: ClassVar[str] = "fast"
    slots: int = 256

    @property
    def settings(self) -> SignatureSettings:
        """What the signatures are made with, as their files carry it."""
        return SignatureSettings(scheme=self.name, slots=self.slots, seed=self.seed, bits=self.bits)


class _Rows:
    """Signature rows that grow as documents come; exactly as many from the start when their number is known."""

    def __init__(self, scheme: Scheme, expected: int, *, sizes: bool) -> None:
        self.settings = scheme.settings
        self.used = 0
        whole = replace(self.settings, bits=None)
        self.slots = _allocate((expected, whole.slots), whole.dtype)
        self.sizes: NDArray[np.uint64] | None = np.empty(expected, dtype=np.uint64) if sizes else None

    def next(self, documents: int) -> tuple[NDArray[Any], NDArray[np.uint64] | None]:
        """The rows of the next documents, to be written."""
        start, self.used = self.used, self.used + documents
        if self.used > len(self.slots):
            self._grow(max(self.used, 2 * start))
        return self.slots[start : self.used], None if self.sizes is None else self.sizes[start : self.used]

    def _grow(self, rows: int) -> None:
        def grown(array: NDArray[Any]) -> NDArray[Any]:
            larger = _allocate((rows, *array.shape[1:]), array.dtype)
            larger[: len(array)] = array
            return larger

        self.slots = grown(self.slots)
        self.sizes = None if self.sizes is None else grown(self.sizes)

    def signatures(self, shingle_settings: dict[str, Any] | None) -> Signatures:
        """The rows that were written."""
        bits, whole = self.settings.bits, replace(self.settings, bits=None)
        sizes = None if self.sizes is None else self.sizes[: self.used]
        signatures = Signatures(self.slots[: self.used], settings=whole, shingle_settings=shingle_settings, sizes=sizes)
        return signatures if bits is None else signatures.bbit(bits)


def _allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Memory from Arrow's pool, which keeps it from batch to batch: fresh pages would cost a tenth of the pass."""
    buffer = pa.allocate_buffer(math.prod(shape) * dtype.itemsize)
    return np.frombuffer(buffer, dtype=dtype).reshape(shape)


@lru_cache(maxsize=64)
def _kernel_sketcher(scheme: Scheme) -> "_kernel.Sketcher":
    settings = scheme.settings
    return _kernel.Sketcher(scheme=settings.scheme, slots=settings.slots, seed=settings.seed, densify=settings.densify)


def _one_set(elements: Any, shingler: Shingler) -> ShingleSets:  # noqa: ANN401 - a list or an array
    hashes = np.unique(np.asarray(elements, dtype=np.uint64))
    return ShingleSets(np.array([0, len(hashes)]), hashes, settings=shingler.settings)


def _stream_shingles(document: Any, shingler: Shingler) -> Iterator[NDArray[np.uint64]]:  # noqa: ANN401 - as above
    """The shingles of the document, some ten thousand at a time, however small its chunks are."""
    stream = _kernel.ShingleStream(kernel_shingler(shingler))
    gathered: list[NDArray[np.uint64]] = []
    with naming_documents():
        for chunk in _chunks(document):
            gathered.append(stream.push(to_bytes(chunk)))
            if sum(map(len, gathered)) >= STREAM_SHINGLES or len(gathered) >= STREAM_SHINGLES // 64:
                yield np.concatenate(gathered)
                gathered.clear()
        yield np.concatenate([*gathered, stream.finish()])


def _chunks(document: Any) -> Iterator[str | bytes]:  # noqa: ANN401 - as above
    if isinstance(document, (str, bytes)):
        raise InputError(f"a stream must be an open file or chunks, got {type(document).__name__}; use sketch_texts")
    if hasattr(document, "read"):
        while chunk := document.read(STREAM_BYTES):
            yield chunk
        if chunk is None:
            raise InputError("a stream must wait for its data, got a file that does not block and has none")
    elif isinstance(document, Iterable) and not isinstance(document, (Mapping, Set)):
        yield from document
    else:
        raise InputError(f"a stream must be an open file or chunks, got {type(document).__name__}")
