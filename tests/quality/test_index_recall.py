"""Recall of an index with default limits: queries for every document, against all similarities by brute force.

Corpora with clusters of near-duplicates: of real texts, and of templates with hundreds of documents.
"""

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support import index_oracle
from support.strategies import effort

import minwise as mw
from minwise import _kernel
from minwise.index import Answer, lookup

DATA = Path(__file__).parents[3] / "shared" / "data"
RECALL, SEED = 0.99, 7

Similarities = NDArray[np.float64]


def all_similarities(texts: Sequence[str], shingle: str) -> Similarities:
    """Return the Jaccard similarity of each pair of documents, from a product of 0-1 matrices."""
    sets = mw.Shingler(shingle, seed=SEED).shingle(texts)
    _, columns = np.unique(sets.hashes, return_inverse=True)
    ones = np.ones(len(columns), dtype=np.int32)
    matrix = scipy.sparse.csr_matrix((ones, columns, sets.offsets), shape=(len(texts), columns.max() + 1))
    common, sizes = (matrix @ matrix.T).toarray(), np.diff(sets.offsets)
    union = sizes[:, None] + sizes - common
    return np.asarray(common / np.maximum(union, 1), dtype=np.float64)


def measured_recall(truth: Similarities, answers: Sequence[Answer], threshold: float, top: int) -> float:
    """Return the share of the ``top`` most similar documents that answers contain; equal similarities are alike."""
    found = wanted = 0
    for similarities, answer in zip(truth, answers, strict=True):
        best = np.sort(similarities[similarities >= threshold])[::-1][:top]
        hits = np.array([hit.similarity for hit in answer])
        assert np.isin(hits, similarities).all()
        wanted += len(best)
        found += min(len(best), int((hits >= best[-1]).sum())) if len(best) else 0
    return found / wanted


def assert_recall(folder: Path, texts: Sequence[str], shingle: str, threshold: float, largest: int) -> None:
    """Check ten and up to a thousand hits of a query for each document; no answer is cut short."""
    truth = all_similarities(texts, shingle)
    assert (truth >= threshold).sum(axis=1).max() >= largest
    with mw.Index.create(folder / "all.mw", threshold=threshold, shingle=shingle, seed=SEED) as index:
        index.add(range(len(texts)), texts)
        for top in (10, 1000):
            answers = index.query_many(texts, top=top)
            assert not any(answer.truncated for answer in answers)
            assert measured_recall(truth, answers, threshold, top) >= RECALL


def read_documents(path: str) -> list[str]:
    """Return the texts of a corpus."""
    return [json.loads(line)["text"] for line in (DATA / path).read_text(encoding="utf-8").splitlines()]


def read_citations() -> list[str]:
    """Return the citations of Cora: clusters of tens of spellings of one reference."""
    with (DATA / "er/pyjedai_cora/cora.csv").open(encoding="utf-8", newline="") as file:
        return [" ".join(row[1:]) for row in csv.reader(file, delimiter="|")][1:]


CORPORA: dict[str, tuple[Callable[[], list[str]], str, int]] = {
    "licences": (lambda: read_documents("text/spdx_licenses/docs.jsonl"), "word:3", 31),
    "manual": (lambda: read_documents("text/installguide_sample/docs.jsonl"), "word:5", 6),
    "programs": (lambda: read_documents("code/irplag/docs.jsonl"), "char:5", 41),
    "citations": (read_citations, "char:4", 51),
}


@pytest.mark.skipif(not DATA.is_dir(), reason="the labelled corpora of ../shared/data are not here")
@pytest.mark.parametrize("name", CORPORA)
def test_real_corpora_at_half(tmp_path: Path, name: str) -> None:
    """At a threshold of 0.5, where most documents have hundreds of candidates."""
    read, shingle, largest = CORPORA[name]
    assert_recall(tmp_path, read(), shingle, 0.5, largest)


