"""Index settings, which are fixed at creation, and the sketcher that applies them to texts."""

import secrets
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import length_hint
from typing import Any, Final, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from minwise import _kernel
from minwise.checks import check_choice, check_seed, show
from minwise.errors import ConfigError, FormatError, MismatchError
from minwise.options import StoreName
from minwise.search.bands import FILLED, NO_KEY, KeyBlock
from minwise.settings import SearchSettings
from minwise.sketches.planning import Plan
from minwise.sketches.planning import plan as make_plan
from minwise.sketches.schemes import FastSketch, MinHash
from minwise.sketches.signatures import Signatures, check_equal_settings
from minwise.text.chunks import Texts, read_texts
from minwise.text.shingling import Shingler

__all__ = [
    "FORMAT_VERSION",
    "READABLE_VERSIONS",
    "IndexSettings",
    "IndexSketcher",
    "OpenMode",
    "SketchedTexts",
    "encode_texts",
]

# Increases with every change to the layout of a file or to the meaning of a field.
FORMAT_VERSION = 2
# Versions that are read; the first commit of a writer turns an older one into the current one.
READABLE_VERSIONS = (1, 2)
OpenMode = Literal["r", "w"]
STORES: tuple[StoreName, ...] = ("shingles", "text", "sketch")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """Settings that decide the answers of an index.

    Attributes:
        find: Plan, shingler, scheme, seed and caps, as the batch engine uses them.
        shingler: Cuts texts into shingles.
        store: ``shingles`` stores the shingle hashes of every document, ``text`` also its text, ``sketch`` only 16 bits
            of each slot.
        secret: Whether the seed was drawn at random; a secret seed is never shown.
        version: The format version of the index.
    """

    find: SearchSettings
    shingler: Shingler
    store: StoreName
    secret: bool
    version: int = FORMAT_VERSION

    @classmethod
    def from_options(
        cls,
        *,
        threshold: float,
        recall: float,
        shingle: str,
        bag: bool,
        scheme: str,
        slots: int,
        bands: int | None,
        rows: int | None,
        seed: int | None,
        max_bucket: int,
        store_text: bool,
        sketch_only: bool,
        **normalisation: Any,  # noqa: ANN401 - settings of the shingler
    ) -> "IndexSettings":
        """Check the options of :meth:`Index.create`.

        Raises:
            ConfigError: If an option breaks its rule.
        """
        if shingle == "set":
            raise ConfigError("shingle must be word:N, char:N or byte:N for an index, got set")
        if isinstance(shingle, Shingler):
            raise ConfigError("shingle must be a string such as word:5 for an index, got a Shingler")
        if store_text and sketch_only:
            raise ConfigError("store_text and sketch_only exclude each other, got both")
        store = "text" if store_text else "sketch" if sketch_only else "shingles"
        chosen_seed = secrets.randbits(64) if seed is None else check_seed("seed", seed)
        plan = make_plan(threshold, recall, slots=slots, bands=bands, rows=rows)
        shingler = Shingler(shingle, bag=bag, seed=chosen_seed, **normalisation)
        return cls._build(plan, shingler, scheme, chosen_seed, max_bucket, store, secret=seed is None)

    @classmethod
    def _build(
        cls, plan: Plan, shingler: Shingler, scheme: str, seed: int, max_bucket: int, store: str, *, secret: bool
    ) -> "IndexSettings":
        kind = check_choice("store", store, STORES)
        verify = "signature" if kind == "sketch" else "exact"
        find = SearchSettings(
            plan=plan, shingler=shingler, scheme=scheme, seed=seed, verify=verify, max_bucket=max_bucket
        )
        return cls(find=find, shingler=shingler, store=kind, secret=secret)

    @property
    def plan(self) -> Plan:
        """Threshold, bands and rows."""
        return self.find.plan

    @property
    def seed(self) -> int:
        """The seed of every hash."""
        return self.find.seed

    @property
    def max_bucket(self) -> int:
        """The size up to which a bucket is searched completely."""
        return self.find.max_bucket

    @property
    def scheme(self) -> FastSketch | MinHash:
        """The sketching scheme, with as many slots as the bands use."""
        kind = FastSketch if self.find.scheme == "fast" else MinHash
        return kind(slots=self.plan.slots, seed=self.seed)

    @property
    def exact(self) -> bool:
        """Whether similarities are exact."""
        return self.store != "sketch"

    @property
    def sketch_bytes(self) -> int | None:
        """The size of a document's body that is a sketch; None if bodies are elements."""
        return None if self.exact else self.plan.slots * BITS // 8

    @property
    def stores_text(self) -> bool:
        """Whether texts are stored."""
        return self.store == "text"

    def to_dict(self) -> dict[str, Any]:
        """Return the settings in plain values, without a secret seed."""
        plan, shingles = self.plan, self.shingler.settings
        if self.secret:
            del shingles["seed"]
        seed = {} if self.secret else {"seed": self.seed}
        layout = {
            "threshold": plan.threshold,
            "bands": plan.bands,
            "rows": plan.rows,
            "wanted_recall": plan.wanted_recall,
        }
        return {
            **layout, **shingles, "scheme": self.find.scheme, "max_bucket": self.max_bucket, "store": self.store,
            "secret_seed": self.secret, **seed,
        }  # fmt: skip

    def encode(self) -> bytes:
        """Return the content of the settings row, which includes the seed."""
        versions = {"version": FORMAT_VERSION, "unicode_version": _kernel.UNICODE_VERSION}
        return orjson.dumps({**versions, **self.to_dict(), "seed": self.seed})

    @classmethod
    def decode(cls, content: bytes) -> "IndexSettings":
        """Decode the content of the settings row.

        Raises:
            FormatError: If the format version is another one.
            MismatchError: If the index was created with another version of Unicode.
        """
        try:
            fields = orjson.loads(content)
            version, unicode_version = fields.pop("version"), fields.pop("unicode_version")
        except (AttributeError, KeyError, TypeError, ValueError):
            raise FormatError("the settings must be a JSON object with a version") from None
        if type(version) is not int or version not in READABLE_VERSIONS:
            versions = " or ".join(map(str, READABLE_VERSIONS))
            raise FormatError(f"the index must be of format version {versions}, got {show(version)}")
        if unicode_version != _kernel.UNICODE_VERSION:
            there, here = show(unicode_version), show(_kernel.UNICODE_VERSION)
            raise MismatchError(f"the Unicode version must be the same: {there} there, {here} here")
        try:
            return replace(cls._from_fields(fields), version=version)
        except (KeyError, TypeError) as error:
            raise FormatError(f"the settings must have the fields of this version: {error}") from None

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> "IndexSettings":
        names = ("threshold", "bands", "rows", "wanted_recall")
        plan = Plan(**{name: fields.pop(name) for name in names})
        scheme, max_bucket, store, secret = (
            fields.pop(name) for name in ("scheme", "max_bucket", "store", "secret_seed")
        )
        shingler = Shingler(fields.pop("shingle"), **fields)
        return cls._build(plan, shingler, scheme, shingler.seed, max_bucket, store, secret=secret)


