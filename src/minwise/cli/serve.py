"""minwise serve and minwise token."""

import errno
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from click.core import ParameterSource

import minwise as mw
from minwise.cli.index_documents import describe
from minwise.cli.options import index_options, index_settings_of
from minwise.errors import ConfigError

__all__ = ["serve", "token"]

REMEDY = "leave it out, or create another index"


@click.command()
@click.option("--index", required=True, metavar="PATH", type=click.Path(), help="Directory of the index.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", default=8765, show_default=True, help="Port to listen at; 0 for any that is free.")
@click.option(
    "--token-file",
    type=click.Path(),
    default=None,
    help="File of hashed tokens, written by minwise token; requests then need a token.",
)
@click.option("--read-only", is_flag=True, help="Refuse all changes; another process may then write to the index.")
@click.option(
    "--allow-host",
    metavar="NAME",
    multiple=True,
    default=(),
    help="Further host name under which clients may address the server; repeatable.",
)
@click.option("--cache", default="256MB", show_default=True, help="Memory for cached blocks of the index.")
@click.option("--max-document", default="1MB", show_default=True, help="Maximum size of a text.")
@click.option("--max-metadata", default="64KB", show_default=True, help="Maximum size of a document's metadata.")
@click.option("--max-compare", default="200KB", show_default=True, help="Maximum size of each of two compared texts.")
@click.option("--max-request", default="16MB", show_default=True, help="Maximum size of a request body.")
@click.option(
    "--max-documents", default=1000, show_default=True, help="Maximum number of documents or ids in a request."
)
@click.option("--max-depth", default=32, show_default=True, help="Maximum nesting depth of metadata.")
@click.option(
    "--max-in-flight", default=64, show_default=True, help="Maximum number of read, and of write, requests in progress."
)
@click.option("--max-connections", default=1000, show_default=True, help="Maximum number of open connections.")
@click.option(
    "--receive-timeout",
    default=10.0,
    show_default=True,
    help="Seconds to receive a request, and to send a response.",
)
@click.option(
    "--drain-timeout",
    default=10.0,
    show_default=True,
    help="Seconds for open requests to finish when the server stops.",
)
@click.option("--create", is_flag=True, help="Create the index if it does not exist, with the options below.")
@index_options
@click.pass_context
def serve(context: click.Context, /, index: str, create: bool, **given: Any) -> None:  # noqa: ANN401 - click's values
    """Serve an index over HTTP, with a page for people at /.

    Listens on this machine only, unless --host is given, which requires a token file. Ctrl-C or SIGTERM stops the
    server after open requests have finished. Options of an existing index may be repeated, but not changed.

    Example: minwise serve --index news.mw --create --store-text
    """
    server = _load_server()
    names = {field.name for field in fields(server.ServerSettings)}
    settings = server.ServerSettings(index=index, **{name: given[name] for name in given if name in names})
    _prepare(
        index,
        {name: given[name] for name in given if name not in names},
        {name for name in given if context.get_parameter_source(name) != ParameterSource.DEFAULT},
        create=create,
        read_only=settings.read_only,
    )
    server.serve(settings)


def _load_server() -> ModuleType:
    """Import the server, which needs the packages of an extra."""
    try:
        import minwise.server
        from minwise.server import serve  # noqa: F401 - a lazy import, which needs the packages
    except ModuleNotFoundError as error:
        if str(error.name).startswith("minwise"):
            raise
        rule = "serve needs the packages of the extra server"
        raise ConfigError(f"{rule}, got no {error.name}; install minwise with the extra server") from None
    return minwise.server


def _prepare(index: str, settings: dict[str, Any], chosen: set[str], *, create: bool, read_only: bool) -> None:
    """Create the index, or check that an existing one agrees with the given options."""
    folder = Path(index)
    is_there = folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
    if create and not is_there:
        if read_only:
            raise ConfigError(f"create and read-only exclude each other: {index} would stay empty, got both")
        with mw.Index.create(index, **index_settings_of(settings)) as made:
            click.echo(f"minwise: {index}: {describe(made)}", err=True)
    elif not folder.exists():
        raise FileNotFoundError(errno.ENOENT, "No such index; --create creates it", index)
    else:
        _compare(index, {name: settings[name] for name in settings if name in chosen})


def _compare(index: str, chosen: dict[str, Any]) -> None:
    """Raise if the index has another value for a given option."""
    if not chosen:
        return
    with mw.Index.open(index) as opened:
        there = opened.stats()["settings"]
    # With a given layout, recall and slots are ignored, as when the index was created.
    ignored = {"recall", "slots"} if {"bands", "rows"} <= set(chosen) else set()
    for name, value in chosen.items():
        theirs, ours = _both(name, value, there)
        if theirs != ours and name not in ignored:
            option = name.replace("_", "-")
            raise ConfigError(f"{option} must be that of {index}, {theirs}, got {ours}; {REMEDY}")


def _both(name: str, value: Any, there: dict[str, Any]) -> tuple[object, object]:  # noqa: ANN401 - any setting
    """Return the value of the index and the given one, in comparable form."""
    if name in ("store_text", "sketch_only"):
        return f"an index of {there['store']}", f"an index of {'text' if name == 'store_text' else 'sketch'}"
    if name == "seed" and there["secret_seed"]:
        return "which is secret", value
    if name == "slots" and there["wanted_recall"] is not None:
        planned = mw.plan(there["threshold"], there["wanted_recall"], slots=value)
        layouts = [f"{one['bands']} bands × {one['rows']} rows" for one in (there, planned.to_dict())]
        return layouts[0], layouts[0] if layouts[0] == layouts[1] else f"{value}, which gives {layouts[1]}"
    if name in ("recall", "slots") and there["wanted_recall"] is None:
        return f"made with {there['bands']} bands × {there['rows']} rows", value
    return there["wanted_recall" if name == "recall" else name], value


@click.command()
@click.argument("file", type=click.Path())
@click.option("--read", "may_read", is_flag=True, help="Allow queries, comparisons and statistics.")
@click.option("--write", "may_write", is_flag=True, help="Allow adding and removing documents.")
@click.option("--name", default=None, help="Name of the token in the file; token-N if not given.")
@click.option("--quiet", is_flag=True, help="Print the token and nothing else.")
def token(file: str, may_read: bool, may_write: bool, name: str | None, quiet: bool) -> None:
    """Create a token for minwise serve and add its hash to FILE.

    The token is printed once and stored nowhere; a client that sends it has its rights. FILE is created if it does not
    exist, and only its owner can read it. To revoke a token, delete its line and restart the server.

    Example: minwise token tokens.txt --read --name reader
    """
    from minwise.server.tokens import make_token  # here, because no other command needs it

    rights = [right for right, is_given in (("read", may_read), ("write", may_write)) if is_given]
    if not rights:
        raise ConfigError("token needs --read, --write or both, got neither")
    drawn = make_token(file, rights, name)
    click.echo(drawn)
    if not quiet:
        click.echo(f"minwise: may {' and '.join(rights)}; shown only once; {file} has its hash", err=True)
