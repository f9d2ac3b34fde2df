"""Model: the records that travel between the rooms."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from operator import index
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minwise import _kernel
from minwise._internal.array_files import FileKind, read_array_file, write_array_file
from minwise.checks import check_choice, check_document, check_pairs, check_seed, check_type, check_whole
from minwise.errors import ConfigError, FormatError, InputError, MismatchError
from minwise.sketches import estimates as estimate
from minwise.sketches.estimates import Estimate, Estimates

if TYPE_CHECKING:
    from minwise.sketches.schemes import Scheme
    from minwise.text.shingling import Shingler

__all__ = ["BITS", "FORMAT_VERSION", "SignatureSettings", "Signatures", "refuse_differences"]

# Bits per slot that a packed signature may keep.
BITS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureSettings:
    """What a signature was made with; two signatures are comparable only if all of it is equal.

    Attributes:
        scheme: ``minhash``, ``oph`` or ``fast``.
        slots: Slots per signature.
        seed: Seed of the scheme.
        bits: Bits kept of each slot, or None for all.
        densify: How empty bins were filled, or None.
    """

    scheme: str
    slots: int
    seed: int = field(repr=False)
    bits: int | None = None
    densify: str | None = None

    def __post_init__(self) -> None:
        check_choice("scheme", self.scheme, ("minhash", "oph", "fast"))
        check_whole("slots", self.slots, 1, _kernel.MAX_SLOTS)
        check_seed("seed", self.seed)
        check_choice("bits", self.bits, (*BITS, None))
        check_choice("densify", self.densify, ("rotation", "optimal", None))

    @property
    def row_length(self) -> int:
        """Entries of a row: slots, or bytes of packed slots."""
        return self.slots if self.bits is None else -(-self.slots * self.bits // 8)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What a row is made of."""
        whole = "uint32" if self.scheme == "minhash" else "uint64"
        return np.dtype(whole if self.bits is None else "uint8")

    @property
    def has_empty_bins(self) -> bool:
        """Whether a signature of a set with elements may still have empty slots."""
        return self.scheme == "oph" and self.densify is None

    @property
    def merges(self) -> bool:
        """Whether the slotwise minimum of two signatures is the signature of the union."""
        return self.bits is None and self.densify is None


def refuse_differences(what: str, left: dict[str, object], right: dict[str, object]) -> None:
    """Raises if two groups of settings differ, with both values of the first setting that does."""
    for name in [*left, *(name for name in right if name not in left)]:
        mine, other = left.get(name), right.get(name)
        if mine != other:
            raise MismatchError(
                f"{what} must have equal settings: {name} is {mine!r} on one side, {other!r} on the other"
            )


# Changes with the layout of the file or with any bit of DESIGN §3.
FORMAT_VERSION = 1
KIND = FileKind(b"MINWSIG\n", FORMAT_VERSION, "signature file", "sketch the texts again")


