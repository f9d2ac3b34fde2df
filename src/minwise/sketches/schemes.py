"""Sketching schemes, which convert sets or texts to signatures.

=================  ================================================================================================
FastSketch         default; one hash per element of a long document, exact slot probability for any set size
MinHash            one hash function per slot; the cost of an element grows with the number of slots
OnePermutation     one hash per element; sets much smaller than the number of bins leave empty bins
=================  ================================================================================================
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import length_hint
from typing import IO, Any, ClassVar, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from minwise import _kernel
from minwise._internal.sorted_arrays import distinct
from minwise.checks import check_choice, check_integer, check_seed, check_threads, check_type
from minwise.errors import ConfigError, InputError
from minwise.sketches.signatures import BITS, Bits, Densify, Signatures, SignatureSettings, SketchName
from minwise.text.chunks import Texts, read_texts, to_bytes, translate_kernel_errors
from minwise.text.shingling import Shingler, ShingleSets, kernel_shingler

__all__ = ["FastSketch", "MinHash", "OnePermutation", "Scheme"]

SchemeType = TypeVar("SchemeType", bound="Scheme")

# Bytes per read from a stream.
STREAM_BYTES = 1 << 22
# Shingles of a stream per sketch; a sketch of few shingles costs as much as one of many.
STREAM_SHINGLES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """Abstract base class of the sketching schemes.

    Attributes:
        seed: Seed of the hash functions. Signatures are comparable only under the same seed.
        bits: Bits kept of each slot: 1, 2, 4, 8, 16 or 32; None for all. See :meth:`bbit`.
    """

    name: ClassVar[SketchName | None] = None
    seed: int = field(default=1, repr=False)
    bits: Bits | None = None

    def __post_init__(self) -> None:
        slots = "bins" if self.name == "oph" else "slots"
        if not hasattr(self, slots):
            raise ConfigError("scheme must be MinHash, OnePermutation or FastSketch, got their common base")
        plain = {
            slots: check_integer(slots, getattr(self, slots), 1, _kernel.MAX_SLOTS),
            "seed": check_seed("seed", self.seed),
            "bits": check_choice("bits", self.bits, (*BITS, None)),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    @property
    def settings(self) -> SignatureSettings:
        """Settings of the signatures, as stored in signature files."""
        raise ConfigError("scheme must be MinHash, OnePermutation or FastSketch, got their common base")

    def bbit(self: SchemeType, bits: Bits) -> SchemeType:
        """Return the scheme with only the low bits of each slot kept (Li, König 2010).

        A full slot has 64 bits, in MinHash 32. The variance increases: with 1 bit and similarity 0.5 by a factor of 3.

        Args:
            bits: Bits to keep of each slot: 1, 2, 4, 8, 16 or 32.

        Raises:
            ConfigError: If ``bits`` has another value, or the scheme leaves empty bins.
        """
        return replace(self, bits=check_choice("bits", bits, BITS))

    def sketch(self, sets: ShingleSets, *, threads: int | None = None) -> Signatures:
        """Return the signature of every set.

        Args:
            sets: Shingle sets, from :meth:`Shingler.shingle` or :meth:`ShingleSets.from_sets`.
            threads: Number of threads; default: all cores. The result does not depend on it.

        >>> import minwise as mw
        >>> sets = mw.Shingler("word:1").shingle(["a b c d", "a b c d", "e f"])
        >>> signatures = mw.FastSketch().sketch(sets)
        >>> signatures.estimate(0, 1).value, signatures.estimate(0, 2).value
        (1.0, 0.0)
        """
        check_type("sets", sets, ShingleSets, "; use ShingleSets.from_sets")
        rows = _SignatureBuffer(self, len(sets), sizes=True)
        slots, sizes = rows.next(len(sets))
        _kernel_sketcher(self).sketch_sets(sets.offsets, sets.hashes, slots, sizes, check_threads(threads))
        return rows.signatures(sets.settings)

    def sketch_texts(
        self, texts: Texts, shingler: Shingler | None = None, *, sizes: bool = False, threads: int | None = None
    ) -> Signatures:
        """Return the signature of every text, in one pass that does not store the shingles.

        The result equals ``sketch(shingler.shingle(texts))`` and takes a fraction of the time.

        Args:
            texts: A list of ``str`` or ``bytes``, a pyarrow string array or chunked array, a pandas or polars column.
            shingler: Shingler of the texts; default: ``Shingler()``.
            sizes: Count the distinct shingles of each text. Estimates of intersections, containment and Hamming
                distance need them; counting costs a sort per text.
            threads: Number of threads; default: all cores. The result does not depend on it.

        Raises:
            InputError: If a text is null, not a string or not UTF-8; the message contains its document number.
        """
        shingler = check_type("shingler", shingler or Shingler(), Shingler)
        kernel, sketcher = kernel_shingler(shingler), _kernel_sketcher(self)
        rows = _SignatureBuffer(self, length_hint(texts, 0), sizes=sizes)
        for chunk in read_texts(texts):
            slots, counts = rows.next(len(chunk))
            with translate_kernel_errors(chunk.first):
                sketcher.sketch_texts(kernel, chunk.offsets, chunk.data, slots, counts, check_threads(threads))
        return rows.signatures(shingler.settings)

    def sketch_stream(
        self, document: IO[str] | IO[bytes] | Iterable[str] | Iterable[bytes], shingler: Shingler | None = None
    ) -> Signatures:
        """Return the signature of one document that is read in chunks, such as a file too large for memory.

        The result equals ``sketch_texts([whole document], shingler)``, because the signature of a union is the slotwise
        minimum. This does not hold for bags and densified signatures, which are refused.

        Args:
            document: An open text or binary file, or an iterable of chunks, split at any position.
            shingler: Shingler of the text; default: ``Shingler()``.

        Raises:
            ConfigError: If the shingler makes bags or the scheme densifies.
            InputError: If the document is not a stream, or not UTF-8.
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
        slots = whole.sketch(_single_set([], shingler)).slots
        for shingles in _stream_shingles(document, shingler):
            slots = np.minimum(slots, whole.sketch(_single_set(shingles, shingler), threads=1).slots)
        signature = Signatures(slots, settings=whole.settings, shingle_settings=shingler.settings)
        return signature if self.bits is None else signature.bbit(self.bits)


