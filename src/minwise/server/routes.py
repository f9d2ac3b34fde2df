"""Routes of the API: the handler of each, and the table from which requests are dispatched and described."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct

import minwise as mw
from minwise.errors import InputError
from minwise.index import Decision, Listing, StoredDocument, TextMatch
from minwise.server import messages
from minwise.server.errors import ApiError, as_api_error, busy
from minwise.server.index_tasks import (
    HitDetail,
    QueryTask,
    SubmittedDocument,
    code_point_spans,
    snippet_of,
    snippet_text,
)
from minwise.server.protocol import HttpRequest
from minwise.server.service import Service

__all__ = ["ROUTES", "Call", "Handler", "Route", "RouteTable"]

# Near-duplicates that are returned with a document they kept out.
MAX_DUPLICATES = 10
# Characters of each text in the side-by-side view, around the differences.
MAX_ROW_CHARACTERS = 20_000


class Call(NamedTuple):
    """A request that has passed all checks.

    Attributes:
        body: The checked message.
        options: The query parameters.
        id: The id of the path, if the route has one.
        rights: The rights of the client.
        request: The HTTP request, to notice that the client disconnects.
    """

    body: Any
    options: Any
    id: str
    rights: frozenset[str]
    request: HttpRequest


Handler = Callable[[Service, Call], Awaitable[Any]]


async def add_documents(service: Service, call: Call) -> messages.ResultsMessage:
    """Store documents; return what was done with each."""
    options: messages.AddOptions = call.options
    documents: list[SubmittedDocument] = call.body.documents
    decisions = await service.add(documents, unique=options.unique, on_duplicate_id=options.on_duplicate_id)
    results = [_result(decision, options.on_duplicate_id) for decision in decisions]
    for result in results:
        service.metrics.count_fate(result.fate)
    if call.body.is_single and results[0].fate == "conflict":
        remedy = "set on_duplicate_id to replace or skip"
        raise ApiError("id_taken", f"id {results[0].id!r} is taken by another document; {remedy}")
    duplicates = [
        (document, result) for document, result in zip(documents, results, strict=True) if result.fate == "duplicate"
    ]
    detail: HitDetail = "passages" if call.body.is_single else "bare"
    await asyncio.gather(*(_add_duplicates(service, document, result, detail) for document, result in duplicates))
    return messages.ResultsMessage(results)


def _result(decision: Decision, on_duplicate_id: str) -> messages.ResultMessage:
    is_conflict = decision.fate == "skipped" and on_duplicate_id == "error"
    fate: Any = "conflict" if is_conflict else decision.fate
    return messages.ResultMessage(decision.id, fate, decision.duplicate_of, decision.similarity)


async def _add_duplicates(
    service: Service, document: SubmittedDocument, result: messages.ResultMessage, detail: HitDetail
) -> None:
    """Add the near-duplicates of a document to its result; the one that kept it out first, even if removed since."""
    found = await service.query(QueryTask(document.text, None, MAX_DUPLICATES, None, detail))
    first = [hit for hit in found.hits if hit.id == result.duplicate_of]
    others = [hit for hit in found.hits if hit.id != result.duplicate_of]
    removed = messages.HitMessage(
        result.duplicate_of,  # type: ignore[arg-type] # a duplicate has one
        result.similarity,  # type: ignore[arg-type] # as above
        service.exact,
        None,
        None,
        None,
    )
    result.duplicates = [*(first or [removed]), *others]


async def query(service: Service, call: Call) -> messages.FoundMessage:
    """Return the near-duplicates of a text."""
    return await service.query(call.body)


async def compare(service: Service, call: Call) -> messages.ComparisonMessage:
    """Compare two texts."""
    body: messages.CompareRequest = call.body

    def compare_texts() -> messages.ComparisonMessage:
        comparison = service.compare(body.left, body.right)
        numbers = comparison.to_dict()
        del numbers["bands_fired"]
        message = msgspec.convert(numbers, messages.ComparisonMessage)
        if comparison.shingler.kind == "byte":
            _convert_to_code_points(message, body)
        if body.rows:
            rows = comparison.rows(max_chars=MAX_ROW_CHARACTERS)
            message.rows = [messages.RowMessage(*(_pieces(side) for side in row)) for row in rows]
        return message

    message: messages.ComparisonMessage = await _unless_gone(call, service.run_comparison(compare_texts))
    return message


async def _unless_gone(call: Call, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - depends on the work
    """Return the result of some work, which is cancelled when the client disconnects."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(call.request.wait_until_gone())
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise busy("the client disconnected before this was done")
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


def _convert_to_code_points(message: messages.ComparisonMessage, body: messages.CompareRequest) -> None:
    """Convert the byte offsets of byte shingles to code points, which all messages use."""
    message.spans_left = code_point_spans(body.left, message.spans_left)
    message.spans_right = code_point_spans(body.right, message.spans_right)
    lefts = code_point_spans(body.left, [passage.left for passage in message.passages])
    rights = code_point_spans(body.right, [passage.right for passage in message.passages])
    for passage, left, right in zip(message.passages, lefts, rights, strict=True):
        passage.left, passage.right = left, right


