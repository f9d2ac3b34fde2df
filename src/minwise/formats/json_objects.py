"""JSON objects: rows of an Arrow table in, what JSON can hold of them out."""

from datetime import datetime
from decimal import Decimal
from itertools import product
from typing import Any

import orjson
import pyarrow as pa

__all__ = ["json_objects"]


def json_objects(rows: pa.RecordBatch) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """An object for each row, and for each row that can not be one the reason.

    Times become ISO strings, decimals numbers, bytes text, and what is not a number null.
    """
    try:
        return _plain(rows), {}
    except (UnicodeDecodeError, orjson.JSONEncodeError):
        return _one_by_one(rows)


def _one_by_one(rows: pa.RecordBatch) -> tuple[list[dict[str, Any]], dict[int, str]]:
    objects: list[dict[str, Any]] = [{} for _ in range(len(rows))]
    reasons: dict[int, str] = {}
    for row, name in product(range(len(rows)), rows.schema.names):
        value = rows.slice(row, 1).select([name])
        try:
            objects[row].update(_plain(value)[0])
        except (UnicodeDecodeError, orjson.JSONEncodeError):
            reasons.setdefault(row, f"{name} has bytes that are not valid UTF-8, which JSON can not hold")
    return objects, reasons


def _plain(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    objects: list[dict[str, Any]] = orjson.loads(orjson.dumps(rows.to_pylist(), default=_value))
    return objects


def _value(value: object) -> object:
    """What orjson does not know how to write."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)
