"""Options: every setting of the public calls, defined once.

A setting is a key of a ``TypedDict``. Its annotation is the type that checkers see; its :class:`Setting` holds the
default and the help text. Python signatures and their docstrings, command-line options, the settings page and the
HTTP schema are derived from these definitions.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, timedelta
from os import PathLike
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, get_args, get_origin

from minwise.checks import check_choice, check_setting_names
from minwise.text.chunks import ArrowStream
from minwise.text.units import UnitName

if TYPE_CHECKING:
    from minwise.progress import Progress, ProgressCallback
    from minwise.text.shingling import Shingler

__all__ = [
    "MAX_CANDIDATES",
    "AnyDedupOptions",
    "AuditOptions",
    "ClustersOptions",
    "CutDedupOptions",
    "CutOptions",
    "DecontaminateOptions",
    "DedupOptions",
    "Definition",
    "DiscountName",
    "DiscountOptions",
    "DocumentSource",
    "EndingOptions",
    "EngineOptions",
    "ExpireOptions",
    "FormatName",
    "FrameClustersOptions",
    "FrameDedupOptions",
    "FrameOptions",
    "GroupName",
    "GrowthOptions",
    "IndexOptions",
    "KeepRuleOptions",
    "LinkOptions",
    "MeasureName",
    "MeasureOptions",
    "NearestOptions",
    "NormalisationOptions",
    "OnError",
    "PairsOptions",
    "PassagesOptions",
    "PathOrUrl",
    "RunOptions",
    "SchemeName",
    "Setting",
    "SnapName",
    "StoreName",
    "ValueOptions",
    "VerifyName",
    "check_setting",
    "definitions",
    "lists_faults",
    "setting_field",
    "with_defaults",
]

# Paths or globs, texts, rows, tables, data frames or sets; :func:`minwise.inputs.open_sources` tells them apart.
DocumentSource = str | PathLike[str] | Iterable[Any] | ArrowStream
PathOrUrl = str | PathLike[str]
SchemeName = Literal["fast", "minhash"]
MeasureName = Literal["jaccard", "containment"]
DiscountName = Literal["none", "common"]
VerifyName = Literal["exact", "signature", "none"]
GroupName = Literal["star", "components"]
FormatName = Literal["parquet", "jsonl", "json", "csv", "tsv", "arrow", "text", "lines", "baskets", "named-baskets"]
OnError = Literal["fail", "quarantine-rows", "quarantine", "skip"]
EngineName = Literal["local", "spark"]
SnapName = Literal["line", "sentence"]
ActionName = Literal["remove", "cut", "mark"]
StoreName = Literal["shingles", "text", "sketch"]
# Comparisons of a search in an index by default: a candidate counts once for every started 4,096 bytes of its row. They
# take 19 to 28 ms if the rows are in memory, else 40 to 64 ms. Of 2,500 queries for a million real passages, one needs
# more for its ten most similar documents.
MAX_CANDIDATES = 10_000

# Share of the rare n-grams of an evaluation item that a contaminated row has, by default: benchmarks/decontaminate
# measures recall and precision of others.
MIN_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Setting:
    """Default and documentation of a setting.

    Attributes:
        default: Value where the caller gives none.
        help: Meaning and unit, in whole sentences.
        python: What only Python callers can give, in whole sentences.
    """

    default: Any
    help: str
    python: str = ""


# Settings of more than one option class.
SHINGLE = Setting(
    "word:5",
    "Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items.",
    "A Shingler has settings of normalisation of its own.",
)
BAG = Setting(False, "Count repeated shingles, so that similarity is that of multisets.")
FIELDS = Setting(
    None,
    "Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'.",
    "A mapping is accepted, too.",
)
WEIGHTS = Setting(
    None,
    "Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other one has"
    " weight 1. An index takes whole numbers, for fields only.",
    "A mapping is accepted, too.",
)
VERIFY = Setting(
    "exact",
    "How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none"
    " accepts every candidate.",
)
CLUSTER_GROUP = Setting(
    "components",
    "How pairs form clusters: components joins all documents that pairs connect, star only those similar to the first.",
)
DEDUP_GROUP = Setting(
    "star",
    "How pairs form clusters: star removes only documents similar to the kept one, components all documents that pairs"
    " connect.",
)
KEEP = Setting(
    "first",
    "Document of a cluster to keep: first, last, longest, shortest, max:COL or min:COL. Several, such as"
    " max:quality,longest,first, decide one after the other where those before are equal.",
)
PROGRESS = Setting(
    None,
    "True shows a progress bar for each stage, in a terminal or a notebook; False shows nothing. A function is called"
    " with (stage, done, total, unit) at the start of a stage and after every step; total is None if unknown. A"
    " minwise.progress.Progress receives the start and the end of each stage, too.",
)
AGAINST = Setting(None, "Reference corpus: compared with, never removed and never written.")
SEED = Setting(1, "Seed of every hash, an unsigned 64-bit number.")
HTML = Setting(False, "Texts are HTML pages: ignore markup, scripts and styles.")
SCHEME = Setting("fast", "Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower).")


class LayoutOptions(TypedDict, total=False):
    """Settings that decide how signatures are cut into bands."""

    threshold: Annotated[
        float, Setting(0.8, "Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1.")
    ]
    recall: Annotated[
        float,
        Setting(
            0.99,
            "Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.",
        ),
    ]
    scheme: Annotated[SchemeName, SCHEME]
    slots: Annotated[int, Setting(256, "Maximum number of slots of a signature that the plan may use.")]
    bands: Annotated[int | None, Setting(None, "Number of bands, given together with rows; replaces recall.")]
    rows: Annotated[int | None, Setting(None, "Slots per band, given together with bands.")]


class SeedOptions(TypedDict, total=False):
    """Seed and cap of a search."""

    seed: Annotated[int, SEED]
    max_bucket: Annotated[
        int,
        Setting(
            2000,
            "Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above it"
            " each member is paired with the first 16.",
        ),
    ]


class ElementOptions(TypedDict, total=False):
    """Settings that decide which set of elements a document becomes."""

    shingle: Annotated["str | Shingler", SHINGLE]
    bag: Annotated[bool, BAG]
    group_by: Annotated[str | None, Setting(None, "Column that names the set to which a row belongs.")]
    item: Annotated[str | None, Setting(None, "Column of the item that a row adds to its set; given with group_by.")]
    weight: Annotated[
        str | None,
        Setting(
            None,
            "Column of the item's count or weight, with group_by; of a list of weights, one for each item, with sets in"
            " lists. Similarity is then the sum of the smaller weights divided by that of the larger ones.",
        ),
    ]
    transpose: Annotated[bool, Setting(False, "Swap the roles of sets and items, to find similar items.")]
    separator: Annotated[
        str | None, Setting(None, "Separator of items in a string; white space on lines of items if not given.")
    ]
    fields: Annotated[str | Mapping[str, str] | None, FIELDS]
    weights: Annotated[str | Mapping[str, float] | Mapping[int, float] | None, WEIGHTS]
    html: Annotated[bool, HTML]


class NormalisationOptions(TypedDict, total=False):
    """Settings that decide how texts are normalised before they are cut into shingles, in the order of the steps."""

    nfkc: Annotated[
        bool,
        Setting(
            True,
            "Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary"
            " ones.",
        ),
    ]
    strip_accents: Annotated[bool, Setting(False, "Remove accents: the combining diacritical marks U+0300–U+036F.")]
    lowercase: Annotated[bool, Setting(True, "Convert each character to lower case.")]
    strip_punctuation: Annotated[bool, Setting(False, "Remove punctuation and symbols.")]
    mask_digits: Annotated[
        bool, Setting(False, "Replace each decimal digit by 0, so that texts with other numbers are equal.")
    ]
    collapse_whitespace: Annotated[
        bool, Setting(True, "Replace each run of white space by one space, and strip both ends.")
    ]


class VerifyOptions(TypedDict, total=False):
    """Settings that decide how pairs are found and verified."""

    exact: Annotated[
        bool,
        Setting(
            False,
            "Find every pair by an exact join instead of bands; slower, and needs disk space for all shingles."
            " max_bucket still limits the pairs of identical documents.",
        ),
    ]
    verify: Annotated[VerifyName, VERIFY]


class InputOptions(TypedDict, total=False):
    """Settings that decide how sources are read."""

    text_column: Annotated[
        str | Sequence[str],
        Setting(
            "text", "Column of the text; several are joined by a line break. With sets, the column of their items."
        ),
    ]
    id_column: Annotated[
        str | None, Setting(None, "Column of the id; if not given, id where a source has it, otherwise source:row.")
    ]
    format: Annotated[
        FormatName | None,
        Setting(
            None,
            "Format of files whose names do not show it: text is one document per file, lines one per line; baskets and"
            " named-baskets have a set of items on each line.",
        ),
    ]
    delimiter: Annotated[
        str | None,
        Setting(None, "Delimiter of CSV and TSV, one character or tab; if not given, detected from the first bytes."),
    ]
    encoding: Annotated[
        str | None,
        Setting(
            None,
            "Encoding of text files, such as utf-8, cp1252 or utf-16; if not given, detected from the first bytes."
            " Kept rows are written in it.",
        ),
    ]
    on_error: Annotated[
        OnError,
        Setting(
            "fail",
            "What to do with rows that cannot be read: fail; quarantine-rows lists them, but fails for an input of"
            " which no row can be read; quarantine lists them; skip leaves them out.",
        ),
    ]


class RunOptions(TypedDict, total=False):
    """Settings that limit a run or report on it. None of them changes the result."""

    memory: Annotated[
        str | int, Setting("4GB", "Memory for data, in bytes or such as 4GB; the process takes up to 300MB more.")
    ]
    threads: Annotated[int | None, Setting(None, "Number of threads; all cores if not given.")]
    work: Annotated[
        PathOrUrl | None,
        Setting(
            None, "Directory or URL that keeps finished stages, so that an interrupted run resumes where it stopped."
        ),
    ]
    progress: Annotated["bool | Progress | ProgressCallback | None", PROGRESS]


class EngineOptions(TypedDict, total=False):
    """Settings that decide where a run takes place. None of them changes the result."""

    engine: Annotated[
        EngineName, Setting("local", "Engine that runs the search: this machine, or Apache Spark; same result.")
    ]
    master: Annotated[
        str | None,
        Setting(
            None,
            "Spark master: local[*], spark://HOST:PORT, yarn or k8s://URL; if not given, the active session's or that"
            " of Spark's own configuration.",
        ),
    ]
    spark_conf: Annotated[Mapping[str, str] | None, Setting(None, "Spark configuration properties by name.")]


class MeasureOptions(TypedDict, total=False):
    """Measure of two documents."""

    measure: Annotated[
        MeasureName,
        Setting(
            "jaccard",
            "Measure of two documents: jaccard is the share of the elements of both that they have in common;"
            " containment is the share of the smaller one, which lies in the larger one, found by an exact join.",
        ),
    ]


class DiscountOptions(TypedDict, total=False):
    """Settings that decide how much an element counts."""

    discount: Annotated[
        DiscountName,
        Setting(
            "none",
            "How much an element counts: none counts all alike; common counts an element the less, the more documents"
            " have it. Similarity is then the weight of the shared elements divided by the weight of all.",
        ),
    ]
    frequencies: Annotated[
        PathOrUrl | None,
        Setting(
            None,
            "With discount common, a file of frequencies that an earlier run saved, instead of those of these"
            " documents.",
        ),
    ]
    save_frequencies: Annotated[
        PathOrUrl | None,
        Setting(None, "With discount common, the file to which the frequencies of the run are saved."),
    ]


class BandOptions(
    LayoutOptions, SeedOptions, ElementOptions, NormalisationOptions, InputOptions, RunOptions, total=False
):
    """Settings of a search by bands."""


class AuditOptions(BandOptions, DiscountOptions, total=False):
    """Settings of :func:`minwise.audit`."""


class SearchOptions(BandOptions, VerifyOptions, DiscountOptions, EngineOptions, total=False):
    """Settings of all searches for pairs."""


class LinkOptions(TypedDict, total=False):
    """Second table."""

    among: Annotated[
        DocumentSource | None,
        Setting(
            None,
            "Second table: only pairs of one document of each table are found, none inside a table.",
        ),
    ]


class ValueOptions(TypedDict, total=False):
    """Column whose values decide which documents are compared."""

    within: Annotated[
        str | None,
        Setting(
            None,
            "Column, such as language or dump: only rows with the same value are compared. Rows without a value are"
            " compared with each other.",
        ),
    ]
    across: Annotated[
        str | None,
        Setting(
            None,
            "Column, such as source: only rows with different values are compared. Rows without a value are not"
            " compared with each other.",
        ),
    ]


class PairsOptions(SearchOptions, MeasureOptions, LinkOptions, ValueOptions, total=False):
    """Settings of :func:`minwise.pairs` and :func:`minwise.write_pairs`."""


class ClustersOptions(SearchOptions, LinkOptions, ValueOptions, total=False):
    """Settings of :func:`minwise.clusters` and :func:`minwise.write_clusters`."""

    group: Annotated[GroupName, CLUSTER_GROUP]


class EndingOptions(TypedDict, total=False):
    """Settings that decide what is done with the clusters of a deduplication."""

    copies: Annotated[
        int, Setting(1, "Documents of each cluster to keep: up to so many, the first ones in keep order.")
    ]
    drop_all: Annotated[
        bool,
        Setting(
            False,
            "Keep no document of a cluster of two or more. With group components, these are all documents that have a"
            " near-duplicate.",
        ),
    ]
    mark: Annotated[
        bool,
        Setting(
            False,
            "Keep every row, and add the columns cluster, cluster_size, cluster_rank, similarity (under its name in"
            " removed.parquet) and kept.",
        ),
    ]
    mark_names: Annotated[
        str | Mapping[str, str] | None,
        Setting(
            None,
            "With mark, other names of these columns, such as 'cluster=dup_id kept=keep'.",
            "A mapping is accepted, too.",
        ),
    ]
    add_weight: Annotated[
        str | None,
        Setting(
            None,
            "Add a column of weights to the kept rows, such as 'weight=min(size, 5)': an expression of size and rank in"
            " the cluster, and of votes, with + - * / ( ), min, max, log and sqrt.",
        ),
    ]
    votes: Annotated[
        str | None,
        Setting(
            None,
            "Column whose distinct values are counted in each cluster; clusters.parquet gets a column votes, marked"
            " rows, too.",
        ),
    ]
    target: Annotated[
        float | None,
        Setting(
            None,
            "Documents to keep, as a number such as 1e6 or as a share below 1 of those read: choose the threshold, from"
            " threshold to 1 in steps of 0.01, that leaves the nearest number.",
        ),
    ]


class GrowthOptions(TypedDict, total=False):
    """Earlier runs whose kept documents the input is compared with."""

    against_run: Annotated[
        PathOrUrl | Sequence[PathOrUrl] | None,
        Setting(
            None,
            "Output directory of an earlier run with the same settings, or several: compare with its kept rows, and"
            " with those of the runs that it was run against. Saved states are read instead of the rows.",
        ),
    ]
    save_state: Annotated[
        bool,
        Setting(
            False,
            "Save keys, ids and shingles of the kept rows in OUT/state, so that a later run with against_run reads no"
            " text of this one.",
        ),
    ]


class KeepRuleOptions(TypedDict, total=False):
    """Settings that decide, by the values of a column, which documents are kept."""

    prefer: Annotated[
        str | Mapping[str, Sequence[Any]] | None,
        Setting(
            None,
            "Values of a column to prefer, the first most, such as source=wiki,books,crawl; rows with other values come"
            " after them, and keep decides among equals. Numbers are named by their shortest decimal form.",
            "A mapping of the column to its values is accepted, too.",
        ),
    ]
    protect: Annotated[
        str | Sequence[str] | Mapping[str, Any] | None,
        Setting(
            None,
            "Rows that are never removed, such as source=wiki; other rows are removed for them. Several are accepted.",
            "A mapping of columns to a value or several is accepted, too.",
        ),
    ]


class DedupOptions(
    SearchOptions, MeasureOptions, ValueOptions, KeepRuleOptions, EndingOptions, GrowthOptions, total=False
):
    """Settings of :func:`minwise.dedup`."""

    group: Annotated[GroupName, DEDUP_GROUP]
    keep: Annotated[str, KEEP]
    against: Annotated[DocumentSource | None, AGAINST]
    # Here and not in a base class: pyright takes an inherited key of this name for the method of a dictionary.
    update: Annotated[
        PathOrUrl | None,
        Setting(
            None,
            "Index of texts with the same settings: compare with its documents, and add the kept rows to it.",
        ),
    ]


class PassageOptions(TypedDict, total=False):
    """Settings that decide what a repeated passage is."""

    min_tokens: Annotated[
        int | None,
        Setting(
            None,
            "Minimum number of tokens of a repeated passage, from 1 to 100,000; if not given, 50, or 1 with unit.",
        ),
    ]
    unit: Annotated[
        UnitName | None,
        Setting(None, "Find repeated whole lines, sentences or paragraphs instead of passages, and count each."),
    ]
    min_count: Annotated[
        int | None,
        Setting(None, "With unit, list units that occur at least so many times, the first included; 2 if not given."),
    ]


class CutOptions(PassageOptions, total=False):
    """Settings that decide what is cut with ``passages``."""

    snap: Annotated[
        SnapName | None,
        Setting(
            None, "Cut only whole lines or sentences that are repeated as a whole; any run of tokens if not given."
        ),
    ]
    min_left: Annotated[
        int, Setting(0, "Minimum number of tokens left of a document; if cuts leave fewer, it is removed.")
    ]


class AnyDedupOptions(DedupOptions, CutOptions, total=False):
    """Settings of :func:`minwise.dedup`, with and without ``passages``."""


class CutDedupOptions(NormalisationOptions, InputOptions, RunOptions, EngineOptions, CutOptions, total=False):
    """Settings of :func:`minwise.dedup` with ``passages``."""

    keep: Annotated[str, KEEP]
    against: Annotated[DocumentSource | None, AGAINST]
    seed: Annotated[int, SEED]


class PassagesOptions(NormalisationOptions, InputOptions, RunOptions, EngineOptions, PassageOptions, total=False):
    """Settings of :func:`minwise.passages` and :func:`minwise.write_passages`."""

    keep: Annotated[
        str,
        Setting(
            "first",
            "Order in which occurrences count as earlier: first, last, longest, shortest, max:COL or min:COL, or"
            " several of these, separated by commas.",
        ),
    ]
    against: Annotated[
        DocumentSource | None,
        Setting(None, "Reference corpus: only passages that stand in it are listed, and none of its own."),
    ]
    html: Annotated[bool, HTML]
    seed: Annotated[int, SEED]


class DecontaminateOptions(NormalisationOptions, InputOptions, RunOptions, EngineOptions, total=False):
    """Settings of :func:`minwise.decontaminate`."""

    ngram: Annotated[
        int, Setting(13, "Tokens of an n-gram, from 5 to 100. An item with fewer tokens must be in a row as a whole.")
    ]
    action: Annotated[
        ActionName,
        Setting(
            "remove",
            "What to do with contaminated rows: remove removes them; cut removes the matched spans, and rows without"
            " any text left; mark keeps all rows and adds the columns contaminated, eval_id and share.",
        ),
    ]
    min_share: Annotated[
        float, Setting(MIN_SHARE, "Minimum share of the rare n-grams of an item that a contaminated row has.")
    ]
    min_ngrams: Annotated[
        int | None, Setting(None, "Number of rare n-grams of an item that is enough, too, whatever their share.")
    ]
    common_share: Annotated[
        float,
        Setting(
            0.001,
            "Share of the rows, copies counted once, above which an n-gram is common and does not count. Applies above"
            " common_count.",
        ),
    ]
    common_count: Annotated[int, Setting(20, "Number of rows, copies counted once, up to which no n-gram is common.")]
    eval_columns: Annotated[
        str | Sequence[str],
        Setting("text", "Columns of the evaluation items, such as question,answer. Each column is an item of its own."),
    ]
    eval_id_column: Annotated[
        str | None,
        Setting(None, "Column of the id of an evaluation row; if not given, id where a file has it, else source:row."),
    ]
    html: Annotated[bool, HTML]
    seed: Annotated[int, SEED]


class NearestOptions(
    ElementOptions, NormalisationOptions, InputOptions, RunOptions, DiscountOptions, MeasureOptions, total=False
):
    """Settings of :func:`minwise.nearest` and :func:`minwise.api.write_nearest`."""

    among: Annotated[
        DocumentSource | None,
        Setting(None, "Corpus whose documents are listed; if not given, those of the input, without the document."),
    ]
    top: Annotated[int, Setting(5, "Number of nearest documents of each document, from 1 to 1,000.")]
    at_least: Annotated[
        float | None,
        Setting(None, "Minimum similarity, from 0 to 1; if not given, any element in common is enough."),
    ]
    mutual: Annotated[bool, Setting(False, "List only pairs of which each is among the nearest of the other.")]
    one_to_one: Annotated[
        bool,
        Setting(
            False,
            "List each document in one pair at most: pairs are accepted by descending similarity, unless one of both is"
            " in an accepted pair.",
        ),
    ]
    engine: Annotated[
        EngineName, Setting("local", "Engine that runs the search: this machine; Apache Spark is refused.")
    ]
    seed: Annotated[int, SEED]


class FrameOptions(LayoutOptions, SeedOptions, NormalisationOptions, total=False):
    """Settings of :func:`minwise.spark.pairs`."""

    shingle: Annotated["str | Shingler", SHINGLE]
    bag: Annotated[bool, BAG]
    verify: Annotated[VerifyName, VERIFY]


class FrameClustersOptions(FrameOptions, total=False):
    """Settings of :func:`minwise.spark.clusters`."""

    group: Annotated[GroupName, CLUSTER_GROUP]


class FrameDedupOptions(FrameOptions, total=False):
    """Settings of :func:`minwise.spark.dedup`."""

    group: Annotated[GroupName, DEDUP_GROUP]
    keep: Annotated[str, KEEP]


class IndexOptions(LayoutOptions, NormalisationOptions, total=False):
    """Settings of :meth:`minwise.Index.create`; stored with the index and never changed."""

    shingle: Annotated[
        str,
        Setting(
            SHINGLE.default, "Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items."
        ),
    ]
    bag: Annotated[bool, BAG]
    fields: Annotated[str | Mapping[str, str] | None, FIELDS]
    weights: Annotated[str | Mapping[str, int] | None, WEIGHTS]
    seed: Annotated[
        int | None,
        Setting(None, "Seed of every hash; if not given, a random one that is kept secret, against crafted documents."),
    ]
    max_bucket: Annotated[
        int, Setting(10_000, "Members of a bucket that are searched, the first in order of addition.")
    ]
    store_text: Annotated[bool, Setting(False, "Store the texts too, to show passages of them.")]
    sketch_only: Annotated[
        bool, Setting(False, "Store only sketches: smaller, and similarities are estimates. Excludes store_text.")
    ]
    assign: Annotated[
        bool,
        Setting(
            False,
            "Assign every document to a cluster when it is added: that of the stored documents similar to it. Names of"
            " clusters never change; those that a new document connects are merged.",
        ),
    ]


class ExpireOptions(TypedDict, total=False):
    """Settings of :meth:`minwise.Index.expire`."""

    older_than: Annotated[
        str | timedelta | None,
        Setting(
            None,
            "Remove documents whose time is longer ago: a number and h, d or w for hours, days or weeks, such as 30d.",
            "A timedelta is accepted, too.",
        ),
    ]
    before: Annotated[
        str | date | None,
        Setting(
            None,
            "Remove documents whose time is before this ISO 8601 date or time, such as 2026-01-01; in UTC if it names"
            " no time zone. Instead of older_than.",
            "A date or datetime is accepted, too.",
        ),
    ]
    time_field: Annotated[
        str | None,
        Setting(
            None,
            "Metadata field with the time of a document: an ISO 8601 date or time, or Unix seconds. A document without"
            " it never expires. Required, because an index does not store when a document was added.",
        ),
    ]
    dry_run: Annotated[bool, Setting(False, "Only count the documents; remove nothing.")]


@dataclass(frozen=True, slots=True)
class Definition:
    """A setting as a call has it.

    Attributes:
        name: Its name, the same in every interface.
        type: Its type, without documentation.
        default: Value where the caller gives none.
        help: Meaning and unit, in whole sentences.
        python: What only Python callers can give, in whole sentences.
    """

    name: str
    type: Any
    default: Any
    help: str
    python: str

    @property
    def choices(self) -> tuple[Any, ...]:
        """All valid values of a closed choice; empty for every other type."""
        kinds = get_args(self.type) if get_origin(self.type) is not Literal else (self.type,)
        listed = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
        return (False, True) if self.type is bool else tuple(listed)

    @property
    def documentation(self) -> str:
        """Meaning, unit and default, as a docstring has them."""
        default = "" if self.default in (None, ()) else f"Default: {self.default}."
        return " ".join(filter(None, (self.help, self.python, default)))

    @property
    def optional(self) -> bool:
        """Whether None is a valid value."""
        return NoneType in get_args(self.type)


def setting_field(default: Any, help: str) -> Any:  # noqa: A002, ANN401 - as in Setting; any value
    """Return a field of a dataclass of settings, with the default and the help text of a setting."""
    return field(default=default, metadata={"setting": Setting(default, help)})


def definitions(options: type) -> dict[str, Definition]:
    """Return the settings of an option class, or of a dataclass of settings, by name and in their order."""
    if not is_dataclass(options):
        return {name: _definition(name, annotation) for name, annotation in options.__annotations__.items()}
    defined = [one for one in fields(options) if "setting" in one.metadata]
    return {one.name: _definition(one.name, Annotated[one.type, one.metadata["setting"]]) for one in defined}


def _definition(name: str, annotation: Any) -> Definition:  # noqa: ANN401 - any annotation
    kind, setting = get_args(annotation)
    return Definition(name, kind, setting.default, setting.help, setting.python)


def with_defaults(options: type, given: Mapping[str, object]) -> dict[str, Any]:
    """Return all settings of an option class: the given ones, and the default of every other one.

    Raises:
        ConfigError: If a setting is unknown, or is given a value that is not one of its choices.
    """
    known = definitions(options)
    check_setting_names(given, list(known))
    for name, value in given.items():
        check_setting(known[name], value)
    return {name: given.get(name, definition.default) for name, definition in known.items()}


def lists_faults(on_error: str) -> bool:
    """Return whether rows that cannot be used are listed, in ``quarantine.jsonl`` or on standard error."""
    return on_error in ("quarantine-rows", "quarantine")


def check_setting(definition: Definition, value: object) -> None:
    """Raise :class:`~minwise.errors.ConfigError` if a closed choice is given another value."""
    if definition.choices and not (value is None and definition.optional):
        check_choice(definition.name, value, definition.choices)
