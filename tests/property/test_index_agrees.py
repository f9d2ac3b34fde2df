"""The index and the batch engine agree: what one by one is kept, what is removed for whom, and what a query finds.

Only where a cap fires may they differ, for an index knows nothing of what comes later; here none does.
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

DATA = Path(__file__).parents[3] / "shared" / "data" / "text"
SEED = 7
# More hits than any corpus here has documents, so that no candidate is cut.
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
    """The documents in batches of these sizes, again and again."""
    start = 0
    for turn in count():
        if start >= len(documents):
            return
        size = sizes[turn % len(sizes)]
        yield documents[start : start + size]
        start += size


def add_unique(index: mw.Index, documents: Sequence[Row], sizes: Sequence[int]) -> tuple[Kept, Witnesses]:
    """The ids that are kept, and for each other one its witness with their similarity; no cap fires."""
    decisions: list[mw.Decision] = []
    for batch in batches(documents, sizes):
        decisions += index.add_unique([row["id"] for row in batch], [row["text"] for row in batch])
    assert [one.id for one in decisions] == [row["id"] for row in documents]
    assert not any(one.truncated for one in decisions)
    removed: Witnesses = {}
    for one in decisions:
        assert one.fate == ("added" if one.kept else "duplicate")
        if not one.kept:
            assert one.similarity is not None
            removed[one.id] = (one.duplicate_of, one.similarity)
    return [one.id for one in decisions if one.kept], removed


def earlier_witnesses(
    found: mw.DedupResult, documents: Sequence[Row], old: Sequence[Row], options: Settings
) -> Witnesses:
    """Of each removed document the most similar kept one that came before it, ties by order.

    That is all that a decision at once can know; a deduplication may name a later one that is still more similar.
    """
    order = {row["id"]: place for place, row in enumerate([*old, *documents])}
    kept = {row["id"] for row in old} | set(found.kept.column("id").to_pylist())
    best: dict[Any, tuple[float, int, Any]] = {}
    for row in mw.pairs([*old, *documents], **options).to_pylist():
        early, late = sorted((row["left"], row["right"]), key=order.__getitem__)
        if early in kept and late not in kept:
            this = (-row["similarity"], order[early], early)
            best[late] = min(best.get(late, this), this)
    return {late: (early, -negative) for late, (negative, _, early) in best.items()}


def assert_agreement(
    place: Path,
    documents: Sequence[Row],
    sizes: Sequence[int],
    old: Sequence[Row] = (),
    **options: Any,  # noqa: ANN401 - settings
) -> None:
    """An index that holds ``old`` keeps of the documents what `dedup` against them keeps, for the same reasons."""
    options = {**options, "seed": SEED}
    result = mw.dedup(documents, keep="first", against=list(old) or None, **options)
    with mw.Index.create(place, **options) as index:
        for batch in batches(old, sizes):
            index.add([row["id"] for row in batch], [row["text"] for row in batch])
        kept, removed = add_unique(index, documents, sizes)
        assert len(index) == len(old) + len(kept)
    assert kept == result.kept.column("id").to_pylist()
    assert removed == earlier_witnesses(result, documents, old, options)
    for row in result.removed.to_pylist():
        witness, similarity = removed[row["id"]]
        assert row["similarity"] >= similarity
        assert row["kept_id"] == witness or row["similarity"] > similarity


def numbered(given: Sequence[str], prefix: str = "d") -> list[Row]:
    """Texts as rows with an id."""
    return [{"id": f"{prefix}{number}", "text": text} for number, text in enumerate(given)]


def python_sources() -> list[str]:
    """Modules of the running Python; those of its code pages are near-duplicates by nature."""
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
    """Of three words, so that nearly everything is in some bucket; layouts that miss and such that find all."""
    options: Settings = {
        **SHINGLES[data.draw(st.sampled_from(list(SHINGLES)))],
        "scheme": data.draw(st.sampled_from(("fast", "minhash"))),
        "threshold": data.draw(st.sampled_from((0.2, 0.5, 0.8, 1.0))),
        "bands": layout[0],
        "rows": layout[1],
    }
    place = tmp_path_factory.mktemp("index") / "small.mw"
    assert_agreement(place, numbered(given), sizes, numbered(old, "a"), **options)


@pytest.mark.parametrize(("seed", "scheme"), [(0, "fast"), (1, "minhash")])
@pytest.mark.parametrize("sizes", [[1], [1000], [3, 1, 17]], ids=["one by one", "at once", "in batches"])
def test_planted_chains(tmp_path: Path, seed: int, sizes: list[int], scheme: str) -> None:
    """Chains in which each is like the next but not like the last, copies, empty and short texts."""
    documents = rows(texts(seed))
    assert_agreement(tmp_path / "chains.mw", documents, sizes, scheme=scheme, **LAYOUT)
    half = len(documents) // 2
    old, new = documents[:half], documents[half:]
    assert_agreement(tmp_path / "against.mw", new, sizes, old, scheme=scheme, **LAYOUT)


@pytest.mark.parametrize(("shingle", "threshold"), [("word:5", 0.7), ("char:9", 0.8), ("byte:8", 0.5)])
def test_the_library_of_python(tmp_path: Path, shingle: str, threshold: float) -> None:
    """Real source code, with the planned layout, alone and against a half of it."""
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
    """Every pair that asking for each document finds: from both sides, with the same similarity."""
    number = {row["id"]: place for place, row in enumerate(documents)}
    answers = index.query([row["text"] for row in documents], threshold=threshold, top=ALL)
    assert isinstance(answers, list)
    assert not any(answer.truncated for answer in answers)
    found = {
        (place, number[hit.id]): hit.similarity
        for place, answer in enumerate(answers)
        for hit in answer
        if number[hit.id] != place
    }
    assert all(found.get((right, left)) == similarity for (left, right), similarity in found.items())
    return {pair: similarity for pair, similarity in found.items() if pair[0] < pair[1]}


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
@pytest.mark.parametrize("name", SHINGLES)
def test_queries_find_the_pairs(tmp_path: Path, name: str, scheme: str) -> None:
    """All of them, bit-equal similarities, at the planned threshold and above it."""
    documents = [*rows(texts(3)), *numbered(python_sources()[:20], "p")]
    layout: Settings = {**SHINGLES[name], "bands": 40, "rows": 2, "scheme": scheme, "seed": SEED}
    with mw.Index.create(tmp_path / "all.mw", threshold=0.5, **layout) as index:
        index.add([row["id"] for row in documents], [row["text"] for row in documents])
        number = {row["id"]: place for place, row in enumerate(documents)}
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
    """Also where bands miss most pairs: the index misses the same."""
    documents = numbered(given)
    settings: Settings = {"shingle": "word:1", "bands": layout[0], "rows": layout[1], "seed": SEED}
    with mw.Index.create(tmp_path_factory.mktemp("index") / "small.mw", threshold=threshold, **settings) as index:
        index.add([row["id"] for row in documents], [row["text"] for row in documents])
        for least in {threshold, max(threshold, higher)}:
            table = mw.pairs(documents, threshold=least, **settings) if documents else None
            listed = table.to_pylist() if table is not None else []
            expected = {(int(row["left"][1:]), int(row["right"][1:])): row["similarity"] for row in listed}
            assert queried_pairs(index, documents, least) == expected
