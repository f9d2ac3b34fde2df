"""Clusters of an index: each document joins those of the stored documents that are similar to it."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.expect import error_message
from support.strategies import effort

import minwise as mw
from minwise.errors import ConfigError, FormatError
from minwise.index.clusters import FIRST_ROW, ROW_DOCUMENTS
from minwise.reference.weighting import weighted_similarity

# 200 bands of one slot miss a pair of similarity 0.3 with a probability of 0.7²⁰⁰ < 10⁻³⁰.
SURE: dict[str, Any] = {"shingle": "set", "bands": 200, "rows": 1, "threshold": 0.3, "seed": 1, "assign": True}

sets = st.frozensets(st.integers(0, 25), max_size=8)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.tuples(st.integers(0, 30), sets), min_size=1, max_size=6)),
        st.tuples(st.just("remove"), st.lists(st.integers(0, 30), max_size=3)),
        st.tuples(st.just("reopen"), st.just([])),
    ),
    max_size=8,
)


class Model:
    """The naive algorithm: sets of document numbers, compared one by one."""

    def __init__(self) -> None:
        self.next = 0
        self.live: dict[int, tuple[int, frozenset[int]]] = {}  # number and set by id
        self.clusters: dict[int, int] = {}

    def add(self, name: int, items: frozenset[int]) -> tuple[str, int, tuple[int, ...]]:
        if name in self.live and self.live[name][1] == items:
            return "unchanged", self.clusters[self.live[name][0]], ()
        fate = "replaced" if name in self.live else "added"
        self.live.pop(name, None)
        near = [number for number, other in self.live.values() if weighted_similarity(items, other) >= 0.3]
        number, self.next = self.next, self.next + 1
        cluster, *merged = sorted({self.clusters[other] for other in near}) or [number]
        for other, known in self.clusters.items():
            if known in merged:
                self.clusters[other] = cluster
        self.clusters[number] = cluster
        self.live[name] = number, items
        return fate, cluster, tuple(merged)

    def listed(self) -> list[tuple[int, int]]:
        return [(name, self.clusters[number]) for name, (number, _) in sorted(self.live.items(), key=lambda x: x[1][0])]


@effort(0.3)
@given(changes=changes)
def test_clusters_are_those_of_comparing_all_with_all(changes: list[tuple[str, Any]]) -> None:
    model = Model()
    with TemporaryDirectory() as folder:
        index = mw.Index.create(Path(folder) / "x.mw", **SURE)
        for change, values in changes:
            if change == "reopen":
                index.close()
                index = mw.Index.open(Path(folder) / "x.mw", "w")
            elif change == "remove":
                index.remove(values)
                for name in values:
                    model.live.pop(name, None)
            else:
                names, items = [name for name, _ in values], [sorted(one) for _, one in values]
                decided = index.add_each(names, items, on_duplicate_id="replace")
                expected = [model.add(*value) for value in values]
                assert [(one.fate, one.cluster, one.merged) for one in decided] == expected
        assert index.clusters() == model.listed()
        assert not index.verify()
        index.close()


WORDS = ["a quiet town", "bread and butter", "a quiet town, bread and butter", "bread and butter"]
DOCUMENTS: dict[str, list[Any]] = {
    "word:1": WORDS,
    "set": [words.replace(",", "").split() for words in WORDS],
    "name:word:1": [{"name": words} for words in WORDS],
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_texts_records_and_sets_join_and_merge_clusters(tmp_path: Path, kind: str) -> None:
    documents: list[Any] = DOCUMENTS[kind]
    rule: dict[str, Any] = {"fields": kind} if "name" in kind else {"shingle": kind}
    with mw.Index.create(tmp_path / "x.mw", threshold=0.3, bands=200, rows=1, assign=True, **rule) as index:
        decided = index.add_each(["a", "b"], documents[:2])
        assert [(one.cluster, one.merged) for one in decided] == [(0, ()), (1, ())]
        (decision,) = index.add_each(["c"], documents[2:3])
        assert (decision.cluster, decision.merged) == (0, (1,))
        assert index.add(["d"], documents[3:]).added == 1
        index.remove(["a", "c"])  # of the cluster that is named by it
        assert index.stats()["settings"]["assign"] is True
    with mw.Index.open(tmp_path / "x.mw") as index:
        assert index.clusters() == [("b", 0), ("d", 0)]


def test_a_unique_document_begins_a_cluster_and_a_duplicate_is_told_that_of_its_original(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "x.mw", **SURE) as index:
        decided = index.add_unique([1, 2, 3], [["a", "b"], ["c"], ["a", "b", "d"]])
        assert [(one.fate, one.cluster) for one in decided] == [("added", 0), ("added", 1), ("duplicate", 0)]


def test_many_documents_need_several_rows(tmp_path: Path) -> None:
    count = 2 * ROW_DOCUMENTS + 10
    with mw.Index.create(tmp_path / "x.mw", **SURE) as index:
        index.add(range(count), [[number // 2] for number in range(count)])
        assert index.clusters() == [(number, number // 2 * 2) for number in range(count)]
        (joined,) = index.add_each(["all"], [[0, ROW_DOCUMENTS, 3]])
        assert (joined.cluster, joined.merged) == (0, (6, 2 * ROW_DOCUMENTS))


def test_a_damaged_row_is_named(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "x.mw", **SURE) as index:
        index.add([1, 2], [["a"], ["b"]])
    database = apsw.Connection(str(tmp_path / "x.mw" / "index.db"))
    database.execute("DELETE FROM manifest WHERE number = ?", [FIRST_ROW])
    database.close()
    with mw.Index.open(tmp_path / "x.mw", "w") as index:
        told = error_message(FormatError, lambda: index.add([3], [["a"]]))
        assert f"manifest: row {FIRST_ROW} is missing" in told
        assert any("is missing" in damage.what for damage in index.verify())


def test_an_index_without_clusters_says_how_to_make_one(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "x.mw", shingle="set") as index:
        assert index.add_each([1], [["a"]])[0].cluster is None
        assert error_message(ConfigError, index.clusters) == (
            "clusters need an index that assigns them, got another one; create it with assign=True"
        )
    told = error_message(ConfigError, lambda: mw.Index.create(tmp_path / "y.mw", assign=1))  # type: ignore[arg-type]
    assert told == "assign must be one of False, True, got 1"
