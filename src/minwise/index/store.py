"""Database of an index: its state record, and the transactions that read and write its rows."""

import errno
import os
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import apsw
import orjson

from minwise._internal.system import is_read_only
from minwise.checks import show
from minwise.errors import ConfigError, FormatError
from minwise.index.database import (
    DATABASE,
    REMEDY,
    HeadFile,
    SyncError,
    add_file_name,
    check_files,
    close_unchanged,
    connect,
    create_database,
    lock_for_writing,
    roll_back,
    sync,
    transaction,
    translate_errors,
)
from minwise.index.records import content_of, find_damaged, seal

__all__ = ["MAX_DOCUMENTS", "SEGMENT", "SEGMENT_NAME", "TABLES", "SegmentFile", "State", "Store"]

# Documents are numbered in 32 bits, and the last number means "no document".
MAX_DOCUMENTS = 2**32 - 2
# Name of a segment by its number, and the names that are read and deleted: no other file is, whatever a state says.
SEGMENT, SEGMENT_NAME = "segment-{:08}.post", re.compile(r"segment-([0-9]{8,19})\.post")


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A file of postings.

    Attributes:
        name: The name of the file in the index directory.
        low: The number of the first document whose postings it may hold.
        high: The number of the last such document plus one.
        postings: The number of entries in both of its runs.
        bytes: The size of the file; None in a state of format version 1 that was not changed since.
        trailer: The checksum of its trailer, which covers counts and fences; None like ``bytes``.
        blocks: The checksum of the checksums of its blocks; None if a program of format version 1 wrote the segment.
    """

    name: str
    low: int
    high: int
    postings: int
    bytes: int | None = None
    trailer: int | None = None
    blocks: int | None = None

    def check(self, low: int, next_segment: int) -> None:
        """Check the fields.

        Args:
            low: The end of the previous segment.
            next_segment: The number of the next segment.

        Raises:
            ValueError: If a field breaks its rule.
        """
        name = SEGMENT_NAME.fullmatch(self.name) if isinstance(self.name, str) else None
        if name is None or not 0 < int(name[1]) < next_segment or self.name != SEGMENT.format(int(name[1])):
            raise ValueError(f"the segment names must be {SEGMENT.format(1)} and so on, got {show(self.name)}")
        _check_number("low", self.low, low, low)
        _check_number("high", self.high, low, MAX_DOCUMENTS)
        for field in ("postings", "bytes", "trailer", "blocks"):
            value = getattr(self, field)
            if value is not None or field == "postings":
                _check_number(field, value, 0, 2**32 - 1 if field in ("trailer", "blocks") else 2**63 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that a commit changes except the rows. It is one row of the database.

    Attributes:
        commit: The number of commits so far.
        next: The number of the next document.
        flushed: Postings of documents below this number are in segments, the others in rows of ``recent``.
        documents: The number of documents, which is the number of rows; a number without a row was removed.
        digest: The sum of ``number·2³² + checksum`` over all rows of documents and texts, modulo 2⁶⁴.
        segments: The files of postings, in ascending order of their documents.
        next_segment: The number of the next segment file.
    """

    commit: int = 0
    next: int = 0
    flushed: int = 0
    documents: int = 0
    digest: int = 0
    segments: tuple[SegmentFile, ...] = ()
    next_segment: int = 1

    def encode(self) -> bytes:
        """Return the content of the state row."""
        return orjson.dumps(self)

    @classmethod
    def decode(cls, content: bytes) -> "State":
        """Decode the content of the state row.

        Raises:
            FormatError: If a field is missing or unknown, or breaks its rule.
        """
        try:
            fields = orjson.loads(content)
            segments = tuple(SegmentFile(**segment) for segment in fields.pop("segments"))
            state = cls(**fields, segments=segments)
            state._check()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FormatError(f"the state must have the fields of this version: {error}; {REMEDY}") from None
        return state

    def _check(self) -> None:
        """Check that all numbers are in range, and that the segments follow each other without a gap."""
        _check_number("digest", self.digest, 0, 2**64 - 1)
        _check_number("commit", self.commit, 0, LARGEST_NUMBER)
        _check_number("next_segment", self.next_segment, 1, LARGEST_NUMBER)
        _check_number("next", self.next, 0, MAX_DOCUMENTS)
        for field in ("flushed", "documents"):
            _check_number(field, getattr(self, field), 0, self.next)
        low = 0
        for segment in self.segments:
            segment.check(low, self.next_segment)
            low = segment.high
        _check_number("flushed", self.flushed, low, low)
        if len({segment.name for segment in self.segments}) < len(self.segments):
            raise ValueError("the segments must have different names")


