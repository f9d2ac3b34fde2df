"""Agreement of the index with the batch engine: kept documents, removed documents with their reasons, and query hits.

They may differ only where a cap applies, since an index does not know later documents; here none applies.
"""

import sysconfig
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.random_corpora import LAYOUT, Row, rows, texts
from support.strategies import effort

import minwise as mw
from minwise.index import Decision
from minwise.options import SchemeName
from minwise.results import DedupResult

DATA = Path(__file__).parents[3] / "shared" / "data" / "text"
SEED = 7
# More hits than any corpus here has documents, so that no candidate is left out.
ALL = 10_000

Settings = dict[str, Any]
Kept = list[Any]
Witnesses = dict[Any, tuple[Any, float]]

SHINGLES: dict[str, Settings] = {
    "words": {"shingle": "word:2"},
    "characters": {"shingle": "char:5"},
    "bytes": {"shingle": "byte:4"},
    "bags of words": {"shingle": "word:1", "bag": True},
    "bags of characters": {"shingle": "char:3", "bag": True},
}


def batches(documents: Sequence[Row], sizes: Sequence[int]) -> Iterator[Sequence[Row]]:
    """Yield the documents in batches of these sizes, in a cycle."""
    start = 0
    for turn in count():
        if start >= len(documents):
            return
        size = sizes[turn % len(sizes)]
        yield documents[start : start + size]
        start += size


def add_unique(index: mw.Index, documents: Sequence[Row], sizes: Sequence[int]) -> tuple[Kept, Witnesses]:
    """Return the kept ids, and for each removed one the most similar kept document; no search is cut short."""
    decisions: list[Decision] = []
    for batch in batches(documents, sizes):
        decisions += index.add_unique([row["id"] for row in batch], [row["text"] for row in batch])
    assert [decision.id for decision in decisions] == [row["id"] for row in documents]
    assert not any(decision.truncated for decision in decisions)
    removed: Witnesses = {}
    for decision in decisions:
        assert decision.fate == ("added" if decision.kept else "duplicate")
        if not decision.kept:
            assert decision.similarity is not None
            removed[decision.id] = (decision.duplicate_of, decision.similarity)
    return [decision.id for decision in decisions if decision.kept], removed


def earlier_witnesses(found: DedupResult, documents: Sequence[Row], old: Sequence[Row], options: Settings) -> Witnesses:
    """Return, for each removed document, the most similar earlier kept one, ties in order.

    An immediate decision cannot know more; `dedup` may name a later document that is more similar.
    """
    order = {row["id"]: position for position, row in enumerate([*old, *documents])}
    kept = {row["id"] for row in old} | {row["id"] for row in found.kept}
    best: dict[Any, tuple[float, int, Any]] = {}
    for row in mw.pairs([*old, *documents], **options).to_pylist():
        early, late = sorted((row["left"], row["right"]), key=order.__getitem__)
        if early in kept and late not in kept:
            candidate = (-row["similarity"], order[early], early)
            best[late] = min(best.get(late, candidate), candidate)
    return {late: (early, -negative) for late, (negative, _, early) in best.items()}


def assert_agreement(
    path: Path,
    documents: Sequence[Row],
    sizes: Sequence[int],
    old: Sequence[Row] = (),
    **options: Any,  # noqa: ANN401 - settings
) -> None:
    """Check that an index that holds ``old`` keeps what `dedup` against ``old`` keeps, for the same reasons."""
    options = {**options, "seed": SEED}
    result = mw.dedup(documents, keep="first", against=list(old) or None, **options)
    with mw.Index.create(path, **options) as index:
        for batch in batches(old, sizes):
            index.add([row["id"] for row in batch], [row["text"] for row in batch])
        kept, removed = add_unique(index, documents, sizes)
        assert len(index) == len(old) + len(kept)
    assert kept == [row["id"] for row in result.kept]
    assert removed == earlier_witnesses(result, documents, old, options)
    for row in result.removed.to_pylist():
        witness, similarity = removed[row["id"]]
        assert row["similarity"] >= similarity
        assert row["kept_id"] == witness or row["similarity"] > similarity


def numbered(given: Sequence[str], prefix: str = "d") -> list[Row]:
    """Return texts as rows with an id."""
    return [{"id": f"{prefix}{number}", "text": text} for number, text in enumerate(given)]


def python_sources() -> list[str]:
    """Return modules of the running Python; those of its code pages are near-duplicates by nature."""
    library = Path(sysconfig.get_path("stdlib"))
    paths = [path for folder in ("encodings", "json", "email") for path in sorted((library / folder).glob("*.py"))]
    assert len(paths) > 100
    return [path.read_text(encoding="utf-8", errors="replace") for path in paths]


sentences = st.lists(st.sampled_from("abc"), max_size=9).map(" ".join)
corpora = st.lists(sentences, min_size=1, max_size=20)
sizes = st.lists(st.integers(1, 8), min_size=1, max_size=4)
layouts = st.sampled_from([(1, 1), (4, 1), (12, 2), (3, 4)])


