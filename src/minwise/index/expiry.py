"""Expiry of documents: those whose time, a field of their metadata, is before a given time."""

import re
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

from minwise.checks import show
from minwise.errors import ConfigError
from minwise.index.dedup_on_add import removed_documents
from minwise.index.lookup import ExistingDocument
from minwise.index.records import DocumentRecord
from minwise.index.result_types import Expired, Metadata
from minwise.index.store import Store
from minwise.index.writer import RemovedDocument

__all__ = ["ExpiryRule", "ExpiryScan", "read_time"]

# Documents, and bytes of their records, after which a transaction ends. It takes about 0.1 s.
STEP_DOCUMENTS, STEP_BYTES = 4096, 1 << 23
UNIT_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}
AGE = re.compile(r"([1-9][0-9]{0,3})([hdw])")
AGE_RULE = "older_than must be a whole number from 1 to 9999 and h, d or w for hours, days or weeks, such as 30d"
MAX_AGE = timedelta(weeks=9999)
# An own pattern: ``datetime.fromisoformat`` accepts other times with each version of Python.
TIME = re.compile(
    r"(?P<year>\d{4})(?P<dash>-?)(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
    r"(?:[Tt ](?P<hour>\d\d)(?:(?P<colon>:?)(?P<minute>\d\d)(?:(?P=colon)(?P<second>\d\d(?:[.,]\d+)?))?)?"
    r" ?(?P<zone>[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?",
    re.ASCII,
)
# Seconds in a text, such as all values of a CSV file: eight digits are a date.
SECONDS = re.compile(r"-?[0-9]{9,}(?:\.[0-9]+)?")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# A minute has 61 seconds if one of them is a leap second.
MINUTE_SECONDS = 61


def parse_time(text: str) -> float | None:
    """Return an ISO 8601 date or time in Unix seconds, or None; in UTC if it names no time zone.

    >>> parse_time("2026-01-01"), parse_time("2026-01-01T01:30:00.5+01:30"), parse_time("2026-02-30")
    (1767225600.0, 1767225600.5, None)
    """
    found = TIME.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute = (int(found[name] or 0) for name in ("year", "month", "day", "hour", "minute"))
    second = float((found["second"] or "0").replace(",", "."))
    try:
        start = datetime(year, month, day, hour, minute, tzinfo=timezone.utc)
    except ValueError:  # there is no such day or hour
        return None
    return (start - EPOCH).total_seconds() + second - _offset(found["zone"]) if second < MINUTE_SECONDS else None


def _offset(zone: str | None) -> int:
    """Return the seconds by which a time zone is ahead of UTC.

    >>> _offset("-0130"), _offset("Z")
    (-5400, 0)
    """
    if zone is None or zone in "Zz":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[3:].lstrip(":") or 0) * 60
    return -seconds if zone[0] == "-" else seconds


def read_time(value: object) -> float | None:
    """Return a time in the metadata of a document in Unix seconds; None if it is not a time.

    >>> read_time(1767225600), read_time("1767225600"), read_time("20260101"), read_time(True)
    (1767225600, 1767225600.0, 1767225600.0, None)
    """
    if isinstance(value, str):
        text = value.strip()
        return float(text) if SECONDS.fullmatch(text) else parse_time(text)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def format_time(seconds: float) -> str:
    """Return Unix seconds as an ISO 8601 time in UTC; one outside of the years 1 to 9999 as the nearest in them.

    >>> format_time(1767225600), format_time(-1e300)
    ('2026-01-01T00:00:00Z', '0001-01-01T00:00:00Z')
    """
    try:
        moment = EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        moment = (datetime.min if seconds < 0 else datetime.max).replace(tzinfo=timezone.utc)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class ExpiryRule:
    """The documents that expire.

    Attributes:
        field: The key of the metadata whose value is the time of a document.
        before: The time before which documents expire, in Unix seconds.
    """

    field: str
    before: float

    @classmethod
    def check(cls, older_than: object, before: object, time_field: object) -> "ExpiryRule":
        """Return the rule of a call.

        Raises:
            ConfigError: If a setting breaks its rule.
        """
        if (older_than is None) == (before is None):
            given = "neither" if before is None else "both"
            raise ConfigError(f"expire needs older_than='30d' or before='2026-01-01', got {given}")
        if time_field is None:
            reason = "an index does not store when a document was added"
            raise ConfigError(f"time_field must name the metadata field with the time of a document: {reason}")
        if not isinstance(time_field, str) or not time_field:
            raise ConfigError(f"time_field must be the name of a metadata field, got {show(time_field)}")
        return cls(time_field, _start_of_age(older_than) if before is None else _check_before(before))

    def value(self, metadata: Metadata | None) -> object:
        """Return the value of the field; None if there is none."""
        return None if metadata is None else metadata.get(self.field)


