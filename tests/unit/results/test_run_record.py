"""Run record: peak memory before the run is separate from that of the run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import minwise as mw
from minwise.results import report_data


@pytest.fixture
def peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the peak memory grow by one with every call."""
    growing: Iterator[int] = iter(range(1000, 2000))
    monkeypatch.setattr(report_data, "peak_memory_bytes", lambda: next(growing))


def run_json(folder: Path) -> dict[str, Any]:
    """Return the content of run.json."""
    return dict(orjson.loads((folder / "run.json").read_bytes()))


@pytest.mark.usefixtures("peaks")
def test_the_peak_before_is_measured_at_the_start(tmp_path: Path) -> None:
    """It is measured once, before anything is read; a result that is written again keeps it."""
    result = mw.dedup(["one two three", "four five six"], tmp_path / "one")
    result.write(tmp_path / "two")
    runs = [run_json(tmp_path / name) for name in ("one", "two")]
    assert [run["peak_memory_before_bytes"] for run in runs] == [1000, 1000]
    assert 1000 < runs[0]["peak_memory_bytes"] < runs[1]["peak_memory_bytes"]
