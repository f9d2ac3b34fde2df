"""What the guides and the recipes show is what happens: programs and commands are run in order, in one folder."""

import ast
import re
import shutil
from pathlib import Path

import pytest
from spark.conftest import what_is_missing
from terminal import BLOCK, steps, terminal_in

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
RECIPES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
PAGES = [*GUIDES, *RECIPES]
# An expression in one line with its value behind it.
SHOWN_VALUE = re.compile(r"^(\S.*?)  # (.+)$", re.MULTILINE)


def check_values(block: str, names: dict[str, object]) -> None:
    """A comment that is a Python value is the value of its line."""
    for expression, comment in SHOWN_VALUE.findall(block):
        try:
            value = ast.literal_eval(comment)
        except (SyntaxError, ValueError):
            continue
        assert eval(expression, names) == value, expression


def test_there_is_something_to_try() -> None:
    """There are guides, each with a command and a program."""
    assert GUIDES
    for guide in GUIDES:
        kinds = {kind for kind, _ in BLOCK.findall(guide.read_text(encoding="utf-8"))}
        assert {"", "python"} <= kinds, guide.name
    assert len(RECIPES) >= 3
    for recipe in RECIPES:
        assert "$ minwise " in recipe.read_text(encoding="utf-8"), recipe.name


@pytest.mark.parametrize("guide", PAGES, ids=lambda guide: guide.stem)
def test_guide_shows_what_happens(guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the letter, in the order of the page."""
    if guide.stem == "spark" and (missing := what_is_missing()):
        pytest.skip(missing)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with terminal_in(tmp_path) as terminal:
        for kind, block in BLOCK.findall(guide.read_text(encoding="utf-8")):
            if kind == "python":
                program = terminal.with_port(block)
                exec(program, names)
                check_values(program, names)
            else:
                for line, shown in steps(block):
                    assert terminal.run(line, shown) == shown, line


@pytest.mark.parametrize("guide", PAGES, ids=lambda guide: guide.stem)
def test_links_of_guide_lead_somewhere(guide: Path) -> None:
    """Every relative link names a file that is there."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", guide.read_text(encoding="utf-8"))
    assert [link for link in links if not (guide.parent / link).exists()] == []
