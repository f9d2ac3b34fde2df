"""Files that inputs name: files, directories, glob patterns and URLs, each file once, with its format.

Directories are searched with all directories below them. What is skipped is counted by reason.
"""

import errno
import glob
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from minwise.errors import InputError
from minwise.inputs.content import json_kind
from minwise.inputs.encodings import choose_encoding
from minwise.inputs.files import COMPRESSIONS, File, is_url, strip_bom, url_filesystem
from minwise.inputs.row_reader import MAX_RECORD_BYTES
from minwise.inputs.source import UnreadableError

__all__ = ["BASKET_FORMATS", "FORMATS", "SUFFIXES", "InputFile", "detect_json", "find_files"]

BASKET_FORMATS = ("baskets", "named-baskets")
# Formats whose files are not tables.
LOOSE_FORMATS = ("text", "lines", *BASKET_FORMATS)
FORMATS = ("parquet", "jsonl", "json", "csv", "tsv", "arrow", *LOOSE_FORMATS)
SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
# Entries that Spark, Hive, Delta Lake and Hadoop write beside tables. They are not data.
MARKER_FILES = ("_SUCCESS", "_metadata", "_common_metadata", "_committed_*", "_started_*", "_last_checkpoint", "*.crc")
MARKER_DIRECTORIES = ("_delta_log", "_temporary", "_spark_metadata", "_change_data", "_symlink_format_manifest")

# Reasons why entries are skipped.
DOT = "names that begin with a dot"
MARKER = "marker files of table writers"
UNDERSCORE = "names that begin with an underscore, among tables"
PYTHON_CACHE = "caches of compiled Python"
SECOND_TIME = "files reached a second time"
DIRECTORY_AGAIN = "links to directories that are read already"
BROKEN_LINK = "links to nothing"
NOT_A_FILE = "pipes, sockets and devices"
NO_PERMISSION = "files and directories without permission to read them"

