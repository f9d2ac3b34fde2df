"""Audit command on the report page: short, and an audit of the settings of the run."""

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
from minwise.report.audit_section import audit_command
from minwise.results import write_report

PYTHON = "mw.audit(INPUT, 'audit.json'"


def command_of(source: Any, **settings: Any) -> str:  # noqa: ANN401 - any source and settings
    """Return the command for a run with these settings."""
    return audit_command(mw.dedup(source, **settings).report["settings"], {})


@pytest.mark.parametrize(
    ("settings", "options"),
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
def test_the_command_has_only_settings_that_change_the_audit(settings: dict[str, Any], options: str) -> None:
    """Neither defaults, nor a layout that follows from the threshold, nor settings that an audit does not have."""
    assert command_of(["one"], **settings) == f"minwise audit INPUT…{options} -o audit.json"


def test_the_command_has_the_settings_of_the_input() -> None:
    """Names with spaces are quoted."""
    columns = {"text": ["title", "the body"], "id": "key"}
    reading = {"format": "csv", "delimiter": ";", "encoding": "cp850"}
    run = {"columns": columns, **reading, "inputs": [{"name": "a.csv"}]}
    command = audit_command(newsroom().report["settings"], run)
    options = "--text-column title --text-column 'the body' --format csv --delimiter ';' --encoding cp850"
    assert f"{options} -o audit.json" in command


def test_settings_that_only_python_has_give_a_python_call() -> None:
    """Sets, tables in memory, and hashes of another size."""
    sets = mw.ShingleSets.from_sets([{1, 2}])
    assert command_of(sets) == f"{PYTHON}, shingle='set')"
    custom = mw.Shingler("word:3", bag=True, lowercase=False, hash_bits=32)
    shingle = "shingle=mw.Shingler('word:3', bag=True, lowercase=False, hash_bits=32)"
    assert command_of(["one"], shingle=custom, threshold=0.7) == f"{PYTHON}, threshold=0.7, {shingle})"
    assert audit_command(mw.dedup(["one"]).report["settings"], {"inputs": [{"name": ""}]}) == f"{PYTHON})"


def test_the_python_call_writes_an_audit_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ["One two three four five.", "One two three four five six.", "Seven eight nine."]
    custom = mw.Shingler("word:2", lowercase=False, hash_bits=32)
    result = eval(command_of(texts, shingle=custom, threshold=0.6), {"mw": mw, "INPUT": texts})
    assert (result.recall.found, result.recall.of) == (1, 1)
    mw.dedup(texts, "clean", shingle=custom, threshold=0.6)
    write_report("clean", audit="audit.json")
    assert "1 of 1 pair found" in re.sub("<[^>]+>", "", Path("clean/report.html").read_text())


def plain(markup: str) -> str:
    """Return the text of markup."""
    return unescape(re.sub("<[^>]+>", "", markup))


@pytest.mark.posix
@pytest.mark.parametrize(
    "settings", [{"shingle": "word:3", "threshold": 0.55}, {"recall": 0.9, "seed": 3, "bag": True}]
)
def test_both_steps_add_an_audit_to_the_page(tmp_path: Path, settings: dict[str, Any]) -> None:
    """The two commands of the page are run with the names of input and output filled in."""
    mw.dedup(str(NEWSROOM), tmp_path / "clean", **settings)
    page = tmp_path / "clean/report.html"
    steps = re.search(
        r'<ol class="steps"><li><code>(.*?)</code></li><li><code>(.*?)</code></li></ol>', page.read_text()
    )
    assert steps is not None
    for step in steps.groups():
        words = [{"INPUT…": str(NEWSROOM), "OUT": "clean"}.get(word, word) for word in shlex.split(plain(step))]
        assert words.pop(0) == "minwise"
        done = run(tmp_path, *words)
        assert done.status == OK, done.err
    recall = json.loads((tmp_path / "audit.json").read_text())["recall"]
    assert f"of {recall['pairs']} pairs found" in page.read_text()
    assert "Not measured." not in page.read_text()
