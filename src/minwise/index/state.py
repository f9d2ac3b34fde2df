"""State: what an index consists of after a commit. One row of the database; whoever reads it sees everything."""

from dataclasses import dataclass

import orjson

from minwise.errors import FormatError

__all__ = ["SegmentFile", "State"]


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A file of postings.

    Attributes:
        name: Its name in the directory.
        low: The number of the first document whose postings it may hold.
        high: One past the number of the last.
        postings: Entries of both runs.
    """

    name: str
    low: int
    high: int
    postings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that a commit changes, but the rows themselves.

    Attributes:
        commit: How many commits there have been.
        next: The number that the next document gets.
        flushed: Postings of documents below it are in segments, the others in rows of ``recent``.
        documents: Documents that are there: as many as there are rows; numbers without one are removed.
        digest: The sum of ``number·2³² + checksum`` over all rows of documents and texts, modulo 2⁶⁴.
        segments: The files of postings, by ascending documents.
        next_segment: The number that the next file gets.
    """

    commit: int = 0
    next: int = 0
    flushed: int = 0
    documents: int = 0
    digest: int = 0
    segments: tuple[SegmentFile, ...] = ()
    next_segment: int = 1

    def encode(self) -> bytes:
        """The content of its row."""
        return orjson.dumps(self)

    @classmethod
    def decode(cls, content: bytes) -> "State":
        """The state of a row's content."""
        try:
            fields = orjson.loads(content)
            segments = tuple(SegmentFile(**segment) for segment in fields.pop("segments"))
            return cls(**fields, segments=segments)
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"the state must have the fields of this version: {error}") from None
