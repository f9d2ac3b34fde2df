"""Command-line reference page: the help of every command."""

from collections.abc import Iterator

import click
from click.testing import CliRunner

from minwise.cli.command import command

__all__ = ["cli_page"]

# Widest text that the site shows without scrolling.
WIDTH = 90
START = """\
# Command line

This page lists every command with its options, as `minwise COMMAND --help` prints them. Other pages
explain [the settings](settings.md), [settings files and log lines](config.md),
[the files](files.md) that commands write, and [errors and exit codes](errors.md).
`python -m docs.tools` generates this page, and a test compares it with the commands.

`minwise --version` prints the version. [Installation](../install.md#shell-completion) explains
shell completion.
"""


def cli_page() -> str:
    """Return the page in Markdown."""
    return "\n".join([START, *(_section(words) for words in _commands(command, ()))])


def _commands(parent: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the words that call a command and all its subcommands."""
    yield words
    for name, child in (parent.commands if isinstance(parent, click.Group) else {}).items():
        yield from _commands(child, (*words, name))


def _section(words: tuple[str, ...]) -> str:
    return f"## {' '.join(('minwise', *words))}\n\n```text\n{_help(words)}\n```\n"


def _help(words: tuple[str, ...]) -> str:
    """Return the help that the terminal shows for a command."""
    printed = CliRunner().invoke(
        command,
        [*words, "--help"],
        prog_name="minwise",
        catch_exceptions=False,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
    )
    return "\n".join(line.rstrip() for line in printed.output.splitlines())
