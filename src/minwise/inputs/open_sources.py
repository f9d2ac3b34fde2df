"""Sources of the inputs that a user names: files, directories, glob patterns, URLs, standard input or data in memory.

The format of a file follows from the suffix of its name, unless ``format`` is given. Sources are ordered by the bytes
of their names, whatever the order of the inputs.
"""

import errno
import glob
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from minwise.checks import check_choice
from minwise.errors import ConfigError, InputError
from minwise.inputs.files import COMPRESSIONS, File, is_url, output_path, url_filesystem
from minwise.inputs.items import ItemLists, ItemSets
from minwise.inputs.jsonl import StandardInput
from minwise.inputs.memory_sources import open_in_memory
from minwise.inputs.source import Columns, Source

__all__ = ["FORMATS", "SUFFIXES", "Files", "open_files", "open_sources"]

BASKET_FORMATS = ("baskets", "named-baskets")
FORMATS = ("parquet", "jsonl", "csv", "tsv", "arrow", "text", *BASKET_FORMATS)
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
# As in Arrow's directories of tables: files with such names belong to the program that wrote them, not to the data.
HIDDEN_PREFIXES = (".", "_")


class Files(tuple[str, ...]):
    """Paths, patterns and URLs, never documents: ``mw.dedup(Files(["crawl/", "more/*.jsonl"]))``.

    A list of strings counts as documents unless each of them names a file; this class makes the meaning explicit.
    """

    __slots__ = ()


def open_sources(source: Any, columns: Columns, format: str | None) -> tuple[list[Source], str]:  # noqa: A002, ANN401
    """Return the sources of an input, and the common parent directory of their files.

    A string or path names files; so do ``Files``, a list of paths, and a list of strings that all name files. Any other
    list of strings is a list of documents. ``-`` is standard input.

    Raises:
        InputError: If a pattern matches nothing, a directory is empty, or data in memory cannot be used.
        OSError: If a file does not exist.
        ConfigError: If a setting does not apply to the input.
    """
    paths = _input_paths(source)
    if paths is None:
        return [open_in_memory(source, columns)], ""
    if "-" in paths:
        if len(paths) > 1:
            raise ConfigError(f"- (standard input) must be the only input, got {len(paths)} inputs")
        return [StandardInput()], ""
    sets = isinstance(columns.elements, (ItemSets, ItemLists))
    if format in BASKET_FORMATS and not sets:
        raise ConfigError(f"format must be that of a table or text, got {format}, which needs shingle set")
    return open_files(paths, format=format, sets=sets)


def _input_paths(source: Any) -> list[str] | None:  # noqa: ANN401 - any input
    """Return the paths that an input names; None if it is data."""
    if isinstance(source, Files):
        return list(source)
    if isinstance(source, (str, PathLike)):
        return [fspath(source)]
    if not isinstance(source, (list, tuple)) or not source:
        return None
    if all(isinstance(entry, PathLike) or _names_a_file(entry) for entry in source):
        return [fspath(entry) for entry in source]
    return None


def _names_a_file(text: object) -> bool:
    """Return whether a string has the suffix of a table or names an existing file, so it is not a document."""
    if not isinstance(text, str) or not text or "\n" in text:
        return False
    name = text.lower()
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    try:
        return name.endswith(tuple(SUFFIXES)) or Path(text).is_file()
    except (OSError, ValueError):  # not a valid file name
        return False


@dataclass(frozen=True, slots=True)
class _InputFile:
    """A file that an input names, or that was found in a directory that it names."""

    path: str
    format: str
    directory: str | None = None

    def as_baskets(self) -> "_InputFile":
        """Return the same file, in the basket format unless it is a table."""
        return replace(self, format="baskets") if self.format == "text" else self

    @property
    def sort_key(self) -> tuple[bytes, int, bytes]:
        """The name; a named file precedes the same file in a directory, an outer directory precedes an inner one."""
        return os.fsencode(self.path), self.directory is not None, os.fsencode(self.directory or "")

    @property
    def relative(self) -> str:
        """The path within the directory, or the path as it was given."""
        return self.path if self.directory is None else self.path[len(self.directory) :].lstrip("/")