@dataclass(frozen=True, kw_only=True)
class MinHash(Scheme):
    """MinHash (Broder 1997): each slot is the minimum of an independent hash function over the set.

    An element costs ``slots`` hashes. Each slot agrees with probability J; Var = J(1−J)/slots. Slots have 32 bits, so
    unequal minima of sets of n elements agree by chance with a probability of about n/2³²; use FastSketch for sets of a
    hundred million elements or more.

    Attributes:
        seed: Seed of the hash functions. Signatures are comparable only under the same seed. Default: 1.
        bits: Bits kept of each slot: 1, 2, 4, 8, 16 or 32; all if not given. See :meth:`bbit`.
        slots: Number of hash functions; :func:`minwise.sketches.slots_for` returns it for a given error. Default: 256.
    """

    name: ClassVar[SketchName] = "minhash"
    slots: int = 256

    @property
    def settings(self) -> SignatureSettings:
        """Settings of the signatures, as stored in signature files."""
        return SignatureSettings(scheme=self.name, slots=self.slots, seed=self.seed, bits=self.bits)


@dataclass(frozen=True, kw_only=True)
class OnePermutation(Scheme):
    """One permutation hashing (Li, Owen, Zhang 2012): one hash per element assigns it to one of ``bins`` slots.

    It is the cheapest scheme, but a set much smaller than ``bins`` leaves most of them empty, and empty bins carry no
    information: the estimate is matches / (bins − jointly empty). FastSketch has no empty bins at hardly more cost.

    Attributes:
        seed: Seed of the hash functions. Signatures are comparable only under the same seed. Default: 1.
        bits: Bits kept of each slot: 1, 2, 4, 8, 16 or 32; all if not given. See :meth:`bbit`.
        bins: Number of bins, one slot each. Default: 256.
        densify: Method that fills empty bins from others, ``"rotation"`` (Shrivastava, Li 2014) or ``"optimal"``
            (Shrivastava 2017), so that every slot can be banded or packed; None to leave them empty. Densified
            signatures cannot be merged.
    """

    name: ClassVar[SketchName] = "oph"
    bins: int = 256
    densify: Densify | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("densify", self.densify, ("rotation", "optimal", None))
        if self.bits is not None and self.densify is None:
            raise ConfigError("bbit needs densify='rotation' or 'optimal': an empty bin has no bits, got densify=None")

    @property
    def settings(self) -> SignatureSettings:
        """Settings of the signatures, as stored in signature files."""
        return SignatureSettings(
            scheme=self.name, slots=self.bins, seed=self.seed, bits=self.bits, densify=self.densify
        )