def templates(rng: random.Random, sizes: Sequence[int]) -> list[str]:
    """Return letters of several templates, each with up to a twenty-fifth of its words changed, in random order."""
    vocabulary, texts = [f"word{number}" for number in range(3000)], list[str]()
    for size in sizes:
        template = rng.choices(vocabulary, k=rng.randrange(60, 200))
        for _ in range(size):
            letter = list(template)
            for _ in range(rng.randrange(len(letter) // 25 + 2)):
                letter[rng.randrange(len(letter))] = rng.choice(vocabulary)
            texts.append(" ".join(letter))
    rng.shuffle(texts)
    return texts


@pytest.mark.parametrize(("threshold", "largest"), [(0.5, 900), (0.8, 300)])
def test_templates(tmp_path: Path, threshold: float, largest: int) -> None:
    """Clusters of up to 900 documents, far above the number of requested hits."""
    assert_recall(tmp_path, templates(random.Random(3), (900, 300, 300, 60, 5)), "word:5", threshold, largest)


@effort(0.2)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=3),
    top=st.sampled_from((1, 3, 10, 1000)),
    block=st.sampled_from((1, 7, 256)),
    row_bytes=st.sampled_from((400, 4096)),
    most=st.sampled_from((5, 40, 10_000)),
    max_bucket=st.sampled_from((16, 10_000)),
    threshold=st.sampled_from((0.5, 0.9, 1.0)),
    where=st.sampled_from((None, {"even": True})),
    seed=st.integers(0, 2**32),
)
@example(
    sizes=[60, 60], top=3, block=1, row_bytes=4096, most=10_000, max_bucket=10_000, threshold=0.5, where=None, seed=1
)
@example(sizes=[60], top=1, block=1, row_bytes=400, most=40, max_bucket=16, threshold=0.5, where=None, seed=2)
@example(
    sizes=[60], top=10, block=7, row_bytes=400, most=40, max_bucket=100, threshold=0.9, where={"even": True}, seed=3
)
def test_answers_equal_those_of_plain_python(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    top: int,
    block: int,
    row_bytes: int,
    most: int,
    max_bucket: int,
    threshold: float,
    where: dict[str, bool] | None,
    seed: int,
) -> None:
    """Where a search ends, what it finds until then, and what it says it left out; similarities by brute force."""
    letters = templates(random.Random(seed), sizes)
    truth = all_similarities(letters, "word:5")
    texts, queries, numbers = letters[10:], letters[:10], range(10, len(letters))
    metadata = [{"even": number % 2 == 0} for number in numbers]
    path = tmp_path_factory.mktemp("index") / "all.mw"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("COMPARED_BLOCK", block), ("FIRST_BLOCK", block), ("COMPARISON_BYTES", row_bytes)):
            patch.setattr(lookup, name, value)
            patch.setattr(index_oracle, name, value)
        with mw.Index.create(path, threshold=0.5, max_bucket=max_bucket, seed=SEED) as index:
            oracle = index_oracle.Oracle(index, max_bucket)
            index.add(numbers, texts, metadata)
            oracle.add(numbers, texts, metadata, "error")
            for row, query in enumerate(queries):
                answer = index.query(query, threshold, top=top, max_candidates=most, where=where)
                expected = oracle.query(query, threshold, top, where, most)
                assert [(hit.id, hit.similarity, hit.metadata) for hit in answer] == expected.hits
                assert (answer.truncated_by, answer.left_out) == (expected.truncated_by, expected.left_out)
                assert answer.capped_buckets == expected.capped_buckets
                assert all(hit.similarity == truth[row][int(hit.id)] for hit in answer)


def test_a_search_ends_before_all_candidates_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the ten best are far above most of a cluster; and it compares all for a thousand hits."""
    compared, texts = list[int](), templates(random.Random(5), (900,))
    kernel = _kernel.set_similarities

    def counting(elements: NDArray[np.uint64], records: list[bytes], threshold: float) -> Similarities:
        compared.append(len(records))
        return kernel(elements, records, threshold)

    with mw.Index.create(tmp_path / "all.mw", threshold=0.5, seed=SEED) as index:
        index.add(range(len(texts)), texts)
        monkeypatch.setattr(_kernel, "set_similarities", counting)
        counts = []
        for top in (10, 1000):
            compared.clear()
            index.query_many(texts[:100], top=top)
            counts.append(sum(compared))
    assert counts[0] < 0.8 * counts[1]
    assert counts[1] >= 0.99 * 100 * len(texts)
