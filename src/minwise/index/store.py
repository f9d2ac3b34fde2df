"""State: what an index consists of after a commit. One row of the database; whoever reads it sees everything."""

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import apsw
import orjson

from minwise.errors import ConfigError, FormatError
from minwise.index.database import (
    DATABASE,
    REMEDY,
    Head,
    SyncError,
    connect,
    connected,
    drop,
    naming,
    naming_file,
    sync,
    take_back,
    take_lock,
    transaction,
)
from minwise.index.records import content_of, find_damaged, seal

__all__ = ["TABLES", "SegmentFile", "State", "Store"]


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


TABLES = ("manifest", "documents", "texts", "recent", "removed")
SCHEMA = {table: f"CREATE TABLE {table}(number INTEGER PRIMARY KEY, record BLOB NOT NULL) STRICT" for table in TABLES}
# Pages of the log after which it is copied into the database: 4 MB. From then on it is written over, not made longer,
# which a sync is done with in two thirds of the time; and a start after a crash reads no more than that.
CHECKPOINT_PAGES = 1024
# Rows that one statement asks for.
MOST_ASKED = 512
# Above the number of every row.
NO_NUMBER = 2**63 - 1
BUSY_MILLISECONDS = 30_000
# How long emptying the log waits for readers, who can go on without it.
PATIENCE_MILLISECONDS = 500
# Share of free pages from which on the database is written anew.
WORTH_SHRINKING = 0.1