# Bits of each slot that a stored sketch keeps, as in the batch engine.
BITS: Final = 16
# Input of the fingerprint: letters with marks, digits, signs, another script, repeated words.
PROBE = "The café of 1891, the café again: ﬁne — ΑΒΓ, 你好; the end of the café, the end of 1891."
# Fewer texts than this are sketched by one thread, which finishes before others have started.
MIN_PARALLEL_TEXTS = 16


@dataclass(frozen=True, slots=True)
class SketchedTexts:
    """Band keys and bodies of texts.

    Attributes:
        keys: The band keys, one row per text; ``NO_KEY`` for texts without elements.
        bodies: The compared part of each text: its elements, or its packed sketch; empty for texts without elements.
    """

    keys: NDArray[np.uint64]
    bodies: list[bytes]

    def __len__(self) -> int:
        return len(self.bodies)


class IndexSketcher:
    """Computes the band keys and bodies of texts with the settings of an index."""

    def __init__(self, settings: IndexSettings, threads: int = 0) -> None:
        plan = settings.plan
        self.settings = settings
        self._threads = threads
        sketcher = _kernel.Sketcher(scheme=settings.find.scheme, slots=plan.slots, seed=settings.seed)
        self._bander = _kernel.Bander(sketcher, plan.bands, plan.rows, settings.seed)

    def sketch(self, texts: Texts) -> SketchedTexts:
        """Sketch texts.

        Raises:
            InputError: If a text is null, not a string or not UTF-8; the message names its position.
        """
        threads = 1 if length_hint(texts, MIN_PARALLEL_TEXTS) < MIN_PARALLEL_TEXTS else self._threads
        sets = self.settings.shingler.shingle(texts, threads=threads or None)
        block = KeyBlock.allocate(self.settings.find, len(sets))
        self._bander.band_sets(sets.offsets, sets.hashes, self.settings.seed, block, 0, threads)
        keys = np.ascontiguousarray(block.keys.T)
        if block.packed is not None:
            return SketchedTexts(keys, _packed_rows(block.packed, block.states == FILLED))
        elements, bounds = sets.hashes.astype("<u8", copy=False).tobytes(), (8 * sets.offsets).tolist()
        return SketchedTexts(keys, [elements[start:end] for start, end in pairwise(bounds)])

    def fingerprint(self) -> bytes:
        """Return a hash of the keys and elements of a fixed text; it changes when shingling or sketching changes."""
        probe = self.sketch([PROBE])
        content = probe.keys.astype("<u8").tobytes() + probe.bodies[0]
        return _kernel.hash_item("b", content, 0).to_bytes(8, "little")

    def from_signatures(self, signatures: Signatures) -> SketchedTexts:
        """Return the keys and bodies of signatures that were made with the scheme and shingler of the index.

        Raises:
            ConfigError: If the index stores shingles, or the signatures have another seed or shingler.
            MismatchError: If the signatures have another scheme, number of slots or bits.
        """
        if self.settings.exact:
            rule = "signatures can be added to an index of sketches only"
            raise ConfigError(f"{rule}, got one of {self.settings.store}; create it with sketch_only=True")
        theirs, ours = signatures.settings, self.settings.scheme.settings
        names = ("scheme", "slots", "bits")
        check_equal_settings(
            "signatures and index", *({name: getattr(side, name) for name in names} for side in (theirs, ours))
        )
        shingles = self.settings.shingler.settings
        if theirs.seed != ours.seed or (signatures.shingle_settings or shingles) != shingles:  # a seed may be secret
            raise ConfigError(
                "signatures must be made with index.scheme and index.shingler, got some of another seed or shingler"
            )
        keys = np.empty((len(signatures), self.settings.plan.bands), dtype=np.uint64)
        self._bander.band_signatures(np.ascontiguousarray(signatures.slots), keys)
        keys[signatures.empty] = np.uint64(NO_KEY)
        return SketchedTexts(keys, _packed_rows(signatures.bbit(BITS).slots, ~signatures.empty))


def _packed_rows(packed: NDArray[np.uint8], filled: NDArray[np.bool_]) -> list[bytes]:
    width, data = packed.shape[1], packed.tobytes()
    return [
        data[width * row : width * (row + 1)] if is_filled else b"" for row, is_filled in enumerate(filled.tolist())
    ]


def encode_texts(texts: Texts) -> list[bytes]:
    """Return each text as bytes."""
    encoded: list[bytes] = []
    for chunk in read_texts(texts):
        data, bounds = chunk.data.tobytes(), chunk.offsets.tolist()
        encoded += [data[start:end] for start, end in pairwise(bounds)]
    return encoded