class Signatures:
    """The signatures of many documents, a row each.

    Attributes:
        slots: Rows of slots: uint32 for ``minhash``, uint64 for the others, packed uint8 with ``bits``.
        settings: The scheme's settings.
        shingle_settings: The settings of the shingles, or None if they are unknown.
        sizes: The number of distinct elements of each document, or None if they were not counted.
        empty: Which documents have no elements at all; their similarity to anything is 0.
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
            # A bin of a set with elements may be empty too, but not all of them.
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
        return f"Signatures({len(self)} documents, {known})"

    def __or__(self, other: "Signatures") -> "Signatures":
        """The signatures of the unions, row by row: the slotwise minimum. Of bags it is the union with maxima."""
        if not isinstance(other, Signatures):
            return NotImplemented
        self._refuse_unlike(other)
        if not self.settings.merges:
            name = "densify" if self.settings.densify else "bits"
            value = getattr(self.settings, name)
            raise ConfigError(f"{name} must be None for signatures that are merged, got {value!r}; merge before it")
        if len(self) != len(other):
            raise MismatchError(f"merged signatures must have as many rows, got {len(self)} and {len(other)}")
        return replace_slots(self, np.minimum(self.slots, other.slots))

    def bbit(self, bits: int) -> "Signatures":
        """The signatures with only the low ``bits`` of each slot: 1, 2, 4, 8, 16 or 32."""
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
        """The similarity of documents ``left`` and ``right`` with its interval; see :meth:`estimate_many`."""
        numbers = [check_document(document) for document in (left, right)]
        return self.estimate_many([numbers], other=other, confidence=confidence)[0]

    def estimate_many(
        self, pairs: ArrayLike, *, other: "Signatures | None" = None, confidence: float = 0.95
    ) -> Estimates:
        """The similarity of every pair of documents, with its interval.

        The value is the share of agreeing slots: of all slots, or for one permutation hashing of those that are not
        empty in both; with b bits it is corrected for bits that agree by chance, and cut to [0, 1], which
        lifts the mean of estimates near 0 a little. The interval is Wilson's score
        interval of a binomial share; for one permutation hashing with the number of trials that gives its own, smaller
        variance. For FastSketch it is a little too wide on sets smaller than the slots; for densified signatures of
        such sets it is too narrow, since borrowed slots repeat what others say. An empty document is 0 to everything.

        Args:
            pairs: Two columns of document numbers.
            other: The signatures that the right column counts in; these, if not given.
            confidence: The share of intervals that hold the true similarity.
        """
        right = self if other is None else check_type("other", other, Signatures)
        self._refuse_unlike(right)
        numbers = check_pairs(pairs)
        try:
            value, low, high = self._estimate(numbers, right, confidence)
        except IndexError as error:
            raise InputError(f"pairs: {error}") from None
        blank = self.empty[numbers[:, 0]] | right.empty[numbers[:, 1]]
        for column in (value, low, high):
            column[blank] = 0.0
        return Estimates(value=value, low=low, high=high, confidence=confidence)

    def _estimate(
        self, pairs: NDArray[np.int64], right: "Signatures", confidence: float
    ) -> tuple[NDArray[np.float64], ...]:
        slots, bits = self.settings.slots, self.settings.bits
        if bits is not None:
            equal = _kernel.count_packed_matches(self.slots, right.slots, pairs, slots, bits)
            share = equal / slots
            c1, c2 = estimate.bbit_constants(1, 1, None, bits)
            ends = (share, *estimate.wilson_interval(share, slots, confidence))
            return tuple(np.clip(estimate.bbit_estimate(end, c1, c2), 0.0, 1.0) for end in ends)
        equal, both_empty = _kernel.count_matches(self.slots, right.slots, pairs)
        filled = slots - both_empty
        share = np.divide(equal, filled, out=np.zeros(len(pairs)), where=filled > 0)
        trials = estimate.one_permutation_trials(slots, both_empty) if self.settings.has_empty_bins else float(slots)
        return share, *estimate.wilson_interval(share, trials, confidence)

    def intersection(self, left: int, right: int, *, confidence: float = 0.95) -> Estimate:
        """How many elements two documents share, from their similarity and sizes: J/(1+J)·(|X|+|Y|)."""
        return self._from_sizes(left, right, confidence, estimate.intersection_size)

    def containment(self, left: int, right: int, *, confidence: float = 0.95) -> Estimate:
        """The share of ``left`` that is also in ``right``, from their similarity and sizes."""
        return self._from_sizes(left, right, confidence, estimate.containment)

    def hamming(self, left: int, right: int, *, confidence: float = 0.95) -> Estimate:
        """How many elements only one of the documents has, from similarity and sizes: (1−J)/(1+J)·(|X|+|Y|)."""
        return self._from_sizes(left, right, confidence, estimate.hamming_distance)

    def _from_sizes(
        self, left: int, right: int, confidence: float, measure: Callable[[float, float, float], float]
    ) -> Estimate:
        if self.sizes is None:
            raise ConfigError("sizes must be counted for this estimate: sketch with sizes=True, got sizes=False")
        jaccard = self.estimate(left, right, confidence=confidence)
        sizes = float(self.sizes[left]), float(self.sizes[right])
        most = min(sizes) / max(*sizes, 1.0)  # no two sets of these sizes are more alike
        ends = (min(end, most) for end in (jaccard.value, jaccard.low, jaccard.high))
        value, *interval = (float(measure(end, *sizes)) for end in ends)
        return Estimate(value=value, low=min(interval), high=max(interval), confidence=confidence)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes one self-describing file with a checksum for every part; it appears whole or not at all."""
        arrays = {"slots": self.slots, "sizes": self.sizes, "empty": self.empty if self.settings.bits else None}
        header = {"settings": asdict(self.settings), "shingle_settings": self.shingle_settings}
        write_array_file(path, KIND, header, {name: array for name, array in arrays.items() if array is not None})

    @classmethod
    def load(
        cls, path: str | PathLike[str], *, scheme: "Scheme | None" = None, shingler: "Shingler | None" = None
    ) -> "Signatures":
        """Reads what :meth:`save` wrote.

        Args:
            path: The file.
            scheme: If given, the scheme that the file must be of.
            shingler: If given, the shingler that the file must be of.

        Raises:
            FormatError: If the file is not ours, of another format version, cut short or damaged anywhere.
            MismatchError: If it was made with other settings than those given; the message has both values.
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
            signatures._refuse_nonsense()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{path}: the header must describe the signatures behind it: {error}") from None
        if scheme is not None:
            check_type("scheme", getattr(scheme, "settings", scheme), SignatureSettings)
            refuse_differences(str(path), asdict(signatures.settings), asdict(scheme.settings))
        if shingler is not None:
            refuse_differences(str(path), signatures.shingle_settings or {}, shingler.settings)
        return signatures

    def _refuse_nonsense(self) -> None:
        """Raises if slots, sizes and settings do not belong together, as in a file that somebody made up."""
        shape = (len(self.slots), self.settings.row_length)
        if self.slots.shape != shape or self.slots.dtype != self.settings.dtype:
            raise ValueError(f"slots must be {self.settings.dtype} of shape {shape}, got {self.slots.shape}")
        for name, array in (("sizes", self.sizes), ("empty", self._empty)):
            if array is not None and array.shape != shape[:1]:
                raise ValueError(f"{name} must have {shape[0]} entries, got shape {array.shape}")
        if self.shingle_settings is not None and not isinstance(self.shingle_settings, dict):
            raise ValueError(f"shingle_settings must be an object, got {self.shingle_settings!r}")

    def _refuse_unlike(self, other: "Signatures") -> None:
        if self is other:
            return
        refuse_differences("signatures", asdict(self.settings), asdict(other.settings))
        if self.shingle_settings is not None and other.shingle_settings is not None:
            refuse_differences("signatures", self.shingle_settings, other.shingle_settings)


def replace_slots(signatures: Signatures, slots: NDArray[Any]) -> Signatures:
    """Signatures of the same settings with other slots; sizes are no longer known."""
    return Signatures(slots, settings=signatures.settings, shingle_settings=signatures.shingle_settings)
