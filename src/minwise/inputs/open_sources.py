"""Opening: what a user names as inputs in (files, directories, patterns, URLs), sources in document order out."""

import errno
import glob
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from minwise._internal.arrays import to_numpy
from minwise.checks import check_choice
from minwise.errors import ConfigError, InputError
from minwise.inputs.elements import Elements, gather_sets
from minwise.inputs.files import COMPRESSIONS, File, is_url, output_path, url_filesystem
from minwise.inputs.items import ItemLists, ItemSets
from minwise.inputs.jsonl import StandardInput
from minwise.inputs.sets import SetsSource
from minwise.inputs.source import Columns, Source
from minwise.inputs.tables import TableSource, as_table
from minwise.text.shingling import ShingleSets, hash_member

__all__ = ["FORMATS", "SUFFIXES", "Files", "gather", "open_sources"]

# Of these, the last two are only for sets.
FORMATS = ("parquet", "jsonl", "csv", "tsv", "arrow", "text", "baskets", "named-baskets")
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
# As Arrow does with directories of tables: such names are of those who wrote them, not of the data.
HIDDEN = (".", "_")


@dataclass(frozen=True, slots=True)
class _Found:
    """A file that was named, or found in a directory that was."""

    path: str
    format: str
    directory: str | None = None

    def as_baskets(self) -> "_Found":
        """The same file, with a set on each line unless it is a table."""
        return replace(self, format="baskets") if self.format == "text" else self

    @property
    def order(self) -> tuple[bytes, int, bytes]:
        """By name; a file named itself goes before the same file in a directory, an outer directory before an inner."""
        return os.fsencode(self.path), self.directory is not None, os.fsencode(self.directory or "")

    @property
    def relative(self) -> str:
        """The path within the directory, or the path as it was given."""
        return self.path if self.directory is None else self.path[len(self.directory) :].lstrip("/")


def open_sources(
    inputs: Sequence[str],
    *,
    format: str | None = None,  # noqa: A002
    sets: bool = False,
) -> tuple[list[Source], str]:
    """Finds all files that are meant and opens each by its format, or by ``format``.

    Args:
        inputs: Paths of files and directories, glob patterns (``**`` goes through directories), URLs.
        format: One of ``FORMATS`` for all files, rather than by the name of each.
        sets: Whether files that are no tables have a set on each line, rather than one text.

    Returns:
        The sources, ordered by the bytes of their names whatever the order of ``inputs``, and the directory that all
        files have in common, or "" if there is none.

    Raises:
        InputError: If a pattern matches nothing, a directory is empty, or two copies would get the same name.
        OSError: If a file is not there.
        ConfigError: If ``format`` is no format, or a URL takes a package that is not installed.
    """
    forced = None if format is None else check_choice("format", format, FORMATS)
    found: dict[str, _Found] = {}
    for one in sorted((one for given in inputs for one in _find(given, forced)), key=lambda one: one.order):
        found.setdefault(_identity(one.path), one)
    paths = [one.path for one in found.values()]
    root = _common_parent(paths)
    _check_outputs(paths, root)
    found = {name: one.as_baskets() if sets else one for name, one in found.items()}
    return list(_sources(list(found.values()))), root


def _find(given: str, forced: str | None) -> Iterable[_Found]:
    if not given:
        raise InputError("an input must be a path, got an empty one")
    if is_url(given):
        return _find_url(given, forced)
    path = Path(os.path.normpath(given)).as_posix()
    if os.path.isdir(path):  # noqa: PTH112 - as the path is written
        return _in_directory(path, sorted(_walk(path, frozenset())), forced)
    if os.path.lexists(path) or not glob.has_magic(given):
        return [_named(path, forced)]
    matches = [os.path.normpath(match) for match in glob.glob(given, recursive=True)]  # noqa: PTH207 - as above
    files = [Path(match).as_posix() for match in matches if os.path.isfile(match)]  # noqa: PTH113 - as above
    return _matching(given, files, forced)