class Store:
    """The database in a directory, open for one writer or for a reader.

    Attributes:
        folder: The directory.
        writable: Whether it was opened by the writer.
    """

    def __init__(self, folder: Path, *, writable: bool) -> None:
        self.folder = folder
        self.path = folder / DATABASE
        self.log = folder / f"{DATABASE}-wal"
        self.writable = writable
        self._stopped: OSError | None = None
        self._pages = self._copied_pages = 0
        if not self.path.exists():
            raise FormatError(f"{folder}: not an index; there must be a file {DATABASE} in it")
        self._process = os.getpid()
        self._beside = ExitStack()
        try:
            if writable:
                self._beside.enter_context(take_lock(folder))
            self._head = self._beside.enter_context(closing(Head(folder, writable=writable)))
            self._connection = self._connect()
            self._file = self.path.stat().st_ino
        except BaseException:
            self._beside.close()
            raise

    @classmethod
    def create(cls, folder: Path, rows: Sequence[bytes]) -> None:
        """Makes a new database with these rows in its manifest; durable, and closed again."""
        path = folder / DATABASE
        with connected(path) as connection:
            connection.pragma("synchronous", "off")  # nobody knows it yet: it is synced once, by us, where errors show
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
        elif not os.statvfs(self.folder).f_flag & os.ST_RDONLY or self.log.exists():
            connection = connect(self.path, apsw.SQLITE_OPEN_READONLY)
        else:  # on a disk that is mounted for reading, and nothing waits in a log
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            connection = connect(self.path, flags, name=f"{self.path.absolute().as_uri()}?immutable=1")
        try:
            with naming(self.path, connection):
                self._prepare(connection)
        except BaseException:
            drop(connection)
            raise
        return connection

    def _prepare(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.pragma("cell_size_check", True)
        if self.writable:
            connection.pragma("synchronous", "full")
            connection.wal_autocheckpoint(0)
            connection.set_wal_hook(self._note_pages)
        else:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        found = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
        if found != SCHEMA or (self.writable and connection.pragma("journal_mode") != "wal"):
            raise FormatError(f"{self.path}: the tables must be those of an index; {REMEDY}")

    def _note_pages(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def close(self) -> None:
        """Copies the log into the database, unless writing has been stopped, and lets go of everything."""
        if self._stopped is not None:
            drop(self._connection)
        with suppress(apsw.Error):  # what could not be copied stays in the log, from which the next one copies it
            self._connection.close()
        self._beside.close()

    def refuse_elsewhere(self) -> None:
        """Raises in a process that has forked from the one that opened this, and where the files are others by now."""
        if os.getpid() != self._process:
            here = f"opened in process {self._process}, this is {os.getpid()}"
            raise ConfigError(f"index {self.folder} was {here}; every process opens its own")
        try:
            same = self.path.stat().st_ino == self._file
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
        """One state of the database, whatever is committed meanwhile; the writer needs none, for nobody else writes."""
        take_back(self._connection)
        if self.writable:
            yield
            return
        try:
            with naming(self.path, self._connection):
                self._connection.execute("BEGIN")
            yield
        finally:
            take_back(self._connection)

    def content(self, table: str, number: int) -> bytes:
        """The content of one row.

        Raises:
            FormatError: If it is not there, or damaged.
        """
        with naming(self.path, self._connection):
            record = self._connection.execute(f"SELECT record FROM {table} WHERE number = ?", [number]).get
        if record is None:
            raise FormatError(f"{self.path}: {table}: row {number} is missing; {REMEDY}")
        self._check(table, [(number, record)])
        return content_of(record)

    def records(self, table: str, numbers: Sequence[int]) -> list[bytes]:
        """The records of rows, in the order of their numbers as given.

        Raises:
            FormatError: If one is not there, or damaged.
        """
        found: dict[int, bytes] = {}
        for start in range(0, len(numbers), MOST_ASKED):
            rows = self._ask(table, list(numbers[start : start + MOST_ASKED]))
            self._check(table, rows)
            found.update(rows)
        missing = next((number for number in numbers if number not in found), None)
        if missing is not None:
            raise FormatError(f"{self.path}: {table}: row {missing} is missing; {REMEDY}")
        return [found[number] for number in numbers]

    def _ask(self, table: str, numbers: list[int]) -> list[tuple[int, bytes]]:
        places = 1 << (len(numbers) - 1).bit_length()  # few different statements, so that they stay prepared
        numbers += numbers[-1:] * (places - len(numbers))
        question = f"SELECT number, record FROM {table} WHERE number IN ({','.join('?' * places)})"
        with naming(self.path, self._connection):
            return list(self._connection.execute(question, numbers))

    def rows(self, table: str, first: int = 0) -> Iterator[tuple[int, bytes]]:
        """Number and record of every row from ``first`` on, in order, as they are."""
        with naming(self.path, self._connection):
            cursor = self._connection.execute(
                f"SELECT number, record FROM {table} WHERE number >= ? ORDER BY number", [first]
            )
            yield from cursor

    def checked_rows(self, table: str, first: int = 0) -> Iterator[tuple[int, bytes]]:
        """Number and record of every row from ``first`` on, in order.

        Raises:
            FormatError: If one is damaged.
        """
        for row in self.rows(table, first):
            self._check(table, [row])
            yield row

    def rows_before(self, table: str, before: int | None) -> Iterator[tuple[int, bytes]]:
        """Number and record of every row below ``before``, or of all, the highest first.

        Raises:
            FormatError: If one is damaged.
        """
        bound = NO_NUMBER if before is None else before
        with naming(self.path, self._connection):
            question = f"SELECT number, record FROM {table} WHERE number < ? ORDER BY number DESC"
            for row in self._connection.execute(question, [bound]):
                self._check(table, [row])
                yield row

    def _check(self, table: str, rows: Sequence[tuple[int, bytes]]) -> None:
        damaged = find_damaged(rows)
        if damaged is not None:
            raise FormatError(f"{self.path}: {table}: row {damaged} is damaged; {REMEDY}")

    def complaints(self) -> Iterator[str]:
        """What SQLite itself finds wrong."""
        try:
            with naming(self.path, self._connection):
                for (line,) in self._connection.execute("PRAGMA integrity_check"):
                    if line != "ok":
                        yield " ".join(str(line).split())
        except FormatError as error:
            yield str(error).removeprefix(f"{self.path}: ")

    def copy_to(self, path: Path) -> None:
        """Writes the state of the database that a snapshot shows to a new file, durably."""
        with connected(path) as copy:
            copy.pragma("synchronous", "off")
            with copy.backup("main", self._connection, "main") as backup:
                backup.step(-1)
        sync(path)

    def start_writing(self) -> None:
        """Makes what an earlier writer left in the log last, and copies it into the database."""
        with self._stopping(), naming(self.path, self._connection):
            self._write_log_again()
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _write_log_again(self) -> None:
        """Writes the log over itself and syncs it, and its name.

        After a sync that failed the system takes pages for written that are in memory only, and never writes them
        again. As long as a reader keeps SQLite from starting the log anew, later commits stand behind them.
        """
        with suppress(FileNotFoundError), naming_file(self.log), self.log.open("r+b", buffering=0) as log:
            while piece := log.read(1 << 20):
                log.seek(-len(piece), os.SEEK_CUR)
                log.write(piece)
            sync(self.log)
        sync(self.folder)

    # Writing

    @contextmanager
    def transaction(self, commit: int) -> Iterator[None]:
        """What is written inside becomes visible and durable at its end, or not at all.

        Args:
            commit: The number of this commit.

        Raises:
            OSError: If it could not be made durable. After a sync that failed every later one is refused at once.
        """
        self.refuse_if_stopped()
        with self._stopping(), naming(self.path, self._connection), transaction(self._connection):
            yield
        self._head.write(commit)
        self._checkpoint()

    def insert(self, table: str, first: int, records: Sequence[bytes]) -> None:
        """Adds sealed rows from a number on."""
        if records:
            self._connection.executemany(f"INSERT INTO {table} VALUES(?, ?)", enumerate(records, first))

    def put(self, table: str, number: int, content: bytes) -> None:
        """Adds or replaces one row."""
        (record,), _ = seal(number, [content])
        self._connection.execute(f"INSERT OR REPLACE INTO {table} VALUES(?, ?)", [number, record])

    def delete(self, table: str, numbers: Iterable[int]) -> None:
        """Takes rows away."""
        self._connection.executemany(f"DELETE FROM {table} WHERE number = ?", ((number,) for number in numbers))

    def clear(self, table: str) -> None:
        """Takes all rows away."""
        self._connection.execute(f"DELETE FROM {table}")

    def shrink(self) -> None:
        """Gives back the room of rows that are gone, if it is worth it, and that of the log, if no reader needs it."""
        self.refuse_if_stopped()
        connection = self._connection
        with self._stopping(), naming(self.path, connection):
            if connection.pragma("freelist_count") >= WORTH_SHRINKING * connection.pragma("page_count"):
                connection.execute("VACUUM")
            connection.set_busy_timeout(PATIENCE_MILLISECONDS)
            try:
                with suppress(apsw.BusyError):
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                connection.set_busy_timeout(BUSY_MILLISECONDS)

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.stop_after(error)
            raise

    def stop_after(self, error: BaseException) -> None:
        """Refuses to write from now on if the error is that of a sync."""
        if isinstance(error, SyncError):
            self._stopped = error

    def refuse_if_stopped(self) -> None:
        """Raises if a sync has failed before."""
        if self._stopped is not None:
            why = self._stopped.strerror
            raise OSError(
                self._stopped.errno, f"writes stopped after a failed sync ({why}); open the index again", str(self.path)
            )

    def _checkpoint(self) -> None:
        """Copies a long log into the database. What was committed is durable without it."""
        if self._pages < self._copied_pages:  # the log has been started anew
            self._copied_pages = 0
        if self._pages < self._copied_pages + CHECKPOINT_PAGES:
            return
        self._copied_pages = self._pages  # whether or not a reader stands in the way: not with every commit
        with suppress(OSError), self._stopping(), naming(self.path, self._connection):  # the log stays, with everything
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def refuse_lost_commits(self, commit: int) -> None:
        """Raises if there were more commits than the database knows."""
        known = self._head.last_commit
        if known > commit:
            lost = f"the last {known - commit} of {known} commits are missing"
            remedy = f"{REMEDY}, or delete {self._head.path} to go on without them"
            raise FormatError(f"{self.log}: {lost}: it was damaged or deleted; {remedy}")