Skipped = Counter[str]


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that an input names, or that was found in a directory that it names.

    Attributes:
        path: Path or URL.
        identity: Key that is equal for two names of one file: links are resolved, hard links are separate files.
        format: One of ``FORMATS``; while a directory is searched also what a .json file was found to be.
        directory: The directory that was given; None if the file or a pattern was.
    """

    path: str
    identity: str
    format: str
    directory: str | None = None

    def as_baskets(self) -> "InputFile":
        """Return the same file, in the basket format unless it is a table."""
        return replace(self, format="baskets") if self.format == "text" else self

    @property
    def sort_key(self) -> tuple[bytes, int, bytes]:
        """The name; a named file precedes the same file in a directory, an outer directory precedes an inner one."""
        return os.fsencode(self.path), self.directory is not None, os.fsencode(self.directory or "")

    @property
    def preference(self) -> tuple[bool, tuple[bytes, int, bytes]]:
        """Smallest for the name under which a file is read: not a link, if there is another name."""
        linked = not is_url(self.path) and os.path.abspath(self.path) != self.identity  # noqa: PTH100 - links stay
        return linked, self.sort_key

    @property
    def relative(self) -> str:
        """The path within the directory, or the path as it was given."""
        return self.path if self.directory is None else self.path[len(self.directory) :].lstrip("/")

    @property
    def is_loose(self) -> bool:
        """Whether the file is not a table."""
        return self.format in LOOSE_FORMATS or self.format not in FORMATS


def find_files(inputs: Sequence[str], forced: str | None) -> tuple[list[InputFile], dict[str, int]]:
    """Return the files in the order of the bytes of their names, and the number of skipped entries by reason.

    Args:
        inputs: Paths of files and directories, glob patterns (``**`` matches directories), URLs.
        forced: One of ``FORMATS`` for all files, instead of the format by name and content of each.

    Raises:
        InputError: If a pattern matches nothing, a directory is empty or holds tables and other files, or a .json file
            holds neither an array nor lines.
        OSError: If a file does not exist.
        ConfigError: If a URL needs a package that is not installed.
    """
    skipped: Skipped = Counter()
    found = [file for given in inputs for file in _find(given, forced, skipped)]
    chosen: dict[str, InputFile] = {}
    for file in sorted(found, key=lambda file: file.preference):
        chosen.setdefault(file.identity, file)
    skipped[SECOND_TIME] += len(found) - len(chosen)
    return sorted(chosen.values(), key=lambda file: file.sort_key), {
        reason: count for reason, count in sorted(skipped.items()) if count
    }


def _find(given: str, forced: str | None, skipped: Skipped) -> Iterable[InputFile]:
    if not given:
        raise InputError("an input must be a path, got an empty one")
    if is_url(given):
        return _find_url(given, forced, skipped)
    path = Path(os.path.normpath(given)).as_posix()
    if os.path.isdir(path):  # noqa: PTH112 - as the path is written
        prefix = "" if path == "." else path
        found = sorted(_walk(path, skipped), key=lambda entry: os.fsencode(entry[0]))
        files = [InputFile(name, real, _format(name, forced), prefix) for name, real in found]
        return _same_kind(path, _without_underscores(files, skipped))
    if os.path.lexists(path) or not glob.has_magic(given):
        return [_named_file(path, forced)]
    matches = [os.path.normpath(match) for match in glob.glob(given, recursive=True)]  # noqa: PTH207 - as above
    paths = [Path(match).as_posix() for match in matches if not os.path.isdir(match)]  # noqa: PTH112 - as above
    return _matching(given, list(_readable(paths, skipped)), forced, skipped)


def _readable(paths: Iterable[str], skipped: Skipped) -> Iterator[str]:
    """Yield the paths of files that can be read; count the others."""
    for path in paths:
        reason = _no_file_reason(path)
        if reason is None:
            yield path
        else:
            skipped[reason] += 1


def _no_file_reason(path: str) -> str | None:
    """Return why a path cannot be read as a file; None if it can. A link in a circle leads to nothing."""
    if os.path.isdir(path):  # noqa: PTH112 - as above
        return DIRECTORY_AGAIN
    if not os.path.isfile(path):  # noqa: PTH113 - as above
        return NOT_A_FILE if os.path.exists(path) else BROKEN_LINK  # noqa: PTH110 - as above
    return None if os.access(path, os.R_OK) else NO_PERMISSION


def _named_file(path: str, forced: str | None) -> InputFile:
    """Return a file that exists and can be read more than once."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - as above
        raise InputError(
            f"{path}: must be a file that can be read twice, not a pipe or device; save it to a file first"
        )
    (file,) = _checked_json([InputFile(path, os.path.realpath(path), _format(path, forced))])
    return file


def _walk(top: str, skipped: Skipped) -> Iterator[tuple[str, str]]:
    """Yield the files in a directory and below it, each with its real path.

    A directory is read once. Those that only links lead to come last, so that a link never takes the place of the
    directory itself, and links in a circle cost nothing.
    """
    seen: set[str] = set()
    directories, linked = [top], list[str]()
    while directories or linked:
        directory = directories.pop() if directories else linked.pop(linked.index(min(linked)))
        real = os.path.realpath(directory)
        if real in seen:
            skipped[DIRECTORY_AGAIN] += 1
            continue
        seen.add(real)
        if directory != top and not os.access(directory, os.R_OK | os.X_OK):
            skipped[NO_PERMISSION] += 1
            continue
        for entry in _entries(directory, skipped):
            path = entry.name if directory == "." else f"{directory.rstrip('/')}/{entry.name}"
            if _is_directory(entry):
                (linked if entry.is_symlink() else directories).append(path)
            else:
                yield path, os.path.realpath(path) if entry.is_symlink() else os.path.join(real, entry.name)  # noqa: PTH118


