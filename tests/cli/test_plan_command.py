"""`minwise plan`: output, plot and errors."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import minwise as mw
from minwise.cli.plan import plan as plan_command
from minwise.errors import ConfigError
from minwise.sketches import Plan


def run(*arguments: str, **options: Any) -> Result:  # noqa: ANN401
    """Run the command in this process."""
    return CliRunner().invoke(plan_command, arguments, **options)


def lines(*arguments: str) -> list[str]:
    """Return the lines that a successful run prints, with single spaces."""
    done = run(*arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


def rejection(*arguments: str) -> str:
    """Return the message of the library's error, which the command group prints; check that nothing was printed."""
    done = run(*arguments)
    assert isinstance(done.exception, ConfigError)
    assert done.stdout == ""
    assert "\n" not in str(done.exception)
    return str(done.exception)


def test_default_plan_is_printed_with_its_curve() -> None:
    """The threshold is marked in the curve."""
    found = lines()
    expected = mw.plan()
    assert found[:6] == [
        "bands 26",
        "rows 8",
        "slots used 208 of 256",
        "recall 0.9916 at the threshold 0.8; at least 0.99 was wanted",
        f"false candidates {expected.false_candidate_rate:.4f} of pairs spread evenly below the threshold, expected",
        "steepest 0.6655 about where the curve climbs fastest",
    ]
    assert found[6:8] == ["", "similarity probability"]
    assert [line.split()[:2] for line in found[8:]] == [[f"{s:.2f}", f"{p:.4f}"] for s, p in expected.table()]
    assert [line.split()[0] for line in found if line.endswith(" threshold")] == ["0.80"]


def test_recall_of_a_given_layout_is_printed() -> None:
    found = lines("--bands", "20", "--rows", "5")
    assert found[:4] == ["bands 20", "rows 5", "slots used 100", "recall 0.9996 at the threshold 0.8"]


def test_threshold_between_the_steps_has_its_own_line() -> None:
    found = lines("--threshold", "0.725")
    marked = next(number for number, line in enumerate(found) if line.endswith(" threshold"))
    assert [found[number].split()[0] for number in (marked - 1, marked, marked + 1)] == ["0.70", "0.725", "0.75"]
    assert len(found) == 8 + 22


def test_bars_are_proportional_to_the_probability() -> None:
    """Forty characters for 1, none for 0."""
    bars = [line.count("#") for line in lines("--bands", "1", "--rows", "1")[8:]]
    assert bars == [2 * step for step in range(21)]


def test_output_to_a_pipe_is_plain_ascii() -> None:
    """Without colours and trailing spaces, for any COLUMNS; a terminal gets block characters."""
    done = run(env={"COLUMNS": "20"})
    assert done.stdout.isascii()
    assert done.stdout.splitlines() == [line.rstrip() for line in done.stdout.splitlines()]
    assert "\x1b" not in done.stdout
    assert "█" in run(env={"FORCE_COLOR": "1", "COLUMNS": "100"}).stdout


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], mw.plan()),
        (["--threshold", "0.7", "--recall", "0.95", "--slots", "128"], mw.plan(0.7, 0.95, slots=128)),
        (["--bands", "20", "--rows", "5"], mw.plan(bands=20, rows=5)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_json_equals_the_plan_of_the_library(options: list[str], expected: Plan) -> None:
    done = run("--json", *options)
    assert (done.exit_code, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [tuple(row.values()) for row in found.pop("table")] == expected.table()
    assert found == expected.to_dict()


def test_plot_equals_that_of_the_library(tmp_path: Path) -> None:
    """Its path is printed; an existing file is replaced."""
    path, other = tmp_path / "curve.svg", tmp_path / "other.svg"
    path.write_text("old", encoding="utf-8")
    mw.plan().plot(other)
    assert f"plot {path}" in lines("--plot", str(path))
    assert path.read_bytes() == other.read_bytes()
    assert sorted(tmp_path.iterdir()) == [path, other]


def test_plot_path_is_printed_unchanged(tmp_path: Path) -> None:
    path = str(tmp_path / "[bold]curve.svg")
    assert json.loads(run("--json", "--plot", path).stdout)["plot"] == path
    assert f"plot {path}" in lines("--plot", path)


def test_plot_must_be_an_svg_file(tmp_path: Path) -> None:
    path = tmp_path / "c.png"
    assert rejection("--plot", str(path)).startswith("plot must be a file that ends in .svg, got ")
    assert not path.exists()


def test_nothing_is_printed_if_the_plot_cannot_be_written(tmp_path: Path) -> None:
    """A printed plan would look like success."""
    done = run("--plot", str(tmp_path / "nowhere" / "curve.svg"))
    assert isinstance(done.exception, FileNotFoundError)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bands", "4"], "bands and rows must be given together, got bands 4 without rows"),
        (["--rows", "4"], "bands and rows must be given together, got rows 4 without bands"),
        (["--bands", "1000", "--rows", "20"], "bands·rows must be at most 16384 slots, got 1000·20 = 20000"),
        (["--threshold", "0"], "threshold must be a number above 0 and at most 1, got 0.0"),
        (["--threshold", "nan"], "threshold must be a number above 0 and at most 1, got nan"),
        (["--recall", "1"], "recall must be a number between 0 and 1, both excluded, got 1.0"),
        (["--slots", "0"], "slots must be a whole number from 1 to 16384, got 0"),
        (["--threshold", "0.01"], "at least 459 slots reach it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_settings_are_rejected_by_the_library(arguments: list[str], message: str) -> None:
    assert message in rejection(*arguments)


@pytest.mark.parametrize("arguments", [["--threshold", "high"], ["--frobnicate"], ["extra"]], ids=" ".join)
def test_wrong_arguments_are_a_usage_error(arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert arguments[-1] in done.stderr


def test_help_shows_defaults() -> None:
    help_text = run("--help").stdout
    assert "Choose bands and rows for a threshold" in help_text
    for default in ("0.8", "0.99", "256"):
        assert default in help_text.partition("Similarity:")[2]
