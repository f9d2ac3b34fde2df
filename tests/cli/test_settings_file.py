"""Settings files: --config, ./minwise.toml, [tool.minwise] of ./pyproject.toml, and --show-config."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.commands import OK, USAGE, one_line, run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROWS = "".join(f'{{"id": "d{n}", "body": "seven words of text number {n % 3} here"}}\n' for n in range(6))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a corpus of three texts, each twice, in a column that is not the default."""
    (tmp_path / "docs.jsonl").write_text(ROWS)
    return tmp_path


def settings(folder: Path, *arguments: str) -> dict[str, Any]:
    """Return what --show-config prints, parsed."""
    done = run(folder, *arguments, "--show-config")
    assert (done.status, done.err) == (OK, "")
    return tomllib.loads(done.out)


def test_settings_of_a_file_are_those_of_a_run_and_options_override_them(folder: Path) -> None:
    (folder / "my.toml").write_text('text_column = "body"\nthreshold = 0.5\n[dedup]\nkeep = "last"\noutput = "out"\n')
    done = run(folder, "dedup", "docs.jsonl", "--config", "my.toml", "--threshold", "0.9", "--json")
    assert done.status == OK, done.err
    report = json.loads(done.out)
    assert report["counts"]["kept"] == 3
    assert report["settings"]["threshold"] == 0.9
    assert (folder / "out/kept/docs.jsonl").read_text() == "".join(ROWS.splitlines(keepends=True)[3:])


def test_table_of_a_command_overrides_the_keys_at_the_top(folder: Path) -> None:
    (folder / "my.toml").write_text(
        "threshold = 0.5\nseed = 3\n[index]\nseed = 4\n[index.create]\nthreshold = 0.6\n[pairs]\nthreshold = 0.7\n"
    )
    found = settings(folder, "index", "create", "--config", "my.toml")["index"]["create"]
    assert (found["threshold"], found["seed"]) == (0.6, 4)
    assert settings(folder, "pairs", "--config", "my.toml")["pairs"]["threshold"] == 0.7
    assert settings(folder, "clusters", "--config", "my.toml")["clusters"]["threshold"] == 0.5


@pytest.mark.parametrize(
    ("name", "head", "shown"),
    [
        ("minwise.toml", "", "minwise.toml"),
        ("pyproject.toml", "[tool.minwise]\n", "[tool.minwise] of pyproject.toml"),
    ],
)
def test_file_of_the_current_directory_is_used_and_said(folder: Path, name: str, head: str, shown: str) -> None:
    (folder / name).write_text(f'{head}text_column = "body"\n')
    done = run(folder, "dedup", "docs.jsonl", "-o", "out")
    assert (done.status, done.err) == (OK, f"minwise: settings from {shown}\n")
    assert run(folder, "dedup", "docs.jsonl", "-o", "out2", "--quiet").err == ""


