"""Message limits: sizes, totals and depths, each on both sides; nothing too large is decoded."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minwise.server import access as module
from minwise.server.access import MessageLimits, SubmittedBatch, json_depth
from minwise.server.errors import ApiError
from minwise.server.index_tasks import QueryTask, SubmittedDocument
from minwise.server.messages import AddRequest, CompareRequest, DocumentIdsMessage, QueryRequest
from minwise.server.settings import ServerSettings

LIMITS: dict[str, Any] = {
    "max_document": 30, "max_metadata": 40, "max_compare": 20, "max_documents": 20, "max_depth": 3,
}  # fmt: skip
BRACKETS = st.text('[]{}"\\:, a\u00e9\n', max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | BRACKETS,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(BRACKETS, inside, max_size=4),
    max_leaves=20,
)


def checked(kind: type[Any], body: object, **changed: Any) -> Any:  # noqa: ANN401 - any message
    """Return the checked message of a body under small limits."""
    content = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    settings = ServerSettings(index=Path("news.mw"), **{**LIMITS, **changed})
    return MessageLimits(settings).check(msgspec.json.decode(content, type=kind))


def refusal(kind: type[Any], body: object, **changed: Any) -> tuple[str, str]:  # noqa: ANN401 - as above
    """Return the code and the message of a refused body."""
    with pytest.raises(ApiError) as caught:
        checked(kind, body, **changed)
    return caught.value.code, caught.value.message


def depth(value: object) -> int:
    """Return the depth of a value, computed recursively."""
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_the_depth_is_that_of_the_value(value: object, is_ascii: bool, indent: int | None) -> None:
    """With any brackets and quotes in its strings."""
    assert json_depth(json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode()) == depth(value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (rb"1", 0), (rb'"[[["', 0), (rb'"\"[["', 0), (rb'"\\"', 0), (rb'["\\",[]]', 2), (rb'["\\\"[[[",[]]', 2),
        (rb'{"[":{"]":[]}}', 3), (rb"[[],[],[[]],[]]", 3), (rb'["\u005b\u0022[["]', 1),
        (b"[" * 32_000 + b"]" * 32_000, 32_000),
    ],
)  # fmt: skip
def test_depth_with_escaped_quotes_and_brackets(content: bytes, expected: int) -> None:
    assert json_depth(content) == expected


@pytest.mark.parametrize("name", ["metadata", "where"])
def test_depth_limit_of_objects(name: str) -> None:
    """The message names the object."""
    kind, others = (AddRequest, {"id": "x", "text": ""}) if name == "metadata" else (QueryRequest, {"text": ""})
    checked(kind, {**others, name: {"a": [{"b": 1}]}})
    code, message = refusal(kind, {**others, name: {"a": [{"b": []}]}})
    called = "the metadata of 'x'" if name == "metadata" else "where"
    assert (code, message) == ("too_deep", f"{called} must nest at most 3 levels (max_depth)")


@pytest.mark.parametrize("name", ["metadata", "where"])
def test_size_limit_of_objects(name: str) -> None:
    """In bytes as sent, with white space."""
    kind, others = (AddRequest, b'"id":"x","text":""') if name == "metadata" else (QueryRequest, b'"text":""')
    called = "the metadata of 'x'" if name == "metadata" else "where"
    for fitting, value in ((b'{"a":"%b"}' % (b"x" * 32), {"a": "x" * 32}), (b"{%b}" % (b" " * 38), {})):
        assert len(fitting) == 40
        done = checked(kind, b'{%b,"%b":%b}' % (others, name.encode(), fitting))
        assert (done.documents[0].metadata if name == "metadata" else done.where) == value
        over = fitting.replace(b"}", b" }")
        code, message = refusal(kind, b'{%b,"%b":%b}' % (others, name.encode(), over))
        rule = f"{called} must have at most 40 bytes (max_metadata), got 41"
        assert (code, message) == ("document_too_large", rule)


@pytest.mark.parametrize("given", ["[]", '"{}"', "1", "true", "[{}]"])
@pytest.mark.parametrize("name", ["metadata", "where"])
def test_other_values_than_objects_are_refused(name: str, given: str) -> None:
    """Null and a missing value are accepted."""
    kind, others = (AddRequest, '"id":"x","text":""') if name == "metadata" else (QueryRequest, '"text":""')
    code, message = refusal(kind, f'{{{others},"{name}":{given}}}'.encode())
    assert (code, name in message) == ("bad_value", True)
    for nothing in (f'{{{others},"{name}":null}}', f"{{{others}}}"):
        done = checked(kind, nothing.encode())
        assert (done.documents[0].metadata if name == "metadata" else done.where) is None


def test_nothing_too_large_or_too_deep_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It could take a hundred times its size."""

    class Watched:
        """A decoder that records its input."""

        seen: list[bytes] = []  # noqa: RUF012 - of one test

        def decode(self, content: bytes) -> object:
            """Decode like the real one."""
            self.seen.append(content)
            return msgspec.json.decode(content)

    monkeypatch.setattr(module, "OBJECT_DECODER", Watched())
    many = {"documents": [{"id": number, "text": "", "metadata": {"a": "x" * 32}} for number in range(20)]}
    assert refusal(AddRequest, {"id": 1, "text": "", "metadata": {"a": [[]] * 20}})[0] == "document_too_large"
    assert refusal(AddRequest, {"id": 1, "text": "", "metadata": {"a": [[[[]]]]}})[0] == "too_deep"
    assert refusal(QueryRequest, {"text": "", "where": {"a": [[]] * 20}})[0] == "document_too_large"
    assert Watched.seen == []
    assert refusal(AddRequest, many)[0] == "request_too_large"
    assert sum(map(len, Watched.seen)) <= 17 * 40


