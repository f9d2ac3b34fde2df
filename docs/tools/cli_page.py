"""The page of the command: every command with its help, as a terminal shows it."""

from collections.abc import Iterator
from copy import copy
from typing import Any

import click

from minwise.cli.command import command

__all__ = ["cli_page"]

# As wide as the site shows without scrolling, beside its two columns of contents.
WIDTH = 90
START = """\
# The command line

Every command with its options, as `minwise COMMAND --help` prints them. Other pages explain [the
settings](settings.md), [the files](files.md) that commands write, and [errors and exit codes](errors.md). This page is
written by `python -m docs.tools`, and a test compares it with the commands.

`minwise --version` prints the version. [Shell completion](../install.md#shell-completion) is explained with the
installation.
"""


def cli_page() -> str:
    """The page in Markdown."""
    return "\n".join([START, *(_section(words, one) for words, one in _commands(command, ("minwise",)))])


def _commands(one: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, each with the words that call it."""
    yield words, one
    for name, child in (one.commands if isinstance(one, click.Group) else {}).items():
        yield from _commands(child, (*words, name))


def _section(words: tuple[str, ...], one: click.Command) -> str:
    return f"## {' '.join(words)}\n\n```text\n{_help(words, one)}\n```\n"


def _help(words: tuple[str, ...], one: click.Command) -> str:
    """The help of a command; groups hand their names on through the chain of contexts."""
    context = None
    for word in words[:-1]:
        context = click.Context(command, info_name=word, parent=context)
    settings: dict[str, Any] = {
        "help_option_names": ["-h", "--help"],
        "terminal_width": WIDTH,
        "max_content_width": WIDTH,
    }
    fresh = copy(one)
    fresh._help_option = None  # which click remembers from whoever asked first, with the names that it had then
    with click.Context(fresh, info_name=words[-1], parent=context, **settings) as called:
        return "\n".join(line.rstrip() for line in fresh.get_help(called).splitlines())