def _entries(directory: str, skipped: Skipped) -> Iterator["os.DirEntry[str]"]:
    """Yield the files and directories to read, in order of their names."""
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda entry: os.fsencode(entry.name)):
            is_directory = _is_directory(entry)
            reason = _skip_reason(entry.name, is_directory=is_directory)
            if reason is None and not is_directory:
                reason = _no_file_reason(entry.path)
            if reason is None:
                yield entry
            else:
                skipped[reason] += 1


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    """Return whether an entry is a directory or leads to one; a link in a circle leads to nothing."""
    return os.path.isdir(entry) if entry.is_symlink() else entry.is_dir()  # noqa: PTH112 - as above


def _skip_reason(name: str, *, is_directory: bool) -> str | None:
    """Return why an entry of a directory is skipped, whatever else the directory holds."""
    if name.startswith("."):
        return DOT
    if is_directory and name == "__pycache__":
        return PYTHON_CACHE
    patterns = MARKER_DIRECTORIES if is_directory else MARKER_FILES
    return MARKER if any(fnmatchcase(name, pattern) for pattern in patterns) else None


def _find_url(url: str, forced: str | None, skipped: Skipped) -> Iterable[InputFile]:
    filesystem, path = url_filesystem(url)
    if filesystem.isfile(path):
        return _checked_json([_url_file(url, forced)])
    if filesystem.isdir(path):
        directory = url if url.endswith("://") else url.rstrip("/")
        found = _readable(filesystem.find(path), skipped) if "file" in filesystem.protocol else filesystem.find(path)
        names = sorted(_without_skipped([_relative_to(name, path) for name in found], skipped))
        files = [replace(_url_file(f"{directory}/{name}", forced), directory=url) for name in names]
        return _same_kind(url, _without_underscores(files, skipped))
    if not glob.has_magic(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    base = _before_first_pattern(url)
    base_path = "" if base.endswith(":/") else url_filesystem(base)[1]
    matches = [name for name in filesystem.glob(path) if filesystem.isfile(name)]
    return _matching(url, [f"{base}/{_relative_to(name, base_path)}" for name in matches], forced, skipped)


def _url_file(url: str, forced: str | None) -> InputFile:
    return InputFile(url, _identity(url), _format(url, forced))


def _without_skipped(names: Iterable[str], skipped: Skipped) -> Iterator[str]:
    """Yield the names without those that are skipped; a directory that is skipped is counted once."""
    counted: dict[str, str] = {}
    for name in names:
        parts = name.split("/")
        reasons = (_skip_reason(part, is_directory=place < len(parts)) for place, part in enumerate(parts, 1))
        first = next(((place, reason) for place, reason in enumerate(reasons, 1) if reason is not None), None)
        if first is None:
            yield name
        else:
            counted["/".join(parts[: first[0]])] = first[1]
    skipped.update(counted.values())


def _relative_to(path: str, directory: str) -> str:
    return path.strip("/")[len(directory.strip("/")) :].lstrip("/")


def _before_first_pattern(url: str) -> str:
    """Return the part of a URL before the first name that is a pattern, without the slash."""
    parts = url.split("/")
    first = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:first])


def _matching(pattern: str, paths: list[str], forced: str | None, skipped: Skipped) -> list[InputFile]:
    """Return the files that match a pattern, without marker files."""
    markers = [path for path in paths if _skip_reason(PurePosixPath(path).name, is_directory=False) == MARKER]
    skipped[MARKER] += len(markers)
    files = [InputFile(path, _identity(path), _format(path, forced)) for path in sorted({*paths} - {*markers})]
    if not files:
        raise InputError(f"{pattern}: no file matches this pattern")
    return _same_kind(pattern, files)


def _without_underscores(files: list[InputFile], skipped: Skipped) -> list[InputFile]:
    """Return the files without names that begin with an underscore, if all others are tables, as in Spark and Hive.

    Such names of loose files, as ``__init__.py``, are names like others; so are directories of partitions.
    """
    hidden = {file: entry for file in files if (entry := _underscored_entry(file.relative))}
    shown = [file for file in files if file not in hidden]
    if not shown or any(file.is_loose for file in shown):
        return files
    skipped[UNDERSCORE] += len({*hidden.values()})
    return shown


