"""Output schema: the types of ``report.json``, ``run.json``, ``audit.json`` and ``quarantine.jsonl``, and of tables.

A file of an output directory may be damaged, edited or of another version. It is checked once, when it is read, so that
its readers need no checks of their own. Keys that an older version did not write are optional; other keys are ignored.
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Meta, Struct, UnsetType, field

from minwise.checks import check_delimiter, check_encoding
from minwise.errors import FormatError

__all__ = [
    "DEDUP",
    "KINDS",
    "REPORTS",
    "StoredAudit",
    "StoredEditReport",
    "StoredFault",
    "StoredReport",
    "StoredRun",
    "check_rows",
    "check_schema",
    "decode",
    "rows_table",
]

# Kind of an output whose report has no key ``kind``.
DEDUP = "dedup"
# Commands that write outputs, by the kind of the output.
KINDS = {DEDUP: "minwise dedup", "passages": "minwise dedup --passages", "decontamination": "minwise decontaminate"}

# A count of documents, pairs or bytes; larger ones do not exist, and floats do not represent them.
Count = Annotated[int, Meta(ge=0, le=2**53)]
# Bands, rows and other numbers of a layout.
LayoutNumber = Annotated[int, Meta(ge=1, le=2**20)]
Amount = Annotated[float, Meta(ge=0, le=2**53)]
Share = Annotated[float, Meta(ge=0, le=1)]
# Start of a bin of similarities.
Start = Annotated[float, Meta(ge=0, lt=1)]
# Part of a path: the system does not accept NUL.
PathText = Annotated[str, Meta(pattern=r"\A[^\0]*\Z")]
Unsigned = Annotated[int, Meta(ge=0)]


class StoredCounts(Struct):
    """Numbers of documents."""

    read: Count
    documents: Count
    empty: Count
    quarantined: Count
    kept: Count
    removed: Count
    removed_identical: Count


class StoredBytes(Struct):
    """Bytes of texts."""

    read: Count
    kept: Count
    removed: Count
    quarantined: Count


class StoredSettings(Struct):
    """Settings of a search, as far as they are read; an exact one has no layout and no scheme."""

    threshold: Share
    shingle: str
    verify: Literal["exact", "signature", "none"]
    group: Literal["star", "components"]
    keep: str
    max_bucket: Count
    seed: Unsigned
    bands: LayoutNumber | UnsetType = UNSET
    rows: LayoutNumber | UnsetType = UNSET
    scheme: str | UnsetType = UNSET
    exact: bool | UnsetType = UNSET
    measure: Literal["containment"] | UnsetType = UNSET
    discount: Literal["common"] | UnsetType = UNSET
    frequencies: str | UnsetType = UNSET
    hash_bits: Literal[32, 64] | UnsetType = UNSET
    bag: bool | UnsetType = UNSET
    nfkc: bool | UnsetType = UNSET
    strip_accents: bool | UnsetType = UNSET
    lowercase: bool | UnsetType = UNSET
    strip_punctuation: bool | UnsetType = UNSET
    mask_digits: bool | UnsetType = UNSET
    collapse_whitespace: bool | UnsetType = UNSET
    separator: str | UnsetType | None = UNSET
    fields: str | UnsetType | None = UNSET
    weights: str | UnsetType | None = UNSET
    html: bool | UnsetType = UNSET
    transpose: bool | UnsetType = UNSET
    prefer: dict[str, list[str]] | UnsetType = UNSET
    protect: dict[str, list[str]] | UnsetType = UNSET
    copies: Count | UnsetType = UNSET
    drop_all: bool | UnsetType = UNSET
    mark: bool | UnsetType = UNSET
    mark_names: dict[str, str] | UnsetType = UNSET
    add_weight: str | UnsetType = UNSET
    votes: str | UnsetType = UNSET
    target: Amount | UnsetType = UNSET
    within: str | UnsetType = UNSET
    across: str | UnsetType = UNSET


class StoredPlan(Struct):
    """Layout and recall."""

    threshold: Share
    wanted_recall: Share | None
    bands: LayoutNumber
    rows: LayoutNumber


class StoredDocument(Struct):
    """Id, source and row of a document."""

    id: str | int | None
    source: PathText
    row: Count


class StoredMember(StoredDocument):
    """Removed document."""

    similarity: Share | None


class NamedCluster(Struct):
    """One of the largest clusters."""

    kept: StoredDocument
    size: Count
    members: Annotated[list[StoredMember], Meta(min_length=1)]
    removed: Count | UnsetType = UNSET


class SizeRange(Struct):
    """Number of clusters of a range of sizes."""

    to: Count
    clusters: Count
    from_: Count = field(name="from")


class StoredClusters(Struct):
    """Numbers of clusters."""

    of_two_or_more: Count
    largest: Count
    sizes: list[SizeRange] | UnsetType = UNSET


class SimilarityCounts(Struct):
    """Histogram of similarities in hundredths."""

    counts: Annotated[list[Count], Meta(min_length=100, max_length=100)]
    from_: Share = field(name="from")


class StoredPair(Struct):
    """Pair just below the threshold."""

    similarity: Share
    left: StoredDocument
    right: StoredDocument


class StoredNearMisses(Struct):
    """Pairs just below the threshold."""

    pairs: Count
    closest: list[StoredPair]
    from_: Share = field(name="from")


class ThresholdCount(Struct):
    """Number of documents that a threshold removes."""

    threshold: Share
    removed: Count


class StoredCaps(Struct):
    """What the bucket cap left out."""

    max_bucket: Count
    buckets: Count
    candidates_left_out: Count
    estimated_pairs_missed_at_most: Amount | UnsetType = UNSET


class StoredSource(Struct):
    """Counts of one source; one that is only compared against has no removed rows."""

    source: PathText
    rows: Count
    quarantined: Count
    kept: Count | UnsetType = UNSET
    removed: Count | UnsetType = UNSET
    against: Literal[True] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.against is UNSET and (self.kept is UNSET or self.removed is UNSET):
            raise ValueError("Object missing required field `kept` or `removed`")


class ValueRows(Struct):
    """Numbers of rows of one or several values."""

    read: Count
    kept: Count
    removed: Count
    quarantined: Count


class ValueCount(ValueRows):
    """Numbers of rows of a value; null if rows have none."""

    value: str | None


class OtherValues(ValueRows):
    """Numbers of rows of the values that are not listed."""

    values: Count


class StoredValues(Struct):
    """Counts by the values of the column that decides what is compared."""

    column: str
    setting: Literal["within", "across"]
    values: list[ValueCount]
    rest: OtherValues | UnsetType = UNSET


class StoredFault(Struct):
    """Row that cannot be used; the rest of a file if there is no row."""

    source: PathText
    row: Count | None
    reason: str


class StoredInputs(Struct):
    """What was left out of the inputs."""

    skipped: dict[str, Count] | UnsetType = UNSET


class StoredPhrase(Struct):
    """Phrase that counts little."""

    text: str
    documents: Count
    weight: Share


class StoredWeights(Struct):
    """Weights of the kept rows."""

    name: str
    expression: str
    total: Annotated[float, Meta(ge=0)]
    rows: Count


class StoredTarget(Struct):
    """Wanted number of documents, and the threshold that was chosen for it."""

    wanted: Amount
    documents: Count
    threshold: Share
    kept: Count


class StoredReport(Struct):
    """``report.json``."""

    minwise: str
    settings: StoredSettings
    counts: StoredCounts
    sources: list[StoredSource]
    plan: StoredPlan | UnsetType | None = UNSET
    text_bytes: StoredBytes | UnsetType | None = UNSET
    clusters: StoredClusters | UnsetType = UNSET
    largest_clusters: list[NamedCluster] | UnsetType = UNSET
    similarities: SimilarityCounts | UnsetType | None = UNSET
    just_below: StoredNearMisses | UnsetType | None = UNSET
    thresholds: list[ThresholdCount] | UnsetType | None = UNSET
    caps: StoredCaps | UnsetType = UNSET
    unreadable: list[StoredFault] | UnsetType = UNSET
    duplicate_ids: Count | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET
    inputs: StoredInputs | UnsetType = UNSET
    common_phrases: list[StoredPhrase] | UnsetType = UNSET
    weights: StoredWeights | UnsetType = UNSET
    target: StoredTarget | UnsetType = UNSET
    values: StoredValues | UnsetType = UNSET


class StoredRowCounts(Struct):
    """Numbers of rows."""

    read: Count
    documents: Count
    quarantined: Count
    kept: Count
    removed: Count


class StoredEditReport(Struct):
    """``report.json`` of an output whose kept rows may be edited; each kind has further keys of its own."""

    minwise: str
    kind: str
    settings: dict[str, Any]
    counts: StoredRowCounts
    sources: list[StoredSource]
    inputs: StoredInputs | UnsetType = UNSET


class StoredItemCounts(Struct):
    """Numbers of evaluation items and their n-grams."""

    items: Count
    uncheckable: Count
    found: Count
    hits: Count
    ngrams: Count
    common_ngrams: Count


class StoredItem(Struct):
    """Evaluation item, and the number of rows that contain it."""

    eval_id: str | int | None
    eval_column: str
    rows: Count


class ContaminationSettings(Struct):
    """Settings of a decontamination, as far as they are read."""

    action: Literal["remove", "cut", "mark"]
    min_share: Share
    min_ngrams: Count | None
    shingle: str


class ContaminationCounts(StoredRowCounts):
    """Numbers of rows."""

    contaminated: Count


class StoredControls(Struct):
    """Texts without an item, and how many are hits."""

    controls: Count
    flagged: Count


class StoredContamination(StoredEditReport, kw_only=True):
    """``report.json`` of a decontamination."""

    settings: ContaminationSettings  # type: ignore[assignment]
    counts: ContaminationCounts
    items: StoredItemCounts
    most_found: list[StoredItem]
    unreadable: list[StoredFault]
    warnings: list[str]
    audit: "StoredPlanting | UnsetType" = UNSET


# What ``report.json`` has, by the kind of the output; of others StoredEditReport.
REPORTS: dict[str, type[Struct]] = {DEDUP: StoredReport, "decontamination": StoredContamination}


class StageTime(Struct):
    """Duration of one stage."""

    stage: str
    seconds: Amount


class StoredColumns(Struct):
    """Columns that were read."""

    text: Annotated[list[str], Meta(min_length=1)]
    id: str | None


class StoredInput(Struct):
    """Fingerprint of an input; one of several text files has their number and a digest."""

    name: PathText
    bytes: Count | None
    modified: int | str | None
    files: LayoutNumber | UnsetType = UNSET
    digest: str | UnsetType = UNSET
    texts: list[tuple[PathText, str]] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.files is UNSET) != (self.digest is UNSET):
            raise ValueError("Object must have both `files` and `digest`, or none")


class StoredEarlierRun(Struct):
    """Output that a run was run against."""

    path: PathText
    digest: str


class StoredRun(Struct):
    """``run.json``."""

    directory: PathText
    root: PathText
    columns: StoredColumns
    inputs: list[StoredInput]
    started: datetime | UnsetType = UNSET
    seconds: Amount | UnsetType | None = UNSET
    resumed: bool | UnsetType = UNSET
    stages: list[StageTime] | UnsetType = UNSET
    peak_memory_bytes: Count | UnsetType | None = UNSET
    peak_memory_before_bytes: Count | UnsetType | None = UNSET
    memory_limit_bytes: Count | UnsetType | None = UNSET
    threads: Count | UnsetType = UNSET
    format: str | UnsetType | None = UNSET
    delimiter: str | UnsetType | None = UNSET
    encoding: str | UnsetType | None = UNSET
    options: dict[str, Any] | UnsetType = UNSET
    against: list[StoredInput] | UnsetType = UNSET
    against_run: list[StoredEarlierRun] | UnsetType = UNSET
    evals: list[StoredInput] | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_delimiter(None if self.delimiter is UNSET else self.delimiter)
        check_encoding(None if self.encoding is UNSET else self.encoding)


class MeasuredShare(Struct):
    """Share with its interval; null if there was nothing to count."""

    value: Share | None
    low: Share
    high: Share


class PlantedRecall(Struct):
    """Share of the planted items of a kind that were found."""

    kind: str
    value: Share
    low: Share
    high: Share
    planted: Count
    found: Count


class StoredPlanting(Struct):
    """Audit of a decontamination."""

    recall: list[PlantedRecall]
    precision: StoredControls


class MeasuredRecall(MeasuredShare):
    """Share of the pairs that were found."""

    pairs: Count
    found: Count
    promised: Share | UnsetType | None = UNSET


class MeasuredDocuments(MeasuredShare):
    """Share of the documents of which a duplicate was found."""

    documents: Count
    found: Count


class MeasuredPrecision(MeasuredShare):
    """Share of the candidates that are pairs."""

    candidates: Count
    pairs: Count


class RecallBin(MeasuredShare):
    """Recall of a range of similarities."""

    to: Share
    pairs: Count
    found: Count
    promised: Share | None
    from_: Start = field(name="from")


class PairBin(Struct):
    """Number of pairs in a range of similarities."""

    to: Share
    pairs: Count
    estimated: Amount
    low: Amount
    high: Amount
    from_: Start = field(name="from")


class StoredSuggestion(Struct):
    """Settings that an audit suggests."""

    threshold: Share
    bands: LayoutNumber
    rows: LayoutNumber
    recall: Share
    why: str


class StoredAudit(Struct):
    """``audit.json``."""

    minwise: str
    settings: dict[str, Any]
    recall: MeasuredRecall
    documents_with_duplicates: MeasuredDocuments
    precision: MeasuredPrecision
    bins: list[RecallBin]
    histogram: Annotated[list[PairBin], Meta(min_length=1)]
    documents: Count
    sampled: Count
    complete: bool
    threshold: Share
    confidence: Annotated[float, Meta(gt=0, lt=1)]
    suggestion: StoredSuggestion | None
    distinct: Count | UnsetType = UNSET
    text_bytes: Count | UnsetType | None = UNSET
    caps: StoredCaps | UnsetType | None = UNSET


def decode(
    path: Path, data: bytes, kind: type[Struct], rule: str = "must be written by minwise dedup"
) -> dict[str, Any]:
    """Return the object of a JSON file, or of one of its lines, after checking it.

    Args:
        path: The file, for messages.
        data: Its content.
        kind: The type that it must have.
        rule: What it must be, for messages.

    Raises:
        FormatError: If it is not JSON, or a value has another type or is out of its range.
    """
    try:
        values = orjson.loads(data)
        msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise FormatError(f"{path}: {rule}: {_in_words(error)}; write it again") from None
    except ValueError as error:
        raise FormatError(f"{path}: {rule}, which is JSON: {error}; write it again") from None
    return dict(values)


def _in_words(error: msgspec.ValidationError) -> str:
    """Return the message with the path of the value in front, such as ``counts.read: Expected `int`, got `str```."""
    what, _, where = str(error).replace("\n", " ").partition(" - at `$")
    return f"{where.strip('.`')}: {what}" if where else what


IDENTITY = ("id", "source", "row")
# Columns that the tables of a deduplication must have, by name; those of other kinds must identify documents. The last
# one of removed.parquet has a name that says whether similarities are exact.
TABLE_COLUMNS = {
    "clusters.parquet": (*IDENTITY, "cluster", "size"),
    "removed.parquet": (*IDENTITY, "kept_id", "kept_source", "kept_row"),
}
# Columns that other tables must have.
ITEM = ("eval_id", "eval_source", "eval_row", "eval_column", "ngrams", "share", "score", "spans")
EDIT_COLUMNS = {"cuts.parquet": (*IDENTITY, "start", "end"), "hits.parquet": (*IDENTITY, *ITEM)}
CONTAMINATION_COLUMNS = {**EDIT_COLUMNS, "documents.parquet": (*IDENTITY, "kept", "contaminated")}
NUMBERS = ("row", "kept_row", "size", "start", "end", "eval_row", "eval_start", "eval_end", "ngrams")
NAMES = ("source", "kept_source", "eval_source", "eval_column")
SHARES, FLAGS, SPANS = ("share", "score"), ("kept", "contaminated"), ("start", "end", "eval_start", "eval_end")


def rows_table(kind: str) -> str:
    """Return the name of the table that has a row for each readable document."""
    return "clusters.parquet" if kind == DEDUP else "documents.parquet"


def check_schema(path: Path, schema: pa.Schema, kind: str = DEDUP) -> None:
    """Raise FormatError if a table lacks a column, has one of another type, or removed.parquet has no similarities."""
    others = CONTAMINATION_COLUMNS if kind == "decontamination" else EDIT_COLUMNS
    columns = TABLE_COLUMNS[path.name] if kind == DEDUP else others.get(path.name, IDENTITY)
    for name in columns:
        if schema.names.count(name) != 1:
            raise _other_table(path, f"must have a column {name}")
        if not _has_type(name, schema.field(name).type):
            raise _other_table(path, f"must have a column {name} of another type, got {schema.field(name).type}")
    if kind == DEDUP and path.name == "removed.parquet" and not pa.types.is_floating(schema.types[-1]):
        raise _other_table(path, f"must have similarities in its last column, got {schema.types[-1]}")


def _has_type(name: str, kind: pa.DataType) -> bool:
    text = bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    number = bool(kind == pa.int64())
    if name in (*SHARES, *FLAGS):
        return bool(kind == (pa.float64() if name in SHARES else pa.bool_()))
    if name == "spans":
        return bool(pa.types.is_list(kind) and kind.value_type == pa.struct(dict.fromkeys(SPANS, pa.int64())))
    return number if name in NUMBERS else text if name in NAMES else text or number


def check_rows(path: Path, batch: pa.RecordBatch) -> None:
    """Raise FormatError if a string is not UTF-8, or a source or a row is missing or negative."""
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise _other_table(path, f"must be the table of a run, {' '.join(str(error).split())}") from None
    for name in (*NUMBERS, *NAMES, *SHARES, "spans"):
        if name in batch.schema.names and not _is_valid(name, batch.column(name)):
            raise _other_table(path, f"must be the table of this run, got a row without a valid {name}")


def _is_valid(name: str, column: pa.Array) -> bool:
    if column.null_count:
        return False
    if name == "spans":
        spans = column.flatten()
        return not spans.null_count and all(_is_valid(side, spans.field(side)) for side in SPANS)
    if name in NAMES:
        return not pc.any(pc.match_substring(column, "\0")).as_py()
    return not pc.any(pc.less(column, 0)).as_py()


def _other_table(path: Path, what: str) -> FormatError:
    return FormatError(f"{path}: {what}; run minwise dedup again")