@effort(0.4)
@given(data=st.data(), given=corpora, old=st.just([]) | corpora, sizes=sizes, layout=layouts)
def test_small_corpora(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    given: list[str],
    old: list[str],
    sizes: list[int],
    layout: tuple[int, int],
) -> None:
    """Three words, so that nearly all documents share a bucket; layouts that miss most pairs and that find all."""
    options: Settings = {
        **SHINGLES[data.draw(st.sampled_from(list(SHINGLES)))],
        "scheme": data.draw(st.sampled_from(("fast", "minhash"))),
        "threshold": data.draw(st.sampled_from((0.2, 0.5, 0.8, 1.0))),
        "bands": layout[0],
        "rows": layout[1],
    }
    path = tmp_path_factory.mktemp("index") / "small.mw"
    assert_agreement(path, numbered(given), sizes, numbered(old, "a"), **options)


@pytest.mark.parametrize(("seed", "scheme"), [(0, "fast"), (1, "minhash")])
@pytest.mark.parametrize("sizes", [[1], [1000], [3, 1, 17]], ids=["single", "one batch", "batches"])
def test_planted_chains(tmp_path: Path, seed: int, sizes: list[int], scheme: SchemeName) -> None:
    """Chains in which each document is similar to the next but not to the last, copies, empty and short texts."""
    documents = rows(texts(seed))
    assert_agreement(tmp_path / "chains.mw", documents, sizes, scheme=scheme, **LAYOUT)
    half = len(documents) // 2
    old, new = documents[:half], documents[half:]
    assert_agreement(tmp_path / "against.mw", new, sizes, old, scheme=scheme, **LAYOUT)


@pytest.mark.parametrize(("shingle", "threshold"), [("word:5", 0.7), ("char:9", 0.8), ("byte:8", 0.5)])
def test_python_standard_library(tmp_path: Path, shingle: str, threshold: float) -> None:
    """Real source code, with the planned layout, alone and against half of it."""
    documents = numbered(python_sources())
    options: Settings = {"shingle": shingle, "threshold": threshold}
    assert_agreement(tmp_path / "alone.mw", documents, [1, 40], **options)
    assert_agreement(tmp_path / "against.mw", documents[1::2], [7], documents[::2], **options)


@pytest.mark.skipif(not DATA.is_dir(), reason="the labelled texts of ../shared/data are not here")
@pytest.mark.parametrize("corpus", ["spdx_licenses", "articles_1000"])
def test_labelled_texts(tmp_path: Path, corpus: str) -> None:
    """Licences, which are variations of each other, and articles with planted copies."""
    source = mw.dedup(DATA / corpus / "docs.jsonl", threshold=1.0).kept
    documents = numbered(source.column("text").to_pylist())
    assert_agreement(tmp_path / "alone.mw", documents, [1, 200], shingle="word:3", threshold=0.5)


def queried_pairs(index: mw.Index, documents: Sequence[Row], threshold: float) -> dict[tuple[int, int], float]:
    """Return every pair that queries for each document find, from both sides with the same similarity."""
    number = {row["id"]: position for position, row in enumerate(documents)}
    answers = index.query_many([row["text"] for row in documents], threshold=threshold, top=ALL)
    assert not any(answer.truncated for answer in answers)
    found = {
        (position, number[hit.id]): hit.similarity
        for position, answer in enumerate(answers)
        for hit in answer
        if number[hit.id] != position
    }
    assert all(found.get((right, left)) == similarity for (left, right), similarity in found.items())
    return {pair: similarity for pair, similarity in found.items() if pair[0] < pair[1]}


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
@pytest.mark.parametrize("name", SHINGLES)
def test_queries_find_the_pairs(tmp_path: Path, name: str, scheme: SchemeName) -> None:
    """All pairs with bit-equal similarities, at the planned threshold and above it."""
    documents = [*rows(texts(3)), *numbered(python_sources()[:20], "p")]
    layout: Settings = {**SHINGLES[name], "bands": 40, "rows": 2, "scheme": scheme, "seed": SEED}
    with mw.Index.create(tmp_path / "all.mw", threshold=0.5, **layout) as index:
        index.add([row["id"] for row in documents], [row["text"] for row in documents])
        number = {row["id"]: position for position, row in enumerate(documents)}
        for threshold in (0.5, 2 / 3, 0.9):
            pairs = mw.pairs(documents, threshold=threshold, **layout).to_pylist()
            expected = {(number[row["left"]], number[row["right"]]): row["similarity"] for row in pairs}
            assert len(expected) > 10
            assert queried_pairs(index, documents, threshold) == expected


@effort(0.4)
@given(given=corpora, layout=layouts, threshold=st.sampled_from((0.2, 0.5, 0.75, 1.0)), higher=st.floats(0, 1))
def test_queries_of_small_corpora_find_the_pairs(
    tmp_path_factory: pytest.TempPathFactory, given: list[str], layout: tuple[int, int], threshold: float, higher: float
) -> None:
    """Also where the bands miss most pairs: the index misses the same."""
    documents = numbered(given)
    settings: Settings = {"shingle": "word:1", "bands": layout[0], "rows": layout[1], "seed": SEED}
    with mw.Index.create(tmp_path_factory.mktemp("index") / "small.mw", threshold=threshold, **settings) as index:
        index.add([row["id"] for row in documents], [row["text"] for row in documents])
        for minimum in {threshold, max(threshold, higher)}:
            table = mw.pairs(documents, threshold=minimum, **settings) if documents else None
            listed = table.to_pylist() if table is not None else []
            expected = {(int(row["left"][1:]), int(row["right"][1:])): row["similarity"] for row in listed}
            assert queried_pairs(index, documents, minimum) == expected