def _pieces(side: Sequence[Any]) -> list[messages.PieceMessage]:
    return [messages.PieceMessage(piece.text, piece.kind) for piece in side]


async def get_document(service: Service, call: Call) -> messages.StoredDocumentMessage:
    """Return a stored document."""
    try:
        document: StoredDocument = await service.call_index(lambda index: index.get(call.id))
    except InputError:
        raise _not_found(call.id) from None
    text = document.text if isinstance(document.text, str) else None
    return messages.StoredDocumentMessage(document.id, document.metadata, text, _shingle_count(document))


def _not_found(name: str) -> ApiError:
    return ApiError("not_found", f"id {name!r} is not in the index")


def _shingle_count(document: StoredDocument) -> int | None:
    return None if document.elements is None else len(document.elements)


async def list_documents(service: Service, call: Call) -> messages.DocumentListMessage:
    """Return documents, the newest first."""
    limit, before = call.options.limit, None if call.options.before is UNSET else call.options.before
    listing: Listing = await service.browse(lambda index: index.newest(limit, before))
    return messages.DocumentListMessage([_listed(document) for document in listing.documents], listing.next)


async def search_texts(service: Service, call: Call) -> messages.TextMatchesMessage:
    """Return documents whose texts contain a phrase."""
    options: messages.SearchOptions = call.options
    before = None if options.before is UNSET else options.before

    def search(index: mw.Index) -> messages.TextMatchesMessage:
        found = index.search_text(options.contains, options.limit, before)
        return messages.TextMatchesMessage([_match(match) for match in found.matches], found.searched, found.next)

    found: messages.TextMatchesMessage = await service.search_texts(search)
    return found


def _match(match: TextMatch) -> messages.TextMatchMessage:
    document = match.document
    text = document.text if isinstance(document.text, str) else str(document.text or b"", "utf-8", "replace")
    return messages.TextMatchMessage(document.id, document.metadata, snippet_of(text, [(match.start, match.end)]))


def _listed(document: StoredDocument) -> messages.ListedDocumentMessage:
    snippet = snippet_text(document.text) if isinstance(document.text, str) else None
    return messages.ListedDocumentMessage(document.id, document.metadata, snippet, _shingle_count(document))


async def remove_document(service: Service, call: Call) -> messages.RemovedOneMessage:
    """Remove a document."""
    if not await service.remove([call.id]):
        raise _not_found(call.id)
    return messages.RemovedOneMessage()


async def remove_documents(service: Service, call: Call) -> messages.RemovedMessage:
    """Remove documents."""
    ids: list[str | int] = call.body.ids
    removed = await service.remove(ids)
    return messages.RemovedMessage(len(removed), [name for name in ids if str(name) not in removed])


async def expire_documents(service: Service, call: Call) -> messages.ExpiredMessage:
    """Remove the documents that are older than a time."""
    found = await service.expire(**_given(call.body))
    return messages.ExpiredMessage(**found._asdict())


def _given(message: Struct) -> dict[str, Any]:
    """Return the fields of a message that the client has sent, or that have a default."""
    return {name: value for name, value in msgspec.structs.asdict(message).items() if value is not UNSET}


async def get_plan(service: Service, call: Call) -> messages.PlanAnswer:
    """Return the plan of the index, or one for the given parameters."""
    given = _given(call.options)
    plan = await service.describe_plan(given) if given else service.plan.to_dict()
    return msgspec.convert(plan, messages.PlanAnswer)


async def get_stats(service: Service, call: Call) -> messages.IndexStatsMessage:
    """Return size and settings of the index and limits of the server."""
    stats = await service.call_index(lambda index: index.stats())
    server = {"read_only": service.settings.read_only, "rights": sorted(call.rights), "limits": service.settings.limits}
    return msgspec.convert(stats | server, messages.IndexStatsMessage)


async def check_health(service: Service, call: Call) -> messages.StatusMessage:
    """Return that the process responds."""
    return messages.StatusMessage()


async def check_ready(service: Service, call: Call) -> messages.StatusMessage:
    """Return that requests can be answered, or raise an error."""
    if service.draining:
        raise busy("the server is stopping")
    try:
        await service.check()
    except (mw.MinwiseError, OSError) as error:
        raise ApiError("index_failed", as_api_error(error).message) from None
    return messages.StatusMessage()


