"""Blocks, parts and cells: however data is divided, buckets and pairs are those of the whole. No cluster is needed."""

import math
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from minwise.errors import FormatError, InputError
from minwise.options import DedupOptions
from minwise.search.bands import NO_DOCUMENT
from minwise.search.clustering import FIRST_MEMBERS, CopyGroups, PairBlock, cluster_by_star
from minwise.settings import SearchSettings, resolve_options, search_settings
from minwise.spark import band_tasks, blocks, cell_search, cells, verify_tasks
from minwise.spark.band_tasks import BucketGroups, buckets_of_pairs, count_pairs, entry_blocks, group_entries
from minwise.spark.blocks import received, rows_of_blocks
from minwise.spark.cell_search import CellSearch, CellTask, bucket_batch, groups_of, set_batch
from minwise.spark.cells import NO_CELLS, CellPlan, plan_cells
from minwise.spark.frame_tasks import set_blocks_of
from minwise.spark.verify_tasks import bucket_blocks, packed_blocks, set_blocks

Pairs = set[tuple[int, int]]

# Bytes that no block may exceed: Java and Python both hold a block, and Spark sends 64 MB to Python at once.
BLOCK_LIMIT = 32 * 10**6


def shuffled(rows: list[pa.RecordBatch], data: st.DataObject) -> Iterator[pa.RecordBatch]:
    """Return rows of blocks in any order, several in a batch."""
    rows = data.draw(st.permutations(rows))
    size = data.draw(st.integers(1, 5))
    for start in range(0, len(rows), size):
        yield pa.Table.from_batches(rows[start : start + size]).combine_chunks().to_batches()[0]


def pairs_of(groups: BucketGroups) -> list[tuple[int, int]]:
    """Return the pairs of buckets, by the definition of their three numbers."""
    found, start = [], 0
    for size, heads, partner in groups.buckets.tolist():
        members = groups.members[start : start + size].tolist()
        found += [(members[head], other) for head in range(heads) for other in members[max(head + 1, partner) :]]
        start += size
    return found


def expected_pairs(entries: list[tuple[int, int]], most: int, protected: int) -> Pairs:
    """Return the pairs with an equal key; above the cap only those with one of the first members."""
    found = set()
    for key in {key for key, _ in entries}:
        bucket = sorted(rank for other, rank in entries if other == key)
        heads = len(bucket) if len(bucket) <= most else FIRST_MEMBERS
        found |= {(bucket[low], bucket[high]) for low, high in combinations(range(len(bucket)), 2) if low < heads}
    return {(low, high) for low, high in found if high >= protected}


