"""minwise index …: the commands of a persistent index, a file each."""

import click

from minwise.cli.index.add import add
from minwise.cli.index.backup import backup
from minwise.cli.index.compact import compact
from minwise.cli.index.create import create
from minwise.cli.index.export import export
from minwise.cli.index.query import query
from minwise.cli.index.remove import remove
from minwise.cli.index.stats import stats
from minwise.cli.index.verify import verify

__all__ = ["index"]


@click.group()
def index() -> None:
    """Remember documents, and find near-duplicates of new ones at once.

    An index is a directory. What a command has added or removed survives a crash; one command writes at a time, any
    number read.
    """


for one in (create, add, query, remove, stats, verify, compact, backup, export):
    index.add_command(one)