def test_total_metadata_limit() -> None:
    """Sixteen times the limit of one document."""
    largest, small = {"a": "x" * 32}, {"a": "x" * 12}

    def documents(*metadata: object) -> dict[str, object]:
        return {"documents": [{"id": number, "text": "", "metadata": one} for number, one in enumerate(metadata)]}

    assert len(checked(AddRequest, documents(*[largest] * 16)).documents) == 16
    assert len(checked(AddRequest, documents(*[largest] * 15, small, small, None, None)).documents) == 19
    for over in ([largest] * 16 + [{}], [largest] * 15 + [small, small, {}]):
        code, message = refusal(AddRequest, documents(*over))
        assert code == "request_too_large"
        assert "at most 640 bytes" in message


@pytest.mark.parametrize("letter", ["a", "é", "€", "😀"])
def test_texts_are_counted_in_bytes(letter: str) -> None:
    """Each with its own limit and name."""
    size = len(letter.encode())
    for kind, body, called, most in (
        (AddRequest, {"id": 5}, "the text of 5", 30),
        (QueryRequest, {}, "text", 30),
        (CompareRequest, {"right": ""}, "left", 20),
        (CompareRequest, {"left": ""}, "right", 20),
    ):
        name = called.split()[1] if " " in called else called
        fitting = letter * (most // size)
        checked(kind, {**body, name: fitting})
        code, message = refusal(kind, {**body, name: fitting + letter})
        option = "max_compare" if kind is CompareRequest else "max_document"
        got = len(fitting.encode()) + size
        assert (code, message) == (
            "document_too_large", f"{called} must have at most {most} bytes ({option}), got {got}",
        )  # fmt: skip


def test_documents_and_ids_are_counted() -> None:
    """Before any is checked."""
    documents = [{"id": number, "text": ""} for number in range(21)]
    assert len(checked(AddRequest, {"documents": documents[:20]}).documents) == 20
    assert refusal(AddRequest, {"documents": [*documents, {"id": 1, "text": "x" * 31}]})[0] == "too_many_documents"
    assert checked(DocumentIdsMessage, {"ids": list(range(20))}).ids == list(range(20))
    code, message = refusal(DocumentIdsMessage, {"ids": list(range(21))})
    assert (code, message) == ("too_many_documents", "a request must have at most 20 documents, got 21")


def test_valid_messages_are_converted() -> None:
    asked = {"text": "a b", "threshold": 0.7, "top": 3, "where": {"a": 1}, "passages": False}
    assert checked(QueryRequest, asked) == QueryTask("a b", 0.7, 3, {"a": 1}, "metadata")
    assert checked(QueryRequest, {"text": "a b"}) == QueryTask("a b", None, 10, None, "passages")
    one = {"id": "x", "text": "a b", "metadata": {"a": [1, None, "é"]}}
    submitted = SubmittedDocument("x", "a b", {"a": [1, None, "é"]})
    assert checked(AddRequest, one) == SubmittedBatch([submitted], is_single=True)
    assert checked(AddRequest, {"documents": [one]}) == SubmittedBatch([submitted], is_single=False)
