"""JSON messages of the API with their validation rules; the source of the OpenAPI schemas.

The name of a schema is the name of its class without the suffix ``Message``.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, ValidationError

from minwise.index import ContainedSide, TruncatedBy
from minwise.options import MAX_CANDIDATES, DedupOptions, MeasureName, definitions

__all__ = [
    "AddOptions",
    "AddRequest",
    "CompareRequest",
    "ComparisonMessage",
    "DocumentIdsMessage",
    "DocumentListMessage",
    "DocumentMessage",
    "DocumentsMessage",
    "ErrorAnswer",
    "ErrorDetail",
    "EstimateMessage",
    "ExpireByAgeMessage",
    "ExpireByTimeMessage",
    "ExpireRequest",
    "ExpiredMessage",
    "FoundMessage",
    "HitMessage",
    "IndexStatsMessage",
    "LimitsMessage",
    "ListOptions",
    "ListedDocumentMessage",
    "PassagePlaceMessage",
    "PieceMessage",
    "PlanAnswer",
    "PlanOptions",
    "QueryRequest",
    "RemovedMessage",
    "RemovedOneMessage",
    "ResultMessage",
    "ResultsMessage",
    "RowMessage",
    "SearchOptions",
    "SegmentStatsMessage",
    "SettingsShown",
    "SharedSpansMessage",
    "SnippetMessage",
    "StatusMessage",
    "StoredDocumentMessage",
    "TextMatchMessage",
    "TextMatchesMessage",
]

MAX_HITS = 100

NameId = Annotated[str, Meta(min_length=1, max_length=1000)]
NumberId = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Id = Annotated[
    NameId | NumberId, Meta(description='A string or an integer; 5 and "5" are the same id.', examples=["news-1"])
]
StoredId = Annotated[str | int, Meta(description="The id as it was added.")]
JsonObject = dict[str, Any]
Metadata = Annotated[
    JsonObject | None, Meta(description="JSON object that is stored with the document and returned with it.")
]
# Objects of clients stay bytes until their size and nesting are checked.
OBJECT_OR_NULL: JsonObject = {"anyOf": [{"type": "object"}, {"type": "null"}], "default": None}
SentMetadata = Annotated[
    Raw,
    Meta(
        description="JSON object that is stored with the document and returned with it.",
        extra_json_schema=OBJECT_OR_NULL,
    ),
]
Text = Annotated[str, Meta(description="The text.")]
Count = Annotated[int, Meta(ge=0)]
Span = Annotated[tuple[Count, Count], Meta(description="Start, inclusive, and end, exclusive, in code points.")]
Similarity = Annotated[float, Meta(ge=0, le=1, description="Jaccard similarity of the shingle sets, from 0 to 1.")]
Share = Annotated[float, Meta(ge=0, le=1)]
LAYOUT = definitions(DedupOptions)
PlanThreshold = Annotated[float, Meta(gt=0, le=1, description=LAYOUT["threshold"].help)]
PlanRecall = Annotated[float, Meta(gt=0, lt=1, description=LAYOUT["recall"].help)]
PlanSize = Annotated[int, Meta(ge=1, le=4096)]


class DocumentMessage(Struct, forbid_unknown_fields=True, gc=False):
    """A document to store: id, text and metadata."""

    id: Id
    text: Text
    metadata: SentMetadata | UnsetType = UNSET


class DocumentsMessage(Struct, forbid_unknown_fields=True):
    """Several documents, which are committed together."""

    documents: Annotated[list[DocumentMessage], Meta(min_length=1)]


class AddRequest(Struct, forbid_unknown_fields=True):
    """A body that is either a :class:`DocumentMessage` or a :class:`DocumentsMessage`."""

    id: Id | UnsetType = UNSET
    text: str | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET
    documents: list[DocumentMessage] | UnsetType = UNSET

    @property
    def is_single(self) -> bool:
        """Whether the body is a single document instead of a list."""
        return self.documents is UNSET

    def listed(self) -> list[DocumentMessage]:
        """Return the documents.

        Raises:
            ValidationError: If the body is neither one document nor a non-empty list.
        """
        if self.documents is UNSET:
            if self.id is UNSET or self.text is UNSET:
                missing = "id" if self.id is UNSET else "text"
                raise ValidationError(f"Object missing required field `{missing}`; or give `documents`, a list")
            return [DocumentMessage(self.id, self.text, self.metadata)]
        if self.id is not UNSET or self.text is not UNSET or self.metadata is not UNSET:
            raise ValidationError("Object must have either `documents`, or `id` and `text`, got both")
        if not self.documents:
            raise ValidationError("Expected `array` of length >= 1 - at `$.documents`")
        return self.documents


class DocumentIdsMessage(Struct, forbid_unknown_fields=True):
    """Ids of documents."""

    ids: Annotated[list[Id], Meta(min_length=1)]


Age = Annotated[
    str,
    Meta(
        pattern=r"^[1-9][0-9]{0,3}[hdw]$",
        description="Documents whose time is longer ago expire: a number of hours, days or weeks.",
        examples=["30d"],
    ),
]
Moment = Annotated[
    datetime,
    Meta(tz=True, description="Documents whose time is before this one expire.", examples=["2026-01-01T00:00:00Z"]),
]
TimeField = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=1000,
        description="Metadata field with the time of a document: an ISO 8601 date or time, or Unix seconds. A document "
        "without it never expires.",
        examples=["created"],
    ),
]
DryRun = Annotated[bool, Meta(description="Whether to count only, and remove nothing.")]


class ExpireByAgeMessage(Struct, forbid_unknown_fields=True):
    """Which documents expire: those whose time is longer ago than an age."""

    older_than: Age
    time_field: TimeField
    dry_run: DryRun = False


class ExpireByTimeMessage(Struct, forbid_unknown_fields=True):
    """Which documents expire: those whose time is before another."""

    before: Moment
    time_field: TimeField
    dry_run: DryRun = False


class ExpireRequest(Struct, forbid_unknown_fields=True):
    """A body that is either an :class:`ExpireByAgeMessage` or an :class:`ExpireByTimeMessage`."""

    time_field: TimeField
    older_than: Age | UnsetType = UNSET
    before: Moment | UnsetType = UNSET
    dry_run: DryRun = False

    def __post_init__(self) -> None:
        """Check that there is one of both."""
        if (self.older_than is UNSET) == (self.before is UNSET):
            given = "neither" if self.before is UNSET else "both"
            raise ValueError(f"Object must have either `older_than` or `before`, got {given}")


class AddOptions(Struct, forbid_unknown_fields=True):
    """Query parameters of adding documents."""

    unique: Annotated[
        bool,
        Meta(description="Whether to skip near-duplicates of stored documents; requires the right to read, too."),
    ] = False
    on_duplicate_id: Annotated[
        Literal["error", "skip", "replace"],
        Meta(description="What to do if the id has another document; adding the same document again changes nothing."),
    ] = "error"


class ListOptions(Struct, forbid_unknown_fields=True):
    """Query parameters of listing documents."""

    limit: Annotated[
        int, Meta(ge=1, le=MAX_HITS, description="Maximum number of documents; fewer are returned if texts are long.")
    ] = 50
    before: (
        Annotated[int, Meta(ge=0, le=2**32 - 2, description="The value ``next`` of the previous list.")] | UnsetType
    ) = UNSET


class SearchOptions(Struct, forbid_unknown_fields=True):
    """Query parameters of a text search."""

    contains: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="The phrase: words or a part of a word. Upper and lower case, and all blanks, are the same.",
            examples=["night ferry"],
        ),
    ]
    limit: Annotated[int, Meta(ge=1, le=MAX_HITS, description="Maximum number of documents.")] = 20
    before: (
        Annotated[int, Meta(ge=0, le=2**32 - 2, description="The value ``next`` of the previous response.")] | UnsetType
    ) = UNSET


class PlanOptions(Struct, forbid_unknown_fields=True):
    """Query parameters of a plan; without any, the plan of the index is returned."""

    threshold: PlanThreshold | UnsetType = UNSET
    recall: PlanRecall | UnsetType = UNSET
    slots: Annotated[PlanSize, Meta(description=LAYOUT["slots"].help)] | UnsetType = UNSET
    bands: Annotated[PlanSize, Meta(description=LAYOUT["bands"].help)] | UnsetType = UNSET
    rows: Annotated[PlanSize, Meta(description=LAYOUT["rows"].help)] | UnsetType = UNSET


class QueryRequest(Struct, forbid_unknown_fields=True):
    """A query for the near-duplicates of a text."""

    text: Text
    threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="Minimum similarity of a hit: by default, and at least, the threshold of the index. 0 for "
            "none: the most similar documents, each with its recall; complete_above says what cannot be missing."
        ),
    ] = None
    top: Annotated[int, Meta(ge=1, le=MAX_HITS, description="Maximum number of hits.")] = 10
    max_candidates: Annotated[
        int,
        Meta(
            ge=1,
            le=MAX_CANDIDATES,
            description="Maximum number of candidates compared, the most promising first; one with a stored row of "
            "more than 4,096 bytes counts once for every 4,096 bytes.",
        ),
    ] = MAX_CANDIDATES
    where: (
        Annotated[
            Raw,
            Meta(
                description="Return only documents whose metadata has these values.", extra_json_schema=OBJECT_OR_NULL
            ),
        ]
        | UnsetType
    ) = UNSET
    passages: Annotated[bool, Meta(description="Whether hits have a snippet and the shared spans.")] = True
    measure: Annotated[
        MeasureName,
        Meta(
            description="jaccard, or containment: hits hold the text or lie in it, at any threshold, and each hit "
            "states the probability of finding it. Needs an index that is not of sketches."
        ),
    ] = "jaccard"


class CompareRequest(Struct, forbid_unknown_fields=True):
    """Two texts to compare; ``rows`` adds their side-by-side view."""

    left: Text
    right: Text
    rows: bool = False


class SnippetMessage(Struct):
    """The part of a stored text around the longest shared passage."""

    text: str
    start: Annotated[int, Meta(ge=0, description="Offset of the snippet in the document, in code points.")]
    spans: Annotated[list[Span], Meta(description="Shared passages, relative to the start of the snippet.")]
    length: Annotated[int, Meta(ge=0, description="Length of the whole document in code points.")]


class SharedSpansMessage(Struct):
    """The passages that both texts share, as code point spans of each."""

    query: list[Span]
    document: list[Span]


class HitMessage(Struct):
    """A similar stored document. Snippet and spans are null if the index does not store texts."""

    id: StoredId
    similarity: Similarity
    exact: Annotated[
        bool, Meta(description="Whether the similarity is exact; otherwise it is estimated from sketches.")
    ]
    metadata: Metadata
    snippet: SnippetMessage | None
    spans: SharedSpansMessage | None
    contained: (
        Annotated[ContainedSide, Meta(description="Text that lies in the other one; only with measure containment.")]
        | UnsetType
    ) = UNSET
    recall: (
        Annotated[
            float,
            Meta(
                ge=0,
                le=1,
                description="Probability of finding such a document; only with threshold 0 or measure containment.",
            ),
        ]
        | UnsetType
    ) = UNSET


class FoundMessage(Struct):
    """Near-duplicates, the most similar first; ``truncated`` if the search was cut short."""

    hits: list[HitMessage]
    truncated: bool
    truncated_by: Annotated[
        TruncatedBy | None,
        Meta(
            description="bucket: more documents share a band with the text than the index searches (max_bucket), or "
            "too many removed ones; candidates: more candidates than max_candidates allows; null: not cut short."
        ),
    ]
    left_out: Annotated[int, Meta(ge=0, description="Candidates that were not compared because of max_candidates.")]
    capped_buckets: Annotated[int, Meta(ge=0, description="Buckets that were not searched to their end.")]
    threshold: Similarity
    complete_above: (
        Annotated[
            Annotated[float, Meta(ge=0, le=1)] | None,
            Meta(
                description="Similarity above which a document that belongs in the answer is in it with a probability "
                "of at least 99 %; less similar ones may be missing. null: no similarity suffices, because the search "
                "was cut short. Only with threshold 0."
            ),
        ]
        | UnsetType
    ) = UNSET


class ResultMessage(Struct):
    """What was done with a document, and which near-duplicates kept it out."""

    id: StoredId
    fate: Literal["added", "replaced", "unchanged", "skipped", "duplicate", "conflict"]
    duplicate_of: str | int | None = None
    similarity: Similarity | None = None
    duplicates: list[HitMessage] = []


class ResultsMessage(Struct):
    """What was done with each document, in the order of the request."""

    results: list[ResultMessage]


class RemovedMessage(Struct):
    """Number of removed documents, and the ids that were not in the index."""

    removed: Count
    missing: list[str | int]


class RemovedOneMessage(Struct):
    """The document was removed."""

    removed: Literal[1] = 1


class ExpiredMessage(Struct):
    """Number of documents that were read, and of those that expired: they were removed unless it was a dry run."""

    read: Count
    expired: Count
    undated: Annotated[int, Meta(ge=0, description="Documents that have no value in the field, and stay.")]
    unreadable: Annotated[int, Meta(ge=0, description="Documents whose value is not a time, which stay, too.")]
    oldest: Annotated[str | None, Meta(description="The oldest time that was read; null if there is none.")]
    before: Annotated[str, Meta(description="The time before which documents expire.")]


class StoredDocumentMessage(Struct):
    """A stored document; text and number of shingles are null if the index does not store them."""

    id: StoredId
    metadata: Metadata
    text: str | None
    shingles: Count | None


class ListedDocumentMessage(Struct):
    """A document of a list, with the beginning of its text if the index stores texts."""

    id: StoredId
    metadata: Metadata
    snippet: str | None
    shingles: Count | None


class DocumentListMessage(Struct):
    """Documents, the newest first."""

    documents: list[ListedDocumentMessage]
    next: Annotated[int | None, Meta(description="The value of ``before`` for the next list; null at the end.")]


class TextMatchMessage(Struct):
    """A document that contains a phrase, with the part of its text around the first match."""

    id: StoredId
    metadata: Metadata
    snippet: SnippetMessage


class TextMatchesMessage(Struct):
    """Documents that contain a phrase, the newest first; few of them, or none, if many documents were searched."""

    documents: list[TextMatchMessage]
    searched: Annotated[int, Meta(ge=0, description="Documents that were searched for this response.")]
    next: Annotated[
        int | None, Meta(description="The value of ``before`` that continues the search; null if it is complete.")
    ]


class PieceMessage(Struct):
    """A piece of a text: ``shared``, ``moved`` (shared at another position), ``only`` here, or an omitted ``gap``.

    ``common`` is blank, or in both texts but too short for a shared passage.
    """

    text: str
    kind: Literal["shared", "moved", "only", "common", "gap"]


class RowMessage(Struct):
    """A row of the side-by-side view."""

    left: list[PieceMessage]
    right: list[PieceMessage]


class PassagePlaceMessage(Struct):
    """A shared passage: its span in each text, and whether it has moved past another passage."""

    left: Span
    right: Span
    moved: bool


class EstimateMessage(Struct):
    """Similarity estimated from sketches, with its confidence interval."""

    value: Share
    low: Share
    high: Share
    confidence: Share


class PlanAnswer(Struct):
    """A layout of bands and rows with its recall and its errors."""

    threshold: Annotated[float, Meta(gt=0, le=1, description="Minimum similarity of a near-duplicate pair.")]
    wanted_recall: Annotated[
        Share | None, Meta(description="The requested recall; null if bands and rows were requested.")
    ]
    recall: Annotated[float, Meta(ge=0, le=1, description="Probability of finding a pair at the threshold.")]
    bands: Annotated[int, Meta(ge=1, description="Number of bands; more bands give more candidate pairs.")]
    rows: Annotated[int, Meta(ge=1, description="Slots per band; more rows make a band more selective.")]
    slots: Annotated[int, Meta(ge=1, description="bands · rows.")]
    steepest: Annotated[
        float, Meta(ge=0, le=1, description="(1/bands)^(1/rows), approximately where the curve is steepest.")
    ]
    false_positive_area: Annotated[float, Meta(ge=0, le=1, description="Area below the curve, left of the threshold.")]
    false_negative_area: Annotated[float, Meta(ge=0, le=1, description="Area above the curve, right of the threshold.")]
    false_candidate_rate: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Share of the pairs below the threshold that are candidates, for evenly distributed "
            "similarities.",
        ),
    ]


class ComparisonMessage(Struct):
    """Similarity of two texts, and what they share."""

    similarity: Similarity
    estimate: EstimateMessage
    shared: Annotated[int, Meta(ge=0, description="Shingles of both texts.")]
    only_left: Count
    only_right: Count
    containment_left: Annotated[
        float, Meta(ge=0, le=1, description="Share of the shingles of the left text that are in both.")
    ]
    containment_right: Share
    spans_left: list[Span]
    spans_right: list[Span]
    passages: list[PassagePlaceMessage]
    chance: Annotated[float, Meta(ge=0, le=1, description="Probability of finding a pair of this similarity.")]
    plan: PlanAnswer
    rows: list[RowMessage] | None = None


class LimitsMessage(Struct):
    """Limits of the server in bytes, counts and seconds."""

    max_document: Count
    max_metadata: Count
    max_compare: Count
    max_request: Count
    max_documents: Count
    max_depth: Count
    max_in_flight: Count
    max_connections: Count
    receive_timeout: float
    drain_timeout: float


class SegmentStatsMessage(Struct):
    """A file of postings."""

    file: str
    bytes: Count
    documents: Count
    postings: Count


class SettingsShown(Struct):
    """Settings of the index without its seed, which is secret unless it was given."""

    threshold: Similarity
    bands: int
    rows: int
    wanted_recall: Share | None
    shingle: Annotated[str, Meta(description="Kind and size of shingles: word:N, char:N or byte:N.")]
    bag: bool
    hash_bits: Literal[32, 64]
    nfkc: bool
    strip_accents: bool
    lowercase: bool
    strip_punctuation: bool
    mask_digits: bool
    collapse_whitespace: bool
    scheme: Literal["fast", "minhash"]
    max_bucket: Annotated[int, Meta(ge=1, description="Maximum size of a bucket that is searched completely.")]
    store: Annotated[Literal["shingles", "text", "sketch"], Meta(description="What is stored of each document.")]
    secret_seed: bool


class IndexStatsMessage(Struct):
    """Size, files and settings of the index, and limits of the server."""

    documents: Count
    removed: Count
    recent: Annotated[int, Meta(ge=0, description="Documents that are not in a segment yet.")]
    commits: Count
    bytes: Annotated[int, Meta(ge=0, description="Size of all files.")]
    database_bytes: Count
    segments: list[SegmentStatsMessage]
    resident_bytes: Annotated[int, Meta(ge=0, description="Memory of postings.")]
    settings: SettingsShown
    read_only: bool
    rights: Annotated[list[Literal["read", "write"]], Meta(description="Rights of the client.")]
    limits: LimitsMessage


class StatusMessage(Struct):
    """The check succeeded."""

    status: Literal["ok"] = "ok"


class ErrorDetail(Struct):
    """A code for programs and a message for people."""

    code: str
    message: Annotated[str, Meta(description="One line: what is wrong, the rule, the value received and the remedy.")]


class ErrorAnswer(Struct):
    """The shape of every error."""

    error: ErrorDetail
