"""minwise vectors …: pairs and neighbours of vectors, a file each."""

import click

from minwise.cli.vectors.near import near
from minwise.cli.vectors.pairs import pairs

__all__ = ["vectors"]


@click.group()
def vectors() -> None:
    """Find vectors near each other: all pairs, or nearest neighbours.

    VECTORS is an .npy file, which stays where it is, or a Parquet file with a column of lists.
    """


for one in (pairs, near):
    vectors.add_command(one)
