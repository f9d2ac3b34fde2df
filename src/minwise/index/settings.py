"""Index settings, which are fixed at creation, and the sketcher that applies them to texts."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import length_hint
from typing import Any, Final, Literal, cast

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise.checks import check_choice, check_seed, check_type, show
from minwise.errors import ConfigError, FormatError, InputError, MismatchError
from minwise.inputs.elements import Elements
from minwise.inputs.items import ItemSets
from minwise.inputs.records import RecordFields, parse_fields
from minwise.options import DedupOptions, StoreName, with_defaults
from minwise.search.bands import FILLED, NO_KEY, KeyBlock, set_arrays
from minwise.settings import SearchSettings, make_elements
from minwise.sketches.planning import Plan
from minwise.sketches.planning import plan as make_plan
from minwise.sketches.schemes import FastSketch, MinHash
from minwise.sketches.signatures import Signatures, check_equal_settings
from minwise.text.chunks import Texts, read_texts
from minwise.text.shingling import Shingler, ShingleSets

__all__ = [
    "FORMAT_VERSION",
    "READABLE_VERSIONS",
    "SETS_VERSION",
    "Documents",
    "ElementSets",
    "IndexSettings",
    "IndexSketcher",
    "OpenMode",
    "SketchedTexts",
    "encode_texts",
]

# Increases with every change to the layout of a file or to the meaning of a field.
FORMAT_VERSION = 2
# Version of an index of sets or records. An index of texts stays at the version before, which more programs read.
SETS_VERSION = 3
# Version of an index that assigns documents to clusters, of texts, sets or records.
CLUSTERS_VERSION = 4
# Versions that are read; the first commit of a writer turns version 1 into 2.
READABLE_VERSIONS = (1, 2, 3, 4)
OpenMode = Literal["r", "w"]
STORES: tuple[StoreName, ...] = ("shingles", "text", "sketch")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """Settings that decide the answers of an index.

    Attributes:
        find: Plan, shingler, scheme, seed and caps, as the batch engine uses them.
        shingler: Cuts texts into shingles; None for an index of sets or records.
        elements: Makes sets from items or records; None for an index of texts. The columns of a source are set on
            reading.
        store: ``shingles`` stores the shingle hashes of every document, ``text`` also its text, ``sketch`` only 16 bits
            of each slot.
        secret: Whether the seed was drawn at random; a secret seed is never shown.
        version: The format version of the index.
        assign: Whether documents are assigned to clusters.
    """

    find: SearchSettings
    shingler: Shingler | None
    elements: ItemSets | RecordFields | None
    store: StoreName
    secret: bool
    version: int = FORMAT_VERSION
    assign: bool = False

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
        fields: str | Mapping[str, str] | None = None,
        weights: str | Mapping[str, int] | None = None,
        assign: bool = False,
        **normalisation: Any,  # noqa: ANN401 - settings of the shingler
    ) -> "IndexSettings":
        """Check the options of :meth:`Index.create`.

        Raises:
            ConfigError: If an option breaks its rule.
        """
        if isinstance(shingle, Shingler):
            raise ConfigError("shingle must be a string such as word:5 for an index, got a Shingler")
        if store_text and sketch_only:
            raise ConfigError("store_text and sketch_only exclude each other, got both")
        store = "text" if store_text else "sketch" if sketch_only else "shingles"
        chosen_seed = secrets.randbits(64) if seed is None else check_seed("seed", seed)
        plan = make_plan(threshold, recall, slots=slots, bands=bands, rows=rows)
        kind = {"shingle": shingle, "bag": bag, "fields": fields, "weights": weights, **normalisation}
        rule = make_elements(cast("DedupOptions", with_defaults(DedupOptions, kind)), chosen_seed)
        if rule is not None and rule.factors is not None:
            raise ConfigError(f"weights must be whole numbers for an index, got {show(weights)}")
        if rule is not None and rule.holds_weights:
            raise ConfigError(f"weights must be left out for an index of sets, got {show(weights)}")
        if rule is not None and store_text:
            raise ConfigError("store_text must be left out for an index of sets or records, got True")
        shingler = Shingler(shingle, bag=bag, seed=chosen_seed, **normalisation) if rule is None else None
        made = cls._build(plan, shingler, rule, scheme, chosen_seed, max_bucket, store, secret=seed is None)
        return made._with_clusters() if check_type("assign", assign, bool) else made

    def _with_clusters(self) -> "IndexSettings":
        return replace(self, assign=True, version=CLUSTERS_VERSION)

    @classmethod
    def _build(
        cls,
        plan: Plan,
        shingler: Shingler | None,
        elements: Elements | None,
        scheme: str,
        seed: int,
        max_bucket: int,
        store: str,
        *,
        secret: bool,
    ) -> "IndexSettings":
        kind = check_choice("store", store, STORES)
        verify = "signature" if kind == "sketch" else "exact"
        find = SearchSettings(
            plan=plan, shingler=shingler, scheme=scheme, seed=seed, verify=verify, max_bucket=max_bucket,
            elements=elements,
        )  # fmt: skip
        assert elements is None or isinstance(elements, (ItemSets, RecordFields))
        version = FORMAT_VERSION if elements is None else SETS_VERSION
        return cls(find=find, shingler=shingler, elements=elements, store=kind, secret=secret, version=version)

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

    @property
    def kind(self) -> str:
        """What a document is: ``text``, ``set`` or ``record``."""
        if self.elements is None:
            return "text"
        return "set" if isinstance(self.elements, ItemSets) else "record"

    @property
    def current_version(self) -> int:
        """The version that a writer stores."""
        return max(self.version, FORMAT_VERSION)

    @property
    def element_settings(self) -> dict[str, Any]:
        """The settings that decide what the elements of a document are, in plain values."""
        if self.shingler is not None:
            return self.shingler.settings
        assert self.elements is not None
        if isinstance(self.elements, ItemSets):
            return {"shingle": "set", "bag": self.elements.bag}
        kinds = {field.name: field.kind for field in self.elements.fields}
        weights = {field.name: field.weight for field in self.elements.fields}
        return {"shingle": "set", "bag": self.elements.bag, "fields": kinds, "weights": weights}

    def to_dict(self) -> dict[str, Any]:
        """Return the settings in plain values, without a secret seed."""
        plan, shingles = self.plan, self.element_settings
        if self.secret:
            shingles.pop("seed", None)
        seed = {} if self.secret else {"seed": self.seed}
        layout = {
            "threshold": plan.threshold,
            "bands": plan.bands,
            "rows": plan.rows,
            "wanted_recall": plan.wanted_recall,
        }
        clusters = {"assign": True} if self.assign else {}
        return {
            **layout, **shingles, "scheme": self.find.scheme, "max_bucket": self.max_bucket, "store": self.store,
            **clusters, "secret_seed": self.secret, **seed,
        }  # fmt: skip

    def encode(self) -> bytes:
        """Return the content of the settings row, which includes the seed."""
        versions = {"version": self.current_version, "unicode_version": _kernel.UNICODE_VERSION}
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
            *versions, last = map(str, READABLE_VERSIONS)
            rule = f"the index must be of format version {', '.join(versions)} or {last}"
            raise FormatError(f"{rule}, got {show(version)}")
        if unicode_version != _kernel.UNICODE_VERSION:
            there, here = show(unicode_version), show(_kernel.UNICODE_VERSION)
            raise MismatchError(f"the Unicode version must be the same: {there} there, {here} here")
        try:
            if version == CLUSTERS_VERSION:
                return cls._of_clusters(fields)
            if version == SETS_VERSION:
                return cls._of_sets(fields)
            return replace(cls._from_fields(fields), version=version)
        except (KeyError, TypeError) as error:
            raise FormatError(f"the settings must have the fields of this version: {error}") from None

    @classmethod
    def _of_clusters(cls, fields: dict[str, Any]) -> "IndexSettings":
        """Return the settings of an index that assigns clusters."""
        if fields.pop("assign") is not True:
            raise TypeError("assign must be true")
        return (cls._of_sets(fields) if fields["shingle"] == "set" else cls._from_fields(fields))._with_clusters()

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> "IndexSettings":
        """Return the settings of an index of texts."""
        plan, (scheme, max_bucket, store, secret) = _take_plan(fields), _take(fields, *COMMON_FIELDS)
        shingler = Shingler(fields.pop("shingle"), **fields)
        return cls._build(plan, shingler, None, scheme, shingler.seed, max_bucket, store, secret=secret)

    @classmethod
    def _of_sets(cls, fields: dict[str, Any]) -> "IndexSettings":
        """Return the settings of an index of sets or records."""
        plan, (scheme, max_bucket, store, secret) = _take_plan(fields), _take(fields, *COMMON_FIELDS)
        shingle, seed, bag = _take(fields, "shingle", "seed", "bag")
        if shingle != "set":
            raise TypeError(f"shingle must be set, got {show(shingle)}")
        if not isinstance(bag, bool):
            raise TypeError(f"bag must be true or false, got {show(bag)}")
        if fields:
            kinds, weights = _take(fields, "fields", "weights")
            elements: Elements = RecordFields(fields=parse_fields(kinds, weights), bag=bag, seed=seed)
        else:
            elements = ItemSets(column=SET_COLUMN, bag=bag, seed=seed)
        if fields:
            raise TypeError(f"unknown: {', '.join(fields)}")
        return cls._build(plan, None, elements, scheme, check_seed("seed", seed), max_bucket, store, secret=secret)


# Fields of every index except the plan and what its elements are; and the column of the sets of a source by default.
COMMON_FIELDS = ("scheme", "max_bucket", "store", "secret_seed")
SET_COLUMN = "text"


def _take(fields: dict[str, Any], *names: str) -> list[Any]:
    return [fields.pop(name) for name in names]


def _take_plan(fields: dict[str, Any]) -> Plan:
    names = ("threshold", "bands", "rows", "wanted_recall")
    return Plan(**dict(zip(names, _take(fields, *names), strict=True)))


# Bits of each slot that a stored sketch keeps, as in the batch engine.
BITS: Final = 16
# Input of the fingerprint: letters with marks, digits, signs, another script, repeated words.
PROBE = "The café of 1891, the café again: ﬁne — ΑΒΓ, 你好; the end of the café, the end of 1891."
# Fewer texts than this are sketched by one thread, which finishes before others have started.
MIN_PARALLEL_TEXTS = 16


@dataclass(frozen=True, slots=True)
class ElementSets:
    """Sets of elements that were made by the rule of the index.

    Attributes:
        offsets: Offset of each set in ``hashes``, and the end of the last.
        hashes: The elements of all sets, ascending in each.
    """

    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]

    @classmethod
    def of(cls, column: pa.Array) -> "ElementSets":
        """Return the sets of a list column without nulls."""
        return cls(*set_arrays(column))

    def __len__(self) -> int:
        return len(self.offsets) - 1


# Documents of a call: texts; records, each a mapping; or sets, each a collection of items.
Documents = Texts | Iterable[Mapping[str, Any]] | Iterable[Iterable[int | str]] | ElementSets


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
    """Computes the band keys and bodies of texts, sets or records with the settings of an index."""

    def __init__(self, settings: IndexSettings, threads: int = 0) -> None:
        plan = settings.plan
        self.settings = settings
        self._threads = threads
        sketcher = _kernel.Sketcher(scheme=settings.find.scheme, slots=plan.slots, seed=settings.seed)
        self._bander = _kernel.Bander(sketcher, plan.bands, plan.rows, settings.seed)

    def sketch(self, documents: "Documents") -> SketchedTexts:
        """Sketch texts; or sets of items, records or their elements.

        Raises:
            InputError: If a document is not of the kind of the index, or invalid; the message names its position.
        """
        threads = 1 if length_hint(documents, MIN_PARALLEL_TEXTS) < MIN_PARALLEL_TEXTS else self._threads
        sets = self._sets(documents, threads)
        block = self.key_block(sets, threads)
        keys = np.ascontiguousarray(block.keys.T)
        if block.packed is not None:
            return SketchedTexts(keys, _packed_rows(block.packed, block.states == FILLED))
        elements, bounds = sets.hashes.astype("<u8", copy=False).tobytes(), (8 * sets.offsets).tolist()
        return SketchedTexts(keys, [elements[start:end] for start, end in pairwise(bounds)])

    def key_block(self, sets: ElementSets | ShingleSets, threads: int) -> KeyBlock:
        """Return keys and content hashes of sets of elements."""
        block = KeyBlock.allocate(self.settings.find, len(sets))
        self._bander.band_sets(sets.offsets, sets.hashes, self.settings.seed, block, 0, threads)
        return block

    def _sets(self, documents: "Documents", threads: int) -> ElementSets | ShingleSets:
        """Return the elements of documents."""
        if isinstance(documents, ElementSets):
            return documents
        if self.settings.shingler is not None:
            return self.settings.shingler.shingle(cast(Texts, documents), threads=threads or None)
        rule = self.settings.elements
        assert rule is not None
        values = _record_values if isinstance(rule, RecordFields) else _set_values
        rows = [values(document, number, rule.columns) for number, document in enumerate(_listed(documents))]
        sets, reasons = rule.from_values(rows)
        for number, reason in sorted(reasons.items()):
            raise InputError(f"document {number}: {reason}")
        return ElementSets.of(sets)

    def fingerprint(self) -> bytes:
        """Return a hash of the keys and elements of a fixed document; it changes with shingling or sketching."""
        probe = self.sketch([self._probe()])
        content = probe.keys.astype("<u8").tobytes() + probe.bodies[0]
        return _kernel.hash_item("b", content, 0).to_bytes(8, "little")

    def _probe(self) -> Any:  # noqa: ANN401 - a text, a set or a record
        """Return a document of the kind of the index."""
        if self.settings.elements is None:
            return PROBE
        if isinstance(self.settings.elements, RecordFields):
            return dict.fromkeys(self.settings.elements.columns, PROBE)
        return [*PROBE.split(), 1891]

    def from_signatures(self, signatures: Signatures) -> SketchedTexts:
        """Return the keys and bodies of signatures that were made with the scheme and shingler of the index.

        Raises:
            ConfigError: If the index stores shingles, or the signatures have another seed or shingler.
            MismatchError: If the signatures have another scheme, number of slots or bits.
        """
        if self.settings.exact:
            rule = "signatures can be added to an index of sketches only"
            raise ConfigError(f"{rule}, got one of {self.settings.store}; create it with sketch_only=True")
        if self.settings.shingler is None:
            raise ConfigError(f"signatures can be added to an index of texts only, got one of {self.settings.kind}s")
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


def _listed(documents: "Documents") -> list[Any]:
    """Return sets or records as a list."""
    if isinstance(documents, (str, bytes, Mapping, ShingleSets)) or not isinstance(documents, Iterable):
        raise InputError(f"documents must be a list of them, got {type(documents).__name__}")
    return documents.to_pylist() if isinstance(documents, (pa.Array, pa.ChunkedArray)) else list(documents)


def _record_values(record: object, number: int, columns: tuple[str, ...]) -> list[Any]:
    """Return the values of the fields."""
    if not isinstance(record, Mapping):
        rule = f"must be a record, a mapping with the fields {', '.join(columns)}"
        raise InputError(f"document {number} {rule}, got {type(record).__name__}")
    missing = next((name for name in columns if name not in record), None)
    if missing is not None:
        raise InputError(f"document {number} has no field {show(missing)}; None stands for an unknown value")
    return [record[name] for name in columns]


def _set_values(items: object, number: int, columns: tuple[str, ...]) -> list[Any]:
    """Return the items of a set as the value of its only column."""
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise InputError(f"document {number} must be a collection of items, got {type(items).__name__}")
    return [items.tolist() if isinstance(items, np.ndarray) else list(items)]


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
