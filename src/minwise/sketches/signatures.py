"""Signatures of many documents: similarity estimates, merging, packing, and files."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from operator import index
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minwise import _kernel
from minwise._internal.array_files import FileKind, read_array_file, write_array_file
from minwise.checks import check_choice, check_document_number, check_integer, check_pairs, check_seed, check_type
from minwise.errors import ConfigError, FormatError, InputError, MismatchError
from minwise.sketches import estimates
from minwise.sketches.estimates import Estimate, Estimates

if TYPE_CHECKING:
    from minwise.sketches.schemes import Scheme
    from minwise.text.shingling import Shingler

__all__ = ["BITS", "FORMAT_VERSION", "SignatureSettings", "Signatures", "check_equal_settings"]

Bits = Literal[1, 2, 4, 8, 16, 32]
Densify = Literal["rotation", "optimal"]
SketchName = Literal["minhash", "oph", "fast"]

# Bits per slot of a packed signature.
BITS: tuple[Bits, ...] = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureSettings:
    """Settings of a signature; two signatures are comparable only if all of them are equal.

    Attributes:
        scheme: Name of the scheme: ``minhash``, ``oph`` (OnePermutation) or ``fast``.
        slots: Slots per signature.
        seed: Seed of the scheme.
        bits: Bits kept of each slot; None for all.
        densify: Method that filled empty bins; None if they are empty.
    """

    scheme: SketchName
    slots: int
    seed: int = field(repr=False)
    bits: Bits | None = None
    densify: Densify | None = None

    def __post_init__(self) -> None:
        check_choice("scheme", self.scheme, ("minhash", "oph", "fast"))
        check_integer("slots", self.slots, 1, _kernel.MAX_SLOTS)
        check_seed("seed", self.seed)
        check_choice("bits", self.bits, (*BITS, None))
        check_choice("densify", self.densify, ("rotation", "optimal", None))

    @property
    def row_length(self) -> int:
        """Number of array entries per row: slots, or bytes of packed slots."""
        return self.slots if self.bits is None else -(-self.slots * self.bits // 8)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the array entries of a row."""
        slot = "uint32" if self.scheme == "minhash" else "uint64"
        return np.dtype(slot if self.bits is None else "uint8")

    @property
    def has_empty_bins(self) -> bool:
        """Whether the signature of a non-empty set may have empty slots."""
        return self.scheme == "oph" and self.densify is None

    @property
    def merges(self) -> bool:
        """Whether the slotwise minimum of two signatures is the signature of the union."""
        return self.bits is None and self.densify is None


def check_equal_settings(what: str, left: dict[str, object], right: dict[str, object]) -> None:
    """Raise a MismatchError with both values of the first setting that differs.

    Args:
        what: Subject of the message, such as ``"signatures"`` or a path.
        left: Settings by name.
        right: Settings by name.
    """
    for name in [*left, *(name for name in right if name not in left)]:
        first, second = left.get(name), right.get(name)
        if first != second:
            raise MismatchError(
                f"{what} must have equal settings: {name} is {first!r} on one side, {second!r} on the other"
            )


# Changes with the layout of the file and with any change to the hashes in the appendix of DESIGN.
FORMAT_VERSION = 1
KIND = FileKind(b"MINWSIG\n", FORMAT_VERSION, "signature file", "sketch the texts again")


