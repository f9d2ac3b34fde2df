"""Columns by name or path: nested fields of tables and JSON objects, lists of strings, and proposals for wrong names.

``doc.body`` is the column of that name or, if there is none, the field ``body`` of the struct or object ``doc``. A path
may lead through a list of structs; its value is then the list of their fields. A list of strings is one text, joined by
line breaks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minwise._internal.arrays import FLAT_TYPES, flatten_texts, from_lists, struct_field, to_numpy, valid_mask
from minwise.inputs.elements import value_type

__all__ = [
    "MISSING",
    "LeafColumn",
    "find_path",
    "find_value",
    "is_ambiguous",
    "is_list_type",
    "is_text_column",
    "join_lists",
    "join_values",
    "missing_column",
    "nested_value",
    "read_path",
    "record_leaves",
    "schema_leaves",
]

# The value of a path that a JSON object does not have.
MISSING = object()
# Names that columns of texts usually have, the likeliest first.
LIKELY_TEXTS = ("text", "content", "body", "document", "raw_content", "markdown", "article", "message", "review")
# Columns that an error lists.
LISTED_COLUMNS = 20
# Minimum similarity of two names, from 0 to 1, at which one may be a misspelling of the other.
CLOSE_NAMES = 0.75
DEEPEST = 64  # levels of JSON in which texts and columns are looked for; orjson parses 1,024
TEXT_SEPARATOR = "\n"
JSON_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null", list: "list"}


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """A column without fields of its own.

    Attributes:
        path: Its name, or the path to it.
        kind: Its type, as an error shows it; "" where all columns have one type.
        is_text: Whether its values can be texts.
        length: Mean length of its first values.
    """

    path: str
    kind: str
    is_text: bool
    length: float = 0.0

    def __str__(self) -> str:
        return f"{self.path} ({self.kind})" if self.kind else self.path

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]


def is_list_type(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    """Return whether values of a type are lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_text_column(kind: Any) -> bool:  # noqa: ANN401 - as above
    """Return whether values of a type are texts, or lists of texts; a column of the null type has missing texts."""
    if is_list_type(kind):
        return is_text_column(kind.value_type)
    return value_type(kind) in (*FLAT_TYPES, pa.string_view(), pa.binary_view(), pa.null())


def _fields(kind: Any) -> list[Any]:  # noqa: ANN401 - as above
    """Return the fields of a struct, or of the structs of a list."""
    while is_list_type(kind):
        kind = kind.value_type
    return list(kind) if pa.types.is_struct(kind) else []


def find_path(fields: Iterable[Any], name: str) -> tuple[str, ...] | None:
    """Return the path of a column in a schema or struct; None if there is none. A column of that name comes first."""
    kinds = {field.name: field.type for field in fields}
    if name in kinds:
        return (name,)
    for head, rest in _splits(name):
        inner = find_path(_fields(kinds[head]), rest) if head in kinds else None
        if inner is not None:
            return (head, *inner)
    return None


def is_ambiguous(fields: Iterable[Any], path: Sequence[str]) -> bool:
    """Return whether several columns, or several fields of a struct, have a name of the path."""
    named = [field for field in fields if field.name == path[0]]
    return len(named) > 1 or (len(path) > 1 and is_ambiguous(_fields(named[0].type), path[1:]))


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Yield the parts before and after each dot."""
    return ((name[: dot.start()], name[dot.end() :]) for dot in re.finditer(r"\.", name))


def read_path(schema: pa.Schema, path: Sequence[str]) -> str:
    """Return the longest part of a path that leads through structs alone, which Parquet can read by itself."""
    kind, parts = schema.field(path[0]).type, [path[0]]
    for name in path[1:]:
        if not pa.types.is_struct(kind):
            break
        kind = kind.field(name).type
        parts.append(name)
    return ".".join(parts)


def nested_value(column: pa.Array, path: Sequence[str]) -> pa.Array:
    """Return the fields of a column of structs, or lists of them; null where a struct on the path is null."""
    if not path:
        return column
    if not is_list_type(column.type):
        return nested_value(struct_field(column, column.type.get_field_index(path[0])), path[1:])
    lists = column.cast(pa.large_list(column.type.value_type))
    return from_lists(to_numpy(lists.offsets), nested_value(lists.values, path), valid_mask(lists))


def join_lists(column: pa.Array) -> pa.Array:
    """Return lists of texts as one text each, null where a list or one of its texts is; other columns unchanged."""
    if not is_list_type(column.type):
        return column
    lists = column.cast(pa.large_list(column.type.value_type))
    texts = flatten_texts(join_lists(lists.values))
    joined = from_lists(to_numpy(lists.offsets), texts, valid_mask(lists))
    return pc.binary_join(joined, pa.scalar(TEXT_SEPARATOR, texts.type))


def find_value(record: Mapping[str, Any], name: str, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a key or path in a JSON object; ``MISSING`` if it has none, or only below 64 levels."""
    if name in record:
        return record[name]
    for head, rest in _splits(name):
        value = _inner_value(record.get(head, MISSING), rest, depth + 1)
        if value is not MISSING:
            return value
    return MISSING


