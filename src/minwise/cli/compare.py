"""minwise compare A B."""

import errno
import json
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import minwise as mw

__all__ = ["compare"]

SCHEMES = {"fast": mw.FastSketch, "minhash": mw.MinHash}


@click.command()
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.option("--shingle", default="word:5", show_default=True, help="word:N, char:N or byte:N.")
@click.option("--bag", is_flag=True, help="Count repeated shingles.")
@click.option("--scheme", default="fast", show_default=True, type=click.Choice(list(SCHEMES)), help="How to sketch.")
@click.option("--slots", default=256, show_default=True, help="Slots of the signatures behind the estimate.")
@click.option("--seed", default=1, show_default=True, help="Seed of every hash.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def compare(a: str, b: str, shingle: str, bag: bool, scheme: str, slots: int, seed: int, as_json: bool) -> None:
    """Show how alike the texts in the files A and B are; - is standard input."""
    if a == b == "-":
        raise click.UsageError("only one of A and B may be - (standard input), got both")
    shingler = mw.Shingler(shingle, bag=bag, seed=seed)
    sketcher = SCHEMES[scheme](slots=slots, seed=seed)
    result = _compare(a, b, shingler, sketcher)
    if as_json:
        settings = {**shingler.settings, "scheme": scheme, "slots": slots}
        click.echo(json.dumps({"a": a, "b": b, "settings": settings, **result.to_dict()}, indent=2))
    else:
        _show(a, b, result, shingle)


def _compare(a: str, b: str, shingler: mw.Shingler, sketcher: mw.Scheme) -> mw.Comparison:
    try:
        return mw.compare(_read(a), _read(b), shingler=shingler, scheme=sketcher)
    except mw.InputError as error:
        named = str(error).replace("the left text", _name(a)).replace("the right text", _name(b))
        raise mw.InputError(named) from None


def _read(path: str) -> bytes:
    if path != "-":
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise OSError(errno.EBADF, "is closed", "standard input")
    return sys.stdin.buffer.read()


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _show(a: str, b: str, result: mw.Comparison, shingle: str) -> None:
    estimate = result.estimate
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    table.add_row("similarity", f"[bold]{result.similarity:.4f}[/bold]  exact Jaccard of {shingle} shingles")
    interval = f"{estimate.low:.4f} to {estimate.high:.4f} at {estimate.confidence:.0%}"
    table.add_row("estimate", f"{estimate.value:.4f}  from signatures; {interval}")
    table.add_row("shared", f"{result.shared} shingles")
    for name, only, share in (
        (a, result.only_left, result.containment_left),
        (b, result.only_right, result.containment_right),
    ):
        row = f"{only} shingles; {share:.1%} of its own are shared"
        table.add_row(f"only in {escape(_name(name))}", row)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 10_000  # into a pipe nothing is wrapped or cut
    with console.capture() as capture:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))