def open_files(
    inputs: Sequence[str],
    *,
    format: str | None = None,  # noqa: A002
    sets: bool = False,
) -> tuple[list[Source], str]:
    """Find all files that the inputs name, and open each by its format or by ``format``.

    Args:
        inputs: Paths of files and directories, glob patterns (``**`` matches directories), URLs.
        format: One of ``FORMATS`` for all files, instead of the format by the name of each.
        sets: Whether files that are not tables have a set on each line, instead of one text.

    Returns:
        The sources, ordered by the bytes of their names, and the common parent directory of all files, or "" if there
        is none.

    Raises:
        InputError: If a pattern matches nothing, a directory is empty, or two copies would have the same name.
        OSError: If a file does not exist.
        ConfigError: If ``format`` is unknown, or a URL needs a package that is not installed.
    """
    forced = None if format is None else check_choice("format", format, FORMATS)
    files: dict[str, _InputFile] = {}
    for file in sorted((file for given in inputs for file in _find(given, forced)), key=lambda file: file.sort_key):
        files.setdefault(_identity(file.path), file)
    paths = [file.path for file in files.values()]
    root = _common_parent(paths)
    _check_outputs(paths, root)
    return list(_sources([file.as_baskets() if sets else file for file in files.values()])), root


def _find(given: str, forced: str | None) -> Iterable[_InputFile]:
    if not given:
        raise InputError("an input must be a path, got an empty one")
    if is_url(given):
        return _find_url(given, forced)
    path = Path(os.path.normpath(given)).as_posix()
    if os.path.isdir(path):  # noqa: PTH112 - as the path is written
        return _in_directory(path, sorted(_walk(path, frozenset())), forced)
    if os.path.lexists(path) or not glob.has_magic(given):
        return [_named_file(path, forced)]
    matches = [os.path.normpath(match) for match in glob.glob(given, recursive=True)]  # noqa: PTH207 - as above
    files = [Path(match).as_posix() for match in matches if os.path.isfile(match)]  # noqa: PTH113 - as above
    return _matching(given, files, forced)


