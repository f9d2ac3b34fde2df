"""The options that several commands share. Each has the name of the setting it sets."""

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeVar

import click

import minwise as mw

__all__ = [
    "MACHINE",
    "SHOWN",
    "WORK",
    "add_options",
    "engine_options",
    "find_options",
    "index_options",
    "index_settings_of",
    "on_error_option",
    "plan_options",
    "reading_options",
    "running_options",
    "settings_of",
    "shape_options",
    "shown_options",
    "table_output",
]

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Command], Command]


def add_options(*options: Option[Any]) -> Callable[[Command], Command]:
    """What adds options to a command, whose help shows them in this order."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def on_error_option(what: str) -> Option[Any]:
    """The option that says what becomes of what can not be used."""
    return click.option(
        "--on-error",
        default="quarantine",
        show_default=True,
        type=click.Choice(["quarantine", "skip", "fail"]),
        help=f"What becomes of {what}.",
    )


MACHINE = (
    click.option(
        "--memory", default="4GB", show_default=True, help="Memory for data; the process takes up to 300MB more."
    ),
    click.option("--threads", type=int, default=None, help="Threads; all cores if not given."),
)
table_output = click.option(
    "-o", "--output", required=True, type=click.Path(), help="A .parquet, .csv, .tsv or .jsonl file; - for JSON lines."
)
WORK = click.option("--work", type=click.Path(), default=None, help="Directory that makes the run resumable.")


def shingle_option(kinds: str) -> Option[Any]:
    """How texts are cut, by one of some kinds."""
    return click.option("--shingle", default="word:5", show_default=True, help=f"{kinds}.")


LAYOUT = (
    click.option(
        "--threshold", default=0.8, show_default=True, help="Similarity from which on two are near-duplicates."
    ),
    click.option("--recall", default=0.99, show_default=True, help="Wanted chance to find a pair at the threshold."),
    click.option("--bag", is_flag=True, help="Count repeated shingles."),
    click.option("--scheme", default="fast", show_default=True, type=click.Choice(["fast", "minhash"]), help="Sketch."),
    click.option("--slots", default=256, show_default=True, help="Slots that the plan may use."),
    click.option("--bands", type=int, default=None, help="Number of bands; with --rows, in place of --recall."),
)
PLAN = (
    shingle_option("word:N, char:N or byte:N; set for sets of items"),
    *LAYOUT,
    click.option("--seed", default=1, show_default=True, help="Seed of every hash."),
    click.option(
        "--max-bucket", default=2000, show_default=True, help="Members up to which all are compared with all."
    ),
)
INDEX = (
    shingle_option("word:N, char:N or byte:N"),
    *LAYOUT,
    click.option("--rows", type=int, default=None, help="Slots per band; with --bands."),
    click.option("--seed", type=int, default=None, help="Seed of every hash; a secret one is drawn if not given."),
    click.option(
        "--max-bucket", default=64, show_default=True, help="Members up to which a whole bucket is looked at."
    ),
    click.option("--store-text", is_flag=True, help="Keep the texts too, to show passages of them."),
    click.option("--sketch-only", is_flag=True, help="Keep only sketches: smaller, and similarities are estimates."),
)
CHECK = (
    click.option(
        "--exact",
        is_flag=True,
        help="Find every pair, by an exact join in place of bands; slower. The cap on identical ones stays.",
    ),
    click.option(
        "--verify",
        default="exact",
        show_default=True,
        type=click.Choice(["exact", "signature", "none"]),
        help="How candidate pairs are checked.",
    ),
)
SHAPE = (
    click.option("--group-by", default=None, metavar="COL", help="Column of the set that a row belongs to."),
    click.option("--item", default=None, metavar="COL", help="Column of the item that it adds to that set."),
    click.option("--weight", default=None, metavar="COL", help="Column of how often it adds it: whole numbers."),
    click.option("--transpose", is_flag=True, help="Turn sets and items round: find similar items."),
    click.option(
        "--separator", default=None, metavar="TEXT", help="What stands between items in a string; white space on lines."
    ),
    click.option("--fields", default=None, help="Fields of records, such as 'name:char:3 phone:digits born:whole'."),
    click.option("--weights", default=None, help="How much fields count, such as 'name=2'; 1 if not given."),
    click.option("--html", is_flag=True, help="Texts are pages of HTML: leave out markup, scripts and styles."),
)
READING = (
    click.option(
        "--text-column", multiple=True, default=("text",), show_default=True, help="Column of the text; repeatable."
    ),
    click.option("--id-column", default=None, help="Column of the id; id if there is one, else source:row."),
    click.option(
        "--format",
        default=None,
        type=click.Choice(["parquet", "jsonl", "csv", "tsv", "arrow", "text", "baskets", "named-baskets"]),
        help="Format of files whose names do not tell; the last two are a set of items on each line.",
    ),
    on_error_option("rows that can not be read"),
    *MACHINE,
)
SHOWN = (
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the summary."),
    click.option("--quiet", is_flag=True, help="Show neither progress nor summary."),
)
ENGINE = (
    click.option(
        "--engine",
        default="local",
        show_default=True,
        type=click.Choice(["local", "spark"]),
        help="Who does the work: this machine, or Apache Spark; the result is the same.",
    ),
    click.option(
        "--master",
        default=None,
        metavar="URL",
        help="Where Spark runs: local[*], spark://HOST:PORT, yarn or k8s://URL; as Spark is set up if not given.",
    ),
    click.option(
        "--spark-conf", multiple=True, default=(), metavar="KEY=VALUE", help="A setting of Spark's own; repeatable."
    ),
)


# Who does the work.
engine_options = add_options(*ENGINE)
# The settings that an index is made with.
index_options = add_options(*INDEX)
# The settings that decide what is proposed.
plan_options = add_options(*PLAN)
# The settings that decide what is found: what is proposed, and how it is checked.
find_options = add_options(*PLAN, *CHECK)
# The settings of reading.
reading_options = add_options(*READING)
# The settings of reading and running.
running_options = add_options(*READING, WORK, *SHOWN)
# What documents are if they are not plain texts.
shape_options = add_options(*SHAPE)
# How to say what was done.
shown_options = add_options(*SHOWN)


def settings_of(given: dict[str, Any]) -> dict[str, Any]:
    """The settings among the options, as the library takes them."""
    rest = {"as_json", "quiet"}
    settings = {name: value for name, value in given.items() if name not in rest}
    if "spark_conf" in settings:
        settings["spark_conf"] = _spark_conf(settings["spark_conf"])
    return settings


def _spark_conf(given: tuple[str, ...]) -> dict[str, str] | None:
    """Settings of Spark by name; the last one of a name counts, as with spark-submit."""
    for one in given:
        if "=" not in one:
            raise mw.ConfigError(f"spark-conf must be KEY=VALUE, got {one!r}")
    return dict(one.split("=", 1) for one in given) or None


def index_settings_of(given: dict[str, Any]) -> dict[str, Any]:
    """The settings of an index among the options, as ``mw.Index.create`` takes them."""
    rest = settings_of(given)
    store_text, sketch_only = rest.pop("store_text"), rest.pop("sketch_only")
    if store_text and sketch_only:
        raise mw.ConfigError("store-text and sketch-only exclude each other, got both")
    return {**rest, "store": "text" if store_text else "sketch" if sketch_only else "shingles"}