def _start_of_age(older_than: object) -> float:
    """Return the time that is so long ago, in whole seconds."""
    now = int(time.time())
    if isinstance(older_than, timedelta):
        if not timedelta(0) < older_than <= MAX_AGE:
            raise ConfigError(f"older_than must be above 0 and at most 9999 weeks, got {older_than}")
        return now - older_than.total_seconds()
    found = AGE.fullmatch(older_than) if isinstance(older_than, str) else None
    if found is None:
        raise ConfigError(f"{AGE_RULE}, got {show(older_than)}")
    return now - int(found[1]) * UNIT_SECONDS[found[2]]


def _check_before(before: object) -> float:
    if isinstance(before, date):
        before = before.isoformat()
    seconds = parse_time(before) if isinstance(before, str) else None
    if seconds is None:
        raise ConfigError(f"before must be an ISO 8601 date or time, such as 2026-01-01, got {show(before)}")
    return seconds


class ExpiryScan:
    """Reads the documents of an index in portions, and finds those that expire.

    Attributes:
        dry_run: Whether documents are counted only.
        is_complete: Whether all documents were read.
    """

    def __init__(self, rule: ExpiryRule, store: Store, until: int, *, texts: bool, dry_run: bool) -> None:
        """Start before the first document.

        Args:
            rule: The documents that expire.
            store: The database.
            until: The number after that of the last document to read.
            texts: Whether the index stores texts.
            dry_run: Whether to count only.
        """
        self._rule, self._store, self._until, self._texts = rule, store, until, texts
        self.dry_run, self.is_complete = dry_run, False
        self._next = self._read = self._expired = self._undated = self._unreadable = 0
        self._oldest: float | None = None

    @property
    def counts(self) -> Expired:
        """The counts of all portions so far."""
        oldest = None if self._oldest is None else format_time(self._oldest)
        before = format_time(self._rule.before)
        return Expired(self._read, self._expired, self._undated, self._unreadable, oldest, before)

    def portion(self) -> list[RemovedDocument]:
        """Read the next portion, and return the removals of its expired documents; none in a dry run."""
        removed: list[RemovedDocument] = []
        first, size = self._read, 0
        with closing(self._store.checked_rows("documents", self._next)) as rows:
            for number, record in rows:
                if number >= self._until:
                    break
                if self._expires(number, record) and not self.dry_run:
                    removed += removed_documents([ExistingDocument(number, record)], self._store, texts=self._texts)
                self._next, size = number + 1, size + len(record)
                if self._read - first == STEP_DOCUMENTS or size > STEP_BYTES:
                    return removed
        self.is_complete = True
        return removed

    def _expires(self, number: int, record: bytes) -> bool:
        """Count a document, and return whether it expires."""
        self._read += 1
        with self._store.decoding("documents", number):
            value = self._rule.value(DocumentRecord.decode(record).decode_metadata())
        if value is None:
            self._undated += 1
            return False
        seconds = read_time(value)
        if seconds is None:
            self._unreadable += 1
            return False
        self._oldest = seconds if self._oldest is None else min(self._oldest, seconds)
        expires = seconds < self._rule.before
        self._expired += expires
        return expires