def _named_file(path: str, forced: str | None) -> _InputFile:
    """Return a file that exists and can be read more than once."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - as above
        raise InputError(
            f"{path}: must be a file that can be read twice, not a pipe or device; save it to a file first"
        )
    return _InputFile(path, forced or _detect_format(path))


def _walk(directory: str, parents: frozenset[str]) -> Iterator[str]:
    """Yield the files in a directory and below it; a link to a parent directory is not followed."""
    real = os.path.realpath(directory)
    if real in parents:
        return
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(HIDDEN_PREFIXES):
                continue
            path = entry.name if directory == "." else f"{directory.rstrip('/')}/{entry.name}"
            if entry.is_dir():
                yield from _walk(path, parents | {real})
            elif entry.is_file():
                yield path


def _find_url(url: str, forced: str | None) -> Iterable[_InputFile]:
    filesystem, path = url_filesystem(url)
    if filesystem.isfile(path):
        return [_InputFile(url, forced or _detect_format(url))]
    if filesystem.isdir(path):
        inside = [_relative_to(name, path) for name in filesystem.find(path)]
        directory = url if url.endswith("://") else url.rstrip("/")
        return _in_directory(url, [f"{directory}/{name}" for name in sorted(inside) if not _is_hidden(name)], forced)
    if not glob.has_magic(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    base = _before_first_pattern(url)
    base_path = "" if base.endswith(":/") else url_filesystem(base)[1]
    matches = [name for name in filesystem.glob(path) if filesystem.isfile(name)]
    return _matching(url, [f"{base}/{_relative_to(name, base_path)}" for name in matches], forced)


def _relative_to(path: str, directory: str) -> str:
    return path.strip("/")[len(directory.strip("/")) :].lstrip("/")


def _before_first_pattern(url: str) -> str:
    """Return the part of a URL before the first name that is a pattern, without the slash."""
    parts = url.split("/")
    first = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:first])


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(HIDDEN_PREFIXES) for part in relative.split("/"))


def _in_directory(directory: str, paths: list[str], forced: str | None) -> list[_InputFile]:
    """Return the files of a directory: tables if all of them are, one document each if most are not.

    A few tables of text among many other files, as in a source tree, are documents like the others. The user must
    decide about other mixtures, such as Parquet files next to a README.
    """
    if not paths:
        raise InputError(f"{directory}: the directory must hold a file whose name starts with neither . nor _")
    formats = [forced or _detect_format(path) for path in paths]
    tables = [format_ for format_ in formats if format_ != "text"]
    if not forced and len(tables) < len(paths):
        if 2 * len(tables) > len(paths) or {"parquet", "arrow"} & set(tables):
            other = paths[formats.index("text")]
            raise InputError(
                f"{directory}: {len(tables)} of its {len(paths)} files are tables, {other} is not; "
                "name the tables with a pattern, or set format to text for one document per file"
            )
        formats = ["text"] * len(paths)
    prefix = "" if directory == "." else directory
    return [_InputFile(path, format_, prefix) for path, format_ in zip(paths, formats, strict=True)]


def _matching(pattern: str, paths: list[str], forced: str | None) -> list[_InputFile]:
    if not paths:
        raise InputError(f"{pattern}: no file matches this pattern")
    return [_InputFile(path, forced or _detect_format(path)) for path in paths]


def _detect_format(path: str) -> str:
    """Return the format by the suffix of a file name; for .json also by the first line."""
    stem, suffix = os.path.splitext(path.lower())  # noqa: PTH122 - as above
    if suffix in COMPRESSIONS:
        suffix = os.path.splitext(stem)[1]  # noqa: PTH122 - as above
    format_ = SUFFIXES.get(suffix, "text")
    if format_ == "json":
        from minwise.inputs.jsonl import looks_like_json_lines

        return "jsonl" if looks_like_json_lines(File(path)) else "text"
    return format_


def _identity(path: str) -> str:
    """Return a key that is equal for two names of one file."""
    if not is_url(path):
        return os.path.abspath(path)  # noqa: PTH100 - links are not followed
    filesystem, within = url_filesystem(path)
    return f"{type(filesystem).__name__}:{within}"


def _common_parent(paths: list[str]) -> str:
    """Return the directory that all paths begin with."""
    shared = []
    for parts in zip(*(path.split("/")[:-1] for path in paths), strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "/".join(shared)


def _check_outputs(paths: list[str], root: str) -> None:
    """Reject inputs whose copies would overwrite each other, such as ../a/x and _up/a/x."""
    taken: dict[Path, str] = {}
    for path in paths:
        other = taken.setdefault(output_path(path, Path(), root), path)
        if other != path:
            raise InputError(f"{path} and {other}: their copies would get the same name; name them in another way")


def _sources(files: list[_InputFile]) -> Iterator[Source]:
    ids = _document_ids([file for file in files if file.format == "text"])
    for format_, group in groupby(files, key=lambda file: file.format):
        if format_ == "text":
            from minwise.inputs.text_files import TextFiles

            documents = list(group)
            yield TextFiles([File(file.path) for file in documents], [ids[file.path] for file in documents])
        else:
            yield from map(_open_table, group)


def _document_ids(files: list[_InputFile]) -> dict[str, str]:
    """Return the id of each text file: its path relative to its directory, unless two files have that path."""
    counts = Counter(file.relative for file in files)
    return {file.path: File(file.relative if counts[file.relative] == 1 else file.path).name for file in files}


def _open_table(input_file: _InputFile) -> Source:
    """Return the source of a table. Formats are imported here, on use: together they take a tenth of a second."""
    file = File(input_file.path)
    if input_file.format == "parquet":
        from minwise.inputs.parquet import ParquetFile

        return ParquetFile(file)
    if input_file.format == "arrow":
        from minwise.inputs.arrow_ipc import ArrowFile

        return ArrowFile(file)
    if input_file.format == "jsonl":
        from minwise.inputs.jsonl import JsonLinesFile

        return JsonLinesFile(file)
    if input_file.format in BASKET_FORMATS:
        from minwise.inputs.baskets import BasketFile

        return BasketFile(file, named=input_file.format == "named-baskets")
    from minwise.inputs.delimited import DelimitedFile

    return DelimitedFile(file, "\t" if input_file.format == "tsv" else ",")