@given(
    data=st.data(),
    parts=st.integers(1, 9),
    most=st.sampled_from((FIRST_MEMBERS, 30)),
    wide=st.booleans(),
    hot=st.sampled_from((None, 20, 40)),
)
def test_buckets_do_not_depend_on_parts_files_and_order(
    data: st.DataObject, parts: int, most: int, wide: bool, hot: int | None
) -> None:
    """Also with ranks of 64 bits, in any order of keeping, with documents in no bucket, and where buckets are hot."""
    documents = data.draw(st.integers(1, 60))
    # Keys of few values in the upper half, so that parts differ, with a band in the lower half.
    values = st.integers(0, data.draw(st.sampled_from((0, 1, 6))))
    numbers = np.array(data.draw(st.lists(values, min_size=2 * documents, max_size=2 * documents)), dtype=np.uint64)
    keys = (
        (numbers * np.uint64(0x1F3D_5B79_1357_9BDF) ^ np.arange(2, dtype=np.uint64).repeat(documents)).reshape(2, -1).T
    )
    ordered = data.draw(st.booleans())
    places = list(range(documents)) if ordered else data.draw(st.permutations(range(documents)))
    first = 2**40 if wide else 0
    ranks = (first + np.array(places)).astype(np.uint64 if wide else np.uint32)
    if not wide and data.draw(st.booleans()):
        ranks[0] = NO_DOCUMENT
    protected = first + data.draw(st.integers(0, 10))
    cut = data.draw(st.integers(0, documents))
    sent: dict[int, list[pa.RecordBatch]] = {}
    for piece in (slice(0, cut), slice(cut, documents)):
        for row in rows_of_blocks(entry_blocks(keys[piece], ranks[piece], parts)):
            sent.setdefault(row.column("part")[0].as_py(), []).append(row)
    entries = [
        (int(key), int(rank)) for row, rank in zip(keys, ranks, strict=True) for key in row if rank != NO_DOCUMENT
    ]
    found, counts = list[tuple[int, int]](), np.zeros(4, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        if hot is not None:
            patch.setattr(band_tasks, "HOT_MEMBERS", hot)
            patch.setattr(band_tasks, "HELD_ENTRIES", 10)
            patch.setattr(band_tasks, "BLOCK_BYTES", 24 * band_tasks.MEMBER_BYTES)
        for part, rows in sent.items():
            for number, groups, of_part in group_entries(shuffled(rows, data), most, protected):
                assert number == part
                pairs = pairs_of(groups)
                assert len(pairs) == count_pairs(groups.buckets).sum()
                found += pairs
                counts[:3] += of_part[:3]
                counts[3] = max(counts[3], of_part.largest)
    assert set(found) == expected_pairs(entries, most, protected)
    sizes = [sum(other == key for other, _ in entries) for key in {key for key, _ in entries}]
    large = [size for size in sizes if size > most]
    unpaired = sum(math.comb(size - FIRST_MEMBERS, 2) for size in large)
    largest = max((size for size in sizes if size > 1), default=0)
    assert counts.tolist() == [len(large), sum(large), unpaired, largest]


def test_a_part_without_blocks_has_no_buckets() -> None:
    assert list(group_entries(iter([]), 16, 0)) == []


@st.composite
def bucket_groups(draw: st.DrawFn) -> BucketGroups:
    """Draw buckets of ranks below 40, some of them capped, some with protected members."""
    rows, members = [], list[int]()
    for _ in range(draw(st.integers(0, 12))):
        base = draw(st.integers(0, 4)) * 8
        bucket = sorted(draw(st.sets(st.integers(base, base + 9), min_size=2, max_size=8)))
        heads = draw(st.sampled_from((len(bucket) - 1, 1)))
        rows.append([len(bucket), heads, draw(st.integers(0, len(bucket) - 1))])
        members += bucket
    return BucketGroups(np.array(rows, dtype=np.uint32).reshape(-1, 3), np.array(members, dtype=np.uint32))


NINE = BucketGroups(np.array([[9, 8, 0]], np.uint32), np.arange(9, dtype=np.uint32))


@given(
    groups=bucket_groups(),
    seconds=st.sampled_from((1e-9, 1.0)),
    most=st.sampled_from((None, 8, 40)),
    most_seconds=st.sampled_from((1e-8, 8.0)),
)
@example(groups=NINE, seconds=1.0, most=2, most_seconds=8.0)
@example(groups=NINE, seconds=1.0, most=40, most_seconds=1e-8)
def test_every_pair_is_in_one_cell_with_both_documents(
    groups: BucketGroups, seconds: float, most: int | None, most_seconds: float
) -> None:
    """Also where a component is cut into a grid, for its bytes or for its work."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "CELL_SECONDS", seconds)
        patch.setattr(cells, "MOST_CELL_SECONDS", most_seconds)
        plan = plan_cells(lambda: iter([groups]), np.ones(60), pair_seconds=1e-9, most_bytes=most)
    indices, of_documents = plan.cells_of(np.arange(60, dtype=np.uint32))
    known = set(zip(indices.tolist(), of_documents.tolist(), strict=True))
    assert indices.tolist() == sorted(indices.tolist())
    found = []
    for cell, own in plan.divided(groups, plan.cell_of[groups.first_members]):
        assert cell < plan.cells
        assert all(heads < size for size, heads, _ in own.buckets.tolist())  # as in the kernel: no range is empty
        pairs = pairs_of(own)
        assert pairs
        assert {(document, cell) for pair in pairs for document in pair} <= known
        found += pairs
    assert sorted(found) == sorted(pairs_of(groups))
    for grid in plan.grids:  # an interval ends with the document that crosses its bound, and a cell has two intervals
        sizes = [
            sum(cell == other for _, other in known) for cell in range(grid.first_cell, grid.first_cell + grid.cells)
        ]
        assert max(sizes) <= (most or 0) + 2


@given(groups=bucket_groups(), extra=st.integers(0, 60), partner=st.integers(0, 70))
def test_buckets_in_bounded_pieces_have_the_same_pairs(groups: BucketGroups, extra: int, partner: int) -> None:
    """A bucket above the cap is divided; the others are not."""
    hot = FIRST_MEMBERS + 1 + extra
    rows = np.array([[hot, FIRST_MEMBERS, min(partner, hot - 1)]], dtype=np.uint32)
    members = np.concatenate([groups.members, np.arange(100, 100 + hot, dtype=np.uint32)])
    whole = BucketGroups(np.concatenate([groups.buckets, rows]), members)
    with pytest.MonkeyPatch.context() as patch:
        for module in (blocks, band_tasks):
            patch.setattr(module, "BLOCK_BYTES", 24 * band_tasks.MEMBER_BYTES)
        pieces = list(band_tasks.bounded_groups(whole))
    assert sorted(pair for piece in pieces for pair in pairs_of(piece)) == sorted(pairs_of(whole))
    assert max(len(piece.members) for piece in pieces) <= 24
    assert all(len(piece.members) == piece.buckets[:, 0].sum() for piece in pieces)


def test_cells_have_about_the_same_cost() -> None:
    """No cell costs more than its share and the most expensive component."""
    cost = 1 / np.arange(1, 5000.0) ** 1.2
    assigned = cells._packed(cost, 16)
    loads = np.bincount(assigned, cost, 16)
    assert loads.max() <= max(cost.max(), cost.sum() / 16) * 1.07
    assert np.bincount(assigned, minlength=16).min() > 0


@pytest.mark.parametrize("most", [None, 1 << 30])
def test_a_component_with_most_of_the_pairs_is_cut_if_all_are_compared(most: int | None) -> None:
    """Its bytes would fit one cell, which would have 39 of 40 parts of the work."""
    random = np.random.default_rng(1)
    low, high = np.sort(random.integers(0, 1000, (2, 39_000)), axis=0)
    others = np.arange(1000, 3000, dtype=np.uint32)
    low, high = (np.append(low[low != high], others[::2]), np.append(high[low != high], others[1::2]))
    groups = buckets_of_pairs(low.astype(np.uint32), high.astype(np.uint32))
    seconds = 40 * cells.MOST_CELL_SECONDS / len(groups.buckets)
    plan = plan_cells(lambda: iter([groups]), np.full(3000, 800.0), pair_seconds=seconds, most_bytes=most)
    divided = plan.divided(groups, plan.cell_of[groups.first_members])
    work = [seconds * count_pairs(own.buckets).sum() for _, own in divided]
    assert math.isclose(sum(work), 40 * cells.MOST_CELL_SECONDS)
    if most is None:  # the stars of a component are decided by one task
        assert max(work) > 38 * cells.MOST_CELL_SECONDS
    else:
        assert max(work) < 1.25 * cells.MOST_CELL_SECONDS


def exact_settings() -> SearchSettings:
    """Return the settings of a search."""
    return search_settings(resolve_options(DedupOptions, None, {"shingle": "word:2", "threshold": 0.5}))


def similarities(sets: list[list[int]], pairs: Pairs) -> dict[tuple[int, int], float]:
    """Return the Jaccard similarity of each pair."""
    both = {(low, high): (set(sets[low]), set(sets[high])) for low, high in pairs}
    return {pair: len(left & right) / len(left | right) for pair, (left, right) in both.items()}


@settings(deadline=None)
@given(data=st.data(), large=st.booleans())
def test_a_cell_finds_what_the_definition_finds(
    data: st.DataObject, large: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For any order of its blocks, with sets that are sent in pieces, and with ranks that have gaps."""
    members = st.lists(st.integers(0, 20), min_size=1, max_size=9, unique=True).map(sorted)
    sets = data.draw(st.lists(members, min_size=2, max_size=12))
    ranks = np.array(
        sorted(data.draw(st.sets(st.integers(0, 10**6), min_size=len(sets), max_size=len(sets)))), np.uint32
    )
    every = list(combinations(range(len(sets)), 2))
    pairs = set(data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True)))
    low, high = (ranks[[pair[side] for pair in sorted(pairs)]] for side in (0, 1))
    elements = np.array([element for one in sets for element in one], dtype=np.uint64)
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
    found = [(slice(0, len(sets)), offsets, elements)]
    with pytest.MonkeyPatch.context() as patch:
        if large:  # two elements in a block
            for module in (blocks, verify_tasks, cell_search):
                patch.setattr(module, "BLOCK_BYTES", 16)
        sent = list(set_blocks(found, ranks, ranks, np.full(len(ranks), 3, dtype=np.uint32), 4))
    rows = list(rows_of_blocks([*sent, (3, bucket_batch(buckets_of_pairs(low, high)))]))
    chosen, stage = exact_settings(), data.draw(st.sampled_from(("verified", "star")))
    search = CellSearch(CellTask(chosen, 0.3, 0.5, stage), shuffled(rows, data), tmp_path_factory.mktemp("cell"))
    search.run()
    similar = {pair: value for pair, value in similarities(sets, pairs).items() if value >= 0.5}
    by_rank = {(int(ranks[low]), int(ranks[high])): value for (low, high), value in similar.items()}
    answer = {
        (low, high): similarity
        for block in search.pairs()
        for low, high, similarity in zip(
            block.low.tolist(), block.high.tolist(), block.similarity.tolist(), strict=True
        )
    }
    assert search.cell == 3
    if stage == "verified":
        assert answer == by_rank
        return
    expected, found_stars = (removals(pairs_by_rank, ranks) for pairs_by_rank in (by_rank, answer))
    assert found_stars == expected


