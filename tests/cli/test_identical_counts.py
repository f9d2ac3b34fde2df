"""Identical documents: one definition, and one number in the summary, the report and the audit at every threshold."""

import json
import re
from pathlib import Path

import pytest
from support.commands import OK, run

import minwise as mw

WORDS = [f"word{number}" for number in range(60)]
LONG = " ".join(WORDS)


def corpus() -> list[str]:
    """Return documents of which three have the tokens of an earlier one, two of them of one that may be removed."""
    near, far = f"{LONG} changed", " ".join([*WORDS[:30], *(f"other{number}" for number in range(30))])
    return [LONG, near, near, near.upper(), far, f"{far}!", "alone on its page", ""]


@pytest.mark.parametrize("group", ["star", "components"])
@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8, 0.95, 1.0])
def test_number_of_identical_documents_is_the_same_everywhere(tmp_path: Path, threshold: float, group: str) -> None:
    """Identical is what has the same tokens as an earlier document, whatever happens to that one."""
    rows = [json.dumps({"id": row, "text": text}) for row, text in enumerate(corpus())]
    (tmp_path / "in.jsonl").write_text("\n".join(rows) + "\n")
    options = ("--threshold", str(threshold))
    done = run(tmp_path, "dedup", "in.jsonl", "-o", "out", "--group", group, *options)
    assert done.status == OK
    shown = re.search(r"\((\d+) identical, \d+ similar\)", done.out)
    assert shown is not None
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    page = (tmp_path / "out" / "report.html").read_text()
    figure = re.search(r'id="figure-identical".*?<data value="(\d+)"', page, re.DOTALL)
    assert figure is not None
    audit = json.loads(run(tmp_path, "audit", "in.jsonl", "--json", *options).out)
    numbers = [int(shown[1]), report["counts"]["removed_identical"], int(figure[1]), audit["identical"]]
    assert numbers == [3, 3, 3, 3]


def test_rethreshold_does_not_change_the_number() -> None:
    result = mw.dedup(corpus(), threshold=0.2)
    counts = [result.rethreshold(threshold).report["counts"] for threshold in (0.3, 0.6, 0.9, 1.0)]
    assert [count["removed_identical"] for count in counts] == [3] * 4
