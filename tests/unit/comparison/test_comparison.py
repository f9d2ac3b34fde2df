"""Compare: what two texts have in common, and whether a run would find them."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minwise as mw

FERRY = "The ferry leaves the old harbour at six in the morning, and the gulls follow it out to sea."
LATER = "The ferry leaves the old harbour at eight in the morning, and the gulls follow it out to sea."
SCHEMES: dict[str, Callable[..., mw.Scheme]] = {"fast": mw.FastSketch, "minhash": mw.MinHash}
# A plan that finds about half of the pairs below, so that both answers are met.
LAYOUT = mw.plan(0.6, bands=2, rows=3)

texts = st.lists(
    st.sampled_from(["the", "old", "harbour", "at", "six", "in", "morning", "gulls", "漁", "港"]), max_size=30
).map(" ".join)


@given(left=texts, right=texts, scheme=st.sampled_from(sorted(SCHEMES)), seed=st.integers(0, 5), bag=st.booleans())
def test_bands_fire_as_in_a_run(left: str, right: str, scheme: str, seed: int, bag: bool) -> None:
    """Some band fires exactly if a run without verification finds the pair."""
    shingler = mw.Shingler("word:2", bag=bag, seed=seed)
    compared = mw.compare(left, right, shingler=shingler, scheme=SCHEMES[scheme](seed=seed), plan=LAYOUT)
    found = mw.pairs(
        [left, right], shingle=shingler, threshold=0.6, bands=2, rows=3, scheme=scheme, seed=seed, verify="none"
    )
    assert bool(compared.bands_fired) == bool(found.num_rows)


def test_both_answers_of_a_run_are_met() -> None:
    """Else the test above would not tell one from the other."""
    answers = {
        bool(mw.compare(FERRY, LATER, scheme=mw.FastSketch(seed=seed), plan=LAYOUT).bands_fired) for seed in range(20)
    }
    assert answers == {True, False}


def test_each_band_that_fires_has_equal_slots() -> None:
    """The slots of a signature of bands · rows, which is what a run sketches: the band, all of it and only it."""
    plan = mw.plan(0.5, bands=30, rows=2)
    compared = mw.compare(FERRY, LATER, scheme=mw.MinHash(slots=16, seed=3), plan=plan)
    signatures = mw.MinHash(slots=plan.slots, seed=3).sketch_texts([FERRY, LATER])
    same = (signatures.slots[0] == signatures.slots[1]).reshape(plan.bands, plan.rows).all(axis=1)
    assert compared.bands_fired == tuple(np.flatnonzero(same).tolist())
    assert 0 < len(compared.bands_fired) < plan.bands


def test_a_scheme_that_no_run_has() -> None:
    """Bands are then those of the default scheme."""
    compared = mw.compare(FERRY, LATER, scheme=mw.OnePermutation(bins=64, seed=2), plan=LAYOUT)
    assert compared.bands_fired == mw.compare(FERRY, LATER, scheme=mw.FastSketch(seed=2), plan=LAYOUT).bands_fired


@pytest.mark.parametrize("left", ["", "...", "The ferry"])
def test_nothing_fires_for_an_empty_text(left: str) -> None:
    """It is in no bucket, not even with another empty one."""
    assert mw.compare(left, "", plan=mw.plan(0.1, bands=50, rows=1)).bands_fired == ()


def test_a_text_fires_all_bands_with_itself() -> None:
    """And is found for certain."""
    compared = mw.compare(FERRY, FERRY)
    assert compared.bands_fired == tuple(range(compared.plan.bands))
    assert (compared.chance, compared.similarity) == (1, 1)


def test_the_plan_is_the_default_one_unless_given() -> None:
    """And the chance is that of the exact similarity on its curve."""
    compared = mw.compare(FERRY, LATER)
    assert compared.plan == mw.plan()
    assert compared.chance == mw.plan().probability(compared.similarity)
    assert mw.compare(FERRY, LATER, plan=LAYOUT).plan is LAYOUT


def test_something_else_in_place_of_a_plan() -> None:
    """Is refused by its type."""
    with pytest.raises(mw.InputError, match="plan must be Plan, got float"):
        mw.compare(FERRY, LATER, plan=0.8)  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", ["word:2", "word:3", "char:5", "byte:6"])
@given(left=texts, right=texts)
def test_passages_cover_what_the_spans_cover(spec: str, left: str, right: str) -> None:
    """Every place of a span is in a passage, and every passage is inside a span, in either text."""
    compared = mw.compare(left, right, shingler=mw.Shingler(spec))
    for spans, passages in (
        (compared.spans_left, [(one.left_start, one.left_end) for one in compared.passages]),
        (compared.spans_right, [(one.right_start, one.right_end) for one in compared.passages]),
    ):
        assert merged(passages) == merged(spans)


def merged(spans: list[tuple[int, int]]) -> set[int]:
    """The places in any of the spans."""
    return {place for start, end in spans for place in range(start, end)}


@given(left=texts, right=texts)
def test_spans_are_the_runs_of_shared_shingles(left: str, right: str) -> None:
    """A place is in a span exactly if a shared shingle stands over it; spans do not touch."""
    shingler = mw.Shingler("word:2")
    compared = mw.compare(left, right, shingler=shingler)
    other = set(shingler.spans(right).hashes.tolist())
    hashes, starts, ends = (column.tolist() for column in shingler.spans(left))
    shared = [(start, end) for one, start, end in zip(hashes, starts, ends, strict=True) if one in other]
    assert merged(compared.spans_left) == merged(shared)
    assert all(one[1] < other[0] for one, other in zip(compared.spans_left, compared.spans_left[1:], strict=False))


def test_as_a_dictionary() -> None:
    """Ready for JSON, with the aligned passages, and without the texts."""
    found = json.loads(json.dumps(mw.compare(FERRY, LATER).to_dict()))
    assert found["passages"] == [
        {"left": [0, 35], "right": [0, 35], "moved": False},
        {"left": [40, 90], "right": [42, 92], "moved": False},
    ]
    assert found["plan"] == mw.plan().to_dict()
    assert {"similarity", "estimate", "shared", "only_left", "only_right", "spans_left", "spans_right"} <= set(found)
    assert {"containment_left", "containment_right", "bands_fired", "chance"} <= set(found)
    assert "gulls" not in json.dumps(found)


def test_repr_does_not_hold_the_texts() -> None:
    """They may be megabytes."""
    assert "gulls" not in repr(mw.compare(FERRY, LATER))


def test_rows_hold_both_texts_whole() -> None:
    """With the kind of each piece."""
    rows = list(mw.compare(FERRY, LATER).rows())
    assert "".join(piece.text for row in rows for piece in row.left) == FERRY
    assert "".join(piece.text for row in rows for piece in row.right) == LATER
    assert [piece for row in rows for piece in row.right if piece.kind == "only"] == [
        (" eight ", "only"),
        (".", "only"),
    ]


def test_rows_of_bytes_that_are_no_text() -> None:
    """A replacement for each such byte, and passages at the characters that their bytes are in."""
    left, right = "漁 boats\n".encode() + b"\xff\xfe same tail", b"\xff\xfe same tail" + "漁x".encode()
    rows = list(mw.compare(left, right, shingler=mw.Shingler("byte:3")).rows())
    shown = ["".join(piece.text for row in rows for piece in getattr(row, side)) for side in ("left", "right")]
    assert shown == ["漁 boats\n\ufffd\ufffd same tail", "\ufffd\ufffd same tail漁x"]
    kinds = {piece.kind: piece.text for row in rows for piece in row.left}
    assert kinds["shared"] == "\ufffd\ufffd same tail"
    assert kinds["moved"].startswith("漁")


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    """In place of what was there; nothing is left beside it."""
    (tmp_path / "page.html").write_text("old")
    mw.compare(FERRY, LATER).write_html(tmp_path / "page.html", names=("six", "eight"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>\n")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_page_says_what_the_comparison_says(tmp_path: Path) -> None:
    """The similarity, the interval, the containments, the bands and the chance."""
    compared = mw.compare(FERRY, LATER, shingler=mw.Shingler("word:2"), plan=LAYOUT)
    compared.write_html(tmp_path / "page.html", names=("six", "eight"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"{compared.similarity:.4f}" in page
    assert f"{compared.estimate.low:.4f} to {compared.estimate.high:.4f} at 95%" in page
    assert f"{compared.containment_left:.1%} of its own are shared" in page
    assert f"{compared.chance:.1%} of pairs" in page
    assert f"{len(compared.bands_fired)} of 2 bands" in page
    assert "yes</span>, at the threshold 0.6" in page


def test_a_page_asks_nobody_for_anything(tmp_path: Path) -> None:
    """No address, no script, and a policy that allows none."""
    mw.compare("see http://example.org/a.js <img src=x>", LATER).write_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"<(script|img|link|iframe)|src=\"|href=|url\(|@import", page)
    assert "default-src 'none'" in page


def test_names_on_a_page_are_text(tmp_path: Path) -> None:
    """Also those that no encoding has."""
    mw.compare(FERRY, LATER).write_html(tmp_path / "page.html", names=("<b>a</b>", "\udce9.txt"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<b>a" not in page
    assert "&lt;b&gt;a&lt;/b&gt;" in page
    assert "\ufffd.txt" in page


def test_a_page_where_there_is_no_directory(tmp_path: Path) -> None:
    """Is an error of the system that names the file."""
    with pytest.raises(FileNotFoundError) as caught:
        mw.compare(FERRY, LATER).write_html(tmp_path / "nowhere" / "page.html")
    assert "page.html" in str(caught.value.filename)
