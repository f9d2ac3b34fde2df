"""Gather: anything that a user calls documents in, sources in document order out."""

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from minwise.arrays import to_numpy
from minwise.errors import ConfigError, InputError
from minwise.formats.files import COMPRESSIONS
from minwise.formats.opening import SUFFIXES, open_sources
from minwise.formats.sets import SetsSource
from minwise.formats.source import Columns, Source
from minwise.formats.standard_input import StandardInput
from minwise.formats.table import TableSource, as_table
from minwise.stages.elements import Elements, gather_sets
from minwise.stages.items import ItemLists, ItemSets
from minwise.stages.shingle import ShingleSets, hash_member

__all__ = ["Files", "gather"]


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
