"""Log lines of stages, errors as JSON, usage errors on one line, and completion."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from support.commands import INPUT_OUTPUT, MINWISE, OK, USAGE, Job, one_line, run

STAGES = ["read and sketch", "band", "shingle candidates", "verify", "write"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with six texts, of which three are distinct."""
    rows = [{"id": f"d{n}", "text": f"seven words of text number {n % 3} here"} for n in range(6)]
    (tmp_path / "docs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def logged(folder: Path, *options: str) -> tuple[str, str]:
    """Return both streams of a deduplication, as a pipe gets them."""
    done = subprocess.run(
        [MINWISE, "dedup", "docs.jsonl", "-o", "out", "--overwrite", *options],
        cwd=folder, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    return done.stdout, done.stderr


def test_without_a_terminal_each_stage_is_a_line_on_standard_error(folder: Path) -> None:
    out, err = logged(folder)
    assert [line.split(": ")[1] for line in err.splitlines()] == STAGES
    assert re.match(r"minwise: read and sketch: 6 documents in \d+\.\d s\n", err)
    assert all(line.endswith(" s") for line in err.splitlines())
    assert "minwise: " not in out


@pytest.mark.parametrize("options", [["--quiet"], ["--json"]], ids=" ".join)
def test_quiet_and_json_log_nothing(folder: Path, options: list[str]) -> None:
    assert logged(folder, *options)[1] == ""


def test_verbose_logs_the_start_of_stages_too_also_with_json(folder: Path) -> None:
    out, err = logged(folder, "--json", "-v")
    assert re.search(r"minwise: write: started, 6 documents\nminwise: write: 6 documents in \d+\.\d s\n", err)
    assert [line.split(": ")[1] for line in err.splitlines()] == [name for name in STAGES for _ in range(2)]
    assert list(json.loads(out)["run"]["stages"]) == STAGES


def test_log_format_json_makes_each_line_an_object(folder: Path) -> None:
    events = [json.loads(line) for line in logged(folder, "--log-format", "json")[1].splitlines()]
    assert [event["stage"] for event in events] == STAGES
    assert set(events[0]) == {"event", "stage", "count", "unit", "seconds"}
    assert (events[0]["event"], events[0]["count"], events[0]["unit"]) == ("stage", 6, "documents")
    first = json.loads(logged(folder, "--log-format", "json", "-v")[1].splitlines()[0])
    assert first == {"event": "start", "stage": "read and sketch", "total": None, "unit": "documents"}


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["dedup", "nowhere.jsonl", "-o", "out", "--json"], INPUT_OUTPUT, "nowhere.jsonl: No such file or directory"),
        (["dedup", "docs.jsonl", "-o", "out", "--threshold", "2", "--json"], USAGE, "--threshold must be"),
        (["dedup", "--json"], USAGE, "Missing argument 'INPUTS...'; see minwise dedup --help"),
        (["dedup", "docs.jsonl", "-o", "out", "--threshold", "2", "--log-format", "json"], USAGE, "--threshold must"),
        (["index", "stats", "nowhere.mw", "--json"], INPUT_OUTPUT, "nowhere.mw"),
    ],
)
def test_errors_are_json_if_the_output_is(folder: Path, arguments: list[str], status: int, message: str) -> None:
    done = run(folder, *arguments)
    assert (done.status, done.out) == (status, "")
    error = json.loads(done.err)["error"]
    assert error["message"].startswith(message)
    assert error["exit_status"] == status


