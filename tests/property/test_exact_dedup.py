"""Deduplication by the exact join: guarantees without probability, refused settings, and resumed runs."""

import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.expect import error_message
from support.random_corpora import SHINGLE, THRESHOLD, Truth, number, rows, texts

import minwise as mw
from minwise import reference
from minwise.api import dedup_stream, estimate_run
from minwise.errors import ConfigError
from minwise.options import GroupName
from minwise.reference.banding import components

from .test_exact_join import shrink
from .test_promises import POLICIES, listed, prefer, stars, witnesses

EXACT: dict[str, Any] = {"exact": True, "shingle": SHINGLE, "threshold": THRESHOLD}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(2))
def test_stars_are_those_of_all_pairs(seed: int, policy: str) -> None:
    """Every removed document has its most similar kept witness, with the exact similarity."""
    truth = Truth(texts(seed))
    documents = rows(truth.texts, seed)
    result = mw.dedup(documents, keep=policy, **EXACT)
    kept, removed = stars(truth.pairs, prefer(policy, documents))
    assert [number(row["id"]) for row in result.kept] == sorted(kept)
    assert witnesses(result) == removed
    assert len(removed) >= 10
    for document, (witness, similarity) in removed.items():
        assert witness in kept
        assert similarity == mw.jaccard(truth.sets[document], truth.sets[witness]) >= THRESHOLD


@pytest.mark.parametrize("policy", ["first", "longest", "max:score"])
def test_components_are_those_of_all_pairs(policy: str) -> None:
    """One document of each is kept, the one that the policy prefers."""
    truth = Truth(texts(5))
    documents = rows(truth.texts, seed=5)
    order = prefer(policy, documents)
    rank_of = {document: rank for rank, document in enumerate(order)}
    heads = components([(rank_of[left], rank_of[right]) for left, right in truth.pairs], len(order))
    expected = {order[rank]: order[head] for rank, head in enumerate(heads) if rank != head}
    result = mw.dedup(documents, group="components", keep=policy, **EXACT)
    assert {document: witness for document, (witness, _) in witnesses(result).items()} == expected
    for document, (witness, similarity) in witnesses(result).items():
        assert similarity == mw.jaccard(truth.sets[document], truth.sets[witness])


@pytest.mark.parametrize("group", ["components", "star"])
def test_clusters_are_those_of_all_pairs(group: GroupName) -> None:
    """Every document has the first of its component, or its witness."""
    truth = Truth(texts(6))
    documents = list(range(len(truth.texts)))
    removed = stars(truth.pairs, documents)[1]
    star_heads = [removed[document][0] if document in removed else document for document in documents]
    heads = star_heads if group == "star" else components(truth.pairs, len(documents))
    sizes = Counter(heads)
    table = mw.clusters(rows(truth.texts), group=group, **EXACT)
    assert [number(identity) for identity in table.column("cluster").to_pylist()] == heads
    assert table.column("size").to_pylist() == [sizes[head] for head in heads]


