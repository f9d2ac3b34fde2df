"""The command that the page prints: short, and what it writes is an audit of the very run."""

import json
import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from support.commands import OK, run
from support.page_shapes import NEWSROOM, newsroom

import minwise as mw
from minwise.report.audit_section import DEFAULTS, audit_command
from minwise.settings import Options

PYTHON = "mw.audit(INPUT, 'audit.json'"


def command_of(source: Any, **settings: Any) -> str:  # noqa: ANN401 - whatever a run takes
    """The command for a run with some settings."""
    return audit_command(mw.dedup(source, **settings).report["settings"], {})


def test_defaults_are_those_of_a_run() -> None:
    """What is not typed is what a run takes by itself."""
    assert {name: getattr(Options, name) for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize(
    ("settings", "typed"),
    [
        ({}, ""),
        ({"threshold": 0.7}, " --threshold 0.7"),
        ({"shingle": "word:3", "seed": 7, "bag": True}, " --shingle word:3 --bag --seed 7"),
        ({"recall": 0.9}, " --bands 21 --rows 10"),
        ({"bands": 20, "rows": 5, "max_bucket": 100}, " --max-bucket 100 --bands 20 --rows 5"),
        ({"threshold": 0.01, "bands": 9, "rows": 1}, " --threshold 0.01 --bands 9 --rows 1"),
        ({"verify": "none", "group": "components", "keep": "longest"}, ""),
    ],
)
def test_only_what_matters_is_typed(settings: dict[str, Any], typed: str) -> None:
    """Neither defaults, nor what follows from the threshold, nor what an audit does not have."""
    assert command_of(["one"], **settings) == f"minwise audit INPUT…{typed} -o audit.json"


def test_how_the_input_was_read_is_typed() -> None:
    """With names that a shell would take apart in quotes."""
    run = {"columns": {"text": ["title", "the body"], "id": "key"}, "format": "csv", "inputs": [{"name": "a.csv"}]}
    command = audit_command(newsroom().report["settings"], run)
    assert "--text-column title --text-column 'the body' --format csv -o audit.json" in command


def test_what_no_command_can_say_is_python() -> None:
    """Sets, tables in memory, and a normalisation of one's own."""
    sets = mw.ShingleSets.from_sets([{1, 2}])
    assert command_of(sets) == f"{PYTHON}, shingle='set')"
    own = mw.Shingler("word:3", bag=True, lowercase=False)
    shingle = "shingle=mw.Shingler('word:3', bag=True, lowercase=False)"
    assert command_of(["one"], shingle=own, threshold=0.7) == f"{PYTHON}, threshold=0.7, {shingle})"
    assert audit_command(mw.dedup(["one"]).report["settings"], {"inputs": [{"name": ""}]}) == f"{PYTHON})"


@pytest.mark.parametrize(
    "settings", [{"shingle": "word:3", "threshold": 0.55}, {"recall": 0.9, "seed": 3, "bag": True}]
)
def test_both_steps_add_an_audit_to_the_page(tmp_path: Path, settings: dict[str, Any]) -> None:
    """The two lines of the page, typed as they are, but for the names of the input and the output."""
    mw.dedup(str(NEWSROOM), tmp_path / "clean", **settings)
    page = tmp_path / "clean/report.html"
    steps = re.search(
        r'<ol class="steps"><li><code>(.*?)</code></li><li><code>(.*?)</code></li></ol>', page.read_text()
    )
    assert steps is not None
    for step in steps.groups():
        words = [{"INPUT…": str(NEWSROOM), "OUT": "clean"}.get(word, word) for word in shlex.split(unescape(step))]
        assert words.pop(0) == "minwise"
        done = run(tmp_path, *words)
        assert done.status == OK, done.err
    recall = json.loads((tmp_path / "audit.json").read_text())["recall"]
    assert f"of {recall['pairs']} pairs found" in page.read_text()
    assert "Not measured yet" not in page.read_text()