def test_json_in_a_settings_file_makes_errors_json_too(folder: Path) -> None:
    (folder / "minwise.toml").write_text("json = true\n")
    done = run(folder, "dedup", "nowhere.jsonl", "-o", "out")
    assert json.loads(done.err.splitlines()[-1])["error"]["exit_status"] == INPUT_OUTPUT


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dedup", "a", "-o", "b", "--overwrit"], "No such option '--overwrit'"),
        (["dedpu"], "No such command 'dedpu'. Did you mean 'dedup'? See minwise --help"),
        (["index", "crate"], "No such command 'crate'. Did you mean 'create'? See minwise index --help"),
        (["frobnicate"], "No such command 'frobnicate'. Commands are: dedup,"),
        (["dedup", "a", "-o", "b", "-v", "--quiet"], "--quiet and --verbose exclude each other, got both; see"),
    ],
)
def test_usage_errors_are_one_line_with_a_proposal(folder: Path, arguments: list[str], message: str) -> None:
    assert one_line(run(folder, *arguments), USAGE).startswith(f"minwise: {message}")


def test_misspelt_option_is_told_the_right_one(folder: Path) -> None:
    assert "'--threshold'" in one_line(run(folder, "dedup", "a", "-o", "b", "--treshold", "1"), USAGE)


@pytest.mark.parametrize("words", [[], ["index"], ["vectors"]], ids=" ".join)
def test_group_without_a_command_prints_its_help(folder: Path, words: list[str]) -> None:
    done = run(folder, *words)
    assert (done.status, done.err) == (OK, "")
    assert done.out == run(folder, *words, "--help").out


def test_shell_completes_commands_options_and_choices(folder: Path) -> None:
    for words, expected in (("minwise ded", "plain,dedup"), ("minwise dedup --thres", "plain,--threshold")):
        environment = {"_MINWISE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        done = subprocess.run(
            [MINWISE], cwd=folder, capture_output=True, encoding="utf-8", check=False, env={**os.environ, **environment}
        )
        assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_interrupted_add_continues_with_the_same_command(folder: Path) -> None:
    assert run(folder, "index", "create", "an.mw").status == OK
    done = run(folder, "index", "add", "an.mw", "docs.jsonl", job=Job(stage_trap=("add", "interrupt")))
    assert done.err == "minwise: interrupted; run the same command again to continue\n"


def test_faults_of_an_index_are_objects_in_a_json_log(folder: Path) -> None:
    assert run(folder, "index", "create", "an.mw").status == OK
    (folder / "docs.jsonl").write_text('{"id": "a", "text": "seven words of text number one here"}\n{"id": "b"}\n')
    done = run(folder, "index", "add", "an.mw", "docs.jsonl", "--log-format", "json")
    events = [json.loads(line) for line in done.err.splitlines()]
    assert [event["event"] for event in events] == ["fault", "stage"]
    assert "docs.jsonl: row 1" in events[0]["message"]


@pytest.mark.parametrize("words", [["compact"], ["backup", "copy.mw"], ["export", "all.parquet"]], ids=" ".join)
def test_maintenance_of_an_index_is_a_stage(folder: Path, words: list[str]) -> None:
    assert run(folder, "index", "create", "an.mw").status == OK
    done = run(folder, "index", words[0], "an.mw", *words[1:], "-v")
    assert (done.status, done.err) == (OK, f"minwise: {words[0]}: started\n")
    assert done.stages[0].startswith(f"minwise: {words[0]}: 0.")


def test_report_and_token_print_json(folder: Path) -> None:
    assert run(folder, "dedup", "docs.jsonl", "-o", "out").status == OK
    shown = json.loads(run(folder, "report", "out", "--json").out)
    assert shown == {"page": "out/report.html", "notes": []}
    made = json.loads(run(folder, "token", "tokens.txt", "--read", "--json").out)
    assert (set(made), made["rights"]) == ({"token", "rights", "file"}, ["read"])


def test_a_run_goes_on_if_the_reader_of_its_log_is_gone(folder: Path) -> None:
    """As in ``minwise dedup … 2>&1 | head -1``; the kept rows are written all the same."""
    with subprocess.Popen(
        [MINWISE, "dedup", "docs.jsonl", "-o", "out"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr
        process.stderr.close()
        assert process.wait(timeout=60) == OK
    assert (folder / "out" / "report.json").is_file()
