"""Postings of an index equal a plain dictionary: in files, in memory, merged, with removed documents and caps."""

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.strategies import WORD, effort

from minwise import _kernel

BANDS = 3
NO_KEY = WORD
# Limits of the key space, and neighbours that differ in one, two and eight bytes.
KEYS = (0, 1, 2, 255, 256, 2**40, 2**63 - 1, 2**63, WORD - 1)

Keys = NDArray[np.uint64]
Candidates = tuple[list[int], list[int], int, int]


@dataclass
class Model:
    """Rows of an id hash and band keys, of each segment and in memory, and the removed documents."""

    segments: list[dict[int, list[int]]] = field(default_factory=list)
    recent: dict[int, list[int]] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)

    def members(self, key: int, columns: slice) -> list[int]:
        """Return the documents with a key, ascending, without removed ones in memory."""
        parts = [
            *self.segments,
            {document: row for document, row in self.recent.items() if document not in self.removed},
        ]
        found = [document for part in parts for document, row in part.items() if key in row[columns]]
        return found if key != NO_KEY else []

    def holders(self, id_hash: int) -> list[int]:
        """Return the living documents of an id."""
        return [document for document in self.members(id_hash, slice(0, 1)) if document not in self.removed]

    def candidates(self, keys: list[int], max_bucket: int, most: int) -> Candidates:
        """Return the documents that share most buckets, how many, and the numbers of capped buckets and of others."""
        shared, capped = Counter[int](), 0
        for key in set(keys):
            members = [document for document in self.members(key, slice(1, None)) if document not in self.removed]
            shared.update(members[:max_bucket])
            capped += len(members) > max_bucket
        best = sorted(shared, key=lambda document: (-shared[document], document))[:most]
        return best, [shared[document] for document in best], capped, len(shared) - len(best)

    def merge(self, start: int, end: int) -> None:
        """Merge these segments into one, without removed documents."""
        rows = {document: row for part in self.segments[start:end] for document, row in part.items()}
        self.segments[start:end] = [{document: row for document, row in rows.items() if document not in self.removed}]


def bits_of(documents: set[int]) -> NDArray[np.uint8]:
    """Return a bitmap of the necessary length."""
    flags = np.zeros(max(documents, default=-1) + 1, dtype=np.uint8)
    flags[list(documents)] = 1
    return np.packbits(flags, bitorder="little")


def draw_rows(rng: np.random.Generator, documents: int, keys: Keys) -> Keys:
    """Return a row per document; with no keys to choose from, each key is unique."""
    if not len(keys):
        return rng.integers(0, WORD, size=(documents, BANDS + 1), dtype=np.uint64)
    return rng.choice(keys, size=(documents, BANDS + 1))


def agree(postings: _kernel.Postings, model: Model, queries: Keys, max_bucket: int, most: int) -> None:
    """Assert that both give the same candidates for every row and the same holders of every key."""
    offsets, documents, shared, capped, left_out = postings.candidates(queries[:, 1:], max_bucket, most, 1 + most % 3)
    for row, keys in enumerate(queries[:, 1:].tolist()):
        row_range = slice(offsets[row], offsets[row + 1])
        found = documents[row_range].tolist(), shared[row_range].tolist(), int(capped[row]), int(left_out[row])
        assert found == model.candidates(keys, max_bucket, most)
    hashes = queries.ravel()
    offsets, documents = postings.holders(hashes)
    for row, id_hash in enumerate(hashes.tolist()):
        assert documents[offsets[row] : offsets[row + 1]].tolist() == model.holders(id_hash)