def _check_number(name: str, value: object, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}, got {show(value)}")


# Largest number of a commit or a segment; the next one must fit the 64 bits of JSON, too.
LARGEST_NUMBER = 2**63 - 1
TABLES = ("manifest", "documents", "texts", "recent", "removed")
SCHEMA = {table: f"CREATE TABLE {table}(number INTEGER PRIMARY KEY, record BLOB NOT NULL) STRICT" for table in TABLES}
# Pages of the log after which it is copied into the database: 4 MB. After that the log is overwritten instead of
# extended, which makes a sync take two thirds of the time; and opening after a crash reads no more than that.
CHECKPOINT_PAGES = 1024
# A number above that of every row.
MAX_ROW_NUMBER = 2**63 - 1
BUSY_MILLISECONDS = 30_000
# Time that truncating the log waits for readers; the index works with a log that is not truncated.
TRUNCATE_MILLISECONDS = 500
# Minimum share of free pages at which the database is rewritten.
MIN_FREE_SHARE = 0.1


class Store:
    """The database in an index directory, open for the one writer or for a reader.

    Attributes:
        folder: The index directory.
        path: The database file.
        log: The write-ahead log of the database.
        writable: Whether the database is open for writing.
        sketch_bytes: The size of a document's body that is a sketch; None if bodies are elements. Set once the settings
            are read.
    """

    def __init__(self, folder: Path, *, writable: bool) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self.log = folder / f"{DATABASE}-wal"
        self.writable = writable
        self.sketch_bytes: int | None = None
        self._sync_failure: OSError | None = None
        self._log_pages = self._copied_pages = 0
        check_files(folder)
        if not self.path.exists():
            raise FormatError(f"{folder}: not an index; there must be a file {DATABASE} in it")
        self._process = os.getpid()
        self._open_files = ExitStack()
        try:
            if writable:
                self._open_files.enter_context(lock_for_writing(folder))
            self._head = self._open_files.enter_context(closing(HeadFile(folder, writable=writable)))
            self._connection = self._connect()
            self._inode = self.path.stat().st_ino
        except BaseException:
            self._open_files.close()
            raise

    @classmethod
    def create(cls, folder: Path, rows: Sequence[bytes]) -> None:
        """Create a durable, closed database whose manifest holds these rows."""
        path = folder / DATABASE
        with create_database(path) as connection:
            connection.pragma("synchronous", "off")  # no other process knows the file: one sync below reports errors
            connection.pragma("journal_mode", "wal")
            with transaction(connection):
                for statement in SCHEMA.values():
                    connection.execute(statement)
                connection.executemany("INSERT INTO manifest VALUES(?, ?)", enumerate(seal(0, rows)[0]))
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        sync(path)

    def _connect(self) -> apsw.Connection:
        if self.writable:
            connection = connect(self.path, apsw.SQLITE_OPEN_READWRITE)
        elif not is_read_only(self.folder) or self.log.exists():
            connection = connect(self.path, apsw.SQLITE_OPEN_READONLY)
        else:  # a file system that is mounted read-only, and the log is empty
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            connection = connect(self.path, flags, uri=f"{self.path.absolute().as_uri()}?immutable=1")
        try:
            with translate_errors(self.path, connection):
                self._configure(connection)
        except BaseException:
            close_unchanged(connection)
            raise
        return connection

    def _configure(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.pragma("cell_size_check", True)
        if self.writable:
            connection.pragma("synchronous", "full")
            connection.pragma("fullfsync", True)  # macOS; other systems ignore it
            connection.wal_autocheckpoint(0)
            connection.set_wal_hook(self._record_log_pages)
        else:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        schema = dict(connection.execute("SELECT name, sql FROM sqlite_schema"))
        if schema != SCHEMA or (self.writable and connection.pragma("journal_mode") != "wal"):
            raise FormatError(f"{self.path}: the tables must be those of an index; {REMEDY}")

    def _record_log_pages(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def close(self) -> None:
        """Copy the log into the database, unless a sync has failed, and close all files."""
        if self._sync_failure is not None:
            close_unchanged(self._connection)
        with suppress(apsw.Error):  # pages that were not copied stay in the log, and the next writer copies them
            self._connection.close()
        self._open_files.close()

    def check_usable(self) -> None:
        """Check that this process opened the database, and that the file has not been replaced.

        Raises:
            ConfigError: In a process that was forked after the database was opened.
            OSError: If the file was deleted or replaced.
        """
        if os.getpid() != self._process:
            processes = f"opened in process {self._process}, this is {os.getpid()}"
            raise ConfigError(f"index {self.folder} was {processes}; every process opens its own")
        try:
            same = self.path.stat().st_ino == self._inode
        except FileNotFoundError:
            same = False
        if not same:
            raise OSError(
                errno.ESTALE, "the index was deleted or replaced while it was open; open it again", str(self.path)
            )

    @property
    def database_bytes(self) -> int:
        """Bytes of the database and its log."""
        return sum(path.stat().st_size for path in (self.path, self.log) if path.exists())

    # Reading

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Show one state of the database for the duration of the block.

        The writer needs no read transaction, since no other process writes.
        """
        roll_back(self._connection)
        if self.writable:
            yield
            return
        try:
            with translate_errors(self.path, self._connection):
                self._connection.execute("BEGIN")
            yield
        finally:
            roll_back(self._connection)

    def content(self, table: str, number: int) -> bytes:
        """Return the content of one row.

        Raises:
            FormatError: If the row is missing or damaged.
        """
        with translate_errors(self.path, self._connection):
            record = self._connection.execute(f"SELECT record FROM {table} WHERE number = ?", [number]).get
        if record is None:
            raise FormatError(f"{self.path}: {table}: row {number} is missing; {REMEDY}")
        self._check(table, [(number, record)])
        return content_of(record)

    def records(self, table: str, numbers: Sequence[int]) -> list[bytes]:
        """Return the records of rows, in the order of ``numbers``.

        Raises:
            FormatError: If a row is missing or damaged.
        """
        statement = f"SELECT record FROM json_each(?) wanted CROSS JOIN {table} ON number = wanted.value"
        with translate_errors(self.path, self._connection):
            records = list(chain.from_iterable(self._connection.execute(statement, [str(list(numbers))])))
        if len(records) < len(numbers):
            raise FormatError(f"{self.path}: {table}: row {self._missing(table, numbers)} is missing; {REMEDY}")
        self._check(table, list(zip(numbers, records, strict=True)))
        return records

    def _missing(self, table: str, numbers: Sequence[int]) -> int:
        """Return the first number that has no row."""
        statement = f"SELECT 1 FROM {table} WHERE number = ?"
        with translate_errors(self.path, self._connection):
            return next(number for number in numbers if self._connection.execute(statement, [number]).get is None)

    def rows(self, table: str, first: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield number and record of the rows from ``first``, in order, without checking them."""
        with translate_errors(self.path, self._connection):
            cursor = self._connection.execute(
                f"SELECT number, record FROM {table} WHERE number >= ? ORDER BY number", [first]
            )
            yield from cursor

    def checked_rows(self, table: str, first: int = 0) -> Generator[tuple[int, bytes], None, None]:
        """Yield number and record of the rows from ``first``, in order.

        Raises:
            FormatError: If a row is damaged.
        """
        for row in self.rows(table, first):
            self._check(table, [row])
            yield row

    def rows_before(self, table: str, before: int | None) -> Iterator[tuple[int, bytes]]:
        """Yield number and record of the rows below ``before``, or of all rows, in descending order.

        Raises:
            FormatError: If a row is damaged.
        """
        bound = MAX_ROW_NUMBER if before is None else before
        with translate_errors(self.path, self._connection):
            statement = f"SELECT number, record FROM {table} WHERE number < ? ORDER BY number DESC"
            for row in self._connection.execute(statement, [bound]):
                self._check(table, [row])
                yield row

    def _check(self, table: str, rows: Sequence[tuple[int, bytes]]) -> None:
        damaged = self.find_damaged(table, rows)
        if damaged is not None:
            raise FormatError(f"{self.path}: {table}: row {damaged} is damaged; {REMEDY}")

    def find_damaged(self, table: str, rows: Sequence[tuple[int, object]]) -> int | None:
        """Return the number of the first row whose checksum or layout is wrong, or None."""
        return find_damaged(rows, documents=table == "documents", sketch_bytes=self.sketch_bytes)

    @contextmanager
    def decoding(self, table: str, number: int) -> Iterator[None]:
        """Translate the errors of decoding a row into ``FormatError``: its checksum is right, its content is not."""
        try:
            yield
        except (RecursionError, ValueError) as error:
            raise self.damaged_row(table, number, error) from None

    def damaged_row(self, table: str, number: int, error: Exception) -> FormatError:
        """Return the error for a row that cannot be decoded."""
        return FormatError(f"{self.path}: {table}: row {number} is damaged: {error}; {REMEDY}")

    def integrity_errors(self) -> Iterator[str]:
        """Yield the messages of SQLite's integrity check."""
        try:
            with translate_errors(self.path, self._connection):
                for (line,) in self._connection.execute("PRAGMA integrity_check"):
                    if line != "ok":
                        yield " ".join(str(line).split())
        except FormatError as error:
            yield str(error).removeprefix(f"{self.path}: ")

    def copy_to(self, path: Path) -> None:
        """Write the current snapshot of the database to a new, durable file."""
        with create_database(path) as copy:
            copy.pragma("synchronous", "off")
            with copy.backup("main", self._connection, "main") as backup:
                backup.step(-1)
        sync(path)

    # Writing

    def recover_log(self) -> None:
        """Make the log of an earlier writer durable, and copy it into the database."""
        with self._noting_sync_failure(), translate_errors(self.path, self._connection):
            self._rewrite_log()
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _rewrite_log(self) -> None:
        """Overwrite the log with its own content, and sync it and its directory entry.

        After a failed sync the system treats pages as written that are in memory only, and never writes them again. As
        long as a reader prevents SQLite from restarting the log, later commits are appended after those pages.
        """
        with suppress(FileNotFoundError), add_file_name(self.log), self.log.open("r+b", buffering=0) as log:
            while chunk := log.read(1 << 20):
                log.seek(-len(chunk), os.SEEK_CUR)
                log.write(chunk)
            sync(self.log)
        sync(self.folder)

    @contextmanager
    def transaction(self, commit: int) -> Iterator[None]:
        """Commit the writes of the block, visible and durable at its end, or not at all.

        Args:
            commit: The number of this commit.

        Raises:
            OSError: If the commit could not be made durable. After a failed sync every later call raises at once.
        """
        self.check_sync_failure()
        with (
            self._noting_sync_failure(),
            translate_errors(self.path, self._connection),
            transaction(self._connection),
        ):
            yield
        self._head.write(commit)
        self._checkpoint()

    def insert(self, table: str, first: int, records: Sequence[bytes]) -> None:
        """Insert sealed records as rows numbered from ``first``."""
        if records:
            self._connection.executemany(f"INSERT INTO {table} VALUES(?, ?)", enumerate(records, first))

    def put(self, table: str, number: int, content: bytes) -> None:
        """Insert or replace one row."""
        (record,), _ = seal(number, [content])
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES(?, ?)", [number, record])

    def delete(self, table: str, numbers: Iterable[int]) -> None:
        """Delete rows."""
        self._connection.executemany(f"DELETE FROM {table} WHERE number = ?", ((number,) for number in numbers))

    def clear(self, table: str) -> None:
        """Delete all rows of a table."""
        self._connection.execute(f"DELETE FROM {table}")

    def shrink(self) -> None:
        """Release the space of deleted rows if it is worth a rewrite, and that of the log if no reader uses it."""
        self.check_sync_failure()
        connection = self._connection
        with self._noting_sync_failure(), translate_errors(self.path, connection):
            if connection.pragma("freelist_count") >= MIN_FREE_SHARE * connection.pragma("page_count"):
                connection.execute("VACUUM")
            connection.set_busy_timeout(TRUNCATE_MILLISECONDS)
            try:
                with suppress(apsw.BusyError):
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                connection.set_busy_timeout(BUSY_MILLISECONDS)

    @contextmanager
    def _noting_sync_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.note_sync_failure(error)
            raise

    def note_sync_failure(self, error: BaseException) -> None:
        """Refuse all later writes if the error is a failed sync."""
        if isinstance(error, SyncError):
            self._sync_failure = error

    def check_sync_failure(self) -> None:
        """Raise ``OSError`` if an earlier sync failed."""
        if self._sync_failure is not None:
            why = self._sync_failure.strerror
            raise OSError(
                self._sync_failure.errno,
                f"writes stopped after a failed sync ({why}); open the index again",
                str(self.path),
            )

    def _checkpoint(self) -> None:
        """Copy a long log into the database. The commits in the log are already durable."""
        if self._log_pages < self._copied_pages:  # SQLite has restarted the log
            self._copied_pages = 0
        if self._log_pages < self._copied_pages + CHECKPOINT_PAGES:
            return
        self._copied_pages = self._log_pages  # also if a reader prevents it: do not retry with every commit
        with (
            suppress(OSError),  # the log keeps all commits
            self._noting_sync_failure(),
            translate_errors(self.path, self._connection),
        ):
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def check_commits(self, commit: int) -> None:
        """Check that the database has all commits recorded in the head file.

        Raises:
            FormatError: If the last commits are missing.
        """
        known = self._head.last_commit
        if known > commit:
            lost = f"the last {known - commit} of {known} commits are missing"
            remedy = f"{REMEDY}, or delete {self._head.path} to continue without them"
            raise FormatError(f"{self.log}: {lost}: it was damaged or deleted; {remedy}")
