"""Handlers: a request that has passed every check in, what is answered out. One function per route."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

import minwise as mw
from minwise.server.errors import ApiError, as_api_error, busy
from minwise.server.messages import (
    AddOptions,
    CompareRequest,
    Comparison,
    DocumentList,
    Found,
    Hit,
    IndexStats,
    ListedDocument,
    Piece,
    PlanAnswer,
    Removed,
    RemovedOne,
    Result,
    Results,
    Row,
    Status,
    StoredDocument,
)
from minwise.server.passages import in_code_points, snippet_of
from minwise.server.routes import Call
from minwise.server.service import Service
from minwise.server.work import Detail, Query, Submitted

__all__ = [
    "add", "browse", "compare", "get", "healthy", "measured", "planned", "query", "ready", "remove", "remove_one",
    "statistics",
]  # fmt: skip

# Near-duplicates that a refused document is told.
DUPLICATES = 10
# Characters of either text that are shown side by side, around the differences.
SHOWN = 20_000


async def add(service: Service, call: Call) -> Results:
    """Stores documents, or says what keeps them out."""
    options: AddOptions = call.options
    documents: list[Submitted] = call.body.documents
    decisions = await service.add(documents, unique=options.unique, on_duplicate_id=options.on_duplicate_id)
    results = [_result(decision, options.on_duplicate_id) for decision in decisions]
    for result in results:
        service.metrics.note_fate(result.fate)
    if call.body.is_one and results[0].fate == "conflict":
        rule = "on_duplicate_id=replace or skip goes on"
        raise ApiError("id_taken", f"id {results[0].id!r} is there already, with another document; {rule}")
    refused = [
        (document, result) for document, result in zip(documents, results, strict=True) if result.fate == "duplicate"
    ]
    detail: Detail = "passages" if call.body.is_one else "bare"
    await asyncio.gather(*(_tell_duplicates(service, *one, detail) for one in refused))
    return Results(results)


def _result(decision: mw.Decision, on_duplicate_id: str) -> Result:
    taken = decision.fate == "skipped" and on_duplicate_id == "error"
    fate: Any = "conflict" if taken else decision.fate
    return Result(decision.id, fate, decision.duplicate_of, decision.similarity)


async def _tell_duplicates(service: Service, document: Submitted, result: Result, detail: Detail) -> None:
    """Notes what a document is too similar to, the witness first, even if it has gone since."""
    found = await service.query(Query(document.text, None, DUPLICATES, None, detail))
    witness = [hit for hit in found.hits if hit.id == result.duplicate_of]
    others = [hit for hit in found.hits if hit.id != result.duplicate_of]
    told = Hit(result.duplicate_of, result.similarity, service.exact, None, None, None)  # type: ignore[arg-type]
    result.duplicates = [*(witness or [told]), *others]


async def query(service: Service, call: Call) -> Found:
    """The near-duplicates of a text."""
    return await service.query(call.body)


async def compare(service: Service, call: Call) -> Comparison:
    """How alike two texts are."""
    asked: CompareRequest = call.body

    def compared() -> Comparison:
        comparison = service.compare(asked.left, asked.right)
        numbers = comparison.to_dict()
        del numbers["bands_fired"]
        answer = msgspec.convert(numbers, Comparison)
        if comparison.shingler.kind == "byte":
            _count_code_points(answer, asked)
        if asked.rows:
            answer.rows = [Row(*(_pieces(side) for side in row)) for row in comparison.rows(most=SHOWN)]
        return answer

    answer: Comparison = await _unless_gone(call, service.comparing(compared))
    return answer


async def _unless_gone(call: Call, work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - what the work gives
    """What some work gives; it is given up when the client sends nothing more, for then it has gone."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(call.request.wait_until_gone())
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise busy("the client has hung up before this was done")
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


def _count_code_points(answer: Comparison, asked: CompareRequest) -> None:
    """Makes places of bytes, as those of byte shingles are, places of code points, as everywhere else."""
    answer.spans_left = in_code_points(asked.left, answer.spans_left)
    answer.spans_right = in_code_points(asked.right, answer.spans_right)
    lefts = in_code_points(asked.left, [one.left for one in answer.passages])
    rights = in_code_points(asked.right, [one.right for one in answer.passages])
    for passage, left, right in zip(answer.passages, lefts, rights, strict=True):
        passage.left, passage.right = left, right


def _pieces(side: Sequence[Any]) -> list[Piece]:
    return [Piece(one.text, one.kind) for one in side]


async def get(service: Service, call: Call) -> StoredDocument:
    """What is stored under an id."""
    try:
        return _stored(await service.ask(lambda index: index.get(call.id)))
    except mw.InputError:
        raise _nothing_under(call.id) from None


def _nothing_under(name: str) -> ApiError:
    return ApiError("not_found", f"id {name!r} is not in the index")


def _stored(document: mw.StoredDocument) -> StoredDocument:
    text = document.text if isinstance(document.text, str) else None
    return StoredDocument(document.id, document.metadata, text, _count(document))


def _count(document: mw.StoredDocument) -> int | None:
    return None if document.elements is None else len(document.elements)


async def browse(service: Service, call: Call) -> DocumentList:
    """Documents, the newest first."""
    limit, before = call.options.limit, call.options.before
    listing: mw.Listing = await service.ask(lambda index: index.newest(limit, None if before is UNSET else before))
    documents = [
        ListedDocument(one.id, one.metadata, snippet_of(one.text) if isinstance(one.text, str) else None, _count(one))
        for one in listing.documents
    ]
    return DocumentList(documents, listing.next)


async def remove_one(service: Service, call: Call) -> RemovedOne:
    """Removes a document."""
    if not await service.remove([call.id]):
        raise _nothing_under(call.id)
    return RemovedOne()


async def remove(service: Service, call: Call) -> Removed:
    """Removes documents."""
    ids: list[str | int] = call.body.ids
    gone = await service.remove(ids)
    return Removed(len(gone), [one for one in ids if str(one) not in gone])


async def planned(service: Service, call: Call) -> PlanAnswer:
    """The plan of the index, or one that is asked for."""
    wishes = {name: value for name, value in msgspec.structs.asdict(call.options).items() if value is not UNSET}
    made = await service.aside(partial(mw.plan, **wishes)) if wishes else service.plan
    return msgspec.convert(made.to_dict(), PlanAnswer)


async def statistics(service: Service, call: Call) -> IndexStats:
    """How much there is."""
    facts = await service.ask(lambda index: index.stats())
    about = {"read_only": service.settings.read_only, "rights": sorted(call.rights), "limits": service.settings.limits}
    return msgspec.convert(facts | about, IndexStats)


async def healthy(service: Service, call: Call) -> Status:
    """Whether the process answers."""
    return Status()


async def ready(service: Service, call: Call) -> Status:
    """Whether requests can be answered."""
    if service.draining:
        raise busy("the server is stopping")
    try:
        await service.check()
    except (mw.MinwiseError, OSError) as error:
        raise ApiError("index_failed", as_api_error(error).message) from None
    return Status()


async def measured(service: Service, call: Call) -> bytes:
    """What the server has done, for Prometheus."""
    with suppress(mw.MinwiseError, OSError):  # the last count will do: who looks now wants to know why it fails
        service.metrics.documents.set(await service.count())
    return service.metrics.page()
