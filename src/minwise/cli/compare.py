"""``minwise compare``: similarity and shared passages of two texts."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import minwise as mw
from minwise._internal.formatting import plural
from minwise.cli.base import Command
from minwise.cli.files import read_bytes
from minwise.cli.options import LAYOUT_NAMES, NORMALISATION_NAMES, add_options, output_file, setting_option
from minwise.cli.output import shorten
from minwise.comparison import Comparison
from minwise.comparison.terminal import print_texts
from minwise.errors import ConfigError, InputError
from minwise.options import IndexOptions

__all__ = ["compare"]

SCHEMES = {"fast": mw.FastSketch, "minhash": mw.MinHash}
# Characters of each text that are shown without --full: a few screens.
MOST_SHOWN = 6000
# Characters of a file name on a terminal.
MOST_NAME = 40
# Matching bands that are listed by number; of more, only the count is useful.
SHOWN_BANDS = 12


@click.command(cls=Command)
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@add_options(*(setting_option(name, of=IndexOptions) for name in LAYOUT_NAMES if name not in ("seed", "max_bucket")))
@add_options(*(setting_option(name, of=IndexOptions) for name in NORMALISATION_NAMES))
@setting_option("seed")
@click.option("--full", is_flag=True, help="Show both texts whole, not only around their differences.")
@output_file("Write the texts side by side to this .html file instead of showing them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def compare(a: str, b: str, **given: Any) -> None:  # noqa: ANN401 - click's values
    """Show the similarity of two texts and their shared passages.

    A and B are files; - is standard input.

    Examples:
        minwise compare draft.txt final.txt
        minwise compare draft.txt final.txt --shingle word:3 --full
        minwise compare draft.txt final.txt -o differences.html
    """
    if a == b == "-":
        raise click.UsageError("only one of A and B may be - (standard input), got both")
    result = _compare(a, b, given)
    if given["output"] is not None:
        result.write_html(given["output"], names=(_name(a), _name(b)), overwrite=given["overwrite"])
    if given["as_json"]:
        click.echo(json.dumps(_as_dict(a, b, result, given), indent=2))
    else:
        _show(a, b, result, given)


def _compare(a: str, b: str, given: dict[str, Any]) -> Comparison:
    """Return the comparison; wrong settings are reported before a file is read."""
    normalisation = {name: given[name] for name in NORMALISATION_NAMES}
    shingler = mw.Shingler(given["shingle"], bag=given["bag"], seed=given["seed"], **normalisation)
    scheme = SCHEMES[given["scheme"]](slots=given["slots"], seed=given["seed"])
    layout = {name: given[name] for name in ("slots", "bands", "rows")}
    plan = mw.plan(given["threshold"], given["recall"], **layout)
    _check_page(given["output"], a, b)
    try:
        return mw.compare(read_bytes(a), read_bytes(b), shingler=shingler, scheme=scheme, plan=plan)
    except InputError as error:
        named = str(error).replace("the left text", _name(a)).replace("the right text", _name(b))
        raise InputError(named) from None


def _check_page(page: str | None, a: str, b: str) -> None:
    """Raise if the page would replace a compared file, or its directory does not exist."""
    if page is None:
        return
    if not page:
        raise ConfigError("output must be a path, got ''")
    for path in (a, b):
        if path != "-" and os.path.realpath(path) == os.path.realpath(page):
            raise ConfigError(f"output must not be one of the files compared, got {page}")
    if not Path(page).resolve().parent.is_dir():
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(Path(page).parent))


def _name(path: str) -> str:
    """Return the name of a file with control characters escaped."""
    if path == "-":
        return "standard input"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in path)


def _as_dict(a: str, b: str, result: Comparison, given: dict[str, Any]) -> dict[str, Any]:
    settings = {**result.shingler.settings, "scheme": given["scheme"], "slots": given["slots"]}
    page = {} if given["output"] is None else {"output": given["output"]}
    return {"a": a, "b": b, "settings": settings, **result.to_dict(), **page}


def _show(a: str, b: str, result: Comparison, given: dict[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = 10_000  # nothing is wrapped or cut in a pipe
    names = (_name(a), _name(b))
    if console.is_terminal:  # where long paths would lose their ends, which distinguish them
        names = (shorten(names[0], MOST_NAME), shorten(names[1], MOST_NAME))
    with console.capture() as capture:
        console.print(_facts(*names, result, given["output"]))
        if given["output"] is None:
            rows = result.rows(max_chars=None if given["full"] else MOST_SHOWN)
            print_texts(console, names, rows)
    click.echo("\n".join(line.rstrip() for line in capture.get().split("\n")).rstrip("\n"))


def _facts(a: str, b: str, result: Comparison, page: str | None) -> Table:
    estimate = result.estimate
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    spec = result.shingler.spec
    table.add_row("similarity", f"[bold]{result.similarity:.4f}[/bold]  exact Jaccard of {spec} shingles")
    interval = f"{estimate.low:.4f} to {estimate.high:.4f} at {estimate.confidence:.0%}"
    table.add_row("estimate", f"{estimate.value:.4f}  from signatures; {interval}")
    table.add_row("shared", plural(result.shared, "shingle"))
    for name, only, share in (
        (a, result.only_left, result.containment_left),
        (b, result.only_right, result.containment_right),
    ):
        row = f"{plural(only, 'shingle')}; {_percent(share)} of its shingles are shared"
        table.add_row(f"only in {escape(name)}", row)
    table.add_row("near-duplicates", _verdict(result))
    table.add_row("candidates", _candidates(result))
    if page is not None:
        table.add_row("page", escape(page))
    return table


def _verdict(result: Comparison) -> str:
    threshold = f"the threshold {result.plan.threshold:g}"
    alike = result.similarity >= result.plan.threshold
    return f"[bold]yes[/bold], at {threshold}" if alike else f"[bold]no[/bold], below {threshold}"


def _candidates(result: Comparison) -> str:
    """Return whether the pair is a candidate, by which bands, and how probable that is at its similarity."""
    fired, bands = result.bands_fired, result.plan.bands
    named = ", ".join(map(str, fired[:SHOWN_BANDS])) + (", …" if len(fired) > SHOWN_BANDS else "")
    fire = "fires" if len(fired) == 1 else "fire"
    band = "band" if bands == 1 else "bands"
    answer = (
        f"[bold]yes[/bold], {len(fired)} of {bands} {band} {fire} ({named})"
        if fired
        else (f"[bold]no[/bold], none of {bands} {band} fires")
    )
    return f"{answer}; at this similarity {_percent(result.chance)} of pairs are found"


def _percent(share: float) -> str:
    """Return a percentage that rounds neither up to 100% nor down to 0%."""
    if share in (0, 1):
        return f"{share:.0%}"
    return "less than 0.1%" if share < 0.001 else "over 99.9%" if share > 0.999 else f"{share:.1%}"
