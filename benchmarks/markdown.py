"""Markdown tables, and descriptions of the machine of a record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Record = dict[str, Any]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def machine_and_date(record: Record) -> str:
    """Return the processor, the number of cores and the date of a record."""
    machine = record["machine"]
    return f"{machine['processor']}, {machine['cores']} cores, {record['finished'][:10]}"
