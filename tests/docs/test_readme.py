"""Commands, programs and tables of the README."""

import json
import re
import shutil
from pathlib import Path

import pytest
from support.terminal import BLOCK, steps, terminal_in

from benchmarks.quality.markdown_tables import described_in_readme, is_another_ahead
from benchmarks.tables import README_TABLES, newest_record, newest_tables

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = BLOCK.findall(TEXT)
CONSOLES = [block for kind, block in BLOCKS if not kind and block.startswith("$ ")]
PROGRAMS = [block for kind, block in BLOCKS if kind == "python"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_readme_has_commands_and_programs() -> None:
    assert CONSOLES
    assert PROGRAMS


def test_commands_print_what_is_shown(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with terminal_in(tmp_path) as terminal:
        for line, shown in (step for block in CONSOLES for step in steps(block)):
            terminal.check(line, shown)


@pytest.mark.parametrize("block", PROGRAMS)
def test_values_of_programs_equal_their_comments(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comment that starts with a number is the value of its line."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(block, names)
    for expression, value in re.findall(r"^(\S.*?)\s+# ([0-9.]+)\b", block, re.MULTILINE):
        assert eval(expression, names) == json.loads(value)


def test_make_targets_of_the_readme_exist() -> None:
    assert {"demo", "test"} <= set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
    assert "make demo" in TEXT
    assert "make test" in TEXT


@pytest.mark.parametrize("name", README_TABLES)
def test_tables_equal_those_of_the_newest_records(name: str) -> None:
    assert newest_tables([name])[name] in TEXT


def test_corpora_on_which_another_tool_is_better_are_listed() -> None:
    ahead = [corpus for corpus in newest_record("quality")["corpora"] if is_another_ahead(corpus)]
    assert ahead
    assert [corpus["name"] for corpus in ahead if f"| {described_in_readme(corpus)} |" not in TEXT] == []
