"""minwise token FILE."""

import click

import minwise as mw

__all__ = ["token"]


@click.command()
@click.argument("file", type=click.Path())
@click.option("--read", "may_read", is_flag=True, help="Let it ask, compare and look.")
@click.option("--write", "may_write", is_flag=True, help="Let it add and remove documents.")
@click.option("--name", default=None, help="What it is called in the file; token-N if not given.")
@click.option("--quiet", is_flag=True, help="Print the token and nothing else.")
def token(file: str, may_read: bool, may_write: bool, name: str | None, quiet: bool) -> None:
    """Draw a token for minwise serve, and add its hash to FILE.

    The token is printed once and stands nowhere else; who has it may do what its rights say. FILE is made if it is not
    there, and only its owner can read it. To take a token back, delete its line and start the server anew.

    Example: minwise token tokens.txt --read --name reader
    """
    from minwise.server.tokens import make_token  # here, because no other command needs it

    rights = [right for right, is_given in (("read", may_read), ("write", may_write)) if is_given]
    if not rights:
        raise mw.ConfigError("token needs --read, --write or both, got neither")
    drawn = make_token(file, rights, name)
    click.echo(drawn)
    if not quiet:
        click.echo(f"minwise: may {' and '.join(rights)}; shown this once, {file} has its hash", err=True)
