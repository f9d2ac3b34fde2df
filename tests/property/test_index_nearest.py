"""Queries without a threshold: exactly the documents that share a band, by brute force, the most similar first."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.index_oracle import Oracle
from support.random_corpora import texts
from support.strategies import effort

import minwise as mw

# Fewer than the candidates of a first attempt, so that no search ends early.
MOST_DOCUMENTS = 50


@effort(4)
@given(
    seed=st.integers(0, 2**32),
    layout=st.sampled_from(((1, 1), (4, 1), (8, 2), (3, 5))),
    top=st.integers(1, 50),
)
def test_hits_are_those_of_brute_force(seed: int, layout: tuple[int, int], top: int) -> None:
    *documents, first, second = texts(seed)[: MOST_DOCUMENTS + 2]
    with TemporaryDirectory() as folder:
        bands, rows = layout
        with mw.Index.create(
            Path(folder) / "x.mw", shingle="word:1", threshold=0.9, bands=bands, rows=rows, seed=seed
        ) as index:
            index.add(range(len(documents)), documents)
            oracle = Oracle(index, max_bucket=10_000)
            for query in [first, second, *documents[:3], ""]:
                answer, mine = index.query(query, 0, top), oracle.features(query)
                stored = [oracle.features(document) for document in documents]
                shared = [
                    (-oracle.similarity(mine, other), number)
                    for number, other in enumerate(stored)
                    if any(left == right for left, right in zip(mine.keys, other.keys, strict=False))
                ]
                expected = [(number, -negative) for negative, number in sorted(shared)[:top]]
                assert [(hit.id, hit.similarity) for hit in answer] == expected
                assert [hit.recall for hit in answer] == [
                    pytest.approx(1 - (1 - similarity**rows) ** bands) for _, similarity in expected
                ]
                assert not answer.truncated
                assert 1 - (1 - (answer.complete_above or 0) ** rows) ** bands == pytest.approx(0.99)