class Signatures:
    """Signatures of many documents, one row each.

    Made by :meth:`Scheme.sketch`, :meth:`Scheme.sketch_texts` and :meth:`load`.

    Attributes:
        slots: Rows of slots: uint32 for ``minhash``, uint64 for the others, packed uint8 with ``bits``.
        settings: Settings of the scheme.
        shingle_settings: Settings of the shingles; None if unknown.
        sizes: Number of distinct elements of each document; None if not counted.
        empty: Which documents have no elements; their similarity to any document is 0.
    """

    def __init__(
        self,
        slots: NDArray[Any],
        *,
        settings: SignatureSettings,
        shingle_settings: dict[str, Any] | None = None,
        sizes: NDArray[np.uint64] | None = None,
        empty: NDArray[np.bool_] | None = None,
    ) -> None:
        self.slots = slots
        self.settings = settings
        self.shingle_settings = shingle_settings
        self.sizes = sizes
        self._empty = empty

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Which documents have no elements."""
        if self._empty is None:
            # Some bins of a non-empty set may be empty, but never all of them.
            self._empty = (self.slots == np.iinfo(self.slots.dtype).max).all(axis=1)
        return self._empty

    def __len__(self) -> int:
        return len(self.slots)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(self.slots)

    def __getitem__(self, document: int) -> NDArray[Any]:
        number = index(document)
        if not -len(self) <= number < len(self):
            raise IndexError(f"no document {number} among {len(self)}")
        row: NDArray[Any] = self.slots[number]
        return row

    def __repr__(self) -> str:
        shown = {name: value for name, value in asdict(self.settings).items() if value is not None and name != "seed"}
        known = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"Signatures({len(self):,} documents, {known})"

    def _repr_html_(self) -> str:
        """Return size and settings for a notebook."""
        from minwise._internal.display import facts_html  # imported here because few callers display
        from minwise._internal.formatting import format_bytes, plural

        shingles = (self.shingle_settings or {}).get("shingle", "unknown")
        facts = {"shingle": shingles, **asdict(self.settings), "size": format_bytes(self.slots.nbytes)}
        return facts_html(f"Signatures of {plural(len(self), 'document')}", facts, hide=("seed",))

    def __or__(self, other: "Signatures") -> "Signatures":
        """Return the signatures of the unions, row by row: the slotwise minimum.

        The union of bags takes the larger number of occurrences of each element.

        Raises:
            ConfigError: If the signatures are densified or packed.
            MismatchError: If settings or numbers of rows differ.
        """
        if not isinstance(other, Signatures):
            return NotImplemented
        self._check_comparable(other)
        if not self.settings.merges:
            name = "densify" if self.settings.densify else "bits"
            value = getattr(self.settings, name)
            raise ConfigError(f"{name} must be None for signatures that are merged, got {value!r}; merge before it")
        if len(self) != len(other):
            raise MismatchError(f"merged signatures must have as many rows, got {len(self)} and {len(other)}")
        merged = np.minimum(self.slots, other.slots)
        return Signatures(merged, settings=self.settings, shingle_settings=self.shingle_settings)

    def bbit(self, bits: Bits) -> "Signatures":
        """Return the signatures with only the low bits of each slot, packed.

        Args:
            bits: Bits to keep of each slot: 1, 2, 4, 8, 16 or 32.

        Raises:
            ConfigError: If the signatures are packed already or have empty bins.
        """
        bits = check_choice("bits", bits, BITS)
        if self.settings.bits is not None:
            raise ConfigError(f"bits must be chosen once, got {bits} for signatures of {self.settings.bits} bits")
        if self.settings.has_empty_bins:
            raise ConfigError("bbit needs densify='rotation' or 'optimal': an empty bin has no bits, got densify=None")
        packed = _kernel.pack_bits(np.ascontiguousarray(self.slots), bits)
        settings = replace(self.settings, bits=bits)
        return Signatures(
            packed, settings=settings, shingle_settings=self.shingle_settings, sizes=self.sizes, empty=self.empty
        )

    def estimate(
        self, left: int, right: int, *, other: "Signatures | None" = None, confidence: float = 0.95
    ) -> Estimate:
        """Return the estimated similarity of two documents; see :meth:`estimate_many`.

        Args:
            left: Number of a document.
            right: Number of a document.
            other: Signatures that contain ``right``; default: these.
            confidence: Share of intervals that contain the true similarity, between 0 and 1.
        """
        numbers = [check_document_number(document) for document in (left, right)]
        return self.estimate_many([numbers], other=other, confidence=confidence)[0]

    def estimate_many(
        self, pairs: ArrayLike, *, other: "Signatures | None" = None, confidence: float = 0.95
    ) -> Estimates:
        """Return the estimated similarity of every pair of documents, with its confidence interval.

        The value is the share of agreeing slots: of all slots, or for one permutation hashing of those that are not
        empty in both. With b bits it is corrected for bits that agree by chance and clipped to [0, 1], which raises the
        mean of estimates near 0 slightly. The interval is Wilson's score interval of a binomial share; for one
        permutation hashing, with the number of trials that gives its own, smaller variance. For FastSketch it is
        slightly too wide on sets smaller than the slots; for densified signatures of such sets it is too narrow,
        because copied slots carry no information of their own. The similarity to an empty document is 0.

        Args:
            pairs: Document numbers, in two columns.
            other: Signatures that the right column refers to; default: these.
            confidence: Share of intervals that contain the true similarity, between 0 and 1.

        Raises:
            InputError: If a document number is out of range.
            MismatchError: If the settings of ``other`` differ.
        """
        right = self if other is None else check_type("other", other, Signatures)
        self._check_comparable(right)
        numbers = check_pairs(pairs)
        try:
            value, low, high = self._estimate_columns(numbers, right, confidence)
        except IndexError as error:
            raise InputError(f"pairs: {error}") from None
        empty = self.empty[numbers[:, 0]] | right.empty[numbers[:, 1]]
        for column in (value, low, high):
            column[empty] = 0.0
        return Estimates(value=value, low=low, high=high, confidence=confidence)

    def _estimate_columns(
        self, pairs: NDArray[np.int64], right: "Signatures", confidence: float
    ) -> tuple[NDArray[np.float64], ...]:
        slots, bits = self.settings.slots, self.settings.bits
        if bits is not None:
            equal = _kernel.count_packed_matches(self.slots, right.slots, pairs, slots, bits)
            share = equal / slots
            c1, c2 = estimates.bbit_constants(1, 1, None, bits)
            ends = (share, *estimates.wilson_interval(share, slots, confidence))
            return tuple(np.clip(estimates.bbit_estimate(end, c1, c2), 0.0, 1.0) for end in ends)
        equal, both_empty = _kernel.count_matches(self.slots, right.slots, pairs)
        filled = slots - both_empty
        share = np.divide(equal, filled, out=np.zeros(len(pairs)), where=filled > 0)
        trials = estimates.one_permutation_trials(slots, both_empty) if self.settings.has_empty_bins else float(slots)
        return share, *estimates.wilson_interval(share, trials, confidence)

    def intersection(self, left: int, right: int, *, confidence: float = 0.95) -> Estimate:
        """Return the estimated number of shared elements of two documents, J/(1+J)·(|X|+|Y|).

        Args:
            left: Number of a document.
            right: Number of a document.
            confidence: Share of intervals that contain the true value, between 0 and 1.

        Raises:
            ConfigError: If the sizes were not counted.
        """
        return self._estimate_from_sizes(left, right, confidence, estimates.intersection_size)

    def containment(self, left: int, right: int, *, confidence: float = 0.95) -> Estimate:
        """Return the estimated share of the elements of ``left`` that are also in ``right``.

        Args:
            left: Number of a document.
            right: Number of a document.
            confidence: Share of intervals that contain the true value, between 0 and 1. Default: 0.95.

        Raises:
            ConfigError: If the sizes were not counted.
        """
        return self._estimate_from_sizes(left, right, confidence, estimates.containment_from_jaccard)

    def hamming(self, left: int, right: int, *, confidence: float = 0.95) -> Estimate:
        """Return the estimated number of elements that only one of two documents has, (1−J)/(1+J)·(|X|+|Y|).

        Args:
            left: Number of a document.
            right: Number of a document.
            confidence: Share of intervals that contain the true value, between 0 and 1. Default: 0.95.

        Raises:
            ConfigError: If the sizes were not counted.
        """
        return self._estimate_from_sizes(left, right, confidence, estimates.hamming_distance)

    def _estimate_from_sizes(
        self, left: int, right: int, confidence: float, measure: Callable[[float, float, float], float]
    ) -> Estimate:
        if self.sizes is None:
            raise ConfigError("sizes must be counted for this estimate: sketch with sizes=True, got sizes=False")
        jaccard = self.estimate(left, right, confidence=confidence)
        sizes = float(self.sizes[left]), float(self.sizes[right])
        maximum = min(sizes) / max(*sizes, 1.0)  # the largest similarity of two sets of these sizes
        ends = (min(end, maximum) for end in (jaccard.value, jaccard.low, jaccard.high))
        value, *interval = (float(measure(end, *sizes)) for end in ends)
        return Estimate(value=value, low=min(interval), high=max(interval), confidence=confidence)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the signatures to a self-describing file with checksums, atomically.

        Args:
            path: The file; an existing file is replaced.
        """
        arrays = {"slots": self.slots, "sizes": self.sizes, "empty": self.empty if self.settings.bits else None}
        header = {"settings": asdict(self.settings), "shingle_settings": self.shingle_settings}
        write_array_file(path, KIND, header, {name: array for name, array in arrays.items() if array is not None})

    @classmethod
    def load(
        cls, path: str | PathLike[str], *, scheme: "Scheme | None" = None, shingler: "Shingler | None" = None
    ) -> "Signatures":
        """Read a file written by :meth:`save`.

        Args:
            path: The file.
            scheme: Scheme that the signatures must have; default: any.
            shingler: Shingler that the signatures must have; default: any.

        Raises:
            FormatError: If the file is not a signature file, of another format version, truncated or damaged.
            MismatchError: If it was made with settings other than those given; the message contains both values.
        """
        header, arrays = read_array_file(path, KIND)
        try:
            signatures = cls(
                arrays["slots"],
                settings=SignatureSettings(**header["settings"]),
                shingle_settings=header["shingle_settings"],
                sizes=arrays.get("sizes"),
                empty=arrays.get("empty"),
            )
            signatures._check_consistency()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{path}: the header must describe the signatures behind it: {error}") from None
        if scheme is not None:
            check_type("scheme", getattr(scheme, "settings", scheme), SignatureSettings)
            check_equal_settings(str(path), asdict(signatures.settings), asdict(scheme.settings))
        if shingler is not None:
            check_equal_settings(str(path), signatures.shingle_settings or {}, shingler.settings)
        return signatures

    def _check_consistency(self) -> None:
        """Raise a ValueError if shapes and types contradict the settings, as in a forged file."""
        shape = (len(self.slots), self.settings.row_length)
        if self.slots.shape != shape or self.slots.dtype != self.settings.dtype:
            raise ValueError(f"slots must be {self.settings.dtype} of shape {shape}, got {self.slots.shape}")
        for name, array in (("sizes", self.sizes), ("empty", self._empty)):
            if array is not None and array.shape != shape[:1]:
                raise ValueError(f"{name} must have {shape[0]} entries, got shape {array.shape}")
        if self.shingle_settings is not None and not isinstance(self.shingle_settings, dict):
            raise ValueError(f"shingle_settings must be an object, got {self.shingle_settings!r}")

    def _check_comparable(self, other: "Signatures") -> None:
        if self is other:
            return
        check_equal_settings("signatures", asdict(self.settings), asdict(other.settings))
        if self.shingle_settings is not None and other.shingle_settings is not None:
            check_equal_settings("signatures", self.shingle_settings, other.shingle_settings)
