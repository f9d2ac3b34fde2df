"""Generated pages, generated blocks of pages, and generated pictures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.decontaminate.__main__ import share_rows
from benchmarks.markdown import Record, machine_and_date, table
from benchmarks.quality.markdown_tables import COMPARED, corpus_rows, full_rows, size_rows, special_rows
from benchmarks.quality.partial_copies import figure_rows
from benchmarks.quality.templates import COLUMNS as TEMPLATE_COLUMNS
from benchmarks.quality.templates import figure_rows as template_rows
from benchmarks.spark.markdown_tables import sizing_tables
from benchmarks.tables import README_TABLES, SECTIONS, corpora_table, newest_record, newest_tables
from docs.tools.cli_page import cli_page
from docs.tools.module_map import module_map
from docs.tools.option_docstrings import MODULES, with_option_docstrings
from docs.tools.settings_page import settings_page
from docs.tools.shingle_pictures import scattered_picture, thresholds_table
from minwise.sketches.planning import Plan
from minwise.sketches.s_curve import draw_curve

__all__ = ["PAGES", "GeneratedPage"]

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
README = ROOT / "README.md"
SIZING = ROOT / "docs" / "explanation" / "sizing.md"
SPEED = ROOT / "docs" / "explanation" / "speed.md"
BENCHMARKS = ROOT / "benchmarks" / "README.md"
QUALITY = ROOT / "docs" / "explanation" / "quality.md"
CHOOSING = ROOT / "docs" / "guides" / "choosing.md"
SPARK_GUIDE = ROOT / "docs" / "guides" / "spark.md"
DECONTAMINATE_GUIDE = ROOT / "docs" / "guides" / "decontaminate.md"
FASTSKETCH = ROOT / "docs" / "explanation" / "fastsketch.md"
MAP_START, MAP_END = (
    "<!-- module map: written by python -m docs.tools -->\n```text\n",
    "\n```\n<!-- end of module map -->",
)


@dataclass(frozen=True, slots=True)
class GeneratedPage:
    """A generated file.

    Attributes:
        path: Path of the file.
        render: Returns the expected content of the file.
    """

    path: Path
    render: Callable[[], str]


def design_page() -> str:
    """Return DESIGN.md with the current module map."""
    text = (ROOT / "DESIGN.md").read_text(encoding="utf-8")
    before, _, rest = text.partition(MAP_START)
    return before + MAP_START + module_map() + MAP_END + rest.partition(MAP_END)[2]


def with_tables(page: Path, tables: Mapping[str, str]) -> str:
    """Return a page with new content between the markers of each table."""
    text = page.read_text(encoding="utf-8")
    for name, content in tables.items():
        start, end = f"<!-- {name}: written by python -m docs.tools -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(start)
        text = before + start + content + "\n" + end + rest.partition(end)[2]
    return text


def readme_page() -> str:
    """Return the README with the tables of the newest records."""
    return with_tables(README, newest_tables(README_TABLES))


def sizing_page() -> str:
    """Return the sizing page with the tables of the newest records."""
    return with_tables(SIZING, newest_tables(("scale", "index")))


def speed_page() -> str:
    """Return the speed page with all tables except those of other pages."""
    return with_tables(SPEED, newest_tables(name for name in SECTIONS if name not in ("quality", "bounds")))


def benchmarks_page() -> str:
    """Return the README of the benchmarks with the table of bounds."""
    return with_tables(BENCHMARKS, newest_tables(["bounds"]))


def quality_page() -> str:
    """Return the quality page with the tables of the newest record."""
    record = newest_record("quality")
    columns = ["corpus, documents, shingles", "threshold", "true pairs", "engine", "recall", "precision", "F1", "ARI"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    tables = {
        "names": table(["corpus", "contents", "documents", "shingles"], list(corpus_rows(record))),
        "corpora": corpora_table(record),
        "every figure": f"{table(columns, list(full_rows(record)))}\n\n{versions}; {machine_and_date(record)}.",
        "partial copies": partial_copies_table(newest_record("partial-copies")),
        "templates": templates_table(newest_record("templates")),
        "special documents": table(["pair", "expected", "similarity", *COMPARED], list(special_rows(record))),
    }
    return with_tables(QUALITY, tables)


def partial_copies_table(record: Record) -> str:
    """Return recall, precision and F1 of each way to find copied parts."""
    columns = ["corpus", "copied, of all labelled", "method", "recall", "precision", "F1"]
    return f"{table(columns, list(map(list, figure_rows(record))))}\n\n{machine_and_date(record)}."


def templates_table(record: Record) -> str:
    """Return what is removed with and without a discount, for shingles of five words."""
    five = {"corpora": [corpus for corpus in record["corpora"] if corpus["shingle"] == "word:5"]}
    columns = [name for name in TEMPLATE_COLUMNS if name != "shingle"]
    shown = table(columns, [[row[0], *row[2:]] for row in template_rows(five)])
    return f"{shown}\n\n{machine_and_date(record)}."


def fastsketch_page() -> str:
    """Return the FastSketch page with the errors by set size of the newest record."""
    record = newest_record("figures")
    settings = record["settings"]
    slots = settings["slots_for_sizes"]
    columns = ["set size", "FastSketch", "one permutation", f"{slots} functions"]
    how = f"{slots} slots, {settings['pairs']:,} pairs with a similarity of {settings['similarity']} per row"
    return with_tables(FASTSKETCH, {"errors": f"{table(columns, list(size_rows(record)))}\n\n{how}."})


def spark_page() -> str:
    """Return the Spark guide with the cluster sizes of the newest record, if it has the run that they follow from."""
    return with_tables(SPARK_GUIDE, sizing_tables(newest_record("spark")))


def decontaminate_page() -> str:
    """Return the guide of decontamination with recall and flagged rows by threshold of the newest record."""
    record = newest_record("decontaminate")
    edits = ["1 word replaced", *(f"{count} words" for count in range(2, 6))]
    columns = ["`--min-share`", "unchanged", *edits, "controls", "news", "rows flagged"]
    content = f"{table(columns, list(share_rows(record)))}\n\n{machine_and_date(record)}."
    return with_tables(DECONTAMINATE_GUIDE, {"planted items": content})


def choosing_page() -> str:
    """Return the page on shingles and thresholds with the table of tolerated edits."""
    return with_tables(CHOOSING, {"tolerated edits": thresholds_table()})


def curve_picture() -> str:
    """Return the S-curve of the tutorial."""
    return draw_curve(Plan(threshold=0.8, bands=20, rows=5))


PAGES = (
    GeneratedPage(REFERENCE / "cli.md", cli_page),
    GeneratedPage(REFERENCE / "settings.md", settings_page),
    *(GeneratedPage(module, partial(with_option_docstrings, module)) for module in MODULES),
    GeneratedPage(ROOT / "DESIGN.md", design_page),
    GeneratedPage(README, readme_page),
    GeneratedPage(SIZING, sizing_page),
    GeneratedPage(SPEED, speed_page),
    GeneratedPage(BENCHMARKS, benchmarks_page),
    GeneratedPage(QUALITY, quality_page),
    GeneratedPage(FASTSKETCH, fastsketch_page),
    GeneratedPage(CHOOSING, choosing_page),
    GeneratedPage(SPARK_GUIDE, spark_page),
    GeneratedPage(DECONTAMINATE_GUIDE, decontaminate_page),
    GeneratedPage(ROOT / "docs" / "assets" / "s-curve.svg", curve_picture),
    GeneratedPage(ROOT / "docs" / "assets" / "scattered-edits.svg", scattered_picture),
)
