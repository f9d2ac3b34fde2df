"""Documentation of commands, options, routes, error codes, server settings and metrics."""

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from minwise.cli import INTERRUPTED
from minwise.cli.command import FAILURE, INPUT_OUTPUT, USAGE, command
from minwise.errors import MinwiseError
from minwise.server import ServerSettings
from minwise.server.errors import CODES
from minwise.server.metrics import Metrics
from minwise.server.routes import ROUTES, Route

README = Path(__file__).parents[2] / "README.md"
SERVE_GUIDE = README.parent / "docs" / "guides" / "serve.md"
ERROR_LIST = README.parent / "docs" / "reference" / "errors.md"


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command below a group with the words that call it."""
    for name, child in (group.commands if isinstance(group, click.Group) else {}).items():
        yield (*path, name), child
        yield from commands(child, (*path, name))


COMMANDS = {" ".join(words): child for words, child in commands(command)}
OPTIONS = {
    f"{name} {parameter.opts[0]}": parameter
    for name, child in COMMANDS.items()
    for parameter in child.params
    if isinstance(parameter, click.Option)
}


def test_commands_and_options_are_found() -> None:
    assert "compare" in COMMANDS
    assert "compare --json" in OPTIONS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme(name: str) -> None:
    assert f"minwise {name}" in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_short_help_is_a_sentence_that_fits_80_columns(name: str) -> None:
    text = COMMANDS[name].get_short_help_str(limit=66)
    assert text[:1].isupper()
    assert text.endswith(".")
    assert not text.endswith("...")


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_has_help_and_shows_its_default(name: str) -> None:
    option = OPTIONS[name]
    assert option.help
    assert option.help.endswith(".")
    if not option.is_flag and not option.required and option.default not in (None, ()):
        assert option.show_default


@pytest.mark.parametrize("name", COMMANDS)
def test_help_explains_every_argument_of_the_usage_line(name: str) -> None:
    text = COMMANDS[name].help or ""
    arguments = [parameter for parameter in COMMANDS[name].params if isinstance(parameter, click.Argument)]
    assert all(argument.human_readable_name in text for argument in arguments)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_guide_requests_every_route_with_curl(route: Route) -> None:
    lines = re.findall(r"^\$ (curl .*)$", SERVE_GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    path = rf"127\.0\.0\.1:8765{re.escape(route.path).replace(re.escape('{id}'), '[^/?]+')}(?:[?'].*|\s.*)?$"
    assert any(re.search(path, line) and method_of(line) == route.method for line in lines)


def method_of(line: str) -> str:
    """Return the HTTP method of a curl command."""
    given = re.search(r"-X (\w+)", line)
    return given[1] if given else "POST" if "--json" in line or " -d " in line else "GET"


@pytest.mark.parametrize("code", CODES)
def test_guide_lists_every_error_code_with_its_status(code: str) -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", SERVE_GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(status) for status, codes in rows if f"`{code}`" in codes] == [CODES[code]]


@pytest.mark.parametrize("code", CODES)
def test_errors_page_lists_every_error_code_with_its_status(code: str) -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", ERROR_LIST.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(status) for status, codes in rows if f"`{code}`" in codes] == [CODES[code]]


def test_exception_tree_has_every_class_with_its_builtin_base() -> None:
    tree = re.findall(r"[├└]── (\w+)(?: +\((\w+)\))?", ERROR_LIST.read_text(encoding="utf-8"))
    raised = {
        error.__name__: error.__bases__[1].__name__
        for error in MinwiseError.__subclasses__()
        if error.__module__ == MinwiseError.__module__
    }
    assert dict(tree) == {"MinwiseError": "", **raised}


def test_listed_messages_are_in_the_sources() -> None:
    """The parts between values must occur in the sources; messages of the operating system are excluded."""
    section = ERROR_LIST.read_text(encoding="utf-8").split("## Messages", 1)[1].split("\n## ", 1)[0]
    messages = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)) - {os.strerror(errno.ENOSPC)}
    files = [*(README.parent / "src").rglob("*.py"), *(README.parent / "crates").rglob("src/**/*.rs")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    parts = {part.strip() for message in messages for part in message.split("…")}
    assert len(messages) > 10
    assert {part for part in parts if part not in sources} == set()


def test_listed_exit_codes_are_those_of_the_command() -> None:
    text = ERROR_LIST.read_text(encoding="utf-8").split("## Exit codes", 1)[1].split("##", 1)[0]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {
        0,
        FAILURE,
        USAGE,
        INPUT_OUTPUT,
        INTERRUPTED,
    }


@pytest.mark.parametrize("name", [field.name for field in fields(ServerSettings)])
def test_guide_lists_every_server_option_and_defaults_of_limits(name: str) -> None:
    text = SERVE_GUIDE.read_text(encoding="utf-8")
    option = f"--{name.replace('_', '-')}"
    assert option in text
    if name.startswith("max_") or name.endswith("timeout"):
        shown = re.search(rf"^\| `{option}` \| ([^|]+) \|", text, re.MULTILINE)
        assert shown
        given: Any = {name: shown[1] if shown[1].endswith("B") else int(shown[1])}
        assert ServerSettings(index=Path("news.mw"), **given) == ServerSettings(index=Path("news.mw"))


def test_guide_lists_exactly_the_metrics_of_the_server() -> None:
    page = Metrics().page().decode()
    exported = {name for name in re.findall(r"^# HELP (\w+) ", page, re.MULTILINE) if not name.endswith("_created")}
    listed = set(re.findall(r"^\| `(minwise_\w+)` \|", SERVE_GUIDE.read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == exported
