"""Febrl datasets of people with typos, and the fields by which they are compared."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa

# Fields by which the three datasets are compared; chosen on the first one, which therefore has the best figures.
FIELDS = (
    "given_name:char:2 surname:char:2 address_1:char:3 suburb:char:3 "
    "date_of_birth:digits:2 soc_sec_id:digits:2 postcode:digits:2"
)
WEIGHTS = None
THRESHOLD = 0.25


def read_people(folder: Path, number: int) -> pa.Table:
    """Return one of the datasets as a table; ``rec-12-org`` and ``rec-12-dup-0`` are the entity ``rec-12``."""
    with (folder / f"dataset{number}.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, skipinitialspace=True)
    names = [name.strip() for name in header]
    columns = {name: [row[column].strip() or None for row in rows] for column, name in enumerate(names)}
    entities = ["-".join(name.split("-")[:2]) for name in map(str, columns["rec_id"])]
    return pa.table({**columns, "entity": entities})
