"""Messages of the library name settings as Python does; the command translates them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.expect import error_message

import minwise as mw
from minwise import options
from minwise.cli.options import with_option_names
from minwise.errors import ConfigError
from minwise.options import definitions
from minwise.server import ServerSettings

# An option of spark-submit.
SPARK = ("--conf",)
SOURCES = Path(mw.__file__).parent
# Pages, whose styles have variables such as --ink and whose readers are told commands.
PAGES = ("cli", "report", "reference", "_internal/display.py", "_internal/html.py", "comparison/page.py")
MODULES = [
    path
    for path in sorted(SOURCES.rglob("*.py"))
    if not str(path.relative_to(SOURCES)).startswith(PAGES)
]  # fmt: skip
CLASSES = [
    kind for name in dir(options) if isinstance(kind := getattr(options, name), type) and name.endswith("Options")
]
NAMES = {name for kind in (*CLASSES, ServerSettings) for name in definitions(kind) if "_" in name}
OPTION = re.compile(
    rf"(?<![\w-])--[a-z][a-z-]*|(?<=\s)-o\b|(?<![\w-])(?:{'|'.join(name.replace('_', '-') for name in NAMES)})(?![\w-])"
)


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and value of every string that is not a docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_no_message_of_the_library_names_an_option(path: Path) -> None:
    """A whole command, which begins with minwise, is one in every interface."""
    found = [
        (line, text)
        for line, text in strings(path)
        if OPTION.search(text) and "minwise " not in text and text not in SPARK
    ]
    assert found == []


def test_a_wrong_setting_of_the_server_is_named_as_in_python() -> None:
    message = error_message(ConfigError, lambda: ServerSettings(index=Path("i"), max_in_flight=0))
    assert message.startswith("max_in_flight must be ")
    assert with_option_names(message).startswith("--max-in-flight must be ")


def test_remedies_are_keywords_in_python_and_options_of_the_command(tmp_path: Path) -> None:
    texts = ["one two three four five six"] * 2
    mw.dedup(texts, tmp_path / "out")
    message = error_message(ConfigError, lambda: mw.dedup(texts, tmp_path / "out"))
    assert message.endswith("; give another output or overwrite=True")
    assert with_option_names(message).endswith("; give another -o or --overwrite")
    message = error_message(ConfigError, lambda: mw.dedup(texts, tmp_path / "new", work=tmp_path / "new"))
    assert message.endswith("; give another work")
    assert with_option_names(message).endswith("; give another --work")
