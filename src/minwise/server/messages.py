"""Messages: what is sent and answered over HTTP, each with its rules. The OpenAPI page is made from these."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, ValidationError

__all__ = [
    "AddOptions",
    "CompareRequest",
    "Comparison",
    "Document",
    "DocumentIds",
    "DocumentList",
    "Documents",
    "ErrorAnswer",
    "ErrorDetail",
    "Estimate",
    "Found",
    "Hit",
    "IndexStats",
    "Limits",
    "ListOptions",
    "ListedDocument",
    "OneOrMore",
    "PassagePlace",
    "Piece",
    "PlanAnswer",
    "PlanOptions",
    "QueryRequest",
    "Removed",
    "RemovedOne",
    "Result",
    "Results",
    "Row",
    "SegmentStats",
    "SettingsShown",
    "SharedSpans",
    "Snippet",
    "Status",
    "StoredDocument",
]

MOST_HITS = 100

Name = Annotated[str, Meta(min_length=1, max_length=1000)]
Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Id = Annotated[
    Name | Number, Meta(description='Any text or whole number; 5 and "5" are the same id.', examples=["news-1"])
]
StoredId = Annotated[str | int, Meta(description="The id, as it was added.")]
Object = dict[str, Any]
Metadata = Annotated[
    Object | None, Meta(description="An object that is stored with the document and comes back with it.")
]
# What clients send is looked at before it is decoded.
OBJECT_OR_NULL: Object = {"anyOf": [{"type": "object"}, {"type": "null"}], "default": None}
SentMetadata = Annotated[
    Raw,
    Meta(
        description="An object that is stored with the document and comes back with it.",
        extra_json_schema=OBJECT_OR_NULL,
    ),
]
Text = Annotated[str, Meta(description="The text itself.")]
Count = Annotated[int, Meta(ge=0)]
Span = Annotated[tuple[Count, Count], Meta(description="From, inclusive, to, exclusive, in code points.")]
Similarity = Annotated[float, Meta(ge=0, le=1, description="Jaccard similarity of the shingle sets, from 0 to 1.")]
Share = Annotated[float, Meta(ge=0, le=1)]
WantedThreshold = Annotated[float, Meta(gt=0, le=1, description="The similarity from which on a pair is wanted.")]
WantedRecall = Annotated[float, Meta(gt=0, lt=1, description="How likely a pair just at it is to be found.")]


class Document(Struct, forbid_unknown_fields=True, gc=False):
    """A document to be stored: its id, its text, and an object that comes back with it."""

    id: Id
    text: Text
    metadata: SentMetadata | UnsetType = UNSET


class Documents(Struct, forbid_unknown_fields=True):
    """Several documents, which become durable together."""

    documents: Annotated[list[Document], Meta(min_length=1)]


class OneOrMore(Struct, forbid_unknown_fields=True):
    """Either a document or several, as both are read; :class:`Document` and :class:`Documents` are what is sent."""

    id: Id | UnsetType = UNSET
    text: str | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET
    documents: list[Document] | UnsetType = UNSET

    @property
    def is_one(self) -> bool:
        """Whether it is a document by itself."""
        return self.documents is UNSET

    def listed(self) -> list[Document]:
        """The documents.

        Raises:
            ValidationError: If it is neither one document nor at least one in a list.
        """
        if self.documents is UNSET:
            if self.id is UNSET or self.text is UNSET:
                missing = "id" if self.id is UNSET else "text"
                raise ValidationError(f"Object missing required field `{missing}`; or give `documents`, a list")
            return [Document(self.id, self.text, self.metadata)]
        if self.id is not UNSET or self.text is not UNSET or self.metadata is not UNSET:
            raise ValidationError("Object must have either `documents`, or `id` and `text`, got both")
        if not self.documents:
            raise ValidationError("Expected `array` of length >= 1 - at `$.documents`")
        return self.documents


class DocumentIds(Struct, forbid_unknown_fields=True):
    """Documents by their ids."""

    ids: Annotated[list[Id], Meta(min_length=1)]


class AddOptions(Struct, forbid_unknown_fields=True):
    """How documents are added."""

    unique: Annotated[
        bool, Meta(description="Whether near-duplicates of what is there are left out; needs the right to read, too.")
    ] = False
    on_duplicate_id: Annotated[
        Literal["error", "skip", "replace"],
        Meta(description="What becomes of a document whose id has another one; the same one again changes nothing."),
    ] = "error"


class ListOptions(Struct, forbid_unknown_fields=True):
    """Which part of the list of documents is wanted."""

    limit: Annotated[int, Meta(ge=1, le=MOST_HITS, description="The most documents; fewer if texts are long.")] = 50
    before: Annotated[int, Meta(ge=0, le=2**32 - 2, description="``next`` of the list before.")] | UnsetType = UNSET


class PlanOptions(Struct, forbid_unknown_fields=True):
    """What to plan for; without any, the plan of the index comes back."""

    threshold: WantedThreshold | UnsetType = UNSET
    recall: WantedRecall | UnsetType = UNSET
    slots: Annotated[int, Meta(ge=1, le=4096, description="The most slots that may be used.")] | UnsetType = UNSET
    bands: Annotated[int, Meta(ge=1, le=4096, description="A layout to look at; with rows.")] | UnsetType = UNSET
    rows: Annotated[int, Meta(ge=1, le=4096, description="Its slots per band.")] | UnsetType = UNSET


class QueryRequest(Struct, forbid_unknown_fields=True):
    """A text whose near-duplicates are wanted: from which similarity on, how many, and with which metadata."""

    text: Text
    threshold: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        Meta(description="The least similarity: that of the index if not given, never one below it."),
    ] = None
    top: Annotated[int, Meta(ge=1, le=MOST_HITS, description="The most hits.")] = 10
    where: (
        Annotated[
            Raw, Meta(description="Only documents whose metadata has these values.", extra_json_schema=OBJECT_OR_NULL)
        ]
        | UnsetType
    ) = UNSET
    passages: Annotated[bool, Meta(description="Whether hits come with a snippet and with what is shared.")] = True


class CompareRequest(Struct, forbid_unknown_fields=True):
    """Two texts; with ``rows`` also how they stand side by side."""

    left: Text
    right: Text
    rows: bool = False


class Snippet(Struct):
    """The part of a stored text around what it shares: the part, where it starts, and what of it is shared."""

    text: str
    start: Annotated[int, Meta(ge=0, description="Code points of the document before the snippet.")]
    spans: Annotated[list[Span], Meta(description="What is shared, counted from the start of the snippet.")]
    length: Annotated[int, Meta(ge=0, description="Code points of the whole document.")]


class SharedSpans(Struct):
    """What both texts have, as places in either, counted in code points."""

    query: list[Span]
    document: list[Span]


class Hit(Struct):
    """A stored document that is similar. Snippet and spans are there if the index stores texts."""

    id: StoredId
    similarity: Similarity
    exact: Annotated[bool, Meta(description="Whether the similarity is exact; else it is estimated from sketches.")]
    metadata: Metadata
    snippet: Snippet | None
    spans: SharedSpans | None


class Found(Struct):
    """Near-duplicates, the most similar first; ``truncated`` if the search was cut short."""

    hits: list[Hit]
    truncated: bool
    threshold: Similarity


class Result(Struct):
    """What became of a document, and of what it is a near-duplicate if that kept it out."""

    id: StoredId
    fate: Literal["added", "replaced", "unchanged", "skipped", "duplicate", "conflict"]
    duplicate_of: str | int | None = None
    similarity: Similarity | None = None
    duplicates: list[Hit] = []


class Results(Struct):
    """What became of each document, in the order in which they came."""

    results: list[Result]


class Removed(Struct):
    """How many documents were removed, and which ids had none."""

    removed: Count
    missing: list[str | int]


class RemovedOne(Struct):
    """The document is gone."""

    removed: Literal[1] = 1


class StoredDocument(Struct):
    """What is stored under an id; the text if the index stores texts, and how many shingles it has if they are kept."""

    id: StoredId
    metadata: Metadata
    text: str | None
    shingles: Count | None


class ListedDocument(Struct):
    """A document in a list: with the beginning of its text, if the index stores texts."""

    id: StoredId
    metadata: Metadata
    snippet: str | None
    shingles: Count | None


class DocumentList(Struct):
    """Documents, the newest first; ``next`` goes on where this ends, unless there are no more."""

    documents: list[ListedDocument]
    next: Annotated[int | None, Meta(description="To be passed as ``before``; null at the end.")]


class Piece(Struct):
    """A piece of a text: ``shared``, ``moved`` (shared, at another place), ``only`` here, or a ``gap`` left out."""

    text: str
    kind: Literal["shared", "moved", "only", "gap"]


class Row(Struct):
    """What stands beside each other."""

    left: list[Piece]
    right: list[Piece]


class PassagePlace(Struct):
    """A passage that both texts have: where in either, and whether it has moved past another."""

    left: Span
    right: Span
    moved: bool


class Estimate(Struct):
    """What the sketches say, with the interval in which the similarity is."""

    value: Share
    low: Share
    high: Share
    confidence: Share


class PlanAnswer(Struct):
    """A layout of bands and rows, and what it finds and misses."""

    threshold: Annotated[float, Meta(gt=0, le=1, description="The similarity from which on a pair is wanted.")]
    wanted_recall: Annotated[Share | None, Meta(description="The recall asked for; null if bands and rows were.")]
    recall: Annotated[float, Meta(ge=0, le=1, description="How likely a pair just at the threshold is found.")]
    bands: Annotated[int, Meta(ge=1, description="More bands propose more pairs.")]
    rows: Annotated[int, Meta(ge=1, description="Slots per band; more rows make each band stricter.")]
    slots: Annotated[int, Meta(ge=1, description="bands · rows.")]
    steepest: Annotated[float, Meta(ge=0, le=1, description="(1/bands)^(1/rows): about where the curve is steepest.")]
    false_positive_area: Annotated[float, Meta(ge=0, le=1, description="Below the curve, left of the threshold.")]
    false_negative_area: Annotated[float, Meta(ge=0, le=1, description="Above the curve, right of the threshold.")]
    false_candidate_rate: Annotated[
        float, Meta(ge=0, le=1, description="Share of pairs looked at in vain, if they were spread evenly below it.")
    ]


class Comparison(Struct):
    """How alike two texts are, and what they share."""

    similarity: Similarity
    estimate: Estimate
    shared: Annotated[int, Meta(ge=0, description="Shingles that both have.")]
    only_left: Count
    only_right: Count
    containment_left: Annotated[
        float, Meta(ge=0, le=1, description="Share of the left text's shingles that both have.")
    ]
    containment_right: Share
    spans_left: list[Span]
    spans_right: list[Span]
    passages: list[PassagePlace]
    chance: Annotated[float, Meta(ge=0, le=1, description="How likely a pair of this similarity is found.")]
    plan: PlanAnswer
    rows: list[Row] | None = None


class Limits(Struct):
    """How much the server takes: bytes, counts and seconds."""

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


class SegmentStats(Struct):
    """A file of postings."""

    file: str
    bytes: Count
    documents: Count
    postings: Count


class SettingsShown(Struct):
    """What the index was created with; without its seed, which is secret unless it was given."""

    threshold: Similarity
    bands: int
    rows: int
    wanted_recall: Share | None
    shingle: Annotated[str, Meta(description="How texts are cut: word:N, char:N or byte:N.")]
    bag: bool
    hash_bits: Literal[32, 64]
    nfkc: bool
    strip_accents: bool
    lowercase: bool
    strip_punctuation: bool
    mask_digits: bool
    collapse_whitespace: bool
    scheme: Literal["fast", "minhash"]
    max_bucket: Annotated[int, Meta(ge=1, description="Members up to which a whole bucket is looked at.")]
    store: Annotated[Literal["shingles", "text", "sketch"], Meta(description="What is kept of documents.")]
    secret_seed: bool


class IndexStats(Struct):
    """How much there is, in how many files, under which settings, and how much the server takes."""

    documents: Count
    removed: Count
    recent: Annotated[int, Meta(ge=0, description="Documents that are in no segment yet.")]
    commits: Count
    bytes: Annotated[int, Meta(ge=0, description="Of all files.")]
    database_bytes: Count
    segments: list[SegmentStats]
    resident_bytes: Annotated[int, Meta(ge=0, description="Memory that postings take.")]
    settings: SettingsShown
    read_only: bool
    rights: Annotated[list[Literal["read", "write"]], Meta(description="What who asks may do.")]
    limits: Limits


class Status(Struct):
    """All is well."""

    status: Literal["ok"] = "ok"


class ErrorDetail(Struct):
    """What went wrong: a code for programs, a line for people."""

    code: str
    message: Annotated[str, Meta(description="One line: what is wrong, the rule, the value received, the remedy.")]


class ErrorAnswer(Struct):
    """The one shape of every error."""

    error: ErrorDetail
