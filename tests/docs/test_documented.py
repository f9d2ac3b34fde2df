"""Every command and every option is explained where a user looks first."""

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from minwise.cli.command import FAILURE, INPUT_OUTPUT, INTERRUPTED, USAGE, command
from minwise.errors import MinwiseError
from minwise.server import ServerSettings
from minwise.server.errors import CODES
from minwise.server.metrics import Metrics
from minwise.server.routes import ROUTES, Route

README = Path(__file__).parents[2] / "README.md"
SERVE_GUIDE = README.parent / "docs" / "guides" / "serve.md"
ERROR_LIST = README.parent / "docs" / "reference" / "errors.md"


def commands(group: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command below a group, with its words."""
    for name, child in (group.commands if isinstance(group, click.Group) else {}).items():
        yield (*path, name), child
        yield from commands(child, (*path, name))


COMMANDS = {" ".join(words): one for words, one in commands(command)}
OPTIONS = {
    f"{name} {parameter.opts[0]}": parameter
    for name, one in COMMANDS.items()
    for parameter in one.params
    if isinstance(parameter, click.Option)
}


def test_there_is_something_to_document() -> None:
    """The tables below are not empty by mistake."""
    assert "compare" in COMMANDS
    assert "compare --json" in OPTIONS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme(name: str) -> None:
    """As one would type it."""
    assert f"minwise {name}" in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    """A sentence, with a capital and a full stop, that a list of commands shows whole in a terminal of 80 columns."""
    text = COMMANDS[name].get_short_help_str(limit=66)
    assert text[:1].isupper()
    assert text.endswith(".")
    assert not text.endswith("...")


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_has_help(name: str) -> None:
    """A sentence too, and a default where there is one to know."""
    option = OPTIONS[name]
    assert option.help
    assert option.help.endswith(".")
    if not option.is_flag and not option.required and option.default not in (None, ()):
        assert option.show_default


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_every_argument(name: str) -> None:
    """What stands in capitals in the usage line is explained in the text."""
    text = COMMANDS[name].help or ""
    arguments = [one for one in COMMANDS[name].params if isinstance(one, click.Argument)]
    assert all(one.human_readable_name in text for one in arguments)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_is_asked_in_the_guide(route: Route) -> None:
    """By curl, with its answer; those without rights beside their probe are pages."""
    lines = re.findall(r"^\$ (curl .*)$", SERVE_GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    path = rf"127\.0\.0\.1:8765{re.escape(route.path).replace(re.escape('{id}'), '[^/?]+')}(?:[?'].*|\s.*)?$"
    assert any(re.search(path, line) and method_of(line) == route.method for line in lines)


def method_of(line: str) -> str:
    """The method that curl takes."""
    given = re.search(r"-X (\w+)", line)
    return given[1] if given else "POST" if "--json" in line or " -d " in line else "GET"


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_in_the_guide(code: str) -> None:
    """In the table of errors, in the row of its status."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", SERVE_GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(status) for status, codes in rows if f"`{code}`" in codes] == [CODES[code]]


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_in_the_list_of_errors(code: str) -> None:
    """In the row of its status."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", ERROR_LIST.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(status) for status, codes in rows if f"`{code}`" in codes] == [CODES[code]]


def test_the_tree_of_errors_is_whole() -> None:
    """Each that is raised on purpose, with the built-in that it also is."""
    tree = re.findall(r"[├└]── (\w+)(?: +\((\w+)\))?", ERROR_LIST.read_text(encoding="utf-8"))
    raised = {
        error.__name__: error.__bases__[1].__name__
        for error in MinwiseError.__subclasses__()
        if error.__module__ == MinwiseError.__module__
    }
    assert dict(tree) == {"MinwiseError": "", **raised}


def test_messages_with_a_remedy_are_in_the_sources() -> None:
    """What stands between the values of each is a part of some message; the system's own are not ours."""
    section = ERROR_LIST.read_text(encoding="utf-8").split("## Messages", 1)[1].split("\n## ", 1)[0]
    messages = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)) - {os.strerror(errno.ENOSPC)}
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (README.parent / "src").rglob("*.py"))
    parts = {part.strip() for message in messages for part in message.split("…")}
    assert len(messages) > 10
    assert {part for part in parts if part not in sources} == set()


def test_exit_codes_are_those_of_the_command() -> None:
    """The four beside 0."""
    text = ERROR_LIST.read_text(encoding="utf-8").split("## Exit codes", 1)[1].split("##", 1)[0]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {
        0,
        FAILURE,
        USAGE,
        INPUT_OUTPUT,
        INTERRUPTED,
    }


@pytest.mark.parametrize("name", [field.name for field in fields(ServerSettings)])
def test_every_setting_of_the_server_is_in_the_guide(name: str) -> None:
    """As the option; a limit with its default."""
    text = SERVE_GUIDE.read_text(encoding="utf-8")
    option = f"--{name.replace('_', '-')}"
    assert option in text
    if name.startswith("max_") or name.endswith("timeout"):
        shown = re.search(rf"^\| `{option}` \| ([^|]+) \|", text, re.MULTILINE)
        assert shown
        given: Any = {name: shown[1] if shown[1].endswith("B") else int(shown[1])}
        assert ServerSettings(index=Path("news.mw"), **given) == ServerSettings(index=Path("news.mw"))


def test_every_metric_is_in_the_guide() -> None:
    """Each that the server has, and no other."""
    page = Metrics().page().decode()
    there = {name for name in re.findall(r"^# HELP (\w+) ", page, re.MULTILINE) if not name.endswith("_created")}
    told = set(re.findall(r"^\| `(minwise_\w+)` \|", SERVE_GUIDE.read_text(encoding="utf-8"), re.MULTILINE))
    assert told == there


@pytest.mark.parametrize("page", ["DESIGN.md", "CONTRIBUTING.md"])
def test_named_files_exist(page: str) -> None:
    text = (README.parent / page).read_text(encoding="utf-8")
    named = re.findall(r"`([\w./-]+(?:\.py|\.rs|\.md|\.toml|/))`", text)
    roots = [README.parent, *(README.parent / name for name in ("src", "src/minwise", "crates/kernel/src"))]
    missing = [name for name in named if not any((root / name).exists() for root in roots)]
    assert len(named) > 10
    assert missing == []