@effort(2)
@given(
    sizes=st.lists(st.integers(0, 12) | st.integers(0, 300), max_size=5),
    recent=st.integers(0, 12) | st.integers(0, 150),
    keys=st.lists(st.sampled_from(KEYS) | st.integers(0, WORD), max_size=9),
    removed=st.sampled_from((0.0, 0.1, 0.5, 0.9, 1.0)),
    max_bucket=st.sampled_from((0, 1, 2, 15, 16, 17, 40, 2000)),
    most=st.sampled_from((0, 1, 5, 64, 2000)),
    merged=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    seed=st.integers(0, 2**32),
)
@example(sizes=[300], recent=100, keys=[7], removed=0.5, max_bucket=40, most=64, merged=(0, 0), seed=1)
@example(sizes=[300, 300], recent=0, keys=[7], removed=0.9, max_bucket=17, most=64, merged=(0, 1), seed=1)
def test_postings_against_a_dictionary(
    sizes: list[int],
    recent: int,
    keys: list[int],
    removed: float,
    max_bucket: int,
    most: int,
    merged: tuple[int, int],
    seed: int,
) -> None:
    """For any distribution over segments and memory, before and after merging, and after memory is cleared."""
    rng, model, postings = np.random.default_rng(seed), Model(), _kernel.Postings(BANDS, seed % 3 << 18)
    pool = np.array([*keys, NO_KEY] if keys else [], dtype=np.uint64)
    with tempfile.TemporaryDirectory() as folder:
        paths = list[str]()
        first = 0
        for number, size in enumerate(sizes):
            rows, border = draw_rows(rng, size, pool), int(rng.integers(0, size + 1))
            paths.append(f"{folder}/{number}")
            blocks = [(first, rows[:border]), (first + border, rows[border:])]
            model.segments.append(dict(enumerate(rows.tolist(), first)))
            written, *_ = _kernel.write_segment(paths[-1], blocks, first, first + size + 3)
            assert written == sum(len({*row[1:]} - {NO_KEY}) + (row[0] != NO_KEY) for row in rows.tolist())
            first += size + 3
        rows, border = draw_rows(rng, recent, pool), int(rng.integers(0, recent + 1))
        model.recent = dict(enumerate(rows.tolist(), first))
        postings.push(first, rows[:border])
        postings.push(first + border, rows[border:])
        postings.set_segments(paths)

        everyone = [document for part in (*model.segments, model.recent) for document in part]
        gone = rng.permutation(everyone)[: round(removed * len(everyone))].tolist()
        model.removed = set(gone)
        postings.set_removed(bits_of(set(gone[::2])))
        postings.remove(np.array(gone[1::2], dtype=np.uint32))

        known = [row for part in (*model.segments, model.recent) for row in list(part.values())[:4]]
        queries = np.concatenate([np.array(known, dtype=np.uint64).reshape(-1, BANDS + 1), draw_rows(rng, 3, pool)])
        agree(postings, model, queries, max_bucket, most)

        start, end = min(merged), max(merged) + 1
        if paths[start:end]:
            end = min(end, len(paths))
            written, *_ = postings.merge_segments(start, end, f"{folder}/merged", bits_of(model.removed))
            model.merge(start, end)
            paths[start:end] = [f"{folder}/merged"]
            counts = _kernel.check_segment(f"{folder}/merged")
            assert counts["postings"] + counts["ids"] == written
            assert counts["ids"] == sum(row[0] != NO_KEY for row in model.segments[start].values())
            postings.set_segments(paths)
            agree(postings, model, queries, max_bucket, most)
        postings.forget_recent()
        model.recent = {}
        agree(postings, model, queries, max_bucket, most)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A segment of 400 documents in about twenty blocks; one key is in all of them."""
    rows = np.random.default_rng(1).integers(0, WORD, size=(400, BANDS + 1), dtype=np.uint64)
    rows[:, 1] = 2**63
    path = tmp_path / "segment"
    _kernel.write_segment(str(path), [(0, rows)], 0, 400)
    return path


def test_a_damaged_block_is_named(segment: Path) -> None:
    """By the file and the block; undamaged blocks stay readable."""
    postings, whole = _kernel.Postings(BANDS), segment.read_bytes()
    postings.set_segments([str(segment)])
    keys = np.full((1, BANDS), 2**63, dtype=np.uint64)
    assert len(postings.candidates(keys, 2000, 2000, 1)[1]) == 400
    for block in range(len(whole) // 1032):
        damaged = bytearray(whole)
        damaged[block * 1024 + 700] ^= 16
        segment.write_bytes(damaged)
        what = f"block {block} is damaged" if block else "the header is damaged"
        with pytest.raises(_kernel.DamagedError) as caught:
            _kernel.check_segment(str(segment))
        assert caught.value.args == (str(segment), what)
    segment.write_bytes(whole[:2048])
    with pytest.raises(_kernel.DamagedError, match="cut off"):
        postings.candidates(keys, 2000, 2000, 1)


def is_refused(call: Callable[[], object]) -> bool:
    """Return whether a file is found to be damaged."""
    try:
        call()
    except _kernel.DamagedError:
        return True
    return False


def with_checksum(block: bytes, number: int) -> bytes:
    """Return the block with a valid checksum."""
    content = np.frombuffer(number.to_bytes(8, "little") + block[4:], dtype=np.uint8)
    return _kernel.crc32c(content, 0).to_bytes(4, "little") + block[4:]


@given(
    changes=st.dictionaries(st.integers(4, 1023) | st.integers(4, 16), st.integers(0, 255), min_size=1),
    seed=st.integers(0, 99),
)
@example(changes={4: 1}, seed=0)  # fewer postings
@example(changes={16 + 12 * 40 + 7: 0}, seed=0)  # the highest byte of a key
@example(changes={16 + 12 * 40 + 11: 255}, seed=0)  # the highest byte of a document
def test_an_invalid_block_with_a_valid_checksum_does_not_crash(changes: dict[int, int], seed: int) -> None:
    """It gives documents or an error; only a block that ascends is merged."""
    rows = np.random.default_rng(seed).integers(0, WORD, size=(60, BANDS + 1), dtype=np.uint64)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "segment")
        _kernel.write_segment(str(path), [(0, rows)], 0, 60)
        file = bytearray(path.read_bytes())
        for offset, byte in changes.items():
            file[1024 + offset] = byte
        file[1024:2048] = with_checksum(bytes(file[1024:2048]), 1)
        path.write_bytes(file)
        postings = _kernel.Postings(BANDS)
        postings.set_segments([str(path)])
        with suppress(_kernel.DamagedError):
            assert len(postings.candidates(rows[:, 1:], 10, 10, 0)[3]) == 60
        merged, none_removed = f"{folder}/merged", np.zeros(0, dtype=np.uint8)
        refused = is_refused(lambda: _kernel.check_segment(str(path)))
        assert is_refused(lambda: postings.merge_segments(0, 1, merged, none_removed)) == refused
        assert refused or _kernel.check_segment(merged) == {"postings": 180, "ids": 60, "low": 0, "high": 60}


def test_missing_and_existing_files_are_named(tmp_path: Path) -> None:
    """By the error of the operating system; open segments stay open."""
    postings, rows = _kernel.Postings(1), np.full((2, 2), 5, dtype=np.uint64)
    there, missing = str(tmp_path / "there"), str(tmp_path / "missing")
    _kernel.write_segment(there, [(0, rows)], 0, 2)
    postings.set_segments([there])
    with pytest.raises(FileNotFoundError) as caught:
        postings.set_segments([missing, there])
    assert caught.value.filename == missing
    assert postings.holders(np.array([5], dtype=np.uint64))[1].tolist() == [0, 1]
    with pytest.raises(FileExistsError) as existing:
        _kernel.write_segment(there, [(0, rows)], 0, 2)
    assert existing.value.filename == there
    with pytest.raises(IsADirectoryError):
        postings.set_segments([str(tmp_path)])


def test_invalid_arguments_are_refused(tmp_path: Path) -> None:
    """Before anything is written."""
    postings, rows = _kernel.Postings(1), np.zeros((2, 2), dtype=np.uint64)
    path, none_removed = str(tmp_path / "segment"), np.zeros(0, dtype=np.uint8)
    postings.push(5, rows)
    calls: dict[str, Callable[[], object]] = {
        "bands": lambda: _kernel.Postings(0),
        "ascending": lambda: postings.push(6, rows),
        "below 4294967295": lambda: postings.push(2**32 - 2, rows),
        "2 columns, got 1": lambda: postings.push(9, rows[:, 1:]),
        "1 columns, got 2": lambda: postings.candidates(rows, 1, 1, 1),
        "equally many": lambda: _kernel.write_segment(path, [(0, rows), (2, rows[:, 1:])], 0, 9),
        "at least 3 and below 4": lambda: _kernel.write_segment(path, [(3, rows)], 3, 4),
        "got 4 and 3": lambda: _kernel.write_segment(path, [], 4, 3),
        "open segments from 0 to 1": lambda: postings.merge_segments(0, 1, path, none_removed),
        "8 bytes": lambda: _kernel.set_similarities(
            rows[0], _kernel.seal_documents(0, [b"a"], [False], [b""], [b"1234567"])[0], 0.5
        ),
        "must end": lambda: _kernel.set_similarities(rows[0], [b"1234567"], 0.5),
    }
    for wrong, call in calls.items():
        with pytest.raises(ValueError, match=wrong):
            call()
    assert not Path(path).exists()


sets = st.frozensets(st.integers(0, 30) | st.integers(0, WORD), max_size=20)


@given(one=sets, others=st.lists(sets, max_size=4), threshold=st.sampled_from((0.0, 0.1, 1 / 3, 0.5, 0.8, 1.0)))
def test_set_similarities_by_definition(one: frozenset[int], others: list[frozenset[int]], threshold: float) -> None:
    """The size of the intersection divided by that of the union, if it reaches the threshold."""
    bodies = [np.array(sorted(other), dtype="<u8").tobytes() for other in others]
    names, metadata = (
        [b"x" * number for number in range(len(others))],
        [b"{}" * number for number in range(len(others))],
    )
    records, _ = _kernel.seal_documents(7, names, [False] * len(others), metadata, bodies)
    found = _kernel.set_similarities(np.array(sorted(one), dtype=np.uint64), records, threshold)
    jaccard = [len(one & other) / max(len(one | other), 1) for other in others]
    np.testing.assert_array_equal(found, [value if value >= threshold else np.nan for value in jaccard])


@pytest.mark.parametrize("scheme", ["fast", "minhash", "oph"])
def test_signatures_have_the_keys_of_their_sets(scheme: str) -> None:
    """Banding a stored signature equals banding the set; an empty one has no keys."""
    sets = [np.arange(size, dtype=np.uint64) * 7919 for size in (0, 1, 5, 200)]
    offsets, elements = np.cumsum([0, *map(len, sets)]), np.concatenate(sets)
    sketcher = _kernel.Sketcher(scheme=scheme, slots=12, seed=1)
    bander = _kernel.Bander(sketcher, 4, 3, 1)
    slots = np.zeros((4, 12), dtype=np.uint32 if scheme == "minhash" else np.uint64)
    sketcher.sketch_sets(offsets, elements, slots, None, 1)
    keys = np.zeros((4, 4), dtype=np.uint64)
    bander.band_signatures(slots, keys)
    block = KeyBlock(np.zeros((4, 4), dtype=np.uint64), np.zeros((4, 2), dtype=np.uint64), np.zeros(4, dtype=np.uint8))
    bander.band_sets(offsets, elements, 1, block, 0, 1)
    np.testing.assert_array_equal(keys, block.keys.T)
    assert (keys[0] == NO_KEY).all()
    with pytest.raises(ValueError, match="slots must be those of the scheme"):
        bander.band_signatures(slots[:, 1:].copy(), keys)
    with pytest.raises(ValueError, match="slots must be those of the scheme"):
        bander.band_signatures(slots.astype(np.uint64 if scheme == "minhash" else np.uint32), keys)


@dataclass
class KeyBlock:
    """Arrays for the keys, contents and states written by the kernel."""

    keys: Keys
    contents: Keys
    states: NDArray[np.uint8]
    packed: NDArray[np.uint8] | None = None