def _inner_value(value: Any, name: str, depth: int) -> Any:  # noqa: ANN401 - as above
    """Return a path within a value: None within null, the list of values within a list."""
    if depth > DEEPEST:
        return MISSING
    if isinstance(value, list):
        found = [_inner_value(item, name, depth + 1) for item in value]
        return (
            [None if item is MISSING else item for item in found]
            if any(item is not MISSING for item in found)
            else MISSING
        )
    if isinstance(value, Mapping):
        return find_value(value, name, depth)
    return None if value is None else MISSING


def join_values(values: list[Any], depth: int = 0) -> str | None:
    """Return a JSON list of strings, or of lists of strings, as one text; None if it holds anything else."""
    if depth > DEEPEST:
        return None
    texts: list[Any] = [join_values(value, depth + 1) if isinstance(value, list) else value for value in values]
    return TEXT_SEPARATOR.join(texts) if all(isinstance(text, str) for text in texts) else None


def schema_leaves(schema: pa.Schema, sample: Any = None, *, typed: bool = True) -> list[LeafColumn]:  # noqa: ANN401
    """Return all columns without fields of their own.

    Args:
        schema: The columns.
        sample: The first rows, as a table or record batch, if lengths matter.
        typed: Whether errors show the types.
    """
    leaves = []
    for path, kind in _leaf_paths(schema):
        is_text = is_text_column(kind)
        length = _mean_length(sample, path) if sample is not None and is_text else 0.0
        leaves.append(
            LeafColumn(".".join(path), re.sub("large_|_view", "", str(kind)) if typed else "", is_text, length)
        )
    return leaves


def _leaf_paths(fields: Iterable[Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for field in fields:
        inner = _fields(field.type)
        if inner:
            yield from (((field.name, *path), kind) for path, kind in _leaf_paths(inner))
        else:
            yield (field.name,), field.type


def _mean_length(sample: Any, path: Sequence[str]) -> float:  # noqa: ANN401 - a table or a record batch
    if is_ambiguous(sample.schema, path):
        return 0.0
    column = sample.column(path[0])
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    texts = flatten_texts(join_lists(nested_value(column, path[1:])))
    lengths = pc.binary_length(texts.cast(pa.large_binary())) if texts.type != pa.null() else texts
    return float(np.mean(lengths.drop_null().to_pylist() or [0]))


def record_leaves(record: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[LeafColumn]:
    """Yield the keys of a JSON object and the paths within it, with the types of their values."""
    for key, value in record.items():
        inner = value[0] if isinstance(value, list) and value and isinstance(value[0], Mapping) else value
        if isinstance(inner, Mapping) and inner and depth < DEEPEST:
            yield from record_leaves(inner, f"{prefix}{key}.", depth + 1)
        else:
            text = join_values(value) if isinstance(value, list) and value else value
            kind = "list of strings" if isinstance(value, list) and isinstance(text, str) else _json_type(value)
            length = len(text) if isinstance(text, str) else 0
            yield LeafColumn(f"{prefix}{key}", kind, isinstance(text, str), length)


def _json_type(value: object) -> str:
    return JSON_TYPES.get(type(value), "object")


def missing_column(name: str, leaves: Sequence[LeafColumn], setting: str | None = None) -> str:
    """Return the reason why a source without a column cannot be used: its columns, and the one probably meant.

    Args:
        name: The column that it lacks.
        leaves: The columns that it has.
        setting: The setting that takes one column name, such as ``text_column``; None if there is none.
    """
    shown = [*map(str, leaves[:LISTED_COLUMNS])]
    shown += [f"and {len(leaves) - LISTED_COLUMNS:,} more"] if len(leaves) > LISTED_COLUMNS else []
    meant = _meant_column(name, leaves, of_texts=setting in ("text_column", "text"))
    proposal = "" if meant is None else f"; did you mean {setting + '=' if setting else ''}{meant.path!r}?"
    return f"has no column {name!r}; its columns are: {', '.join(shown)}{proposal}"


def _meant_column(name: str, leaves: Sequence[LeafColumn], *, of_texts: bool) -> LeafColumn | None:
    """Return the column that a wrong name probably means: one with a similar name, or one that looks like texts."""
    leaves = sorted((leaf for leaf in leaves if leaf.is_text or not of_texts), key=lambda leaf: leaf.path.count("."))
    similar = _similar_name(name, leaves)
    if similar is not None or not of_texts:
        return similar
    for likely in LIKELY_TEXTS:
        found = next((leaf for leaf in leaves if leaf.name.lower() == likely), None)
        if found is not None:
            return found
    return max(leaves, key=lambda leaf: (leaf.name.lower() != "id", leaf.length), default=None)


def _similar_name(name: str, leaves: Sequence[LeafColumn]) -> LeafColumn | None:
    """Return the column with the same name in other letters or in a struct, with one more word, or misspelt."""
    wanted = name.lower()
    for test in (
        lambda leaf: leaf.path.lower() == wanted or leaf.path.strip().lower() == wanted,
        lambda leaf: leaf.name.lower() == wanted.rpartition(".")[2],
        lambda leaf: wanted in re.split(r"[\W_]+", leaf.name.lower()),
    ):
        found = next(filter(test, leaves), None)
        if found is not None:
            return found
    close = get_close_matches(wanted, [leaf.path.lower() for leaf in leaves], 1, CLOSE_NAMES)
    return next((leaf for leaf in leaves if leaf.path.lower() in close), None)
