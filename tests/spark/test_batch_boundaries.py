"""Functions of tasks receive rows in batches; where a batch ends makes no difference. These tests need no cluster."""

import math
from collections.abc import Iterator
from itertools import combinations, groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minwise.options import DedupOptions
from minwise.search.clustering import FIRST_MEMBERS
from minwise.settings import resolve_options, search_settings
from minwise.spark import pair_tasks
from minwise.spark.pair_tasks import COUNT_COLUMNS, PAIR_SCHEMA, _BucketPairer

Entries = list[tuple[int, int]]
Pairs = set[tuple[int, int]]

SMALL_KEYS = st.integers(min_value=-3, max_value=3)
CUTS = st.lists(st.integers(min_value=0, max_value=300), max_size=8)


@st.composite
def entries(draw: st.DrawFn) -> Entries:
    """Draw keys with their places, sorted as Spark sorts them; some buckets exceed the cap."""
    sizes = draw(st.dictionaries(SMALL_KEYS, st.integers(min_value=1, max_value=60), max_size=5))
    return [(key, place) for key in sorted(sizes) for place in range(key * key, key * key + sizes[key])]


def pieces(rows: int, cuts: list[int]) -> Iterator[slice]:
    """Yield consecutive pieces of rows, some of which may be empty."""
    bounds = sorted({0, rows, *(cut % (rows + 1) for cut in cuts)})
    yield from (slice(first, stop) for first, stop in pairwise(bounds))
    yield slice(rows, rows)


def buckets(found: Entries) -> list[list[int]]:
    """Return the places of every key."""
    return [[place for _, place in group] for _, group in groupby(found, key=lambda entry: entry[0])]


def pairs_of(bucket: list[int], most: int) -> Pairs:
    """Return all pairs of a bucket; of one above the cap, those with one of its first members."""
    every = combinations(range(len(bucket)), 2)
    return {(bucket[first], bucket[second]) for first, second in every if len(bucket) <= most or first < FIRST_MEMBERS}


@given(
    found=entries(), cuts=CUTS, most=st.integers(min_value=FIRST_MEMBERS, max_value=40), protected=st.integers(0, 12)
)
@example(
    found=[(1, place) for place in range(FIRST_MEMBERS + 1)], cuts=[FIRST_MEMBERS], most=FIRST_MEMBERS, protected=0
)
@example(found=[(1, place) for place in range(20)], cuts=[3], most=20, protected=0)
@example(found=[(1, place) for place in range(50)], cuts=[1, 17, 18], most=FIRST_MEMBERS, protected=3)
def test_a_bucket_may_span_batches(found: Entries, cuts: list[int], most: int, protected: int) -> None:
    """Its pairs and the counts of the cap do not depend on the batches."""
    table = pa.table({"key": [key for key, _ in found], "place": [place for _, place in found]})
    table = table.cast(pa.schema([("key", pa.int64()), ("place", pa.int64())])).combine_chunks()
    batches = (
        batch
        for piece in pieces(len(found), cuts)
        for batch in table.slice(piece.start, piece.stop - piece.start).to_batches() or table.slice(0, 0).to_batches()
    )
    given_back = pa.Table.from_batches(_BucketPairer(most, protected).run(batches), PAIR_SCHEMA)
    rows = given_back.to_pylist()
    all_buckets = buckets(found)
    expected = [pair for bucket in all_buckets for pair in pairs_of(bucket, most) if pair[1] >= protected]
    assert sorted((row["low"], row["high"]) for row in rows if row["low"] is not None) == sorted(expected)
    shared = [bucket for bucket in all_buckets if len(bucket) > 1]
    capped = [bucket for bucket in shared if len(bucket) > most]
    left_out = sum(math.comb(len(bucket), 2) - len(pairs_of(bucket, most)) for bucket in capped)
    totals = [[row[name] for name in COUNT_COLUMNS] for row in rows if row["low"] is None]
    caps = [len(capped), sum(map(len, capped)), left_out]
    expected_totals = [[*caps, max(map(len, shared)), len(expected)]] if shared else []
    assert totals == expected_totals


@given(data=st.data())
def test_a_cell_may_span_batches(data: st.DataObject) -> None:
    """Every pair is compared with the right sets, for any batches and any order within its cell."""
    sets = data.draw(st.lists(st.sets(st.integers(0, 20), min_size=1), min_size=2, max_size=8))
    every = list(combinations(range(len(sets)), 2))
    wanted = data.draw(st.lists(st.sampled_from(every), unique=True, max_size=len(every)))
    cells = {pair: data.draw(st.integers(0, 3)) for pair in wanted}
    floor = data.draw(st.sampled_from((0.0, 0.3, 0.5, 1.0)))
    rows: list[dict[str, Any]] = [
        {"cell": cell, "low": low, "high": high, "elements": None} for (low, high), cell in cells.items()
    ]
    rows += [
        {"cell": cell, "low": place, "high": None, "elements": np.array(sorted(sets[place]), np.uint64).tobytes()}
        for cell, place in {(cell, place) for pair, cell in cells.items() for place in pair}
    ]
    rows = sorted(data.draw(st.permutations(rows)), key=lambda row: int(row["cell"]))
    fields = [("cell", pa.int64()), ("low", pa.int64()), ("high", pa.int64()), ("elements", pa.binary())]
    table = pa.Table.from_pylist(rows, pa.schema(fields))
    batches = [
        batch
        for piece in pieces(len(rows), data.draw(CUTS))
        for batch in table.slice(piece.start, piece.stop - piece.start).combine_chunks().to_batches()
    ]
    settings = search_settings(resolve_options(DedupOptions, None, {"shingle": "word:2"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_tasks, "CELL_BYTES", data.draw(st.sampled_from((1, 100, 1 << 20))))
        answer = pa.Table.from_batches(
            pair_tasks._CellComparer(settings, floor).run(iter(batches)), pair_tasks.VERIFIED_SCHEMA
        )
    exact = {(low, high): len(sets[low] & sets[high]) / len(sets[low] | sets[high]) for low, high in wanted}
    found = {(row["low"], row["high"]): row["similarity"] for row in answer.to_pylist()}
    assert answer.num_rows == len(found)
    assert found == {pair: similarity for pair, similarity in exact.items() if similarity >= floor}
