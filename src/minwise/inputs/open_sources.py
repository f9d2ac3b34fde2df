"""Sources of the inputs that a user names: files, directories, glob patterns, URLs, standard input or data in memory.

The format of a file follows from the suffix of its name, unless ``format`` is given. Sources are ordered by the bytes
of their names, whatever the order of the inputs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from minwise.checks import check_choice
from minwise.errors import ConfigError, InputError
from minwise.inputs.files import COMPRESSIONS, File, output_path
from minwise.inputs.find_files import BASKET_FORMATS, FORMATS, SUFFIXES, InputFile, find_files
from minwise.inputs.items import ItemLists, ItemSets
from minwise.inputs.memory_sources import open_in_memory
from minwise.inputs.source import Columns, Source

__all__ = ["Files", "OpenedSources", "open_files", "open_sources"]


class Files(tuple[str, ...]):
    """Paths, patterns and URLs, never documents: ``mw.dedup(Files(["crawl/", "more/*.jsonl"]))``.

    A list of strings counts as documents unless each of them names a file; this class makes the meaning explicit.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class OpenedSources:
    """The sources of an input.

    Attributes:
        sources: The sources, ordered by the bytes of their names.
        root: Common parent directory of all files; "" if there is none.
        skipped: Number of entries that are not read, by reason.
    """

    sources: list[Source]
    root: str = ""
    skipped: dict[str, int] = field(default_factory=dict)


def open_sources(source: Any, columns: Columns, format: str | None) -> OpenedSources:  # noqa: A002, ANN401
    """Return the sources of an input.

    A string or path names files; so do ``Files``, a list of paths, and a list of strings that all name files. Any other
    list of strings is a list of documents. ``-`` is standard input.

    Raises:
        InputError: If a pattern matches nothing, a directory is empty or holds tables and other files, all files are
            empty, or data in memory cannot be used.
        OSError: If a file does not exist.
        ConfigError: If a setting does not apply to the input.
    """
    paths = _input_paths(source)
    if paths is None:
        return OpenedSources([open_in_memory(source, columns)])
    sets = isinstance(columns.elements, (ItemSets, ItemLists))
    if format in BASKET_FORMATS and not sets:
        raise ConfigError(f"format must be that of a table or text, got {format}, which needs shingle set")
    if "-" in paths:
        if len(paths) > 1:
            raise ConfigError(f"- (standard input) must be the only input, got {len(paths)} inputs")
        return OpenedSources([_open_standard_input(format)])
    opened = open_files(paths, format=format, sets=sets)
    _refuse_empty(opened.sources)
    return opened


def _open_standard_input(format: str | None) -> Source:  # noqa: A002
    """Return standard input in a format; JSON if none is given."""
    from minwise.inputs.standard_input import StandardInput

    return StandardInput(check_choice("format", format, FORMATS) if format else None, _open)


def _refuse_empty(sources: Sequence[Source]) -> None:
    """Raise if all files are empty: an empty shard beside others is no error."""
    if not any(source.size_bytes() for source in sources):
        paths = [path for source in sources for path in source.paths()]
        names = File(paths[0]).name if len(paths) == 1 else f"{len(paths)} files from {File(paths[0]).name} on"
        raise InputError(f"{names}: nothing to read, 0 bytes; check the path, or the program that wrote it")


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


def open_files(
    inputs: Sequence[str],
    *,
    format: str | None = None,  # noqa: A002
    sets: bool = False,
) -> OpenedSources:
    """Find all files that the inputs name, and open each by its format or by ``format``.

    Args:
        inputs: Paths of files and directories, glob patterns (``**`` matches directories), URLs.
        format: One of ``FORMATS`` for all files, instead of the format by the name of each.
        sets: Whether files that are not tables have a set on each line, instead of one text.

    Raises:
        InputError: As :func:`~minwise.inputs.find_files.find_files`, or if two copies would have the same name.
        OSError: If a file does not exist.
        ConfigError: If ``format`` is unknown, or a URL needs a package that is not installed.
    """
    files, skipped = find_files(inputs, None if format is None else check_choice("format", format, FORMATS))
    paths = [file.path for file in files]
    root = _common_parent(paths)
    _check_outputs(paths, root)
    return OpenedSources(list(_sources([file.as_baskets() if sets else file for file in files])), root, skipped)


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


def _sources(files: list[InputFile]) -> Iterator[Source]:
    ids = _document_ids([file for file in files if file.format == "text"])
    for format_, group in groupby(files, key=lambda file: file.format):
        if format_ == "text":
            from minwise.inputs.text_files import TextFiles

            documents = list(group)
            yield TextFiles([File(file.path) for file in documents], [ids[file.path] for file in documents])
        else:
            yield from (_open(File(file.path), file.format) for file in group)


def _document_ids(files: list[InputFile]) -> dict[str, str]:
    """Return the id of each text file: its path relative to its directory, unless two files have that path."""
    counts = Counter(file.relative for file in files)
    return {file.path: File(file.relative if counts[file.relative] == 1 else file.path).name for file in files}


def _open(file: File, format_: str) -> Source:
    """Return the source of one file. Formats are imported here, on use: together they take a tenth of a second."""
    if format_ == "parquet":
        from minwise.inputs.parquet import ParquetFile

        return ParquetFile(file)
    if format_ == "arrow":
        from minwise.inputs.arrow_ipc import ArrowFile

        return ArrowFile(file)
    if format_ == "jsonl":
        from minwise.inputs.jsonl import JsonLinesFile

        return JsonLinesFile(file)
    if format_ == "json":
        from minwise.inputs.json_array import JsonArrayFile

        return JsonArrayFile(file)
    return _open_text(file, format_)


def _open_text(file: File, format_: str) -> Source:
    """Return the source of one file in a format without objects or a schema."""
    if format_ in BASKET_FORMATS:
        from minwise.inputs.baskets import BasketFile

        return BasketFile(file, named=format_ == "named-baskets")
    if format_ in ("text", "lines"):
        from minwise.inputs.text_files import LinesFile, TextFiles

        return LinesFile(file) if format_ == "lines" else TextFiles([file], [file.name])
    from minwise.inputs.delimited import DelimitedFile

    return DelimitedFile(file, "\t" if format_ == "tsv" else ",")
