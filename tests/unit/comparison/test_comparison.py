"""Comparison of two texts: similarity, shared passages, and whether a run would find the pair."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minwise as mw
from minwise.errors import InputError
from minwise.options import SchemeName
from minwise.sketches import OnePermutation, Scheme

FERRY = "The ferry leaves the old harbour at six in the morning, and the gulls follow it out to sea."
LATER = "The ferry leaves the old harbour at eight in the morning, and the gulls follow it out to sea."
SCHEMES: dict[str, Callable[..., Scheme]] = {"fast": mw.FastSketch, "minhash": mw.MinHash}
# A plan that finds about half of the pairs below, so that both results occur.
LAYOUT = mw.plan(0.6, bands=2, rows=3)

texts = st.lists(
    st.sampled_from(["the", "old", "harbour", "at", "six", "in", "morning", "gulls", "漁", "港"]), max_size=30
).map(" ".join)


@given(left=texts, right=texts, scheme=st.sampled_from(sorted(SCHEMES)), seed=st.integers(0, 5), bag=st.booleans())
def test_bands_fired_predict_whether_a_run_finds_the_pair(
    left: str, right: str, scheme: SchemeName, seed: int, bag: bool
) -> None:
    shingler = mw.Shingler("word:2", bag=bag, seed=seed)
    compared = mw.compare(left, right, shingler=shingler, scheme=SCHEMES[scheme](seed=seed), plan=LAYOUT)
    found = mw.pairs(
        [left, right], shingle=shingler, threshold=0.6, bands=2, rows=3, scheme=scheme, seed=seed, verify="none"
    )
    assert bool(compared.bands_fired) == bool(found.num_rows)


def test_pairs_are_found_with_some_seeds_only() -> None:
    """Otherwise the previous test could not fail."""
    results = {
        bool(mw.compare(FERRY, LATER, scheme=mw.FastSketch(seed=seed), plan=LAYOUT).bands_fired) for seed in range(20)
    }
    assert results == {True, False}


def test_bands_fired_are_those_with_equal_slots() -> None:
    """In signatures of bands · rows slots, as in a run."""
    plan = mw.plan(0.5, bands=30, rows=2)
    compared = mw.compare(FERRY, LATER, scheme=mw.MinHash(slots=16, seed=3), plan=plan)
    signatures = mw.MinHash(slots=plan.slots, seed=3).sketch_texts([FERRY, LATER])
    same = (signatures.slots[0] == signatures.slots[1]).reshape(plan.bands, plan.rows).all(axis=1)
    assert compared.bands_fired == tuple(np.flatnonzero(same).tolist())
    assert 0 < len(compared.bands_fired) < plan.bands


def test_a_scheme_that_runs_do_not_support_has_the_bands_of_the_default_scheme() -> None:
    compared = mw.compare(FERRY, LATER, scheme=OnePermutation(bins=64, seed=2), plan=LAYOUT)
    assert compared.bands_fired == mw.compare(FERRY, LATER, scheme=mw.FastSketch(seed=2), plan=LAYOUT).bands_fired


@pytest.mark.parametrize("left", ["", "...", "The ferry"])
def test_no_band_fires_for_an_empty_text(left: str) -> None:
    assert mw.compare(left, "", plan=mw.plan(0.1, bands=50, rows=1)).bands_fired == ()


def test_a_text_compared_with_itself_fires_all_bands() -> None:
    compared = mw.compare(FERRY, FERRY)
    assert compared.bands_fired == tuple(range(compared.plan.bands))
    assert (compared.chance, compared.similarity) == (1, 1)


def test_chance_is_the_probability_of_the_plan_at_the_similarity() -> None:
    compared = mw.compare(FERRY, LATER)
    assert compared.plan == mw.plan()
    assert compared.chance == mw.plan().probability(compared.similarity)
    assert mw.compare(FERRY, LATER, plan=LAYOUT).plan is LAYOUT


def test_a_plan_of_another_type_is_refused() -> None:
    with pytest.raises(InputError, match="plan must be Plan, got float"):
        mw.compare(FERRY, LATER, plan=0.8)  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", ["word:2", "word:3", "char:5", "byte:6"])
@given(left=texts, right=texts)
def test_passages_cover_the_same_positions_as_spans(spec: str, left: str, right: str) -> None:
    compared = mw.compare(left, right, shingler=mw.Shingler(spec))
    for spans, passages in (
        (compared.spans_left, [passage[:2] for passage in compared.passages]),
        (compared.spans_right, [passage[2:4] for passage in compared.passages]),
    ):
        assert positions(passages) == positions(spans)


def positions(spans: list[tuple[int, int]]) -> set[int]:
    """Return the positions in any of the spans."""
    return {position for start, end in spans for position in range(start, end)}


@given(left=texts, right=texts)
def test_spans_cover_the_shared_shingles(left: str, right: str) -> None:
    """Adjacent spans are merged."""
    shingler = mw.Shingler("word:2")
    compared = mw.compare(left, right, shingler=shingler)
    other = set(shingler.spans(right).hashes.tolist())
    hashes, starts, ends = (column.tolist() for column in shingler.spans(left))
    shared = [(start, end) for shingle, start, end in zip(hashes, starts, ends, strict=True) if shingle in other]
    assert positions(compared.spans_left) == positions(shared)
    assert all(before[1] < after[0] for before, after in pairwise(compared.spans_left))


def test_to_dict_is_json_without_the_texts() -> None:
    found = json.loads(json.dumps(mw.compare(FERRY, LATER).to_dict()))
    assert found["passages"] == [
        {"left": [0, 35], "right": [0, 35], "moved": False},
        {"left": [40, 90], "right": [42, 92], "moved": False},
    ]
    assert found["plan"] == mw.plan().to_dict()
    assert {"similarity", "estimate", "shared", "only_left", "only_right", "spans_left", "spans_right"} <= set(found)
    assert {"containment_left", "containment_right", "bands_fired", "chance"} <= set(found)
    assert "gulls" not in json.dumps(found)


def test_repr_does_not_contain_the_texts() -> None:
    assert "gulls" not in repr(mw.compare(FERRY, LATER))


def test_rows_contain_both_texts_with_the_kind_of_each_piece() -> None:
    rows = list(mw.compare(FERRY, LATER).rows())
    assert "".join(piece.text for row in rows for piece in row.left) == FERRY
    assert "".join(piece.text for row in rows for piece in row.right) == LATER
    assert [piece.text for row in rows for piece in row.right if piece.kind == "only"] == ["eight"]


def test_rows_of_invalid_utf8_have_a_replacement_per_byte() -> None:
    """Passages start and end at the characters to which their bytes belong."""
    left, right = "漁 boats\n".encode() + b"\xff\xfe same tail", b"\xff\xfe same tail" + "漁x".encode()
    rows = list(mw.compare(left, right, shingler=mw.Shingler("byte:3")).rows())
    shown = ["".join(piece.text for row in rows for piece in getattr(row, side)) for side in ("left", "right")]
    assert shown == ["漁 boats\n\ufffd\ufffd same tail", "\ufffd\ufffd same tail漁x"]
    kinds = {piece.kind: piece.text for row in rows for piece in row.left}
    assert kinds["shared"] == "\ufffd\ufffd same tail"
    assert kinds["moved"].startswith("漁")


def test_write_html_replaces_the_file_and_leaves_no_other(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old")
    mw.compare(FERRY, LATER).write_html(tmp_path / "page.html", names=("six", "eight"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>\n")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_page_shows_the_results(tmp_path: Path) -> None:
    compared = mw.compare(FERRY, LATER, shingler=mw.Shingler("word:2"), plan=LAYOUT)
    compared.write_html(tmp_path / "page.html", names=("six", "eight"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"{compared.similarity:.4f}" in page
    assert f"{compared.estimate.low:.4f} to {compared.estimate.high:.4f} at 95%" in page
    assert f"{compared.containment_left:.1%} of its shingles are shared" in page
    assert f"{compared.chance:.1%} of pairs" in page
    assert f"{len(compared.bands_fired)} of 2 bands" in page
    assert "yes</span>, at the threshold 0.6" in page


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    """It has no address and no script, and its policy allows none."""
    mw.compare("see http://example.org/a.js <img src=x>", LATER).write_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"<(script|img|link|iframe)|src=\"|href=|url\(|@import", page)
    assert "default-src 'none'" in page


def test_names_on_the_page_are_escaped(tmp_path: Path) -> None:
    """Also names that cannot be encoded."""
    mw.compare(FERRY, LATER).write_html(tmp_path / "page.html", names=("<b>a</b>", "\udce9.txt"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<b>a" not in page
    assert "&lt;b&gt;a&lt;/b&gt;" in page
    assert "\ufffd.txt" in page


def test_writing_to_a_missing_directory_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        mw.compare(FERRY, LATER).write_html(tmp_path / "nowhere" / "page.html")
    assert "page.html" in str(caught.value.filename)