@pytest.mark.parametrize("policy", ["first", "last", "longest"])
@pytest.mark.parametrize("memory", [4 * 10**9, 3000])
def test_documents_compared_against_are_not_removed(policy: str, memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents similar to them are removed; two of them are not a pair. With one index and with many."""
    truth, border = Truth(texts(1)), 25
    documents = rows(truth.texts)
    shrink(monkeypatch, memory)
    result = mw.dedup(documents[border:], against=documents[:border], keep=policy, **EXACT)
    order = [*range(border), *(border + document for document in prefer(policy, documents[border:]))]
    pairs = {pair: similarity for pair, similarity in truth.pairs.items() if pair[1] >= border}
    kept, expected = stars(pairs, order)
    assert len(pairs) < len(truth.pairs)
    assert witnesses(result) == expected
    assert [number(row["id"]) for row in result.kept] == sorted(kept - set(range(border)))


def test_rethreshold_equals_a_run_with_the_higher_threshold() -> None:
    documents = rows(texts(2))
    higher = mw.dedup(documents, **EXACT).rethreshold(0.9)
    assert higher.removed.to_pylist() == mw.dedup(documents, **{**EXACT, "threshold": 0.9}).removed.to_pylist()


def test_near_misses_are_complete() -> None:
    """Every pair down to 0.05 below the threshold is counted, and listed if both documents are kept."""
    truth = Truth(texts(4), threshold=0.65)
    report = mw.dedup(rows(truth.texts), **EXACT).report
    below = {pair: value for pair, value in truth.pairs.items() if value < THRESHOLD}
    kept = stars({pair: truth.pairs[pair] for pair in truth.pairs.keys() - below}, [*range(len(truth.texts))])[0]
    near = {pair: value for pair, value in below.items() if kept.issuperset(pair)}
    assert near
    shown = [(number(pair["left"]["id"]), number(pair["right"]["id"])) for pair in report["just_below"]["closest"]]
    assert shown == sorted(near, key=lambda pair: (-near[pair], pair))
    tokens = [tuple(reference.tokens(text)) for text in truth.texts]
    assert report["just_below"]["pairs"] == len({frozenset((tokens[left], tokens[right])) for left, right in below})


def test_the_report_of_an_exact_run_has_no_plan(tmp_path: Path) -> None:
    """Its settings say why; nothing in it depends on bands."""
    documents = rows(texts(0))
    for report in (mw.dedup(documents, **EXACT).report, mw.write_pairs(documents, tmp_path / "p.csv", **EXACT)):
        assert report["plan"] is None
        assert report["settings"]["exact"] is True
        assert not {"bands", "rows", "scheme"} & report["settings"].keys()
        assert (report["caps"]["buckets"], report["caps"]["candidates_left_out"]) == (0, 0)
    assert "exact" not in mw.dedup(documents, shingle=SHINGLE).report["settings"]


def test_the_estimate_of_an_exact_run_has_no_plan() -> None:
    """It names the exact join instead."""
    documents = rows(texts(0))
    estimate = estimate_run(documents, **EXACT)
    assert estimate.plan is None
    assert "exact join" in str(estimate)
    assert "exact join" not in str(estimate_run(documents, shingle=SHINGLE))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recall", 0.9),
        ("scheme", "minhash"),
        ("slots", 128),
        ("bands", 20),
        ("rows", 5),
        ("verify", "none"),
        ("verify", "signature"),
    ],
)
@pytest.mark.parametrize("call", [mw.pairs, mw.clusters, mw.dedup, estimate_run], ids=lambda call: call.__name__)
def test_settings_of_bands_are_refused(call: Callable[..., Any], name: str, value: Any) -> None:  # noqa: ANN401
    """Before anything is read; the message names the setting and the value."""
    message = error_message(ConfigError, lambda: call(["/nothing/here.jsonl"], exact=True, **{name: value}))
    assert message.startswith(f"{name} must be left out with exact")
    assert str(value) in message


@pytest.mark.parametrize("value", ["yes", None, 2])
def test_exact_must_be_true_or_false(value: Any) -> None:  # noqa: ANN401 - wrong types
    assert error_message(ConfigError, lambda: mw.pairs(["one two"], exact=value)).startswith("exact must be")


def test_a_stream_cannot_be_exact() -> None:
    """Lines are decided one by one, by bands."""
    lines = io.BytesIO(b'{"text": "one"}\n')
    message = error_message(ConfigError, lambda: dedup_stream(lines, io.BytesIO(), exact=True))
    assert message.startswith("exact must be False for a stream")


def test_an_audit_cannot_be_exact() -> None:
    """An audit compares with the exact join."""
    message = error_message(ConfigError, lambda: mw.audit(["one two"], exact=True))  # type: ignore[call-arg]
    assert "'exact'" in message


def write(path: Path) -> None:
    """Write documents as JSON lines, without the NaN scores, which JSON does not have."""
    lines = [json.dumps({"id": row["id"], "text": row["text"]}) for row in rows(texts(7))]
    path.write_text("\n".join(lines), encoding="utf-8")


LOST = {
    "the last pieces": ["verified", "verified-000001"],
    "all that was verified": ["verified*"],
    "an index that was not finished": ["verified*", "candidates-00001-*"],
    "the join": ["verified*", "candidates-*", "proposed-*", "ranges"],
    "sets": ["verified*", "candidates-*", "proposed-*", "ranges", "sets", "sets-00000[3-9]", "sets-0000[1-9]?"],
}


@pytest.mark.parametrize("memory", [6000, 4 * 10**9])
@pytest.mark.parametrize("lost", LOST)
def test_a_resumed_run_gives_the_same_bytes(
    lost: str, memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For any files that an earlier run left, with the same or another memory limit, which decides the indexes."""
    source, work = tmp_path / "in.jsonl", tmp_path / "work"
    write(source)
    expected = mw.write_pairs(source, tmp_path / "usual.csv", **EXACT)
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, 6000)
        patch.setattr("minwise.search.workdir.WorkDirectory.delete", lambda *_: None)
        mw.pairs(source, work=work, **EXACT)
    for pattern in LOST[lost]:
        gone = list(work.glob(pattern))
        assert gone
        for path in gone:
            path.unlink()
    shrink(monkeypatch, memory)
    assert mw.write_pairs(source, tmp_path / "again.csv", work=work, **EXACT) == expected
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "usual.csv").read_bytes()


def test_a_run_with_bands_refuses_the_work_directory(tmp_path: Path) -> None:
    source, work = tmp_path / "in.jsonl", tmp_path / "work"
    write(source)
    mw.pairs(source, work=work, **EXACT)
    with pytest.raises(mw.MinwiseError, match="exact"):
        mw.pairs(source, work=work, shingle=SHINGLE, threshold=THRESHOLD)
    assert listed(mw.pairs(source, work=work, **EXACT)) == Truth(texts(7)).pairs
