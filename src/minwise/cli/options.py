"""The options that several commands share. Each has the name of the setting it sets."""

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeVar

import click

import minwise as mw

__all__ = [
    "engine_options",
    "find_options",
    "index_options",
    "index_settings_of",
    "plan_options",
    "reading_options",
    "running_options",
    "settings_of",
    "shape_options",
    "shown_options",
]

Command = TypeVar("Command", bound=Callable[..., Any])

LAYOUT = (
    click.option(
        "--threshold", default=0.8, show_default=True, help="Similarity from which on two are near-duplicates."
    ),
    click.option("--recall", default=0.99, show_default=True, help="Wanted chance to find a pair at the threshold."),
    click.option(
        "--shingle", default="word:5", show_default=True, help="word:N, char:N or byte:N; set for sets of items."
    ),
    click.option("--bag", is_flag=True, help="Count repeated shingles."),
    click.option("--scheme", default="fast", show_default=True, type=click.Choice(["fast", "minhash"]), help="Sketch."),
    click.option("--slots", default=256, show_default=True, help="Slots that the plan may use."),
    click.option("--bands", type=int, default=None, help="Number of bands; with --rows, in place of --recall."),
)
PLAN = (
    *LAYOUT,
    click.option("--seed", default=1, show_default=True, help="Seed of every hash."),
    click.option(
        "--max-bucket", default=2000, show_default=True, help="Members up to which all are compared with all."
    ),
)
INDEX = (
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
    click.option(
        "--on-error",
        default="quarantine",
        show_default=True,
        type=click.Choice(["quarantine", "skip", "fail"]),
        help="What becomes of rows that can not be read.",
    ),
    click.option("--memory", default="4GB", show_default=True, help="Memory to stay within."),
    click.option("--threads", type=int, default=None, help="Threads; all cores if not given."),
)
SHOWN = (
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the summary."),
    click.option("--quiet", is_flag=True, help="Show neither progress nor summary."),
)
RUNNING = (
    *READING,
    click.option("--work", type=click.Path(), default=None, help="Directory that makes the run resumable."),
    *SHOWN,
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


def engine_options(command: Command) -> Command:
    """Adds who does the work."""
    return _add(ENGINE, command)


def index_options(command: Command) -> Command:
    """Adds the settings that an index is made with."""
    return _add(INDEX, command)


def plan_options(command: Command) -> Command:
    """Adds the settings that decide what is proposed."""
    return _add(PLAN, command)


def find_options(command: Command) -> Command:
    """Adds the settings that decide what is found: what is proposed, and how it is checked."""
    return _add((*PLAN, *CHECK), command)


def running_options(command: Command) -> Command:
    """Adds the settings of reading and running."""
    return _add(RUNNING, command)


def reading_options(command: Command) -> Command:
    """Adds the settings of reading."""
    return _add(READING, command)


def shape_options(command: Command) -> Command:
    """Adds what documents are if they are not plain texts."""
    return _add(SHAPE, command)


def shown_options(command: Command) -> Command:
    """Adds how to say what was done."""
    return _add(SHOWN, command)


def _add(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    return reduce(lambda decorated, option: option(decorated), reversed(options), command)


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
