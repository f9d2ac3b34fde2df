"""``minwise compare`` as an installed program: output, exit codes and error lines."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.piped import run_with_closed_output

import minwise as mw
from minwise.sketches import Plan

MINWISE = str(Path(sys.executable).with_name("minwise"))
LEFT = "The ferry leaves the old harbour at six in the morning, and the gulls follow it out to sea.\n"
RIGHT = "The ferry leaves the old harbour at eight in the morning, and the gulls follow it out to sea.\n"
OK, FAILURE, USAGE, INPUT_OUTPUT, INTERRUPTED = 0, 1, 2, 74, 130


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the directory with the files, in which the command runs."""
    for name, text in {"left.txt": LEFT, "right.txt": RIGHT, "empty.txt": "", "漁.txt": "港の朝は早い"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "binary.dat").write_bytes(b"good \xff\xfe")
    (tmp_path / "folder").mkdir()
    return tmp_path


def run(folder: Path, *arguments: str | bytes, **options: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401
    """Run the command in a directory; it never prints a traceback."""
    done = subprocess.run(
        [MINWISE, *arguments], cwd=folder, capture_output=True, encoding="utf-8", timeout=60, check=False, **options
    )
    assert "Traceback" not in done.stderr
    return done


def expect_failure(folder: Path, status: int, *arguments: str, **options: Any) -> str:  # noqa: ANN401
    """Return the one line on standard error of a command that fails and prints nothing on standard output."""
    done = run(folder, *arguments, **options)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert done.stderr.startswith("minwise: ")
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith("\n")
    return done.stderr


def test_the_summary_has_a_line_per_result(folder: Path) -> None:
    done = run(folder, "compare", "left.txt", "right.txt")
    assert (done.returncode, done.stderr) == (OK, "")
    expected = mw.compare(LEFT, RIGHT)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == f"similarity {expected.similarity:.4f} exact Jaccard of word:5 shingles"
    assert lines[1].startswith(f"estimate {expected.estimate.value:.4f}")
    assert f"{expected.estimate.low:.4f} to {expected.estimate.high:.4f} at 95%" in lines[1]
    assert lines[2] == f"shared {expected.shared} shingles"
    assert lines[3].startswith(f"only in left.txt {expected.only_left} shingles; {expected.containment_left:.1%}")
    assert lines[4].startswith(f"only in right.txt {expected.only_right} shingles; {expected.containment_right:.1%}")
    assert lines[5] == "near-duplicates no, below the threshold 0.8"
    chance = f"at this similarity {expected.chance:.1%} of pairs are found"
    assert lines[6] == f"candidates no, none of 26 bands fires; {chance}"
    assert lines[7] == ""


@pytest.mark.parametrize(
    ("options", "shingler", "scheme"),
    [
        ([], mw.Shingler(), mw.FastSketch()),
        (["--shingle", "char:9"], mw.Shingler("char:9"), mw.FastSketch()),
        (["--shingle=byte:8", "--bag"], mw.Shingler("byte:8", bag=True), mw.FastSketch()),
        (["--scheme", "minhash", "--slots", "64"], mw.Shingler(), mw.MinHash(slots=64)),
        (["--seed", "7"], mw.Shingler(seed=7), mw.FastSketch(seed=7)),
        (["--full"], mw.Shingler(), mw.FastSketch()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_json_equals_the_library(folder: Path, options: list[str], shingler: mw.Shingler, scheme: Any) -> None:  # noqa: ANN401
    done = run(folder, "compare", "left.txt", "right.txt", "--json", *options)
    assert (done.returncode, done.stderr) == (OK, "")
    found = json.loads(done.stdout)
    expected = json.loads(
        json.dumps(
            mw.compare(LEFT, RIGHT, shingler=shingler, scheme=scheme, plan=mw.plan(slots=scheme.slots)).to_dict()
        )
    )
    assert (found.pop("a"), found.pop("b")) == ("left.txt", "right.txt")
    assert found.pop("settings").items() >= shingler.settings.items()
    assert found == expected


@pytest.mark.parametrize(
    ("options", "plan"),
    [
        (["--threshold", "0.5"], mw.plan(0.5)),
        (["--threshold", "0.7", "--recall", "0.9"], mw.plan(0.7, 0.9)),
        (["--bands", "4", "--rows", "2"], mw.plan(bands=4, rows=2)),
        (["--slots", "64"], mw.plan(slots=64)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_choose_the_plan(folder: Path, options: list[str], plan: Plan) -> None:
    found = json.loads(run(folder, "compare", "left.txt", "right.txt", "--json", *options).stdout)
    expected = mw.compare(LEFT, RIGHT, plan=plan)
    assert found["plan"] == plan.to_dict()
    assert (found["bands_fired"], found["chance"]) == (list(expected.bands_fired), expected.chance)


def test_json_contains_scheme_and_slots_of_the_estimate(folder: Path) -> None:
    found = json.loads(run(folder, "compare", "left.txt", "right.txt", "--json", "--slots", "64").stdout)
    stated = json.dumps(found)
    assert '"fast"' in stated
    assert '"slots": 64' in stated


@pytest.mark.parametrize(("a", "b"), [("-", "right.txt"), ("left.txt", "-")])
def test_a_dash_is_standard_input(folder: Path, a: str, b: str) -> None:
    done = run(folder, "compare", a, b, "--json", input=LEFT if a == "-" else RIGHT)
    assert done.returncode == OK
    assert json.loads(done.stdout)["similarity"] == mw.compare(LEFT, RIGHT).similarity


def test_two_dashes_are_refused(folder: Path) -> None:
    done = run(folder, "compare", "-", "-", input="")
    assert done.returncode == USAGE
    assert "only one of A and B may be -" in done.stderr


def test_a_file_compared_with_itself_has_similarity_1(folder: Path) -> None:
    found = json.loads(run(folder, "compare", "left.txt", "left.txt", "--json").stdout)
    assert (found["similarity"], found["estimate"]["value"], found["only_left"]) == (1, 1, 0)


@pytest.mark.parametrize("other", ["empty.txt", "left.txt"])
def test_an_empty_file_has_similarity_0(folder: Path, other: str) -> None:
    done = run(folder, "compare", "empty.txt", other, "--json")
    assert done.returncode == OK
    assert json.loads(done.stdout)["similarity"] == 0


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_names_and_texts_beyond_ascii_work_in_the_c_locale(folder: Path, options: list[str]) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment.pop("PYTHONIOENCODING", None)
    done = run(folder, "compare", "漁.txt", "漁.txt", *options, env=environment)
    assert done.returncode == OK, done.stderr
    assert "1.0" in done.stdout


@pytest.mark.parametrize("name", ["[red]a.txt", "a[bold].txt", "x[/b]"])
def test_names_that_look_like_markup_are_printed_unchanged(folder: Path, name: str) -> None:
    (folder / "x[").mkdir()
    (folder / name).write_text(LEFT, encoding="utf-8")
    done = run(folder, "compare", name, "right.txt")
    assert done.returncode == OK
    assert f"only in {name}" in done.stdout


def test_a_file_name_may_be_invalid_utf8(folder: Path) -> None:
    name = b"\xe9.txt"
    (Path(os.fsdecode(os.fsencode(folder) + b"/" + name))).write_text(LEFT, encoding="utf-8")
    done = run(folder, "compare", name, "right.txt", "--json")
    assert done.returncode == OK
    assert json.loads(done.stdout)["similarity"] == mw.compare(LEFT, RIGHT).similarity
    shown = subprocess.run([MINWISE, "compare", name, "right.txt"], cwd=folder, capture_output=True, check=False)
    assert (shown.returncode, shown.stderr) == (OK, b"")


@pytest.mark.parametrize(
    ("name", "words"),
    [("nowhere.txt", "No such file or directory"), ("folder", "Is a directory"), ("left.txt/x", "Not a directory")],
)
@pytest.mark.parametrize("side", [0, 1])
def test_unreadable_files_are_reported_with_the_reason(folder: Path, name: str, words: str, side: int) -> None:
    names = ["right.txt", "right.txt"]
    names[side] = name
    assert expect_failure(folder, INPUT_OUTPUT, "compare", *names) == f"minwise: {name}: {words}\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_reported(folder: Path) -> None:
    (folder / "left.txt").chmod(0)
    assert "left.txt: Permission denied" in expect_failure(folder, INPUT_OUTPUT, "compare", "left.txt", "right.txt")


@pytest.mark.parametrize("side", [0, 1])
def test_invalid_utf8_is_reported_with_file_and_byte(folder: Path, side: int) -> None:
    names = ["right.txt", "right.txt"]
    names[side] = "binary.dat"
    line = expect_failure(folder, FAILURE, "compare", *names)
    assert "binary.dat" in line
    assert "is not valid UTF-8 at byte 5" in line
    assert "document" not in line


def test_invalid_utf8_on_standard_input_is_reported(folder: Path) -> None:
    with (folder / "binary.dat").open("rb") as file:
        line = expect_failure(folder, FAILURE, "compare", "left.txt", "-", stdin=file)
    assert "is not valid UTF-8 at byte 5" in line
    assert "standard input" in line or "-:" in line


def test_byte_shingles_accept_any_bytes(folder: Path) -> None:
    assert run(folder, "compare", "binary.dat", "binary.dat", "--shingle", "byte:2").returncode == OK


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shingle", "word"], "shingle must be word:N, char:N or byte:N"),
        (["--shingle", "word:0"], "got 'word:0'"),
        (["--shingle", ""], "shingle must be"),
        (["--slots", "0"], "slots must be a whole number from 1 to 16384, got 0"),
        (["--threshold", "0"], "threshold must be a number above 0 and at most 1, got 0.0"),
        (["--recall", "1"], "recall must be a number between 0 and 1, both excluded, got 1.0"),
        (["--bands", "4"], "bands and rows must be given together, got bands 4 without rows"),
        (["--bands", "4", "--rows", "0"], "rows must be a whole number from 1 to 16384, got 0"),
        (["-o", ""], "output must be a path, got ''"),
        (["-o", "./no-a"], "output must not be one of the files compared, got ./no-a"),
        (["--slots", "16385"], "slots must be a whole number from 1 to 16384, got 16385"),
        (["--seed", "-1"], "seed must be a whole number from 0 to"),
        (["--seed", str(2**64)], "seed must be a whole number from 0 to"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_settings_are_reported_before_files_are_read(folder: Path, options: list[str], message: str) -> None:
    assert message in expect_failure(folder, USAGE, "compare", "no-a", "no-b", *options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "left.txt", "right.txt", "--frobnicate"], "--frobnicate"),
        (["compare", "left.txt", "right.txt", "--slots", "many"], "--slots"),
        (["compare", "left.txt", "right.txt", "--scheme", "guess"], "'guess'"),
        (["compare", "left.txt"], "Missing argument 'B'"),
        (["compare", "left.txt", "right.txt", "third.txt"], "third.txt"),
        (["compair"], "compair"),
        (["--frobnicate"], "--frobnicate"),
    ],
    ids=" ".join,
)
def test_usage_errors_mention_help(folder: Path, arguments: list[str], message: str) -> None:
    done = run(folder, *arguments)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert message in done.stderr
    assert "--help" in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["compare", "--help"], ["compare", "-h"]], ids=" ".join)
def test_help_goes_to_standard_output(folder: Path, arguments: list[str]) -> None:
    done = run(folder, *arguments)
    assert (done.returncode, done.stderr) == (OK, "")
    assert done.stdout.startswith("Usage: minwise")


def test_version_is_that_of_the_package(folder: Path) -> None:
    done = run(folder, "--version")
    assert (done.returncode, done.stdout.split()[-1]) == (OK, mw.__version__)


def wait_until_reading(process: subprocess.Popen[bytes]) -> None:
    """Wait until the command reads its standard input."""
    assert process.stdin
    process.stdin.write(b"x" * 200_000)  # more than a pipe buffers, so that this returns only when it is read
    process.stdin.flush()
    time.sleep(0.1)


def test_an_interrupt_exits_with_130_and_one_line(folder: Path) -> None:
    with subprocess.Popen(
        [MINWISE, "compare", "-", "right.txt"],
        cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        wait_until_reading(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == INTERRUPTED
        assert process.stdout
        assert process.stderr
        assert process.stdout.read() == b""
        assert process.stderr.read() == b"minwise: interrupted\n"


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_closed_pipe_prints_no_error(folder: Path, options: list[str]) -> None:
    done = run_with_closed_output(folder, "compare", "left.txt", "right.txt", *options)
    assert done.stderr == b""
    assert done.returncode in (FAILURE, 128 + signal.SIGPIPE)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_full_disk_is_reported_in_one_line(folder: Path, options: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [MINWISE, "compare", "left.txt", "right.txt", *options],
            cwd=folder, stdout=full, stderr=subprocess.PIPE, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == INPUT_OUTPUT
    assert done.stderr.count("\n") == 1
    line = json.loads(done.stderr)["error"]["message"] if options else done.stderr.removeprefix("minwise: ")
    assert line.strip().endswith(": No space left on device")


@pytest.mark.parametrize(
    ("redirect", "statuses"),
    [("<&-", [INPUT_OUTPUT]), (">&-", [OK, INPUT_OUTPUT])],
    ids=["no standard input", "no standard output"],
)
def test_closed_standard_streams_cause_no_traceback(folder: Path, redirect: str, statuses: list[int]) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{MINWISE}" compare - right.txt {redirect}'],
        cwd=folder, input=LEFT, capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode in statuses
    assert done.stderr.count("\n") <= 1


def test_output_in_a_pipe_is_not_wrapped_and_has_no_trailing_spaces(folder: Path) -> None:
    done = run(folder, "compare", "left.txt", "right.txt", env={**os.environ, "COLUMNS": "20"})
    lines = done.stdout.splitlines()
    assert lines.index("") == 7
    assert lines == [line.rstrip() for line in lines]
