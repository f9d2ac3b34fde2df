"""Outcome: what a command did in; one JSON object, a line or nothing out."""

import json
from typing import Any

import click

__all__ = ["show_outcome"]


def show_outcome(values: dict[str, Any], line: str, *, as_json: bool, quiet: bool) -> None:
    """Prints the values with ``--json``; otherwise the line, unless ``--quiet``."""
    if as_json:
        click.echo(json.dumps(values, indent=2))
    elif not quiet:
        click.echo(line)