def removals(similar: dict[tuple[int, int], float], ranks: np.ndarray) -> list[tuple[int, int, float]]:
    """Return what stars remove: rank, witness and similarity."""
    ordered = sorted(similar)
    low, high = (np.searchsorted(ranks, [pair[side] for pair in ordered]).astype(np.uint32) for side in (0, 1))
    block = PairBlock(low, high, np.array([similar[pair] for pair in ordered]))
    copies = CopyGroups(np.empty(0, dtype=np.uint32), np.zeros(1, dtype=np.uint64))
    stars = cluster_by_star(lambda: [block], copies, len(ranks))
    removed = np.flatnonzero(stars.removed)
    witnesses, similarity = stars.witness[removed].tolist(), stars.similarity[removed].tolist()
    return list(zip(removed.tolist(), witnesses, similarity, strict=True))


def test_a_document_that_was_not_read_again_is_reported(tmp_path: Path) -> None:
    pair = buckets_of_pairs(np.array([1], np.uint32), np.array([2], np.uint32))
    one = set_batch(np.array([1], np.uint32), np.array([2]), np.array([5, 6], np.uint64))
    rows = rows_of_blocks([(0, bucket_batch(pair)), (0, one)])
    with pytest.raises(InputError, match="1 documents could not be read again"):
        CellSearch(CellTask(exact_settings(), 0.5, 0.5, "verified"), rows, tmp_path)


