"""Facts of a run: what the process did before is told from what the run did."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import minwise as mw
from minwise.results import report_data as run_facts


@pytest.fixture
def peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose peak grows by one each time it is asked for."""
    growing: Iterator[int] = iter(range(1000, 2000))
    monkeypatch.setattr(run_facts, "_peak_memory_bytes", lambda: next(growing))


def run_of(folder: Path) -> dict[str, Any]:
    """What run.json says."""
    return dict(orjson.loads((folder / "run.json").read_bytes()))


@pytest.mark.usefixtures("peaks")
def test_the_peak_before_is_that_of_the_beginning(tmp_path: Path) -> None:
    """It is noted once, before anything is read; a result that is written again later keeps it."""
    result = mw.dedup(["one two three", "four five six"], tmp_path / "one")
    result.write(tmp_path / "two")
    runs = [run_of(tmp_path / name) for name in ("one", "two")]
    assert [run["peak_memory_before_bytes"] for run in runs] == [1000, 1000]
    assert 1000 < runs[0]["peak_memory_bytes"] < runs[1]["peak_memory_bytes"]
