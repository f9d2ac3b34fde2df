"""minwise serve and minwise token."""

import errno
import json
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from click.core import ParameterSource

import minwise as mw
from minwise.cli.base import Command
from minwise.cli.index_documents import describe
from minwise.cli.options import add_options, index_options, setting_option, settings_of
from minwise.errors import ConfigError
from minwise.options import definitions
from minwise.server import ServerSettings

__all__ = ["serve", "token"]

# Arguments of click.option that differ from what the definition of a setting gives.
SPECIAL_OPTIONS: dict[str, dict[str, Any]] = {
    "token_file": {"type": click.Path()},
    "allow_host": {
        "metavar": "NAME",
        "multiple": True,
        "show_default": False,
        "help": "Further host name that clients may use; repeatable.",
    },
}
REMEDY = "leave it out, or create another index"


# Options of the server's own settings.
server_options = add_options(
    *(setting_option(name, of=ServerSettings, **SPECIAL_OPTIONS.get(name, {})) for name in definitions(ServerSettings))
)


@click.command(cls=Command)
@click.option("--index", required=True, metavar="PATH", type=click.Path(), help="Directory of the index.")
@server_options
@click.option("--create", is_flag=True, help="Create the index if it does not exist, with the options below.")
@index_options
@click.pass_context
def serve(context: click.Context, /, index: str, create: bool, **given: Any) -> None:  # noqa: ANN401 - click's values
    """Serve an index over HTTP, with a web page at /.

    Listens on this machine only, unless --host is given, which requires a token file. Ctrl-C or SIGTERM stops the
    server after open requests have finished. Options of an existing index may be repeated, but not changed.

    Examples:
        minwise serve --index news.mw --create --store-text
        minwise serve --index news.mw --read-only --port 9000
        minwise serve --index news.mw --host 0.0.0.0 --token-file tokens.txt
    """
    server = _load_server()
    names = {field.name for field in fields(server.ServerSettings)}
    settings = server.ServerSettings(index=index, **{name: given[name] for name in given if name in names})
    _prepare(
        index,
        {name: given[name] for name in given if name not in names},
        {name for name in given if context.get_parameter_source(name) == ParameterSource.COMMANDLINE},
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
    if settings["shingle"] == "set":
        raise ConfigError("shingle must be word:N, char:N or byte:N for a service, which takes texts, got set")
    folder = Path(index)
    is_there = folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
    if create and not is_there:
        if read_only:
            raise ConfigError(f"create and read-only exclude each other: {index} would stay empty, got both")
        with mw.Index.create(index, **settings_of(settings)) as made:
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
        settings = opened.stats()["settings"]
    # With a given layout, recall and slots are ignored, as when the index was created.
    ignored = {"recall", "slots"} if {"bands", "rows"} <= set(chosen) else set()
    for name, value in chosen.items():
        stored, given = _stored_and_given(name, value, settings)
        if stored != given and name not in ignored:
            option = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{option} must be that of {index}, {stored}, got {given}; {REMEDY}")


def _stored_and_given(
    name: str,
    value: Any,  # noqa: ANN401 - any setting
    stored: dict[str, Any],
) -> tuple[object, object]:
    """Return the value of the index and the given one, in comparable form."""
    if name in ("store_text", "sketch_only"):
        return f"an index of {stored['store']}", f"an index of {'text' if name == 'store_text' else 'sketch'}"
    if name == "seed" and stored["secret_seed"]:
        return "which is secret", value
    if name == "slots" and stored["wanted_recall"] is not None:
        planned = mw.plan(stored["threshold"], stored["wanted_recall"], slots=value)
        layouts = [f"{layout['bands']} bands × {layout['rows']} rows" for layout in (stored, planned.to_dict())]
        return layouts[0], layouts[0] if layouts[0] == layouts[1] else f"{value}, which gives {layouts[1]}"
    if name in ("recall", "slots") and stored["wanted_recall"] is None:
        return f"made with {stored['bands']} bands × {stored['rows']} rows", value
    return stored["wanted_recall" if name == "recall" else name], value


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@click.option("--read", "may_read", is_flag=True, help="Allow queries, comparisons and statistics.")
@click.option("--write", "may_write", is_flag=True, help="Allow adding and removing documents.")
@click.option("--name", default=None, help="Name of the token in the file; token-N if not given.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--quiet", is_flag=True, help="Print the token and nothing else.")
def token(file: str, may_read: bool, may_write: bool, name: str | None, as_json: bool, quiet: bool) -> None:
    """Create a token for minwise serve and add its hash to FILE.

    The token is printed once and stored nowhere; a client that sends it has its rights. FILE is created if it does not
    exist, and only its owner can read it. To revoke a token, delete its line and restart the server.

    Examples:
        minwise token tokens.txt --read --name reader
        minwise token tokens.txt --read --write
        minwise token tokens.txt --read --quiet > reader.token
    """
    from minwise.server.tokens import make_token  # here, because no other command needs it

    rights = [right for right, is_given in (("read", may_read), ("write", may_write)) if is_given]
    if not rights:
        raise ConfigError("token needs --read, --write or both, got neither")
    drawn = make_token(file, rights, name)
    click.echo(json.dumps({"token": drawn, "rights": rights, "file": file}, indent=2) if as_json else drawn)
    if not quiet and not as_json:
        click.echo(f"minwise: may {' and '.join(rights)}; shown only once; {file} has its hash", err=True)