def test_blocks_arrive_as_they_were_sent() -> None:
    batch = set_batch(np.array([7, 9], np.uint32), np.array([1, 2]), np.array([3, 4, 5], np.uint64))
    ((part, back),) = received(rows_of_blocks([(5, batch)]))
    assert part == 5
    assert back.equals(batch)


def test_blocks_of_a_file_arrive_as_they_were_sent_and_damage_is_reported(tmp_path: Path) -> None:
    """Rows say where a block is; its checksum is verified."""
    sent = [set_batch(np.array([rank], np.uint32), np.array([1]), np.array([rank], np.uint64)) for rank in range(3)]
    (rows,) = rows_of_blocks(enumerate(sent), tmp_path / "exchange" / "0")
    (again,) = rows_of_blocks(enumerate(sent), tmp_path / "exchange" / "0")  # another attempt of the same task
    assert again.equals(rows)
    assert [part for part, _ in received(iter([rows]))] == [0, 1, 2]
    assert all(back.equals(batch) for (_, back), batch in zip(received(iter([rows])), sent, strict=True))
    (path,) = (tmp_path / "exchange").iterdir()
    content = bytearray(path.read_bytes())
    content[rows.column("start")[1].as_py() + 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match="damaged"):
        list(received(iter([rows])))


@pytest.mark.parametrize(("ordered", "most"), [(True, 9.1), (False, 12.1)])
def test_an_entry_takes_nine_bytes_in_document_order_and_twelve_in_others(ordered: bool, most: float) -> None:
    keys = np.random.default_rng(1).integers(0, 2**63, size=(5000, 20), dtype=np.uint64)
    ranks = np.arange(5000) if ordered else np.random.default_rng(2).permutation(5000)
    size = sum(
        row.column("block")[0].as_buffer().size
        for row in rows_of_blocks(entry_blocks(keys, ranks.astype(np.uint32), 4))
    )
    assert size / keys.size <= most


