"""Commands and programs of the pages, run in the order of each page in one directory."""

import ast
import re
import shutil
from pathlib import Path

import pytest
from support.spark.cluster import missing_requirement
from support.terminal import BLOCK, steps, terminal_in

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
GUIDES = [page for page in PAGES if page.parent.name == "guides"]
RECIPES = [page for page in PAGES if page.parent.name == "recipes"]
SHOWING = [page for page in PAGES if re.search(r"^(```python$|\$ )", page.read_text(encoding="utf-8"), re.MULTILINE)]
# An expression on one line, followed by its value.
SHOWN_VALUE = re.compile(r"^(\S.*?)  # (.+)$", re.MULTILINE)


def check_values(block: str, names: dict[str, object]) -> None:
    """Assert that each comment that is a Python value is the value of its line."""
    for expression, comment in SHOWN_VALUE.findall(block):
        try:
            value = ast.literal_eval(comment)
        except (SyntaxError, ValueError):
            continue
        assert eval(expression, names) == value, expression


def test_every_guide_has_a_command_and_a_program() -> None:
    assert GUIDES
    for guide in GUIDES:
        kinds = {kind for kind, _ in BLOCK.findall(guide.read_text(encoding="utf-8"))}
        assert {"", "python"} <= kinds, guide.name
    assert len(RECIPES) >= 3
    for recipe in RECIPES:
        assert "$ minwise " in recipe.read_text(encoding="utf-8"), recipe.name


def name_of(page: Path) -> str:
    """Return the id of a page in the output of a test."""
    return page.relative_to(DOCS).with_suffix("").as_posix()


@pytest.mark.parametrize("page", SHOWING, ids=name_of)
def test_page_shows_actual_output(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.stem == "spark" and (missing := missing_requirement()):
        pytest.skip(missing)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    with terminal_in(tmp_path) as terminal:
        for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
            if kind == "python":
                program = terminal.with_port(block)
                exec(program, names)
                check_values(program, names)
            else:
                for line, shown in steps(block):
                    terminal.check(line, shown)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_programs_that_are_not_run_have_valid_syntax(page: Path) -> None:
    """They use other tools or a cluster."""
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "py":
            ast.parse(block)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_name_existing_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_tutorial_has_the_worked_numbers_of_the_golden_tests() -> None:
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^## \d+\. ", text, re.MULTILINE)) == 12
    numbers = (
        "0.375",
        "0.75",
        "[3, 1, 2]",
        "400",
        "0.006, 0.047, 0.186, 0.47, 0.802, 0.975",
        "0.000356",
        "0.631",
        "21.3",
    )
    assert [number for number in numbers if number not in text] == []
