"""minwise index create INDEX."""

import json
from typing import Any

import click

import minwise as mw
from minwise.cli.options import layout_options, settings_of, shown_options

__all__ = ["create"]


@click.command()
@click.argument("index", type=click.Path())
@layout_options
@click.option("--rows", type=int, default=None, help="Slots per band; with --bands.")
@click.option("--seed", type=int, default=None, help="Seed of every hash; a secret one is drawn if not given.")
@click.option("--max-bucket", default=64, show_default=True, help="Members up to which a whole bucket is looked at.")
@click.option("--store-text", is_flag=True, help="Keep the texts too, to show passages of them.")
@click.option("--sketch-only", is_flag=True, help="Keep only sketches: smaller, and similarities are estimates.")
@shown_options
def create(index: str, store_text: bool, sketch_only: bool, **given: Any) -> None:  # noqa: ANN401 - click's values
    """Make a new, empty INDEX.

    Its settings are those of its whole life. By default the shingles of documents are kept, so that similarities are
    exact.

    Example: minwise index create news.mw --shingle word:5 --threshold 0.7
    """
    if store_text and sketch_only:
        raise mw.ConfigError("store-text and sketch-only exclude each other, got both")
    store = "text" if store_text else "sketch" if sketch_only else "shingles"
    with mw.Index.create(index, store=store, **settings_of(given)) as made:
        settings, plan = made.stats()["settings"], made.plan
    if given["as_json"]:
        click.echo(json.dumps({"index": index, "settings": settings}, indent=2))
    elif not given["quiet"]:
        found = "find" if not sketch_only else "propose"  # what an estimate keeps of them is another matter
        layout = f"{plan.bands} bands × {plan.rows} rows {found} {plan.recall:.2%} of documents at {plan.threshold:g}"
        click.echo(f"{index}: an empty index; {layout}")
