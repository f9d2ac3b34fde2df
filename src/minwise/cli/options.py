"""Options that several commands share, derived from the definitions in :mod:`minwise.options`."""

import re
import shlex
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from minwise._internal.formatting import plural
from minwise.cli.config import Size
from minwise.cli.session import Session
from minwise.errors import ConfigError
from minwise.options import (
    AnyDedupOptions,
    CutOptions,
    DecontaminateOptions,
    DedupOptions,
    Definition,
    ExpireOptions,
    IndexOptions,
    NearestOptions,
    NormalisationOptions,
    PairsOptions,
    PassagesOptions,
    ValueOptions,
    definitions,
)
from minwise.results.output import refuse_existing_file
from minwise.server import ServerSettings

__all__ = [
    "MACHINE_OPTIONS",
    "NORMALISATION_NAMES",
    "OUTPUT_OPTIONS",
    "WORK_OPTION",
    "add_options",
    "among_option",
    "assign_option",
    "contamination_options",
    "copy_options",
    "cut_options",
    "discount_options",
    "ending_options",
    "engine_options",
    "expire_options",
    "growth_options",
    "index_options",
    "input_options",
    "layout_options",
    "measure_option",
    "nearest_options",
    "on_error_option",
    "output_file",
    "overwrite_option",
    "passage_options",
    "previewed_output",
    "record_options",
    "refuse_existing",
    "run_options",
    "search_options",
    "selection_options",
    "separator_option",
    "set_options",
    "setting_option",
    "settings_of",
    "table_output",
    "value_options",
    "verbosity_options",
    "with_option_names",
]

OPTION_CLASSES = (
    AnyDedupOptions,
    PairsOptions,
    IndexOptions,
    ExpireOptions,
    PassagesOptions,
    DecontaminateOptions,
    NearestOptions,
)
SETTINGS = dict.fromkeys(name for options in OPTION_CLASSES for name in definitions(options))
NAMES = "|".join([*SETTINGS, "field_similarities"])  # a parameter of two calls
SERVER_NAMES = definitions(ServerSettings)
# A setting and its value as Python gives them; a setting that a message is about, or that only Python spells like this.
PYTHON_VALUE = re.compile(rf"\b({NAMES})='([^']*)'")
PYTHON_FLAG = re.compile(r"\b(\w+)=True\b")
PYTHON_NAME = re.compile(
    rf"^({NAMES})(?= must )|\bsettings\.({NAMES})\b"
    rf"|(?<![.\w])({'|'.join(name for name in (*NAMES.split('|'), *SERVER_NAMES) if '_' in name)})\b"
)
# A directory or file that a remedy asks for.
PLACES = {"work": "--work", "output": "-o"}
PYTHON_PLACE = re.compile(r"\banother (work|output)\b")
# Options of commands that are not settings of the library.
NOT_SETTINGS = ("as_json", "quiet", "overwrite")
Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Command], Command]


