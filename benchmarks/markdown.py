"""Markdown: what tables of records are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Record = dict[str, Any]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def where(record: Record) -> str:
    """Return on what machine and day a record was made."""
    machine = record["machine"]
    return f"{machine['processor']}, {machine['cores']} cores, {record['finished'][:10]}"
