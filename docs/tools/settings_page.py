"""The page of settings: those of the calls, of an index and of the server, each with its default and meaning."""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from minwise.index import Index
from minwise.server import ServerSettings
from minwise.settings import Options
from minwise.text.shingling import Shingler

__all__ = ["settings_page"]

START = """\
# Settings

A setting has one name everywhere: `max_bucket` in Python is `--max-bucket` on the command line. No environment
variable changes a result. A setting that breaks its rule is refused before anything is read, in one line with the
rule and the value received. This page is written by `python -m docs.tools` from the classes that hold the settings,
and a test compares the two.
"""
FINDING = """\
## Finding near-duplicates

These are taken by `mw.dedup`, `mw.pairs`, `mw.clusters`, `mw.audit` and their commands. `keep` and `against` are for
`dedup` alone. `group` is for `dedup`, where its default is `star`, and for `clusters`, where it is `components`. The
default of `on_error` is `fail` in Python; on the command line it is `quarantine`, since a file of millions always has a
bad row. `memory`, `threads` and `work` never change a result.
"""
CUTTING = """\
## Cutting texts

These are taken by `mw.Shingler`. Give one as `shingle=`, in place of a string, to change how texts are normalised.
"""
REMEMBERING = """\
## An index

These are taken by `mw.Index.create` and `minwise index create`; they are stored with the index and cannot be changed.
`--store-text` and `--sketch-only` are `store="text"` and `store="sketch"`.
"""
SERVING = """\
## A server

These are taken by `minwise.server.ServerSettings` and `minwise serve`. [The guide](../guides/serve.md) explains the
limits. Sizes are bytes, or strings such as `16MB`; times are seconds.
"""


def settings_page() -> str:
    """The page in Markdown."""
    return "\n".join(
        [
            START,
            FINDING,
            _table(_fields_of(Options), _told(Options.__doc__)),
            CUTTING,
            _table(_parameters_of(Shingler), _told(Shingler.__doc__)),
            REMEMBERING,
            _table(_parameters_of(Index.create), _told(Index.create.__doc__)),
            SERVING,
            _table(_fields_of(ServerSettings), _told(ServerSettings.__doc__)),
        ]
    )


def _table(defaults: Mapping[str, object], told: Mapping[str, str]) -> str:
    rows = [f"| `{name}` | {_shown(default)} | {told[name]} |" for name, default in defaults.items()]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows, ""])


def _fields_of(settings: Any) -> dict[str, object]:  # noqa: ANN401 - any dataclass
    return {one.name: one.default for one in fields(settings)}


def _parameters_of(call: Any) -> dict[str, object]:  # noqa: ANN401 - any callable
    listed = inspect.signature(call).parameters.values()
    return {one.name: MISSING if one.default is inspect.Parameter.empty else one.default for one in listed}


def _shown(default: object) -> str:
    if default is MISSING:
        return "has to be given"
    return "" if default in (None, ()) else f"`{default}`"


def _told(docstring: str | None) -> dict[str, str]:
    """What a docstring says of each attribute or argument, as Markdown in one line."""
    return {name: re.sub(r"``([^`]*)``", r"`\1`", text) for name, text in _entries(inspect.cleandoc(docstring or ""))}


def _entries(docstring: str) -> Iterator[tuple[str, str]]:
    section = re.search(r"^(?:Attributes|Args):\n((?: {4}.*\n?|\n)+)", docstring, re.MULTILINE)
    for found in re.finditer(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section[1] if section else "", re.MULTILINE):
        text = re.sub(r":(?:class|func|meth):`([^`]*)`", r"`\1`", " ".join(found[2].split()))
        yield found[1], text.replace("|", "\\|")