@dataclass(frozen=True, kw_only=True)
class FastSketch(Scheme):
    """Fast similarity sketching (Dahlgaard, Knudsen, Thorup 2017): one permutation hashing until no bin is empty.

    This is the default scheme. A long document costs one hash per element for any ``slots``, a short one about
    ``slots · ln(slots)`` hashes. Each slot agrees with probability exactly J, and the variance is at most that of
    MinHash, clearly less for sets smaller than ``slots``.

    Attributes:
        seed: Seed of the hash functions. Signatures are comparable only under the same seed. Default: 1.
        bits: Bits kept of each slot: 1, 2, 4, 8, 16 or 32; all if not given. See :meth:`bbit`.
        slots: Slots per signature; :func:`minwise.sketches.slots_for` returns them for a given error. Default: 256.
    """

    name: ClassVar[SketchName] = "fast"
    slots: int = 256

    @property
    def settings(self) -> SignatureSettings:
        """Settings of the signatures, as stored in signature files."""
        return SignatureSettings(scheme=self.name, slots=self.slots, seed=self.seed, bits=self.bits)


class _SignatureBuffer:
    """Growing buffer of signature rows; allocated once if the number of documents is known."""

    def __init__(self, scheme: Scheme, expected: int, *, sizes: bool) -> None:
        self.settings = scheme.settings
        self.used = 0
        whole = replace(self.settings, bits=None)
        self.slots = _allocate((expected, whole.slots), whole.dtype)
        self.sizes: NDArray[np.uint64] | None = np.empty(expected, dtype=np.uint64) if sizes else None

    def next(self, documents: int) -> tuple[NDArray[Any], NDArray[np.uint64] | None]:
        """Return the unwritten rows of the next documents."""
        start, self.used = self.used, self.used + documents
        if self.used > len(self.slots):
            self._grow(max(self.used, 2 * start))
        return self.slots[start : self.used], None if self.sizes is None else self.sizes[start : self.used]

    def _grow(self, rows: int) -> None:
        def grow(array: NDArray[Any]) -> NDArray[Any]:
            larger = _allocate((rows, *array.shape[1:]), array.dtype)
            larger[: len(array)] = array
            return larger

        self.slots = grow(self.slots)
        self.sizes = None if self.sizes is None else grow(self.sizes)

    def signatures(self, shingle_settings: dict[str, Any] | None) -> Signatures:
        """Return the signatures of all rows written."""
        bits, whole = self.settings.bits, replace(self.settings, bits=None)
        sizes = None if self.sizes is None else self.sizes[: self.used]
        signatures = Signatures(self.slots[: self.used], settings=whole, shingle_settings=shingle_settings, sizes=sizes)
        return signatures if bits is None else signatures.bbit(bits)


def _allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return memory from Arrow's pool, which reuses it between batches; fresh pages would cost a tenth of the pass."""
    buffer = pa.allocate_buffer(math.prod(shape) * dtype.itemsize)
    return np.frombuffer(buffer, dtype=dtype).reshape(shape)


@lru_cache(maxsize=64)
def _kernel_sketcher(scheme: Scheme) -> "_kernel.Sketcher":
    settings = scheme.settings
    return _kernel.Sketcher(scheme=settings.scheme, slots=settings.slots, seed=settings.seed, densify=settings.densify)


def _single_set(elements: ArrayLike, shingler: Shingler) -> ShingleSets:
    hashes = distinct(np.asarray(elements, dtype=np.uint64))
    return ShingleSets(np.array([0, len(hashes)]), hashes, settings=shingler.settings)


def _stream_shingles(document: object, shingler: Shingler) -> Iterator[NDArray[np.uint64]]:
    """Yield the shingles of a document in large groups, independent of the size of its chunks."""
    stream = _kernel.ShingleStream(kernel_shingler(shingler))
    pending: list[NDArray[np.uint64]] = []
    with translate_kernel_errors():
        for chunk in _chunks(document):
            pending.append(stream.push(to_bytes(chunk)))
            if sum(map(len, pending)) >= STREAM_SHINGLES or len(pending) >= STREAM_SHINGLES // 64:
                yield np.concatenate(pending)
                pending.clear()
        yield np.concatenate([*pending, stream.finish()])


def _chunks(document: object) -> Iterator[str | bytes]:
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
