"""What the README shows is what happens."""

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


def test_there_is_something_to_try() -> None:
    """The README has a command with its output, and a program."""
    assert CONSOLES
    assert PROGRAMS


def test_commands_print_what_is_shown(tmp_path: Path) -> None:
    """To the letter, in the order of the page."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    with terminal_in(tmp_path) as terminal:
        for line, shown in (step for block in CONSOLES for step in steps(block)):
            assert terminal.run(line, shown) == shown, line


@pytest.mark.parametrize("block", PROGRAMS)
def test_programs_give_what_their_comments_say(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program runs, and a comment that starts with a number is the value of its line."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(block, names)
    for expression, value in re.findall(r"^(\S.*?)\s+# ([0-9.]+)\b", block, re.MULTILINE):
        assert eval(expression, names) == json.loads(value)


def test_the_two_commands_exist() -> None:
    """As targets of the Makefile."""
    assert {"demo", "test"} <= set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
    assert "make demo" in TEXT
    assert "make test" in TEXT


@pytest.mark.parametrize("name", README_TABLES)
def test_tables_are_those_of_the_newest_records(name: str) -> None:
    """Numbers are generated, never typed."""
    assert newest_tables([name])[name] in TEXT


def test_where_another_tool_is_ahead_is_shown() -> None:
    """No corpus is left out to look better."""
    ahead = [corpus for corpus in newest_record("quality")["corpora"] if is_another_ahead(corpus)]
    assert ahead
    assert [corpus["name"] for corpus in ahead if f"| {described_in_readme(corpus)} |" not in TEXT] == []
