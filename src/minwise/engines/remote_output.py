"""Remote output: a directory by URL, where nothing can be renamed; a file in it says as long as it is not whole."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from minwise.engines.staging import Staging
from minwise.engines.work import Work
from minwise.errors import ConfigError
from minwise.formats.files import url_filesystem
from minwise.formats.source import Source

__all__ = ["RemoteOutput"]

# There from before the first file to after the last: what lies beside it is of a run that has not ended.
UNFINISHED = "_unfinished"
STAGING = ".staging-"


class RemoteOutput:
    """A directory that fsspec reaches.

    Attributes:
        url: What a user calls it.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        filesystem, path = url_filesystem(self.url)
        self._files: Any = filesystem
        self._path = str(path).rstrip("/")

    def __str__(self) -> str:
        return self.url

    def check(self, sources: list[Source], *, overwrite: bool) -> None:
        """Raises if the output would replace something, or would swallow an input."""
        for path in (path for source in sources for path in source.paths()):
            if f"{path}/".startswith(f"{self.url}/"):
                raise ConfigError(f"output must not be or hold an input, got {self.url} with {path}; give another -o")
        if not overwrite and self._files_there() and not self._has(UNFINISHED):
            raise ConfigError(
                f"output must be new or empty, got {self.url} with files in it; give another -o or --overwrite"
            )

    def is_published(self, work: Work) -> bool:
        """Whether the result of this work directory already stands here."""
        if not work.has("publishing") or work.read_note("publishing") != {"url": self.url}:
            return False
        return self._has("report.json") and not self._has(UNFINISHED)

    @contextmanager
    def publish(self, work: Work) -> Iterator[Staging]:
        """A directory to fill, whose files are sent when all went well; on an error, what was sent is deleted."""
        for leftover in work.folder.glob(f"{STAGING}*"):  # of a run that was cut short here
            shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(mkdtemp(prefix=STAGING, dir=work.folder))
        try:
            self._clear()
            self._files.pipe_file(f"{self._path}/{UNFINISHED}", b"This directory is not whole yet.\n")
            try:
                yield Staging(folder, self.url)
                self._send(folder)
                self._files.rm_file(f"{self._path}/{UNFINISHED}")
            except BaseException:
                self._clear()
                raise
            work.note("publishing", {"url": self.url})
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _send(self, folder: Path) -> None:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            target = f"{self._path}/{path.relative_to(folder).as_posix()}"
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._files.put_file(str(path), target)

    def _clear(self) -> None:
        if self._files_there():
            self._files.rm(self._path, recursive=True)
        self._files.makedirs(self._path, exist_ok=True)

    def _files_there(self) -> list[str]:
        self._files.invalidate_cache()  # somebody else may have been here
        return list(self._files.find(self._path))

    def _has(self, name: str) -> bool:
        self._files.invalidate_cache()
        return bool(self._files.exists(f"{self._path}/{name}"))
