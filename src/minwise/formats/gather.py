"""Gather: anything that a user calls documents in, sources in document order out."""

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pyarrow as pa

from minwise.errors import ConfigError, InputError
from minwise.formats.files import COMPRESSIONS
from minwise.formats.opening import SUFFIXES, open_sources
from minwise.formats.sets import SetsSource
from minwise.formats.source import Columns, Source
from minwise.formats.standard_input import StandardInput
from minwise.formats.table import TableSource, as_table
from minwise.stages.shingle import Shingler, ShingleSets

__all__ = ["Files", "gather"]


class Files(tuple[str, ...]):
    """Paths, patterns and URLs that are certainly not documents: ``mw.dedup(mw.Files(["crawl/", "more/*.jsonl"]))``.

    A list of strings is taken for documents unless each of them names a file; this says what is meant.
    """

    __slots__ = ()


def gather(source: Any, columns: Columns, shingle: str | Shingler, format: str | None) -> tuple[list[Source], str]:  # noqa: A002, ANN401
    """The sources, and the common parent of their files.

    A string or path names files; so does ``Files``, a list of paths, or of strings that all name files. Any other list
    of strings is a list of documents.
    """
    paths = _paths(source)
    if paths is not None and "-" in paths:
        if len(paths) > 1:
            raise ConfigError(f"- (standard input) must be the only input, got {len(paths)} inputs")
        return [StandardInput()], ""
    if paths is not None:
        if shingle == "set":
            raise ConfigError("shingle='set' takes sets from memory: a list of sets, or a table with a list column")
        return open_sources(paths, format=format)
    if shingle == "set" or isinstance(source, ShingleSets):
        return [_sets_source(source, columns)], ""
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


def _sets_source(source: Any, columns: Columns) -> SetsSource:  # noqa: ANN401 - anything
    """Sets given directly, or the list column of a table, whose other columns go with it."""
    if isinstance(source, ShingleSets):
        return SetsSource(source)
    if isinstance(source, (pa.Array, pa.ChunkedArray)):
        return SetsSource(ShingleSets.from_sets(source.to_pylist()))
    begun = list(source) if isinstance(source, Iterable) and not hasattr(source, "__arrow_c_stream__") else None
    if begun is not None and not (begun and isinstance(begun[0], Mapping)):
        return SetsSource(ShingleSets.from_sets(begun))
    table = as_table(source if begun is None else begun)
    if columns.text[0] not in table.column_names:
        names = ", ".join(table.column_names)
        raise InputError(f"the table of sets has no column {columns.text[0]!r}; its columns are: {names}")
    return SetsSource(ShingleSets.from_sets(table.column(columns.text[0]).to_pylist()), table)
