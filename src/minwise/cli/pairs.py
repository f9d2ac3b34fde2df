"""minwise pairs and minwise clusters."""

from typing import Any

import click

import minwise as mw
from minwise.cli.base import Command
from minwise.cli.options import (
    among_option,
    discount_options,
    engine_options,
    measure_option,
    previewed_output,
    run_options,
    search_options,
    set_options,
    setting_option,
    settings_of,
    value_options,
)
from minwise.cli.output import report_printer, watched_progress
from minwise.inputs import Files
from minwise.options import ClustersOptions

__all__ = ["clusters", "pairs"]


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@previewed_output
@among_option
@click.option("--sources", is_flag=True, help="Add source and row of both documents.")
@click.option(
    "--field-similarities", is_flag=True, help="With --fields, add a column FIELD_similarity for each field of a pair."
)
@click.option(
    "--truth",
    default=None,
    metavar="COL",
    help="Ground-truth entity column; adds pairs completeness (recall), pairs quality (precision) and reduction ratio.",
)
@search_options
@measure_option
@value_options
@discount_options
@set_options
@engine_options
@run_options
def pairs(
    inputs: tuple[str, ...],
    output: str | None,
    sources: bool,
    field_similarities: bool,
    truth: str | None,
    **given: Any,  # noqa: ANN401 - click's values
) -> None:
    """List every pair of near-duplicates in INPUTS, with similarities.

    Columns are left, right and similarity. Pairs are in document order; identical documents are pairs too. Without -o,
    the first pairs are shown with the beginnings of their texts.
    With --among, left is a document of INPUTS and right one of the second table.
    Documents are texts, sets of items (--shingle set, or --group-by and --item) or records (--fields).

    Examples:
        minwise pairs articles/
        minwise pairs news.parquet --shingle char:5 --threshold 0.6 -o found.csv
        minwise pairs people.csv --fields 'name:char:3 phone:digits' -o pairs.csv
        minwise pairs a.csv --among b.csv --fields 'name:char:3' -o links.csv
    """
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    show = report_printer("pairs", output, watch, quiet=given["quiet"], as_json=given["as_json"])
    show(
        mw.write_pairs(
            Files(inputs),
            output,
            sources=sources,
            field_similarities=field_similarities,
            truth=truth,
            overwrite=given["overwrite"],
            progress=watch,
            **_settings(given),
        )
    )


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@previewed_output
@among_option
@setting_option("group", of=ClustersOptions)
@search_options
@value_options
@discount_options
@set_options
@engine_options
@run_options
def clusters(inputs: tuple[str, ...], output: str | None, **given: Any) -> None:  # noqa: ANN401 - click's values
    """List the cluster of every document in INPUTS: id, cluster, size.

    A cluster has the id of its first document; a document without near-duplicates is a cluster of its own. Without -o,
    the first clusters are shown with the beginnings of their texts.
    With --among, pairs of both tables form clusters; the columns table and cluster_table, left for INPUTS or right for
    the second table, say where an id is from. A cluster has the id of its first document in the second table.

    Examples:
        minwise clusters articles/
        minwise clusters news.jsonl --text-column body -o clusters.parquet
        minwise clusters ratings.csv --group-by user --item film -o users.csv
    """
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    show = report_printer("clusters", output, watch, quiet=given["quiet"], as_json=given["as_json"])
    show(mw.write_clusters(Files(inputs), output, overwrite=given["overwrite"], progress=watch, **_settings(given)))


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings among the options, with the files of the second table, if there are any."""
    return {**settings_of(given), "among": Files(given["among"]) or None}