async def get_metrics(service: Service, call: Call) -> bytes:
    """Return the Prometheus metrics."""
    with suppress(mw.MinwiseError, OSError):  # the previous count is kept: metrics are needed when the index fails
        service.metrics.documents.set(await service.count())
    return service.metrics.page()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A method and path of the API.

    Attributes:
        method: ``GET``, ``POST`` or ``DELETE``.
        path: A fixed path, or one that ends in ``{id}``, which matches the rest of the path.
        handler: Returns the response message.
        right: The right that a token needs, ``read`` or ``write``; None if the route is public.
        summary: One line for the documentation.
        body: The messages that a client may send; none if the route takes no body.
        decode_as: The one message as which several kinds of bodies are decoded.
        options: The query parameters.
        answer: The response message; None if the response is not a message.
        media: The media type of the response.
        errors: Error codes of this route, besides those of all routes.
    """

    method: str
    path: str
    handler: Handler
    right: str | None
    summary: str
    body: tuple[type[Struct], ...] = ()
    decode_as: type[Struct] | None = None
    options: type[Struct] | None = None
    answer: type[Struct] | None = None
    media: str = "application/json"
    errors: tuple[str, ...] = ()


READ_ERRORS = ("index_failed",)
WRITE_ERRORS = ("index_failed", "disk_full")

ROUTES = (
    Route(
        method="POST", path="/v1/documents", handler=add_documents, right="write",
        summary="Add documents, optionally without near-duplicates of stored ones",
        body=(messages.DocumentMessage, messages.DocumentsMessage), decode_as=messages.AddRequest,
        options=messages.AddOptions, answer=messages.ResultsMessage,
        errors=("id_taken", "document_too_large", "too_many_documents", *WRITE_ERRORS),
    ),
    Route(
        method="GET", path="/v1/documents", handler=list_documents, right="read",
        summary="List documents, the newest first",
        options=messages.ListOptions, answer=messages.DocumentListMessage, errors=READ_ERRORS,
    ),
    Route(
        method="DELETE", path="/v1/documents", handler=remove_documents, right="write",
        summary="Remove documents",
        body=(messages.DocumentIdsMessage,), answer=messages.RemovedMessage,
        errors=("too_many_documents", *WRITE_ERRORS),
    ),
    Route(
        method="GET", path="/v1/documents/{id}", handler=get_document, right="read",
        summary="Get a document", answer=messages.StoredDocumentMessage, errors=("not_found", *READ_ERRORS),
    ),
    Route(
        method="DELETE", path="/v1/documents/{id}", handler=remove_document, right="write",
        summary="Remove a document", answer=messages.RemovedOneMessage, errors=("not_found", *WRITE_ERRORS),
    ),
    Route(
        method="POST", path="/v1/expire", handler=expire_documents, right="write",
        summary="Remove the documents that are older than a time",
        body=(messages.ExpireByAgeMessage, messages.ExpireByTimeMessage), decode_as=messages.ExpireRequest,
        answer=messages.ExpiredMessage, errors=WRITE_ERRORS,
    ),
    Route(
        method="POST", path="/v1/query", handler=query, right="read",
        summary="Find the near-duplicates of a text",
        body=(messages.QueryRequest,), answer=messages.FoundMessage, errors=("document_too_large", *READ_ERRORS),
    ),
    Route(
        method="GET", path="/v1/search", handler=search_texts, right="read",
        summary="Find the documents whose texts contain a phrase",
        options=messages.SearchOptions, answer=messages.TextMatchesMessage, errors=READ_ERRORS,
    ),
    Route(
        method="POST", path="/v1/compare", handler=compare, right="read",
        summary="Compare two texts",
        body=(messages.CompareRequest,), answer=messages.ComparisonMessage, errors=("document_too_large",),
    ),
    Route(
        method="GET", path="/v1/plan", handler=get_plan, right="read",
        summary="Get the plan of the index, or a plan for other parameters",
        options=messages.PlanOptions, answer=messages.PlanAnswer,
    ),
    Route(
        method="GET", path="/v1/stats", handler=get_stats, right="read",
        summary="Get size and settings of the index and limits of the server",
        answer=messages.IndexStatsMessage, errors=READ_ERRORS,
    ),
    Route(
        method="GET", path="/healthz", handler=check_health, right=None,
        summary="Check that the process responds", answer=messages.StatusMessage,
    ),
    Route(
        method="GET", path="/readyz", handler=check_ready, right=None,
        summary="Check that requests can be answered", answer=messages.StatusMessage, errors=READ_ERRORS,
    ),
    Route(
        method="GET", path="/metrics", handler=get_metrics, right="read",
        summary="Get the Prometheus metrics",
        media="text/plain; version=0.0.4; charset=utf-8", errors=READ_ERRORS,
    ),
)  # fmt: skip


class RouteTable:
    """Routes by path and method."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._exact: dict[str, dict[str, Route]] = {}
        self._with_id: dict[str, dict[str, Route]] = {}
        for route in routes:
            table = self._with_id if route.path.endswith("{id}") else self._exact
            table.setdefault(route.path.removesuffix("{id}"), {})[route.method] = route

    def find(self, path: str) -> tuple[dict[str, Route], str]:
        """Return the routes of a path by method, none if the path is unknown, and the id of the path."""
        if path in self._exact:
            return self._exact[path], ""
        for prefix, routes in self._with_id.items():
            if path.startswith(prefix) and len(path) > len(prefix):
                return routes, path[len(prefix) :]
        return {}, ""
