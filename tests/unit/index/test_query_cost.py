"""Cost of queries: memory, and the number of comparisons until a search ends or its budget is used."""

import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minwise as mw
from minwise import _kernel
from minwise.index import lookup
from minwise.index.view import Candidates

WORDS = 600
COPIES = 300


def near_copies(count: int, words: int, seed: int = 1) -> list[str]:
    """Return texts with one other word each, so that all are near-duplicates."""
    rng = random.Random(seed)
    template = [f"w{rng.randrange(10**6)}" for _ in range(words)]
    texts = []
    for number in range(count):
        changed = list(template)
        changed[rng.randrange(10, words - 10)] = f"other{number}"
        texts.append(" ".join(changed))
    return texts


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each call of the kernel appends the number of documents that it compares."""
    counts: list[int] = []
    kernel = _kernel.set_similarities

    def counting(elements: NDArray[np.uint64], records: list[bytes], threshold: float) -> NDArray[np.float64]:
        counts.append(len(records))
        return kernel(elements, records, threshold)

    monkeypatch.setattr(_kernel, "set_similarities", counting)
    return counts


def peak_bytes(index: mw.Index, queries: list[str], **options: Any) -> int:  # noqa: ANN401 - options of a query
    """Return the highest number of bytes in Python objects during a call, above those before it."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    index.query_many(queries, **options)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - before


