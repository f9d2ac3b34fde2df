"""Opened: the directory of an index in; its settings out, and whoever reads and writes it, one thread at a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from minwise.checks import check_threads
from minwise.errors import ConfigError, FormatError, MismatchError
from minwise.index.database import DATABASE, REMEDY
from minwise.index.lookup import Lookup
from minwise.index.maintenance import back_up
from minwise.index.settings import IndexSettings
from minwise.index.sketching import Sketching
from minwise.index.store import Store
from minwise.index.view import ATTEMPTS, FINGERPRINT_ROW, SETTINGS_ROW, View
from minwise.index.writer import Writer

__all__ = ["Opened"]


class Opened:
    """An index whose files are open.

    Attributes:
        path: The directory.
        store: Its database.
        settings: What it was made with.
        sketching: What makes of texts what is stored and looked up.
        view: What is there, as of the last look.
        lookup: Who finds near-duplicates in it.
    """

    def __init__(self, path: Path, mode: str, threads: int | None, cache_bytes: int) -> None:
        self.path = path
        self._lock = threading.RLock()
        self.store = Store(path, writable=mode == "w")
        try:
            self.settings = self._read_settings()
            workers = check_threads(threads)
            self.sketching = Sketching(self.settings, workers)
            self._check_fingerprint()
            self.view = View(self.store, self.settings.plan.bands, cache_bytes)
            with self.view.current():
                pass
            if mode == "w":
                self.store.start_writing()
            self.lookup = Lookup(self.settings, self.view, self.store, workers)
            self._writer = Writer(self.store, self.view) if mode == "w" else None
        except BaseException:
            self.store.close()
            raise
        self._closed = False

    def _read_settings(self) -> IndexSettings:
        try:
            return IndexSettings.decode(self.store.content("manifest", SETTINGS_ROW))
        except (ConfigError, FormatError, MismatchError) as error:
            if str(error).startswith(str(self.path)):
                raise
            kind = MismatchError if isinstance(error, MismatchError) else FormatError
            raise kind(f"{self.path / DATABASE}: {error}") from None

    def _check_fingerprint(self) -> None:
        """Raises if these settings cut and sketch differently here from where the index was made."""
        theirs, ours = self.store.content("manifest", FINGERPRINT_ROW), self.sketching.fingerprint()
        if theirs != ours:
            rule = "the settings must give the sketches that they gave once"
            raise MismatchError(f"{self.path / DATABASE}: {rule}: fingerprint {theirs.hex()} there, {ours.hex()} here")

    def close(self) -> None:
        """Lets go of the files; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self.store.close()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """As long as it lasts, the view shows one state, the newest when it began."""
        with self._lock:
            if self._closed:
                raise ConfigError(f"index {self.path} must be open, got a closed one; open it again")
            with self.view.current():
                yield

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """What changes the index, which shows one state meanwhile; what fails leaves no trace in the view."""
        with self._lock:
            if self._writer is None:
                raise ConfigError(f"index {self.path} is open for reading; open it with mode 'w' to change it")
            if not self._closed:
                self.store.refuse_if_stopped()
            with self.reading():
                try:
                    yield self._writer
                except BaseException:
                    self.view.forget()
                    raise

    def back_up(self, target: Path) -> None:
        """Copies one state to a new directory."""
        if not any(self._backed_up(target) for _ in range(ATTEMPTS)):
            raise FormatError(f"{self.path}: a segment is missing; {REMEDY}")

    def _backed_up(self, target: Path) -> bool:
        """Whether a copy could be made: not if a segment was merged away before it was opened."""
        try:
            with self.reading():
                back_up(self.store, self.view.segment_paths(), target)
        except FileNotFoundError as error:
            if error.filename is None or Path(error.filename).parent != self.path:
                raise
            return False
        return True
