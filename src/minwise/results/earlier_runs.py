"""Earlier runs: the outputs whose kept rows a new run is compared with, and the runs that these were run against.

A corpus that grows is deduplicated in steps. Each output has only the rows that its own step kept; ``run.json`` names
the outputs that it was compared with, so the outputs form a chain that is followed to its beginning. An output is
identified by a digest of its ``run.json``, which no other run has: a directory that was written again is noticed.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from minwise.checks import check_path, show
from minwise.errors import ConfigError, FormatError, MismatchError
from minwise.inputs.files import File, is_url
from minwise.inputs.open_sources import open_files
from minwise.inputs.source import Columns, Source, TextSettings
from minwise.results.finished_run import FinishedRun
from minwise.results.output import Output
from minwise.search.documents import Documents
from minwise.search.stored_state import STATE_KIND, StateSource, StoredState
from minwise.settings import SearchSettings

__all__ = ["EarlierRun", "EarlierRuns", "open_earlier_runs"]

REMEDY = "run it again, or leave it out"


@dataclass(frozen=True)
class EarlierRun:
    """Output of an earlier run.

    Attributes:
        name: Its directory, as the user or the run after it names it.
        run: Its reports.
        digest: Hash of its ``run.json``.
    """

    name: str
    run: FinishedRun
    digest: str

    @classmethod
    def open(cls, given: str | PathLike[str]) -> "EarlierRun":
        """Open an output directory.

        Raises:
            ConfigError: If it is a URL, or marks duplicates instead of removing them.
            FormatError: If it is not the output of a deduplication.
            OSError: If there is no such directory.
        """
        if is_url(given):
            raise ConfigError(f"against_run must be a local directory, got {given}; copy it to this machine first")
        run = FinishedRun.open(check_path("against_run", given))
        if run.record.get("options", {}).get("mark"):
            raise ConfigError(f"against_run must be the output of a run without mark, got {given}, which has all rows")
        return cls(os.fspath(given), run, hashlib.sha256((run.folder / "run.json").read_bytes()).hexdigest())

    @property
    def kept(self) -> int:
        """Number of kept rows."""
        return int(self.run.report["counts"]["kept"])

    @property
    def earlier(self) -> list[dict[str, str]]:
        """Name and digest of the runs that it was run against."""
        listed: list[dict[str, str]] = self.run.record.get("against_run", [])
        return listed

    def check_settings(self, settings: SearchSettings, columns: Columns) -> None:
        """Raise MismatchError if a setting that decides similarities differs from that of the run."""
        ours, theirs = settings.to_dict(), self.run.report["settings"]
        compared = {*_SIMILARITY, *settings.element_settings, *(name for name in theirs if name in ELEMENTS)}
        for name in (name for name in [*ours, *theirs] if name in compared):
            self._check(name, ours.get(name), theirs.get(name))
        recorded = self.run.record["columns"]
        self._check("text_column", list(columns.text), recorded["text"])
        self._check("id_column", columns.id, recorded["id"])

    def _check(self, name: str, ours: object, theirs: object) -> None:
        if ours != theirs:
            raise MismatchError(
                f"{name} must be that of the earlier run {self.name}, which has {show(theirs)}, got {show(ours)}; "
                "give the same settings as there"
            )

    @cached_property
    def state(self) -> StoredState | None:
        """The saved state; None without one.

        Raises:
            FormatError: If it is damaged, or is that of another run.
        """
        if not StoredState.exists(self.run.folder):
            return None
        state = StoredState(self.run.folder / "state")
        if state.documents != self.kept:
            rule = f"must be the state of {self.kept:,} kept rows, got one of {state.documents:,}"
            raise FormatError(f"{self.run.folder / 'state'}: {rule}; {STATE_KIND.remedy}")
        return state

    def sources(self, *, stored: bool) -> list[Source]:
        """Open the kept rows as a reference corpus; with ``stored``, the saved state instead, if there is one.

        Raises:
            MismatchError: If the rows are missing.
        """
        if stored and self.state is not None:
            return [*StateSource.all_of(self.state, Path(self.name) / "kept")] if self.kept else []
        paths = self._kept_paths() if self.kept else []
        if not paths:
            return []
        record = self.run.record
        sets = self.run.report["settings"].get("shingle") == "set"
        sources = open_files(paths, format=record.get("format"), sets=sets).sources
        TextSettings(record.get("delimiter"), record.get("encoding")).apply(sources)
        return sources

    def _kept_paths(self) -> list[str]:
        """Return the directory if all inputs were text files, whose ids are relative to it; otherwise its files.

        A directory of other files leaves out names with a dot or an underscore, and does not mix tables and texts.
        """
        folder = Path(self.name) / "kept"
        files = sorted(path.as_posix() for path in folder.rglob("*") if path.is_file())
        if not files:
            raise MismatchError(f"{folder}: must have the {self.kept:,} kept rows of the run, got no file; {REMEDY}")
        loose = all("files" in entry for entry in self.run.record["inputs"])
        return [folder.as_posix()] if loose else files

    def refuse_changed_rows(self, rows: int) -> None:
        """Raise MismatchError if the number of rows that were read is not that of the kept ones."""
        if rows != self.kept:
            folder = Path(self.name) / "kept"
            raise MismatchError(
                f"{folder}: must have the {self.kept:,} kept rows of the run, got {rows:,}; it has changed: {REMEDY}"
            )


# Settings that decide which documents are near-duplicates, besides those of elements.
_SIMILARITY = (
    *("threshold", "measure", "exact", "bands", "rows", "scheme", "seed", "verify", "discount", "frequencies"),
    *("within", "across"),
)
# Settings of elements; the settings of a run have those that its documents need.
ELEMENTS = (
    *("shingle", "hash_bits", "bag", "nfkc", "strip_accents", "lowercase", "strip_punctuation", "mask_digits"),
    *("collapse_whitespace", "separator", "fields", "weights", "html", "transpose"),
)


@dataclass(frozen=True)
class EarlierRuns:
    """Outputs that a run is compared with.

    Attributes:
        given: Those that the user named.
        all: These and all before them: those with a saved state first, both the earliest first.
        stored: Whether states are read instead of kept rows.
    """

    given: tuple[EarlierRun, ...] = ()
    all: tuple[EarlierRun, ...] = ()
    stored: bool = True

    @cached_property
    def _by_run(self) -> list[list[Source]]:
        return [run.sources(stored=self.stored) for run in self.all]

    @property
    def sources(self) -> list[Source]:
        """The kept rows of all runs, the earliest first."""
        return [source for sources in self._by_run for source in sources]

    def refuse_changed_rows(self, documents: Documents, first: int) -> None:
        """Raise MismatchError if a run has another number of kept rows than its report says.

        Args:
            documents: The documents of the new run.
            first: The number of the first source of these runs.
        """
        for run, sources in zip(self.all, self._by_run, strict=True):
            end = first + len(sources)
            if not any(isinstance(source, StateSource) for source in sources):
                run.refuse_changed_rows(sum(documents.rows[first:end]))
            first = end

    def refuse_output(self, output: Output) -> None:
        """Raise ConfigError if an output directory would be one of the runs, hold one or lie in one."""
        target = f"{os.path.realpath(str(output))}{os.sep}"
        for run in self.all:
            folder = f"{os.path.realpath(run.name)}{os.sep}"
            if target.startswith(folder) or folder.startswith(target):
                rule = "output must not be, hold or lie in an earlier run"
                raise ConfigError(f"{rule}, got {output} and {run.name}; give another output")

    def to_list(self) -> list[dict[str, str]]:
        """Return what ``run.json`` records: absolute path and digest of each run that the user named."""
        return [{"path": File(str(Path(run.name).absolute())).name, "digest": run.digest} for run in self.given]


def open_earlier_runs(given: object, settings: SearchSettings, columns: Columns, *, stored: bool = True) -> EarlierRuns:
    """Open the outputs of earlier runs and of all runs before them.

    Args:
        given: The value of the setting ``against_run``.
        settings: The settings of the new run.
        columns: The columns that it reads.
        stored: Whether to read saved states instead of kept rows.

    Raises:
        ConfigError: If the value is no path.
        MismatchError: If a run had other settings, or was run against an output that is missing or was written again.
    """
    named: Sequence[Any] = () if given is None else given if isinstance(given, (list, tuple)) else (given,)
    runs = {run.digest: run for run in map(EarlierRun.open, named)}
    ordered: dict[str, EarlierRun] = {}
    for run in runs.values():
        ordered |= {earlier.digest: earlier for earlier in _with_earlier(run, runs, ordered)}
    for run in {**runs, **ordered}.values():  # those that the user named first
        run.check_settings(settings, columns)
    sorted_runs = sorted(ordered.values(), key=lambda run: not StoredState.exists(run.run.folder))
    return EarlierRuns(tuple(runs.values()), tuple(sorted_runs), stored)


def _with_earlier(
    last: EarlierRun, runs: Mapping[str, EarlierRun], known: Mapping[str, EarlierRun]
) -> Iterator[EarlierRun]:
    """Yield the runs before a run, the earliest first, and the run; without recursion, as a chain may be long."""
    opened, done = {**known, **runs}, set(known)
    stack = [last]
    while stack:
        run = stack[-1]
        waiting = [entry for entry in run.earlier if entry["digest"] not in done]
        if run.digest in done or not waiting:
            stack.pop()
            if run.digest not in done:
                done.add(run.digest)
                yield run
            continue
        entry = waiting[0]
        if entry["digest"] not in opened:
            opened[entry["digest"]] = _open_recorded(run, entry)
        stack.append(opened[entry["digest"]])


def _open_recorded(run: EarlierRun, entry: Mapping[str, str]) -> EarlierRun:
    """Open a run that another one was run against."""
    path, remedy = entry["path"], f"give its new place as against_run='{Path(entry['path']).name}', too"
    if not (Path(path) / "run.json").is_file():
        raise MismatchError(f"{path}: must be the earlier run that {run.name} was run against, got none; {remedy}")
    earlier = EarlierRun.open(path)
    if earlier.digest != entry["digest"]:
        raise MismatchError(f"{path}: has been written again since {run.name} was run against it; run {run.name} again")
    return earlier
