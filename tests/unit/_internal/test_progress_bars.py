"""The setting ``progress``: bars, callbacks and receivers, in every call that takes it."""

import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from support.expect import error_message

import minwise as mw
from minwise._internal.progress_bars import NotebookBars, ProgressBars
from minwise.errors import ConfigError
from minwise.progress import NullProgress, ProgressSetting

ROWS = [
    {"id": f"n{number}", "text": f"the ferry of {number} o'clock leaves from the north pier"} for number in range(30)
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with an input file and an output of ``dedup``."""
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    mw.dedup("in.jsonl", "run")
    return tmp_path


def with_index(call: str) -> Callable[..., object]:
    def run(**settings: Any) -> object:  # noqa: ANN401 - settings
        with mw.Index.create("index", seed=1) as index:
            return list(getattr(index, call)(ROWS, **settings) or ())

    return run


CALLS: dict[str, Callable[..., object]] = {
    "dedup": lambda **settings: mw.dedup(ROWS, **settings),
    "dedup to a directory": lambda **settings: mw.dedup("in.jsonl", "out", **settings),
    "pairs": lambda **settings: mw.pairs(ROWS, **settings),
    "write_pairs": lambda **settings: mw.write_pairs(ROWS, "pairs.csv", **settings),
    "clusters": lambda **settings: mw.clusters(ROWS, **settings),
    "write_clusters": lambda **settings: mw.write_clusters(ROWS, "clusters.csv", **settings),
    "audit": lambda **settings: mw.audit(ROWS, **settings),
    "restore": lambda **settings: mw.restore("run", "back", **settings),
    "Index.add_from": with_index("add_from"),
    "Index.add_stream": with_index("add_stream"),
    "Index.query_from": with_index("query_from"),
}
ALL_CALLS = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@ALL_CALLS
def test_a_callback_gets_stage_done_total_and_unit(call: Callable[..., object]) -> None:
    events: list[tuple[str, int, int | None, str]] = []
    call(progress=lambda *event: events.append(event))
    assert events
    for stage, done, total, unit in events:
        assert isinstance(stage, str)
        assert isinstance(unit, str)
        assert total is None or 0 <= done <= total


def test_the_amount_of_a_callback_begins_at_nothing_and_ends_at_all() -> None:
    seen: dict[str, list[int]] = {}
    totals: dict[str, int | None] = {}

    def note(stage: str, done: int, total: int | None, unit: str) -> None:
        seen.setdefault(stage, []).append(done)
        totals[stage] = total

    mw.dedup("in.jsonl", "out", progress=note)
    assert list(seen) == ["read and sketch", "band", "shingle candidates", "verify", "write"]
    assert all(amounts[0] == 0 and amounts == sorted(amounts) for amounts in seen.values())
    assert seen["write"][-1] == totals["write"] == len(ROWS)


def test_an_exception_of_a_callback_ends_the_call() -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mw.dedup(ROWS, progress=stop)


@ALL_CALLS
def test_true_shows_a_bar_of_each_stage_on_standard_error(
    call: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    call(progress=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "elapsed 0:0" in printed.err


@ALL_CALLS
@pytest.mark.parametrize("value", [False, None, NullProgress()], ids=["False", "None", "receiver"])
def test_nothing_is_shown_otherwise(
    call: Callable[..., object], value: ProgressSetting, capsys: pytest.CaptureFixture[str]
) -> None:
    call(progress=value)
    assert capsys.readouterr() == ("", "")


@ALL_CALLS
def test_another_value_is_refused(call: Callable[..., object]) -> None:
    message = error_message(ConfigError, lambda: call(progress="yes"))
    assert message.startswith("progress must be True, False, a function of (stage, done, total, unit)")
    assert "'yes'" in message


def test_vectors_accept_every_kind_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    search = mw.EuclideanLSH(width=1.0, hashes=2, tables=2).fit(np.eye(4, dtype=np.float32))
    events: list[str] = []
    search.pairs(0.5, progress=lambda stage, *_: events.append(stage))
    assert events
    search.pairs(0.5, progress=True)
    assert "elapsed" in capsys.readouterr().err
    error_message(ConfigError, lambda: search.pairs(0.5, progress=3))  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_bar_fits_the_terminal_and_labels_both_times(width: int) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width, color_system=None, legacy_windows=False)
    with ProgressBars(console).stage("shingle candidates", 100_000, "documents") as stage:
        for _ in range(3):
            stage.advance(33_333)
            time.sleep(0.01)  # the rate is known after two steps at different times
    drawn = screen.getvalue().split("\n")[0].split("\r")[-1]
    line = max(drawn.split("\x1b[2K"), key=len).rstrip()
    assert "99,999/100,000" in line
    assert "elapsed 0:00, remaining 0:0" in line
    assert len(line) <= width
    assert "…" not in line
    assert ("documents/s" in line) == (width > 120)


def test_notebook_bars_are_html_with_counts_and_times(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Display:
        """Stand-in of IPython.display, which is not a dependency."""

        @staticmethod
        def display(stage: Any, *, display_id: bool) -> "Display":  # noqa: ANN401 - any object with an HTML form
            return Display()

        def update(self, stage: Any) -> None:  # noqa: ANN401 - any object with an HTML form
            shown.append(stage._repr_html_())

    monkeypatch.setitem(sys.modules, "IPython.display", Display)
    with NotebookBars().stage("<verify>", 40, "pairs") as stage:
        stage.advance(10)
        stage.advance_to(30)
    assert len(shown) == 1  # two quick steps are drawn once, at the end
    assert 'max="40" value="30"' in shown[0]
    assert "&lt;verify&gt;: 30/40 pairs, elapsed 0:00, remaining 0:00" in shown[0]