def test_a_plan_without_buckets_has_no_cells() -> None:
    nothing = BucketGroups(np.empty((0, 3), dtype=np.uint32), np.empty(0, dtype=np.uint32))
    plan = plan_cells(lambda: iter([nothing]), np.ones(5), pair_seconds=1.0, most_bytes=1)
    assert isinstance(plan, CellPlan)
    assert plan.cells == 0
    assert list(plan.divided(nothing, np.empty(0, dtype=np.uint32))) == []


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2**40), st.integers(0, 3), st.lists(st.integers(0, 2**64 - 1), max_size=6)),
        min_size=1,
        unique_by=lambda row: row[:2],
    ),
    limit=st.sampled_from((16, 64, 1 << 20)),
)
def test_sets_of_dataframes_are_sent_to_their_cells(rows: list[tuple[int, int, list[int]]], limit: int) -> None:
    """In any order, a document in several cells, and sets that are larger than a block."""
    places, cells, sets = (list(column) for column in zip(*rows, strict=True))
    elements = np.array([element for members in sets for element in members], dtype=np.uint64)
    sizes = np.array([len(members) for members in sets], dtype=np.int64)
    found = dict[tuple[int, int], list[int]]()
    with pytest.MonkeyPatch.context() as patch:
        for module in (blocks, verify_tasks, cell_search):
            patch.setattr(module, "BLOCK_BYTES", limit)
        for cell, batch in set_blocks_of(np.array(places), np.array(cells, dtype=np.int32), sizes, elements):
            assert batch.nbytes <= limit + 16 * len(batch) + 8  # elements, ranks and offsets
            for rank, members in zip(*(batch.column(name).to_pylist() for name in ("rank", "elements")), strict=True):
                found.setdefault((cell, rank), []).extend(members)
    assert found == {(cell, place): members for place, cell, members in rows}


def most_bytes(sent: Iterable[tuple[int, pa.RecordBatch]]) -> int:
    """Return the bytes of the largest block that is sent."""
    return max(len(row.column("block")[0].as_buffer()) for row in rows_of_blocks(sent))


def test_no_block_of_entries_is_above_the_limit() -> None:
    """Of 32 MB of keys, as many as a task sends at once, all in one part; with ranks of 64 bits in any order."""
    keys = np.zeros((4000, 1000), dtype=np.uint64)
    ranks = np.random.default_rng(1).permutation(len(keys)).astype(np.uint64) + np.uint64(2**40)
    assert BLOCK_LIMIT // 4 < most_bytes(entry_blocks(keys, ranks, 1)) <= BLOCK_LIMIT


def test_no_block_of_buckets_is_above_the_limit() -> None:
    """Of three million members of 64 bits: of one bucket, and of many that are as small as may be."""
    members = np.arange(3_000_000, dtype=np.uint64)
    hot = BucketGroups(np.array([[len(members), FIRST_MEMBERS, 0]], dtype=np.uint32), members)
    for groups in (hot, buckets_of_pairs(members[::2], members[1::2])):
        sent = bucket_blocks(CellPlan(1, NO_CELLS), groups, np.zeros(len(groups.buckets), dtype=np.uint32))
        assert BLOCK_LIMIT // 4 < most_bytes(sent) <= BLOCK_LIMIT


@pytest.mark.parametrize("size", [0, 1, 1000, 5_000_000])
def test_no_block_of_sets_is_above_the_limit(size: int) -> None:
    """Of small and large sets in one cell; one set has 40 MB."""
    sizes = np.full(min(2_500_000, 5_000_000 // max(1, size)), size)
    places, elements = np.arange(len(sizes)), np.zeros(int(sizes.sum()), dtype=np.uint64)
    sent = set_blocks_of(places, np.zeros(len(sizes), dtype=np.int32), sizes, elements)
    assert BLOCK_LIMIT // 4 < most_bytes(sent) <= BLOCK_LIMIT


def test_no_block_of_signatures_is_above_the_limit() -> None:
    """Of 64 MB in one cell."""
    packed = np.zeros((1 << 16, 1000), dtype=np.uint8)
    every = np.arange(len(packed))
    sent = packed_blocks(packed, every, every.astype(np.uint64), np.zeros(len(packed), dtype=np.int32), 1)
    assert BLOCK_LIMIT // 4 < most_bytes(sent) <= BLOCK_LIMIT


@given(groups=bucket_groups(), seconds=st.sampled_from((1e-9, 1.0)))
def test_buckets_of_numbers_are_sent_with_ranks(groups: BucketGroups, seconds: float) -> None:
    """Cells are planned for numbers from 0; blocks have the ranks, which may need 64 bits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "CELL_SECONDS", seconds)
        plan = plan_cells(lambda: iter([groups]), np.ones(60), pair_seconds=1e-9, most_bytes=8)
    ranks = np.arange(60, dtype=np.uint64) * np.uint64(3) + np.uint64(2**40)
    sent = list(bucket_blocks(plan, groups, plan.cell_of[groups.first_members], ranks))
    found = [pair for _, batch in sent for pair in pairs_of(groups_of(batch))]
    assert sorted(found) == sorted((int(ranks[low]), int(ranks[high])) for low, high in pairs_of(groups))
    assert all(0 <= cell < plan.cells for cell, _ in sent)
