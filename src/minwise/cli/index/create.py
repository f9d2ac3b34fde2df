"""minwise index create INDEX."""

from typing import Any

import click

import minwise as mw
from minwise.cli.options import index_options, index_settings_of, shown_options
from minwise.cli.outcome import show_outcome

__all__ = ["create", "described"]


@click.command()
@click.argument("index", type=click.Path())
@index_options
@shown_options
def create(index: str, as_json: bool, quiet: bool, **given: Any) -> None:  # noqa: ANN401 - click's values
    """Make a new, empty INDEX.

    Its settings are those of its whole life. By default the shingles of documents are kept, so that similarities are
    exact.

    Example: minwise index create news.mw --shingle word:5 --threshold 0.7
    """
    with mw.Index.create(index, **index_settings_of(given)) as made:
        settings, shown = made.stats()["settings"], described(made)
    show_outcome({"index": index, "settings": settings}, f"{index}: {shown}", as_json=as_json, quiet=quiet)


def described(made: "mw.Index") -> str:
    """A new index in a line: what it will find."""
    plan = made.plan
    found = "find" if made.store != "sketch" else "propose"  # what an estimate keeps of them is another matter
    layout = f"{plan.bands} bands × {plan.rows} rows {found} {plan.recall:.2%} of documents at {plan.threshold:g}"
    return f"an empty index; {layout}"
