"""Pairs: verified pairs in, the table of all pairs and its report out."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise.engines.found import Found
from minwise.formats.tables_out import TABLE_ROWS
from minwise.results.columns import identity, similarity_column
from minwise.results.report import cap_report
from minwise.stages.band import cut_runs, pack, split
from minwise.stages.cluster import PairBlock
from minwise.stages.expand import Expansion

__all__ = ["expanded", "pair_report", "pair_schema", "pair_tables"]

# Pairs that are put in order at once.
EXPANDED_PAIRS = 1 << 22
# Groups of identical documents that a report names.
SHOWN_GROUPS = 20
# Rows that could not be read that the report of a search, which has no quarantine file, names.
SHOWN_FAULTS = 100


def pair_tables(found: Found, *, sources: bool = False) -> Iterator[pa.Table]:
    """Every pair, by id, in document order; also those among identical documents."""
    for block in expanded(found):
        left, right = block.low.astype(np.int64), block.high.astype(np.int64)
        for start in range(0, max(1, len(left)), TABLE_ROWS):
            piece = slice(start, start + TABLE_ROWS)
            yield _pair_table(found, left[piece], right[piece], block.similarity[piece], sources=sources)


def expanded(found: Found) -> Iterator[PairBlock]:
    """The pairs of all documents, ascending."""
    if not len(found.copies):
        yield from found.blocks()
        return
    if not found.work.has("expanded"):
        _spill_expanded(found)
    pieces = [found.work.open(name) for name in found.work.names("expanded-")]
    runs = [piece.map("pairs") for piece in pieces]
    for slices in cut_runs(runs, EXPANDED_PAIRS):
        pairs = np.concatenate([run[cut] for run, cut in zip(runs, slices, strict=True)])
        similarity = np.concatenate([piece.map("similarity")[cut] for piece, cut in zip(pieces, slices, strict=True)])
        order = np.argsort(pairs)
        yield PairBlock(*split(pairs[order]), similarity[order])


def _spill_expanded(found: Found) -> None:
    """Writes the pairs of all copies in ascending runs."""
    found.work.forget("expanded-")  # of a run that was cut short
    expansion = Expansion(found.copies, len(found.documents), found.settings.max_bucket)
    across = (wide for block in found.blocks() for wide in expansion.across(block, EXPANDED_PAIRS))
    within = expansion.within(EXPANDED_PAIRS, found.settings.of_identical)
    for number, block in enumerate(chain(across, within)):
        pairs = pack(block.low, block.high)
        order = np.argsort(pairs)
        found.work.write(f"expanded-{number:06}", {"pairs": pairs[order], "similarity": block.similarity[order]})
    found.work.note("expanded", {})


def pair_report(found: Found) -> dict[str, Any]:
    """What was compared, and what the cap on buckets and on groups of identical documents left out, and where."""
    expansion = Expansion(found.copies, len(found.documents), found.settings.max_bucket)
    capped = expansion.capped()
    across = sum(expansion.left_out_across(block) for block in found.blocks()) if len(capped) else 0
    sizes = expansion.sizes[expansion.counting != expansion.sizes]
    groups = zip(found.documents.ids(capped[:SHOWN_GROUPS]).to_pylist(), sizes[:SHOWN_GROUPS].tolist(), strict=True)
    return {
        "minwise": _kernel.VERSION,
        "settings": found.settings.to_dict(),
        "plan": found.settings.planned(),
        "counts": found.documents.counts,
        **({"rows": rows} if (rows := found.documents.grouped_rows()) else {}),
        "candidates": found.candidates,
        "caps": {
            **cap_report(found),
            "identical_groups": len(capped),
            "identical_pairs_left_out": expansion.left_out_within() + across,
            "largest_identical_groups": [{"first": first, "documents": size} for first, size in groups],
        },
        "unreadable": found.documents.unreadable(),
        "faults": list(islice(found.documents.faults(), SHOWN_FAULTS)),
    }


def _pair_table(
    found: Found, left: NDArray[np.int64], right: NDArray[np.int64], similarity: NDArray[np.float64], *, sources: bool
) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name, numbers in (("left", left), ("right", right)):
        if sources:
            whole = identity(found, numbers)
            columns |= {name: whole["id"], f"{name}_source": whole["source"], f"{name}_row": whole["row"]}
        else:
            columns[name] = found.documents.ids(numbers)
    columns[found.settings.measured] = similarity_column(similarity)
    return pa.table(columns)


def pair_schema(found: Found, *, sources: bool) -> pa.Schema:
    """The columns of the table of pairs."""
    none = np.empty(0, dtype=np.int64)
    return _pair_table(found, none, none, np.empty(0), sources=sources).schema
