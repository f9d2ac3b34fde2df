"""Settings of normalisation: one name and one meaning in every call, command and index."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import OK, USAGE, one_line, run
from support.expect import error_message

import minwise as mw
from minwise.api import dedup_stream
from minwise.errors import ConfigError
from minwise.options import (
    AuditOptions,
    ClustersOptions,
    DedupOptions,
    FrameDedupOptions,
    FrameOptions,
    IndexOptions,
    PairsOptions,
    definitions,
)
from minwise.text.shingling import NORMALISATION

# A setting, its value, and two texts that only this value makes equal or different.
CASES = [
    ("mask_digits", True, "order 12 of 7 chairs is here", "order 34 of 9 chairs is here"),
    ("strip_accents", True, "the café on the corner opens", "the cafe on the corner opens"),
    ("strip_punctuation", True, "it is re-used by the harbour", "it is reused by the harbour"),
    ("lowercase", False, "The Ferry leaves the old harbour", "the ferry leaves the old harbour"),
    ("nfkc", False, "the ﬁrst ferry leaves the harbour", "the first ferry leaves the harbour"),
    ("collapse_whitespace", False, "the  ferry   leaves", "the ferry leaves"),
]


def shingle_of(name: str) -> str:
    """Return shingles that a setting changes: words have no white space."""
    return "char:4" if name == "collapse_whitespace" else "word:3"


@pytest.mark.parametrize(("name", "value", "left", "right"), CASES, ids=[case[0] for case in CASES])
def test_setting_changes_which_texts_are_equal(name: str, value: bool, left: str, right: str) -> None:
    plain: dict[str, Any] = {"shingle": shingle_of(name), "threshold": 0.99}
    given: dict[str, Any] = {**plain, name: value}
    before, changed = (len(mw.pairs([left, right], **options)) for options in (plain, given))
    assert (before, changed) == ((0, 1) if value else (1, 0))
    assert mw.dedup([left, right], **given).report["settings"][name] is value
    shingler = mw.Shingler(shingle_of(name), **{name: value})
    assert len(mw.pairs([left, right], shingle=shingler, threshold=0.99)) == changed


@pytest.mark.parametrize(
    "options",
    [AuditOptions, PairsOptions, ClustersOptions, DedupOptions, FrameOptions, FrameDedupOptions, IndexOptions],
    ids=lambda options: options.__name__,
)
def test_every_call_has_the_settings_with_the_defaults_of_a_shingler(options: type) -> None:
    known = definitions(options)
    assert {name: known[name].default for name in NORMALISATION} == {
        name: getattr(mw.Shingler, name) for name in NORMALISATION
    }


@pytest.mark.parametrize(("name", "value"), [case[:2] for case in CASES], ids=[case[0] for case in CASES])
def test_setting_is_refused_where_it_would_be_ignored(name: str, value: bool) -> None:
    """With a Shingler, with byte shingles, and with documents that are not texts."""
    given: dict[str, Any] = {name: value}
    for settings in ({"shingle": mw.Shingler()}, {"shingle": "byte:4"}, {"shingle": "set"}, {"fields": "text:char:3"}):
        message = error_message(ConfigError, lambda settings=settings: mw.dedup(["a b"], **settings, **given))  # type: ignore[misc]
        assert message.startswith(f"{name} must be left out with "), message


def test_wrong_value_is_refused() -> None:
    wrong: Any = "yes"
    assert "mask_digits" in error_message(ConfigError, lambda: mw.pairs(["a"], mask_digits=wrong))


def test_same_settings_give_the_same_report_as_a_shingler() -> None:
    """Report, work directory and signature files have them under the same names."""
    texts = [case[2] for case in CASES]
    given = mw.dedup(texts, mask_digits=True, lowercase=False).report
    assert given == mw.dedup(texts, shingle=mw.Shingler(mask_digits=True, lowercase=False)).report


def test_stream_and_index_use_the_settings(tmp_path: Path) -> None:
    _, _, left, right = CASES[0]
    lines = "".join(json.dumps({"id": text, "text": text}) + "\n" for text in (left, right))
    counts = dedup_stream(io.BytesIO(lines.encode()), io.BytesIO(), mask_digits=True)
    assert (counts["kept"], counts["removed"]) == (1, 1)
    with mw.Index.create(tmp_path / "a.mw", mask_digits=True, lowercase=False) as index:
        index.add(["a"], [left])
        assert [hit.id for hit in index.query(right).hits] == ["a"]
        assert index.query(right.upper()).hits == ()
    with mw.Index.open(tmp_path / "a.mw") as index:
        settings = index.stats()["settings"]
        assert (settings["mask_digits"], settings["lowercase"]) == (True, False)


@pytest.mark.posix
def test_commands_have_the_options(tmp_path: Path) -> None:
    _, _, left, right = CASES[0]
    rows = [{"id": "a", "text": left}, {"id": "b", "text": right}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, text in (("a", left), ("b", right)):
        (tmp_path / f"{name}.txt").write_text(text)
    assert run(tmp_path, "pairs", "in.jsonl", "-o", "-", "--mask-digits", "--quiet").out.count("\n") == 1
    assert run(tmp_path, "clusters", "in.jsonl", "--mask-digits").out.count("order") == 2
    done = run(tmp_path, "dedup", "in.jsonl", "-o", "out", "--mask-digits", "--no-lowercase", "--json")
    report = json.loads(done.out)
    assert (report["counts"]["kept"], report["settings"]["lowercase"]) == (1, False)
    assert run(tmp_path, "audit", "in.jsonl", "--mask-digits").status == OK
    compared = json.loads(run(tmp_path, "compare", "a.txt", "b.txt", "--mask-digits", "--json").out)
    assert (compared["similarity"], compared["settings"]["mask_digits"]) == (1.0, True)
    assert run(tmp_path, "index", "create", "a.mw", "--mask-digits", "--no-nfkc").status == OK
    assert "word:5, no nfkc, mask digits" in run(tmp_path, "index", "stats", "a.mw").out
    message = one_line(run(tmp_path, "pairs", "in.jsonl", "--mask-digits", "--shingle", "byte:4"), USAGE)
    assert message.startswith("minwise: --mask-digits must be left out with ")