def add_options(*options: Option[Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command; its help shows them in this order."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def with_option_names(message: str) -> str:
    """Return an error message of the library with settings named as the command line names them.

    >>> with_option_names("row 1: text is null; set on_error='quarantine' to skip such rows")
    'row 1: text is null; set --on-error quarantine to skip such rows'
    >>> with_option_names("x.csv: has a header that 2 delimiters may divide; set delimiter=',' or delimiter=';'")
    "x.csv: has a header that 2 delimiters may divide; set --delimiter , or --delimiter ';'"
    >>> with_option_names("work belongs to a run with settings.max_bucket 2000, got 100")
    'work belongs to a run with --max-bucket 2000, got 100'
    >>> with_option_names("threshold must be a number above 0 and at most 1, got 2")
    '--threshold must be a number above 0 and at most 1, got 2'
    >>> with_option_names("output must be new or empty, got out; give another output or overwrite=True")
    'output must be new or empty, got out; give another -o or --overwrite'
    """
    message = PYTHON_PLACE.sub(lambda found: f"another {PLACES[found[1]]}", message)
    flags = PYTHON_FLAG.sub(lambda found: _flag(found[1]), message)
    given = PYTHON_VALUE.sub(lambda found: f"{_flag(found[1])} {shlex.quote(found[2])}", flags)
    return PYTHON_NAME.sub(lambda found: _flag(found[found.lastindex or 0]), given)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def setting_option(name: str, *, of: type = DedupOptions, **changes: Any) -> Option[Any]:  # noqa: ANN401 - click's own
    """Return the option of a setting: its type, default and help follow from the definition.

    Args:
        name: The name of the setting.
        of: The option class that defines it.
        **changes: Arguments of ``click.option`` that differ on the command line.
    """
    definition = definitions(of)[name]
    negative = f"/--no-{name.replace('_', '-')}" if definition.type is bool and definition.default else ""
    return click.option(
        f"{_flag(name)}{negative}",
        **{**_click_arguments(definition), "help": with_option_names(definition.help), **changes},
    )


def _click_arguments(definition: Definition) -> dict[str, Any]:
    if definition.type is bool:
        return {"is_flag": True, "default": definition.default, "show_default": bool(definition.default)}
    default = {"default": definition.default, "show_default": definition.default is not None}
    return {"type": _value_type(definition), **default}


def _value_type(definition: Definition) -> Any:  # noqa: ANN401 - a type of click or of Python
    if definition.choices:
        return click.Choice(list(definition.choices))
    kinds = get_args(definition.type) or (definition.type,)
    if str in kinds and int in kinds:
        return Size()
    return next((kind for kind in (str, int, float) if kind in kinds), str)


def _setting_options(*names: str, of: type = DedupOptions) -> tuple[Option[Any], ...]:
    return tuple(setting_option(name, of=of) for name in names)


def on_error_option(subject: str) -> Option[Any]:
    """Return the option that says what to do with rows or vectors that cannot be used."""
    meaning = (
        f"What to do with {subject}: fail; quarantine-rows lists them, but fails for an input of which no row can be"
        " read; quarantine lists them; skip leaves them out."
    )
    return setting_option("on_error", default="quarantine-rows", help=meaning)


MACHINE_OPTIONS = _setting_options("memory", "threads")
WORK_OPTION = setting_option("work", type=click.Path())


def refuse_existing(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Refuse an output file with content unless --overwrite is given, before anything is read."""
    if value and value != "-" and not (context.params.get("overwrite") or context.resilient_parsing):
        refuse_existing_file(value)
    return value


def refuse_existing_frequencies(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Refuse a file of frequencies with content unless --overwrite is given, before anything is read."""
    size = Path(value).stat().st_size if value and Path(value).is_file() else 0
    if size and not (context.params.get("overwrite") or context.resilient_parsing):
        rule = f"--save-frequencies must be a new or empty file, got {value} with {plural(size, 'byte')}"
        raise ConfigError(f"{rule}; give another file{' or --overwrite' if 'overwrite' in context.params else ''}")
    return value


overwrite_option = click.option(
    "--overwrite", is_flag=True, is_eager=True, help="Replace an existing output that is not empty."
)


def _set_verbose(context: click.Context, option: click.Parameter, given: bool) -> None:
    context.ensure_object(Session).verbose = given


def _set_log_format(context: click.Context, option: click.Parameter, given: str | None) -> None:
    context.ensure_object(Session).log_format = given


def output_file(help: str, **changes: Any) -> Option[Any]:  # noqa: A002, ANN401 - click's own
    """Return -o for an output file, and --overwrite, without which an existing one is refused.

    Args:
        help: What is written to the file.
        **changes: Arguments of ``click.option``.
    """
    settings = {"type": click.Path(), "default": None, "callback": refuse_existing, "help": help, **changes}
    return add_options(click.option("-o", "--output", **settings), overwrite_option)


TABLE_OUTPUT = "A .parquet, .csv, .tsv or .jsonl file, or its URL; - prints JSON lines."
table_output = output_file(TABLE_OUTPUT, required=True)
# Output of commands that show the first rows if there is none.
previewed_output = output_file(f"{TABLE_OUTPUT} Without it the first rows are shown.")
OUTPUT_OPTIONS = (
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the summary."),
    click.option("--quiet", is_flag=True, help="Show neither progress nor summary."),
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_set_verbose,
        help="Log the start and the end of each stage, with counts and seconds, instead of progress bars.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default=None,
        expose_value=False,
        callback=_set_log_format,
        help="Log each stage as a line of text or as a JSON object; errors are JSON objects, too.",
    ),
)
LAYOUT_NAMES = ("shingle", "threshold", "recall", "bag", "scheme", "slots", "bands", "rows", "seed", "max_bucket")
INPUT_OPTIONS = (
    setting_option("text_column", multiple=True, default=("text",), help="Column of the text; repeatable."),
    *_setting_options("id_column", "format", "delimiter", "encoding"),
    on_error_option("rows that cannot be read"),
    *MACHINE_OPTIONS,
)

# Settings of texts, in the order in which they are applied.
NORMALISATION_NAMES = tuple(definitions(NormalisationOptions))
# Settings that decide which pairs become candidates.
layout_options = add_options(*_setting_options(*LAYOUT_NAMES, *NORMALISATION_NAMES))
# Settings that decide which pairs are found: candidates, and how they are verified.
search_options = add_options(*_setting_options(*LAYOUT_NAMES, *NORMALISATION_NAMES, "exact", "verify"))
# Measure of pairs and of documents to keep.
measure_option = setting_option("measure")
# Second table of a search for pairs of two tables.
among_option = setting_option(
    "among",
    of=PairsOptions,
    multiple=True,
    default=(),
    type=click.Path(),
    help="Second table: find only pairs of a document of INPUTS and one of these files; repeatable.",
)
# Column whose values decide what is compared.
value_options = add_options(*(setting_option(name, metavar="COL") for name in definitions(ValueOptions)))
# Weights of elements.
discount_options = add_options(
    setting_option("discount"),
    setting_option("frequencies", type=click.Path()),
    setting_option("save_frequencies", type=click.Path(), callback=refuse_existing_frequencies),
)
# Settings of documents that are sets, groups of rows or records.
set_options = add_options(
    *(setting_option(name, metavar="COL") for name in ("group_by", "item", "weight")),
    setting_option("transpose"),
    setting_option("separator", metavar="TEXT"),
    *_setting_options("fields", "weights", "html"),
)
# Settings that decide where a run takes place.
engine_options = add_options(
    setting_option("engine"),
    setting_option("master", metavar="URL"),
    setting_option(
        "spark_conf",
        multiple=True,
        default=(),
        metavar="KEY=VALUE",
        help="A Spark configuration property; repeatable.",
    ),
)
# Settings of documents to keep.
selection_options = add_options(
    setting_option(
        "against",
        multiple=True,
        default=(),
        type=click.Path(),
        help="Reference corpus: also remove what is in these files; repeatable.",
    ),
    setting_option("keep"),
    setting_option("prefer", metavar="COL=VALUES"),
    setting_option(
        "protect",
        multiple=True,
        default=(),
        metavar="COL=VALUE",
        help="Rows that are never removed, such as source=wiki; other rows are removed for them; repeatable.",
    ),
    setting_option("group"),
)
# Settings of how many documents of a cluster are kept.
copy_options = add_options(*_setting_options("copies", "drop_all"))
# Settings of what is done with clusters.
ending_options = add_options(
    copy_options,
    *_setting_options("mark", "mark_names"),
    setting_option("add_weight", metavar="NAME=EXPR"),
    setting_option("votes", metavar="COL"),
    setting_option("target"),
)
# Settings of a corpus that grows.
growth_options = add_options(
    setting_option(
        "against_run",
        multiple=True,
        default=(),
        type=click.Path(),
        help="Output directory of an earlier run with the same settings: also remove what its kept rows have, and those"
        " of the runs that it was run against. Saved states are read instead of the rows; repeatable.",
    ),
    setting_option("save_state"),
    setting_option("update", type=click.Path(), metavar="INDEX"),
)
input_options = add_options(*INPUT_OPTIONS)
run_options = add_options(*INPUT_OPTIONS, WORK_OPTION, *OUTPUT_OPTIONS)
verbosity_options = add_options(*OUTPUT_OPTIONS)
# Settings of repeated passages.
passage_options = add_options(
    *_setting_options("min_tokens", "unit", "min_count", of=PassagesOptions),
    setting_option(
        "against",
        of=PassagesOptions,
        multiple=True,
        default=(),
        type=click.Path(),
        help="Reference corpus: list only passages that stand in these files; repeatable.",
    ),
    *_setting_options("keep", "html", "seed", *NORMALISATION_NAMES, of=PassagesOptions),
)
# Settings of nearest documents.
nearest_options = add_options(
    setting_option(
        "among",
        of=NearestOptions,
        multiple=True,
        default=(),
        type=click.Path(),
        help="List documents of these files instead of those of INPUTS; repeatable.",
    ),
    *_setting_options("top", "at_least", "mutual", "one_to_one", of=NearestOptions),
    *_setting_options("shingle", "bag", "seed", *NORMALISATION_NAMES, "engine", of=NearestOptions),
)
# Settings of cuts.
cut_options = add_options(*_setting_options(*definitions(CutOptions), of=CutOptions))
# Settings of evaluation items and of what to do with the rows that contain them.
contamination_options = add_options(
    *_setting_options("action", "eval_columns", "eval_id_column", "ngram", "min_share", of=DecontaminateOptions),
    *_setting_options("min_ngrams", "common_share", "common_count", of=DecontaminateOptions),
    *_setting_options("html", "seed", *NORMALISATION_NAMES, of=DecontaminateOptions),
)
# Settings of the documents of a new index that are records, and of items in files.
expire_options = add_options(*_setting_options(*definitions(ExpireOptions), of=ExpireOptions))
record_options = add_options(*_setting_options("fields", "weights", of=IndexOptions))
separator_option = setting_option("separator", metavar="TEXT")
assign_option = setting_option("assign", of=IndexOptions)
# Settings of a new index.
index_options = add_options(
    *_setting_options(*LAYOUT_NAMES, *NORMALISATION_NAMES, "store_text", "sketch_only", "assign", of=IndexOptions)
)


def settings_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings among the options of a command, as the library takes them."""
    settings = {name: value for name, value in given.items() if name not in NOT_SETTINGS}
    if "against_run" in settings:
        settings["against_run"] = settings["against_run"] or None
    if "spark_conf" in settings:
        settings["spark_conf"] = _spark_conf(settings["spark_conf"])
    return settings


def _spark_conf(given: tuple[str, ...]) -> dict[str, str] | None:
    """Return Spark properties by name; the last one of a name counts, as with spark-submit."""
    for text in given:
        if "=" not in text:
            raise ConfigError(f"spark-conf must be KEY=VALUE, got {text!r}")
    return dict(text.split("=", 1) for text in given) or None
