"""Help of commands: options under headings, commands by task, examples and exit codes."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import click

__all__ = ["HelpFormat", "option_key", "options_by_heading"]

# Every option by its key, below the heading that shows it; headings and options in the order of the help, most used
# first. A test compares the table with the commands.
HEADINGS: Mapping[str, tuple[str, ...]] = {
    "Input": (
        *("index", "create", "text_column", "id_column", "format", "delimiter", "encoding", "html", "on_error"),
        *("column", "metadata_column", "among"),
        *("group_by", "item", "weight", "separator", "transpose", "sample", "truth", "audit"),
        *("evals", "eval_columns", "eval_id_column"),
    ),
    "Similarity": (
        *("threshold", "min_tokens", "unit", "min_count", "snap", "from", "step", "search"),
        *("ngram", "min_share", "min_ngrams", "common_share", "common_count"),
        *("shingle", "fields", "weights", "radius", "top", "at_least", "mutual", "one_to_one", "where"),
        *("measure", "within", "across", "discount", "recall", "exact"),
        *("verify", "bag", "strip_punctuation", "strip_accents", "mask_digits", "lowercase", "nfkc"),
        "collapse_whitespace",
    ),
    "What to keep": (
        "action",
        "keep",
        "prefer",
        "protect",
        "copies",
        "drop_all",
        "target",
        "against",
        "against_run",
        "update",
        "min_left",
        "group",
        "unique",
        "assign",
        "on_duplicate_id",
        "ids",
        "older_than",
        "before",
        "time_field",
        "all",
        "store_text",
        "sketch_only",
    ),
    "Output": (
        *(
            "output",
            "overwrite",
            "dry_run",
            "sources",
            "field_similarities",
            "passages",
            "mark",
            "mark_names",
            "add_weight",
            "votes",
            "full",
            "plot",
            "save_frequencies",
            "save_state",
            "json",
            "quiet",
        ),
    ),
    "Machine": ("memory", "threads", "work"),
    "Spark": ("engine", "master", "spark_conf"),
    "Access": ("host", "port", "token_file", "read_only", "allow_host", "read", "write", "name"),
    "Limits": (
        *("cache", "max_document", "max_metadata", "max_compare", "max_request", "max_documents", "max_depth"),
        *("max_in_flight", "max_connections", "receive_timeout", "drain_timeout"),
    ),
    "Advanced": (
        "scheme",
        "slots",
        "bands",
        "rows",
        "width",
        "hashes",
        "tables",
        "seed",
        "max_bucket",
        "max_candidates",
        "frequencies",
    ),
    "General": ("verbose", "log_format", "config", "show_config", "version", "help"),
}
# Heading of an option that the table does not list.
OTHER = "Advanced"
EXIT_CODES = (
    "0 success, 1 failure, 2 usage error, 74 input or output failed, 130 interrupted (Ctrl-C), 143 terminated (SIGTERM)"
)
# Widest column of options and their values; a longer list of choices is shown with the help text.
MAX_DECLARATION = 26


def option_key(option: click.Parameter) -> str:
    """Return the name of an option as settings have it: ``text_column`` for ``--text-column``."""
    return max(option.opts, key=len).lstrip("-").replace("-", "_")


def options_by_heading(options: Iterable[click.Option]) -> dict[str, list[click.Option]]:
    """Return options below their headings, both in the order of the help."""
    heading_of = {key: heading for heading, keys in HEADINGS.items() for key in keys}
    listed = list(heading_of)
    found: dict[str, list[click.Option]] = {heading: [] for heading in HEADINGS}
    for option in sorted(options, key=lambda one: listed.index(key) if (key := option_key(one)) in listed else 0):
        found[heading_of.get(option_key(option), OTHER)].append(option)
    return {heading: below for heading, below in found.items() if below}


class HelpFormat(click.Command):
    """Command whose docstring may end with ``Examples:`` and a line per example.

    Attributes:
        examples: Lines of the examples; one that begins with ``#`` explains the next.
    """

    examples: tuple[str, ...]

    def __init__(self, *arguments: Any, **rest: Any) -> None:  # noqa: ANN401 - click's own
        text, _, examples = inspect.cleandoc(rest.pop("help", None) or "").partition("\nExamples:\n")
        self.examples = tuple(line.strip() for line in examples.splitlines() if line.strip())
        super().__init__(*arguments, **{**rest, "help": text})

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description and the examples."""
        super().format_help_text(ctx, formatter)
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below their headings."""
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option) and not one.hidden]
        records = {option: _record(option, ctx) for option in options}
        width = max(len(declaration) for declaration, _ in records.values() if len(declaration) <= MAX_DECLARATION)
        for heading, below in options_by_heading(options).items():
            with formatter.section(heading):
                rows = [(f"{left:<{width}}", right) for left, right in map(records.__getitem__, below)]
                formatter.write_dl(rows, col_max=width)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes."""
        formatter.write_paragraph()
        formatter.write_text(f"Exit codes: {EXIT_CODES}.")


def _record(option: click.Option, ctx: click.Context) -> tuple[str, str]:
    """Return an option and its help text; a long list of choices goes to the help text."""
    declaration, text = option.get_help_record(ctx) or ("", "")
    if not isinstance(option.type, click.Choice) or len(declaration) <= MAX_DECLARATION:
        return declaration, text
    choices = ", ".join(map(str, option.type.choices))
    return f"{declaration.partition(' [')[0]} NAME", f"{text}  [one of: {choices}]"
