"""Pages that are generated, wholly or between two marks, and pictures."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.quality.readme import IN_README, full_rows, special_rows
from benchmarks.readme import end, newest_record, section, start, table, where
from docs.tools.cli_page import cli_page
from docs.tools.module_map import module_map
from docs.tools.settings_page import settings_page
from minwise.plan import Plan
from minwise.report.curve import draw_curve

__all__ = ["PAGES", "GeneratedPage"]

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
SIZING = ROOT / "docs" / "explanation" / "sizing.md"
QUALITY = ROOT / "docs" / "explanation" / "quality.md"
MAP_START, MAP_END = (
    "<!-- module map: written by python -m docs.tools -->\n```text\n",
    "\n```\n<!-- end of module map -->",
)


@dataclass(frozen=True, slots=True)
class GeneratedPage:
    """A file, and what should be in it.

    Attributes:
        path: The file.
        made: What it should hold now.
    """

    path: Path
    made: Callable[[], str]


def design_page() -> str:
    """DESIGN.md with a new module map."""
    text = (ROOT / "DESIGN.md").read_text(encoding="utf-8")
    before, _, rest = text.partition(MAP_START)
    return before + MAP_START + module_map() + MAP_END + rest.partition(MAP_END)[2]


def sizing_page() -> str:
    """The page of sizes with the tables of the newest records, which the README has too."""
    text = SIZING.read_text(encoding="utf-8")
    for name in ("scale", "index"):
        before, _, rest = text.partition(start(name))
        text = before + section(name) + rest.partition(end(name))[2]
    return text


def quality_page() -> str:
    """The page of quality with the tables of its newest record."""
    record = newest_record("quality")
    columns = ["corpus, documents, sets", "threshold", "true pairs", "engine", "recall", "precision", "F1", "ARI"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    tables = {
        "corpora": f"{table(columns, list(full_rows(record)))}\n\n{versions}; {where(record)}.",
        "special documents": table(["pair", "for a reader", "similarity", *IN_README], list(special_rows(record))),
    }
    text = QUALITY.read_text(encoding="utf-8")
    for name, made in tables.items():
        mark, after = f"<!-- {name}: written by python -m docs.tools -->\n", end(name)
        before, _, rest = text.partition(mark)
        text = before + mark + made + "\n" + after + rest.partition(after)[2]
    return text


def curve_picture() -> str:
    """The S-curve of the tutorial."""
    return draw_curve(Plan(threshold=0.8, bands=20, rows=5))


PAGES = (
    GeneratedPage(REFERENCE / "cli.md", cli_page),
    GeneratedPage(REFERENCE / "settings.md", settings_page),
    GeneratedPage(ROOT / "DESIGN.md", design_page),
    GeneratedPage(SIZING, sizing_page),
    GeneratedPage(QUALITY, quality_page),
    GeneratedPage(ROOT / "docs" / "assets" / "s-curve.svg", curve_picture),
)