def _named(path: str, forced: str | None) -> _Found:
    """A file that is there and can be read more than once."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - as above
        raise InputError(
            f"{path}: must be a file that can be read twice, not a pipe or device; save it to a file first"
        )
    return _Found(path, forced or _format(path))


def _walk(directory: str, above: frozenset[str]) -> Iterator[str]:
    """The files of a directory and those below it; a link to a directory above is not followed."""
    here = os.path.realpath(directory)
    if here in above:
        return
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(HIDDEN):
                continue
            path = entry.name if directory == "." else f"{directory.rstrip('/')}/{entry.name}"
            if entry.is_dir():
                yield from _walk(path, above | {here})
            elif entry.is_file():
                yield path


def _find_url(url: str, forced: str | None) -> Iterable[_Found]:
    filesystem, path = url_filesystem(url)
    if filesystem.isfile(path):
        return [_Found(url, forced or _format(url))]
    if filesystem.isdir(path):
        inside = [_below(name, path) for name in filesystem.find(path)]
        directory = url if url.endswith("://") else url.rstrip("/")
        return _in_directory(url, [f"{directory}/{name}" for name in sorted(inside) if not _is_hidden(name)], forced)
    if not glob.has_magic(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    base = _before_first_pattern(url)
    base_path = "" if base.endswith(":/") else url_filesystem(base)[1]
    matches = [name for name in filesystem.glob(path) if filesystem.isfile(name)]
    return _matching(url, [f"{base}/{_below(name, base_path)}" for name in matches], forced)


def _below(path: str, directory: str) -> str:
    return path.strip("/")[len(directory.strip("/")) :].lstrip("/")


def _before_first_pattern(url: str) -> str:
    """The part of a URL before the first name that is a pattern, without the slash."""
    parts = url.split("/")
    first = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    return "/".join(parts[:first])


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(HIDDEN) for part in relative.split("/"))


def _in_directory(directory: str, paths: list[str], forced: str | None) -> list[_Found]:
    """The files of a directory: tables if all of them are, a document each if most are not.

    A few tables of text among many other files, as in a tree of sources, are documents like the others. What can not be
    that, such as Parquet files beside a README, is for the user to sort out.
    """
    if not paths:
        raise InputError(f"{directory}: the directory must hold a file whose name starts with neither . nor _")
    formats = [forced or _format(path) for path in paths]
    tables = [format_ for format_ in formats if format_ != "text"]
    if not forced and len(tables) < len(paths):
        if 2 * len(tables) > len(paths) or {"parquet", "arrow"} & set(tables):
            other = paths[formats.index("text")]
            raise InputError(
                f"{directory}: {len(tables)} of its {len(paths)} files are tables, {other} is not; "
                "name the tables by a pattern, or say format text for a document per file"
            )
        formats = ["text"] * len(paths)
    prefix = "" if directory == "." else directory
    return [_Found(path, format_, prefix) for path, format_ in zip(paths, formats, strict=True)]


def _matching(pattern: str, paths: list[str], forced: str | None) -> list[_Found]:
    if not paths:
        raise InputError(f"{pattern}: no file matches this pattern")
    return [_Found(path, forced or _format(path)) for path in paths]


def _format(path: str) -> str:
    """The format that a file's name tells; of .json also its first line."""
    stem, suffix = os.path.splitext(path.lower())  # noqa: PTH122 - as above
    if suffix in COMPRESSIONS:
        suffix = os.path.splitext(stem)[1]  # noqa: PTH122 - as above
    format_ = SUFFIXES.get(suffix, "text")
    if format_ == "json":
        from minwise.inputs.jsonl import looks_like_json_lines

        return "jsonl" if looks_like_json_lines(File(path)) else "text"
    return format_


def _identity(path: str) -> str:
    """What two names of one file have in common."""
    if not is_url(path):
        return os.path.abspath(path)  # noqa: PTH100 - links are not followed
    filesystem, within = url_filesystem(path)
    return f"{type(filesystem).__name__}:{within}"


