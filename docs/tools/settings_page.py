"""Settings reference page: settings of calls, of an index and of the server, with defaults and meanings."""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING
from typing import Any

from minwise.options import DedupOptions, Definition, ExpireOptions, IndexOptions, LinkOptions, definitions
from minwise.server import ServerSettings
from minwise.text.shingling import Shingler

__all__ = ["settings_page"]

START = """\
# Settings

This page lists every setting with its default and meaning. A setting has the same name everywhere:
`max_bucket` in Python is `--max-bucket` on the command line. No environment variable changes a
result. An invalid value is refused before any input is read, with a one-line message that states
the rule and the value. `python -m docs.tools` generates this page from the classes that define the
settings, and a test compares the two.
"""
SEARCH = """\
## Finding near-duplicates

Settings of `mw.dedup`, `mw.pairs`, `mw.clusters`, `mw.audit` and their commands. `keep` and
`against` apply to `dedup` only. `group` applies to `dedup`, where its default is `star`, and to
`clusters`, where its default is `components`. The default of `on_error` is `fail` in Python and
`quarantine` on the command line, because a file with millions of rows usually has a bad one.
`memory`, `threads` and `work` never change a result. `among` applies to `pairs` and `clusters`.
"""
SHINGLING = """\
## Shingling

Settings of `mw.Shingler`. Pass a `Shingler` as `shingle=`, instead of a string, to change how texts
are normalised.
"""
INDEX = """\
## Index

Settings of `mw.Index.create` and `minwise index create`. They are stored with the index and cannot
be changed.
"""
EXPIRY = """\
## Expiry of documents in an index

Settings of `Index.expire` and `minwise index expire`.
"""
SERVER = """\
## Server

Settings of `minwise.server.ServerSettings` and `minwise serve`. [The guide](../guides/serve.md)
explains the limits. Sizes are in bytes, or strings such as `16MB`; times are in seconds.
"""


def settings_page() -> str:
    """Return the page in Markdown."""
    return "\n".join(
        [
            START,
            SEARCH,
            _table_of({**definitions(DedupOptions), **definitions(LinkOptions)}),
            SHINGLING,
            _table(_parameters_of(Shingler), _descriptions(Shingler.__doc__)),
            INDEX,
            _option_table(IndexOptions),
            EXPIRY,
            _option_table(ExpireOptions),
            SERVER,
            _option_table(ServerSettings),
        ]
    )


def _table(defaults: Mapping[str, object], descriptions: Mapping[str, str]) -> str:
    rows = [f"| `{name}` | {_shown(default)} | {descriptions[name]} |" for name, default in defaults.items()]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows, ""])


def _option_table(options: type) -> str:
    """Return the table of settings that are defined in :mod:`minwise.options`."""
    return _table_of(definitions(options))


def _table_of(known: Mapping[str, Definition]) -> str:
    meanings = {name: " ".join(filter(None, (one.help, one.python))) for name, one in known.items()}
    return _table({name: one.default for name, one in known.items()}, meanings)


def _parameters_of(call: Any) -> dict[str, object]:  # noqa: ANN401 - any callable
    listed = inspect.signature(call).parameters.values()
    return {item.name: MISSING if item.default is inspect.Parameter.empty else item.default for item in listed}


def _shown(default: object) -> str:
    if default is MISSING:
        return "required"
    return "" if default in (None, ()) else f"`{default}`"


def _descriptions(docstring: str | None) -> dict[str, str]:
    """Return the description of each attribute or argument of a docstring as one line of Markdown."""
    return {name: re.sub(r"``([^`]*)``", r"`\1`", text) for name, text in _entries(inspect.cleandoc(docstring or ""))}


def _entries(docstring: str) -> Iterator[tuple[str, str]]:
    section = re.search(r"^(?:Attributes|Args):\n((?: {4}.*\n?|\n)+)", docstring, re.MULTILINE)
    for match in re.finditer(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", section[1] if section else "", re.MULTILINE):
        text = re.sub(r":(?:class|func|meth):`([^`]*)`", r"`\1`", " ".join(match[2].split()))
        yield match[1], text.replace("|", "\\|")
