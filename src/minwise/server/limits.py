"""Limits: a message in; what it asks for out, or why it is too much.

Objects of clients stay bytes until their size and depth are known: a few megabytes of empty lists are hundreds of
megabytes of Python.
"""

import re
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET, Raw, UnsetType

from minwise.server.errors import ApiError
from minwise.server.messages import CompareRequest, Document, DocumentIds, OneOrMore, QueryRequest
from minwise.server.settings import ServerSettings
from minwise.server.work import Detail, Query, Submitted

__all__ = ["Limits", "Submission"]

# Objects of the largest size that one request may bring in all.
LARGEST_OBJECTS = 16
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
OPENING = np.frombuffer(b"[{", dtype=np.uint8)
OBJECT = msgspec.json.Decoder(dict[str, Any] | None)


class Submission(NamedTuple):
    """Documents of one request, and whether it was about one alone."""

    documents: list[Submitted]
    is_one: bool


class Limits:
    """How much a message may ask for."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings

    def checked(self, message: object) -> Any:  # noqa: ANN401 - what the handler wants
        """What a message asks for, with its objects decoded.

        Raises:
            ApiError: If it is too much.
            ValidationError: If an object is none.
        """
        match message:
            case OneOrMore():
                return Submission(self._documents(message.listed()), message.is_one)
            case DocumentIds():
                self._check_count(len(message.ids))
            case QueryRequest():
                self._check_text("text", message.text)
                where, _ = self._object("where", message.where)
                detail: Detail = "passages" if message.passages else "metadata"
                return Query(message.text, message.threshold, message.top, where, detail)
            case CompareRequest():
                self._check_text("left", message.left, "max_compare")
                self._check_text("right", message.right, "max_compare")
        return message

    def _documents(self, documents: list[Document]) -> list[Submitted]:
        self._check_count(len(documents))
        most, total = LARGEST_OBJECTS * int(self._settings.max_metadata), 0
        submitted = []
        for document in documents:
            self._check_text(f"the text of {document.id!r}", document.text)
            metadata, size = self._object(f"the metadata of {document.id!r}", document.metadata)
            total += size
            if total > most:
                rule = f"all metadata of a request must have at most {most} bytes"
                remedy = f"send less at a time ({LARGEST_OBJECTS} times max-metadata)"
                raise ApiError("request_too_large", f"{rule}, got more; {remedy}")
            submitted.append(Submitted(document.id, document.text, metadata))
        return submitted

    def _check_count(self, count: int) -> None:
        most = self._settings.max_documents
        if count > most:
            raise ApiError("too_many_documents", f"a request must have at most {most} documents, got {count}")

    def _check_text(self, name: str, text: str, limit: str = "max_document") -> None:
        most: int = getattr(self._settings, limit)
        if 4 * len(text) > most and len(text.encode()) > most:
            size, option = len(text.encode()), limit.replace("_", "-")
            raise ApiError("document_too_large", f"{name} must have at most {most} bytes ({option}), got {size}")

    def _object(self, name: str, raw: Raw | UnsetType) -> tuple[dict[str, Any] | None, int]:
        """An object, or nothing, and its size; neither too large nor too deep."""
        content, most = b"null" if raw is UNSET else bytes(raw), int(self._settings.max_metadata)
        if content == b"null":
            return None, 0
        if len(content) > most:
            size = len(content)
            raise ApiError("document_too_large", f"{name} must have at most {most} bytes (max-metadata), got {size}")
        if depth_of(content) > self._settings.max_depth:
            raise ApiError("too_deep", f"{name} must nest at most {self._settings.max_depth} levels (max-depth)")
        try:
            return OBJECT.decode(content), len(content)
        except msgspec.ValidationError as error:
            raise ApiError("bad_value", f"{name}: {error}") from None


def depth_of(content: bytes) -> int:
    """How many lists and objects are nested in JSON.

    >>> depth_of(b'{"a": [[], "[[["], "b": {}}')
    3
    """
    brackets = np.frombuffer(STRING.sub(b"", content).translate(None, NO_BRACKETS), dtype=np.uint8)
    steps = np.where(np.isin(brackets, OPENING), 1, -1)
    return int(np.cumsum(steps).max(initial=0))
