"""minwise report OUT."""

import click

import minwise as mw

__all__ = ["report"]


@click.command()
@click.argument("out", type=click.Path())
@click.option(
    "--audit", metavar="FILE", type=click.Path(), default=None, help="Also show what this file of an audit measured."
)
@click.option("--quiet", is_flag=True, help="Do not say where the page is.")
def report(out: str, audit: str | None, quiet: bool) -> None:
    """Write the page of a run anew: OUT/report.html.

    It shows the texts that the inputs still have.

    With --audit, the file that an audit with the same settings wrote is copied to OUT/audit.json; from then on the page
    shows what it measured.
    """
    notes: list[str] = []
    page = mw.write_report(out, audit=audit, on_note=notes.append)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if not quiet:
        click.echo(f"{page}: open it in a browser")