def test_pyproject_without_the_table_is_not_read(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("not = = toml")
    assert run(folder, "plan").err == ""


def test_minwise_toml_precedes_pyproject(folder: Path) -> None:
    (folder / "minwise.toml").write_text("threshold = 0.5\n")
    (folder / "pyproject.toml").write_text("[tool.minwise]\nthreshold = 0.6\n")
    assert settings(folder, "plan")["plan"]["threshold"] == 0.5
    (folder / "empty.toml").touch()
    assert settings(folder, "plan", "--config", "empty.toml")["plan"]["threshold"] == 0.8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool.minwise = 3", "pyproject.toml: tool.minwise must be a table of settings, got 3"),
        ("tool = 'minwise' # tool.minwise", None),
    ],
)
def test_a_pyproject_without_a_table_of_settings(text: str, message: str | None, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(text)
    if message is None:
        assert settings(folder, "plan")["plan"]["threshold"] == 0.8
    else:
        assert message in one_line(run(folder, "plan"), USAGE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("treshold = 0.5", "my.toml: unknown setting 'treshold'; did you mean 'threshold'?"),
        ("[dedup]\ntreshold = 0.5", "my.toml: [dedup] unknown setting 'treshold'; did you mean 'threshold'?"),
        ("[dedpu]\nthreshold = 0.5", "my.toml: unknown setting 'dedpu'; did you mean 'dedup'?"),
        ("dedup = 3", "my.toml: dedup must be a table of settings, got 3"),
        ("[dedup]\nport = 1", "my.toml: [dedup] unknown setting 'port'"),
        ("threshold = 'high'", "my.toml: threshold must be a number, got 'high'"),
        ("threads = 1.5", "my.toml: threads must be a whole number, got 1.5"),
        ("threads = true", "my.toml: threads must be a whole number, got True"),
        ("bag = 1", "my.toml: bag must be true or false, got 1"),
        ("text_column = [1]", "my.toml: text_column must be a string, or a list of them, got [1]"),
        ("memory = 1.5", 'my.toml: memory must be a size such as "4GB", got 1.5'),
        ("[dedup]\ngroup = 'stars'", "my.toml: [dedup] group: 'stars' is not one of 'star', 'components'"),
        ("config = 'x'", "my.toml: unknown setting 'config'"),
        ("a = = b", "my.toml: must be a TOML file: "),
        ("a = " + "[" * 5000, "my.toml: must be a TOML file: "),
        ("slots = 1" + "0" * 5000, "my.toml: must be a TOML file: "),
    ],
)
def test_wrong_files_are_refused_with_file_and_key(folder: Path, text: str, message: str) -> None:
    (folder / "my.toml").write_text(text)
    assert one_line(run(folder, "dedup", "docs.jsonl", "-o", "out", "--config", "my.toml"), USAGE).startswith(
        f"minwise: {message}"
    )
    assert not (folder / "out").exists()


def test_missing_file_is_refused(folder: Path) -> None:
    assert "nowhere.toml: No such file" in one_line(run(folder, "plan", "--config", "nowhere.toml"), 74)


@pytest.mark.parametrize(
    "command",
    [
        *("dedup", "pairs", "clusters", "audit", "plan", "compare", "report", "restore", "serve", "token"),
        *("index create", "index add", "index query", "index stats", "vectors pairs", "vectors near"),
    ],
)
def test_shown_settings_used_as_a_file_give_the_same_settings(folder: Path, command: str) -> None:
    words = command.split()
    shown = run(folder, *words, "--show-config")
    assert (shown.status, shown.err) == (OK, "")
    (folder / "shown.toml").write_text(shown.out)
    again = run(folder, *words, "--config", "shown.toml", "--show-config")
    assert again.out.splitlines()[1:] == shown.out.splitlines()[1:]


def test_shown_settings_include_options_with_special_values(folder: Path) -> None:
    given = ("--text-column", 'a "b"', "--text-column", "c\\d\n", "--spark-conf", "spark.x=1", "--memory", "1GB", "-v")
    found = settings(folder, "dedup", *given)["dedup"]
    assert found["text_column"] == ['a "b"', "c\\d\n"]
    assert (found["spark_conf"], found["memory"], found["verbose"]) == (["spark.x=1"], "1GB", True)


def test_tables_replace_texts_of_names_and_values(folder: Path) -> None:
    (folder / "my.toml").write_text(
        'memory = 300000000\n[spark_conf]\n"spark.x" = 1\n[fields]\nname = "char:3"\n[weights]\nname = 2\n'
    )
    found = settings(folder, "dedup", "--config", "my.toml")["dedup"]
    assert (found["spark_conf"], found["fields"], found["weights"]) == (["spark.x=1"], "name:char:3", "name=2")
    assert found["memory"] == "300000000"


def test_settings_file_does_not_contradict_an_existing_index(folder: Path) -> None:
    """Keys for all commands apply to a new index; only options are compared with an existing one."""
    assert run(folder, "index", "create", "an.mw", "--threshold", "0.6").status == OK
    (folder / "minwise.toml").write_text("threshold = 0.5\n[serve]\nindex = 'an.mw'\ntoken_file = 'none.txt'\n")
    assert "--threshold must be that of an.mw" in run(folder, "serve", "--threshold", "0.7").err
    assert "none.txt: No such file" in run(folder, "serve").err