def _common_parent(paths: list[str]) -> str:
    """The directory that all paths begin with."""
    shared = []
    for parts in zip(*(path.split("/")[:-1] for path in paths), strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return "/".join(shared)


def _check_outputs(paths: list[str], root: str) -> None:
    """Refuses inputs whose copies would overwrite each other, such as ../a/x and _up/a/x."""
    taken: dict[Path, str] = {}
    for path in paths:
        other = taken.setdefault(output_path(path, Path(), root), path)
        if other != path:
            raise InputError(f"{path} and {other}: their copies would get the same name; name them in another way")


def _sources(found: list[_Found]) -> Iterator[Source]:
    ids = _document_ids([one for one in found if one.format == "text"])
    for format_, group in groupby(found, key=lambda one: one.format):
        if format_ == "text":
            from minwise.inputs.text_files import TextFiles

            members = list(group)
            yield TextFiles([File(one.path) for one in members], [ids[one.path] for one in members])
        else:
            yield from (_open(one) for one in group)


def _document_ids(found: list[_Found]) -> dict[str, str]:
    """The id of each text file: relative to its directory, unless that is the id of two."""
    times = Counter(one.relative for one in found)
    return {one.path: File(one.relative if times[one.relative] == 1 else one.path).name for one in found}


def _open(found: _Found) -> Source:
    """The source of a table. Formats are imported where they are used: together they take a tenth of a second."""
    file = File(found.path)
    if found.format == "parquet":
        from minwise.inputs.parquet import ParquetFile

        return ParquetFile(file)
    if found.format == "arrow":
        from minwise.inputs.arrow_ipc import ArrowFile

        return ArrowFile(file)
    if found.format == "jsonl":
        from minwise.inputs.jsonl import JsonLinesFile

        return JsonLinesFile(file)
    if found.format in ("baskets", "named-baskets"):
        from minwise.inputs.sets import BasketLines

        return BasketLines(file, named=found.format == "named-baskets")
    from minwise.inputs.delimited import DelimitedFile

    return DelimitedFile(file, "\t" if found.format == "tsv" else ",")


class Files(tuple[str, ...]):
    """Paths, patterns and URLs that are certainly not documents: ``mw.dedup(mw.Files(["crawl/", "more/*.jsonl"]))``.

    A list of strings is taken for documents unless each of them names a file; this says what is meant.
    """

    __slots__ = ()


def gather(source: Any, columns: Columns, format: str | None) -> tuple[list[Source], str]:  # noqa: A002, ANN401
    """The sources, and the common parent of their files.

    A string or path names files; so does ``Files``, a list of paths, or of strings that all name files. Any other list
    of strings is a list of documents.
    """
    paths = _paths(source)
    sets = isinstance(columns.elements, (ItemSets, ItemLists))
    if paths is not None and "-" in paths:
        if len(paths) > 1:
            raise ConfigError(f"- (standard input) must be the only input, got {len(paths)} inputs")
        return [StandardInput()], ""
    if paths is not None:
        if format in ("baskets", "named-baskets") and not sets:
            raise ConfigError(f"format must be that of a table or text, got {format}, which takes shingle set")
        return open_sources(paths, format=format, sets=sets)
    if isinstance(columns.elements, ItemLists):
        return [TableSource(_table_of_lists(source, columns))], ""
    if isinstance(columns.elements, ItemSets) or isinstance(source, ShingleSets):
        return [_sets_source(source, columns, columns.elements)], ""
    return [TableSource(as_table(source))], ""


def _paths(source: Any) -> list[str] | None:  # noqa: ANN401 - anything
    if isinstance(source, Files):
        return list(source)
    if isinstance(source, (str, PathLike)):
        return [fspath(source)]
    if not isinstance(source, (list, tuple)) or not source:
        return None
    if all(isinstance(one, PathLike) or _names_a_file(one) for one in source):
        return [fspath(one) for one in source]
    return None


def _names_a_file(text: object) -> bool:
    """Whether a string is surely not a document: it ends like a table's name, or there is a file of that name."""
    if not isinstance(text, str) or not text or "\n" in text:
        return False
    name = text.lower()
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    try:
        return name.endswith(tuple(SUFFIXES)) or Path(text).is_file()
    except (OSError, ValueError):  # no name that a file could have
        return False


def _sets_source(source: Any, columns: Columns, elements: Elements | None) -> SetsSource:  # noqa: ANN401 - anything
    """Sets given directly, or the list column of a table, whose other columns go with it."""
    bag = isinstance(elements, ItemSets) and elements.bag
    if isinstance(source, ShingleSets):
        if bag:
            raise ConfigError("bag must be left out with ShingleSets, which have no repetitions, got True")
        return SetsSource(source)
    make = _bags if bag else ShingleSets.from_sets
    if isinstance(source, (pa.Array, pa.ChunkedArray)):
        return SetsSource(make(source.to_pylist()))
    begun = list(source) if isinstance(source, Iterable) and not hasattr(source, "__arrow_c_stream__") else None
    if begun is not None and not (begun and isinstance(begun[0], Mapping)):
        return SetsSource(make(begun))
    table = as_table(source if begun is None else begun)
    if columns.text[0] not in table.column_names:
        names = ", ".join(table.column_names)
        raise InputError(f"the table of sets has no column {columns.text[0]!r}; its columns are: {names}")
    return SetsSource(make(table.column(columns.text[0]).to_pylist()), table)


def _bags(sets: Iterable[Iterable[object]]) -> ShingleSets:
    """Bags given directly: an item that is there twice counts twice."""
    bags = [list(one) for one in sets]
    ShingleSets.from_sets(bags)  # refuses what is no element
    owners = np.repeat(np.arange(len(bags)), [len(one) for one in bags])
    hashes = np.array([hash_member(item, 0, 1) for one in bags for item in one], dtype=np.uint64)
    made, reasons = gather_sets(owners, hashes, np.ones(len(owners), dtype=np.int64), len(bags))
    for number, reason in reasons.items():
        raise InputError(f"set {number} {reason}")
    return ShingleSets(to_numpy(made.offsets), to_numpy(made.values), settings={"shingle": "set", "bag": True})


def _table_of_lists(source: Any, columns: Columns) -> pa.Table:  # noqa: ANN401 - anything
    """Sets in memory as a column of lists, whose items are still themselves."""
    if isinstance(source, ShingleSets):
        raise ConfigError("transpose takes sets of items, got ShingleSets, which have only their hashes")
    if isinstance(source, (pa.Array, pa.ChunkedArray)):
        return pa.table({columns.text[0]: source})
    begun = list(source) if isinstance(source, Iterable) and not hasattr(source, "__arrow_c_stream__") else None
    if begun is None or (begun and isinstance(begun[0], Mapping)):
        return as_table(source if begun is None else begun)
    try:
        return pa.table({columns.text[0]: pa.array([None if one is None else list(one) for one in begun])})
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError("items must all be whole numbers or all be strings to be transposed") from None
