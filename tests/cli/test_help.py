"""Help of every command: headings, examples, exit codes, and one meaning per option."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from minwise.cli.base import Command, Group
from minwise.cli.command import command
from minwise.cli.help import HEADINGS, option_key

WIDTHS = (80, 110)
# Options whose help differs between commands because each says what the option does there; the meaning is the same.
PHRASED_DIFFERENTLY = {
    "audit",
    *(
        "against",
        "among",
        "dry_run",
        "engine",
        "group",
        "ids",
        "json",
        "keep",
        "max_bucket",
        "measure",
        "on_error",
        "passages",
        "output",
        "quiet",
        "radius",
        "recall",
        "seed",
        "shingle",
    ),
    *("threshold", "top", "verify"),
}


def walk(parent: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all below it, with the words that call each."""
    yield " ".join(words), parent
    for name, child in (parent.commands if isinstance(parent, click.Group) else {}).items():
        yield from walk(child, (*words, name))


COMMANDS = dict(walk(command))
OPTIONS = [
    (name, option) for name, one in COMMANDS.items() for option in one.params if isinstance(option, click.Option)
]
EXAMPLES = [line for one in COMMANDS.values() if isinstance(one, Command | Group) for line in one.examples]


def help_of(name: str, width: int) -> str:
    """Return the help as a terminal of this width shows it."""
    done = CliRunner().invoke(command, [*name.split(), "--help"], prog_name="minwise", terminal_width=width)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_and_exit_codes_and_cuts_nothing(name: str, width: int) -> None:
    shown = help_of(name, width)
    assert max(map(len, shown.splitlines())) <= width
    assert [line for line in shown.splitlines() if line != line.rstrip()] == []
    assert "..." not in re.sub(r"^Usage: .*", "", shown)
    below = shown.partition("\nExamples:\n")[2].partition("\n\n")[0].splitlines()
    assert len(below) >= 3
    assert all("minwise " in line for line in below)
    assert " ".join(shown.partition("Exit codes: ")[2].split()).startswith("0 success, 1 failure, 2 usage error")


def test_options_are_under_headings_in_the_order_of_the_table() -> None:
    shown = help_of("dedup", 80)
    headings = re.findall(r"^([A-Z][^:\n]*):$", shown, re.MULTILINE)
    known = ["Input", "Similarity", "What to keep", "Output", "Machine", "Spark", "Advanced", "General"]
    assert headings == ["Examples", *known]
    assert re.findall(r"^  --([a-z-]+)", shown.partition("Machine:")[2], re.MULTILINE)[:3] == [
        "memory",
        "threads",
        "work",
    ]


def test_every_option_has_a_heading_and_every_entry_of_the_table_is_an_option() -> None:
    listed = [key for keys in HEADINGS.values() for key in keys]
    assert len(listed) == len(set(listed))
    assert {option_key(option) for _, option in OPTIONS} | {"help"} == set(listed)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_help_of_this_program(name: str) -> None:
    assert isinstance(COMMANDS[name], Command | Group)


def test_top_level_lists_commands_by_task_on_one_screen() -> None:
    shown = help_of("", 80)
    assert shown.count("\n") <= 50
    tasks = re.findall(r"^([A-Z][^:\n]*):$", shown, re.MULTILINE)
    assert tasks[1:3] == ["Clean a corpus", "List near-duplicates"]
    assert "dedup " in shown.partition("Clean a corpus:")[2].partition("\n\n")[0]


@pytest.mark.parametrize("line", EXAMPLES)
def test_options_of_an_example_parse(line: str) -> None:
    """The command of an example accepts its options and arguments."""
    words = shlex.split(re.split(r" [<>|&]+ ", line[line.index("minwise ") :])[0])[1:]
    one: click.Command = command
    while isinstance(one, click.Group):
        one = one.commands[words.pop(0)]
    if words != ["--help"]:
        one.make_context("minwise", words)


@pytest.mark.parametrize("name", sorted({option_key(option) for _, option in OPTIONS}))
def test_an_option_has_one_meaning_in_all_commands(name: str) -> None:
    kinds, meanings, opts = defaultdict(list), set(), set()
    for words, option in OPTIONS:
        if option_key(option) == name:
            kinds[type(option.type).__name__, option.is_flag, option.multiple].append(words)
            meanings.add(option.help)
            opts.add(tuple(sorted(option.opts)))
    assert len(kinds) == 1 or name == "audit", dict(kinds)  # report reads an audit, decontaminate makes one
    assert len(opts) == 1, "its short form must be the same everywhere"
    assert len(meanings) == 1 or name in PHRASED_DIFFERENTLY, meanings


def test_a_short_option_belongs_to_one_option() -> None:
    owners = defaultdict(set)
    for _, option in OPTIONS:
        for short in (name for name in option.opts if not name.startswith("--")):
            owners[short].add(option_key(option))
    assert owners == {"-o": {"output"}, "-v": {"verbose"}}