def _underscored_entry(relative: str) -> str:
    """Return the path up to the first name that begins with an underscore; empty if there is none."""
    parts = relative.split("/")
    places = (place for place, part in enumerate(parts, 1) if part.startswith("_") and "=" not in part)
    return "/".join(parts[: next(places, 0)])


def _same_kind(given: str, files: list[InputFile]) -> list[InputFile]:
    """Return the files of a directory or pattern: all of them tables, or none.

    A .json file that is no table is a document if it is among other loose files, such as a source tree.
    """
    if not files:
        raise InputError(f"{given}: the directory must hold a file whose name starts with neither . nor _")
    loose = [file for file in files if file.is_loose]
    if not any(file.format in LOOSE_FORMATS for file in loose):
        return _checked_json(files)
    tables = [file for file in files if not file.is_loose]
    if tables and loose:
        raise InputError(
            f"{given}: {len(tables)} of its {len(files)} files are tables, {loose[0].path} is not; "
            f"name the tables with a pattern such as {_pattern_of(tables[0])!r}, "
            "or set format='text' for one document per file"
        )
    return [file if file.format in FORMATS else replace(file, format="text") for file in files]


def _pattern_of(table: InputFile) -> str:
    """Return a pattern that matches the tables beside this one."""
    folder, _, name = table.path.rpartition("/")
    stem, compression = _split_compression(name)
    return f"{folder}/*{os.path.splitext(stem)[1]}{compression}".lstrip("/")  # noqa: PTH122 - as above


def _checked_json(files: list[InputFile]) -> list[InputFile]:
    """Return the same files.

    Raises:
        InputError: If a .json file holds neither an array nor one object per line.
    """
    for file in files:
        if file.format not in FORMATS:
            raise InputError(
                f"{file.path}: must be a JSON array or one JSON object per line, got {file.format}; "
                "set format='text' for one document per file"
            )
    return files


def _split_compression(name: str) -> tuple[str, str]:
    """Return a name without the suffix of its compression, and this suffix."""
    suffix = os.path.splitext(name)[1]  # noqa: PTH122 - as above
    return (name[: -len(suffix)], suffix) if suffix.lower() in COMPRESSIONS else (name, "")


def _format(path: str, forced: str | None) -> str:
    """Return the format by the suffix of a file name; for .json by content, perhaps what was found instead."""
    if forced is not None:
        return forced
    stem, _ = _split_compression(path)
    format_ = SUFFIXES.get(os.path.splitext(stem.lower())[1], "text")  # noqa: PTH122 - as above
    return detect_json(File(path)) if format_ == "json" else format_


def detect_json(file: File) -> str:
    """Return ``json`` for an array, ``jsonl`` for lines, otherwise what was found.

    A file that is empty or cannot be read counts as lines, whose reader reports why.
    """
    try:
        encoding = choose_encoding(None, *file.head(), guess=False)
        line = _first_line(replace(file, encoding=encoding).chunks())
    except UnreadableError:
        return "jsonl"
    return json_kind(line) if line else "jsonl"


def _first_line(chunks: Iterator[bytes]) -> bytes:
    """Return the first line that is not blank, or the beginning of an array, whose line may be the whole file."""
    held = strip_bom(next(chunks, b"")).lstrip()
    for chunk in chunks:
        if b"\n" in held or held.startswith(b"[") or len(held) > MAX_RECORD_BYTES:
            break
        held = (held + chunk).lstrip()
    return held.partition(b"\n")[0]


def _identity(path: str) -> str:
    """Return a key that is equal for two names of one file."""
    if not is_url(path):
        return os.path.realpath(path)
    filesystem, within = url_filesystem(path)
    local = "file" in filesystem.protocol
    return os.path.realpath(within) if local else f"{filesystem.protocol}:{within}"