@pytest.mark.parametrize(
    "options", [{"top": 10}, {"top": 1000}, {"where": {"even": True}}, {"top": 10, "max_candidates": 100}]
)
def test_memory_does_not_grow_with_the_number_of_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Sixteen queries need 0.1 MB more than one, and their hits; with the rows that each compared, 7 to 22 MB more."""
    monkeypatch.setattr(lookup, "CACHED_BYTES", 100_000)
    texts = near_copies(COPIES, WORDS)
    with mw.Index.create(tmp_path / "all.mw", threshold=0.5, seed=1) as index:
        index.add(range(COPIES), texts, [{"even": number % 2 == 0} for number in range(COPIES)])
        index.query_many(texts[:16], **options)
        one, many = (peak_bytes(index, texts[:count], **options) for count in (1, 16))
    hits = 16 * COPIES * 700 if options.get("top") == 1000 else 0  # 600 bytes for each
    assert many <= one + hits + 500_000


@pytest.mark.parametrize(("words", "compared_documents"), [(300, 150), (1200, 50), (5000, 15)])
def test_a_long_document_counts_as_several_comparisons(tmp_path: Path, words: int, compared_documents: int) -> None:
    """One for every started 4,096 bytes of its row, which has 8 bytes per word: 1, 3 and 10 comparisons."""
    with mw.Index.create(tmp_path / "all.mw", threshold=0.5, seed=1) as index:
        index.add(range(200), near_copies(200, words))
        for _ in range(2):  # also if the rows are in memory
            answer = index.query(near_copies(1, words)[0], top=1000, max_candidates=150)
            assert (len(answer), answer.left_out) == (compared_documents, 200 - compared_documents)
            assert answer.truncated_by == "candidates"


def test_a_block_of_very_long_documents_is_small(tmp_path: Path, compared: list[int]) -> None:
    """Rows of 160 kB are 40 comparisons each: one in the first block, and at most six in others."""
    texts = near_copies(12, 20_000)
    with mw.Index.create(tmp_path / "all.mw", threshold=0.5, seed=1) as index:
        index.add(range(12), texts)
        assert len(index.query(texts[0], top=20)) == 12
    assert compared[0] == 1
    assert max(compared) == 6


def mixed_texts() -> list[str]:
    """Return 500 texts that share three quarters of their words with a text, and five near-copies of it."""
    close = near_copies(5, 200)
    rng = random.Random(2)
    far = [" ".join([*close[0].split()[:150], *(f"v{rng.randrange(10**6)}" for _ in range(50))]) for _ in range(500)]
    return far + close


@pytest.mark.parametrize(
    ("layout", "options"),
    [
        ({}, {"threshold": 0.9, "top": 10}),  # fewer hits than requested: others must reach the threshold
        ({}, {"top": 3}),
        ({}, {"top": 3, "where": {"even": True}}),  # only matching hits count
        ({"bands": 64, "rows": 1}, {"top": 3}),  # a plan whose recall rounds to 1
    ],
)
def test_a_search_ends_when_the_rest_cannot_be_similar_enough(
    tmp_path: Path, compared: list[int], layout: dict[str, Any], options: dict[str, Any]
) -> None:
    texts = mixed_texts()
    with mw.Index.create(tmp_path / "all.mw", threshold=0.5, seed=1, **layout) as index:
        index.add(range(len(texts)), texts, [{"even": number % 2 == 0} for number in range(len(texts))])
        answer = index.query(texts[-1], **options)
        ids = [number for number in range(500, 505) if "where" not in options or number % 2 == 0]
    assert not answer.truncated
    assert set(ids[-1:]) <= {hit.id for hit in answer} <= set(ids)
    assert len(answer) == min(len(ids), options["top"])
    assert sum(compared) <= 64 + 64 + 256


def test_hits_that_do_not_match_do_not_end_a_search(tmp_path: Path) -> None:
    """Three hundred identical documents come first; the only one that matches is less similar."""
    texts = near_copies(2, 200)
    with mw.Index.create(tmp_path / "all.mw", threshold=0.5, seed=1) as index:
        index.add(range(301), [texts[0]] * 300 + texts[1:], [None] * 300 + [{"wanted": True}])
        assert [hit.id for hit in index.query(texts[0], top=3, where={"wanted": True})] == [300]


@pytest.mark.parametrize("max_bucket", [100, 10_000])
def test_an_identical_document_ends_the_search_of_a_decision(
    tmp_path: Path, compared: list[int], max_bucket: int
) -> None:
    """The first one in order of addition is named, and the search is not cut short, although buckets are."""
    text = near_copies(1, 200)[0]
    with mw.Index.create(tmp_path / "all.mw", seed=1, max_bucket=max_bucket) as index:
        index.add(range(1000), [text] * 1000)
        compared.clear()
        (decision,) = index.add_unique(["new"], [text])
    assert (decision.fate, decision.duplicate_of, decision.similarity) == ("duplicate", 0, 1.0)
    assert not decision.truncated
    assert sum(compared) <= 64


def test_a_decision_names_the_most_similar_document_of_many(tmp_path: Path) -> None:
    """Hundreds are similar enough, and the most similar one need not share the most buckets."""
    rng = random.Random(3)
    template, texts = near_copies(1, 200)[0].split(), []
    for _ in range(420):
        changed = list(template)
        for _ in range(rng.randrange(2, 9)):
            changed[rng.randrange(200)] = f"v{rng.randrange(10**6)}"
        texts.append(" ".join(changed))
    with mw.Index.create(tmp_path / "all.mw", threshold=0.5, seed=1) as index:
        index.add(range(400), texts[:400])
        best = [answer[0] for answer in index.query_many(texts[400:], top=1000)]
        decisions = index.add_unique(range(400, 420), texts[400:])
    assert [decision.duplicate_of for decision in decisions] == [hit.id for hit in best]
    assert [decision.similarity for decision in decisions] == [hit.similarity for hit in best]
    assert not any(decision.truncated for decision in decisions)


def test_a_replaced_document_is_ignored_with_its_number_of_shared_buckets() -> None:
    found = Candidates(np.array([3, 7, 5], dtype=np.uint32), np.array([9, 8, 2], dtype=np.uint16), 1, 4)
    others = found.without(7)
    assert (others.numbers.tolist(), others.shared.tolist(), others.capped, others.left_out) == ([3, 5], [9, 2], 1, 4)
    assert found.without(4).numbers.tolist() == [3, 7, 5]


def test_cached_records_are_counted_with_what_python_needs_for_them(tmp_path: Path) -> None:
    """Documents of 30 words, whose rows are small: with their lengths alone, a third of the memory is missing."""
    texts = [" ".join(f"w{number}x{word}" for word in range(30)) for number in range(5000)]
    with mw.Index.create(tmp_path / "all.mw", seed=1) as index:
        index.add(range(5000), texts)
        cache = index._lookup._cache
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for start in range(0, 5000, 256):
            cache.records(list(range(start, min(start + 256, 5000))))
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert cache._bytes == pytest.approx(held - before, rel=0.15)


def test_removed_documents_that_end_the_search_of_a_bucket_are_a_cut(tmp_path: Path) -> None:
    """They are not candidates, so none is left out, and more candidates would not help; ``compact`` does."""
    text = near_copies(1, 30)[0]
    with mw.Index.create(tmp_path / "all.mw", seed=1) as index:
        index.add(range(16_500), [text] * 16_500)
        index.flush()
        index.remove(range(16_499))
        cut = index.query(text, max_candidates=1_000_000)
        assert (len(cut), cut.truncated_by, cut.left_out) == (0, "bucket", 0)
        assert cut.capped_buckets == index.plan.bands
        index.compact()
        assert [hit.id for hit in index.query(text)] == [16_499]
