"""The minwise command: its subcommands, exit codes and error handling."""

import json
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

import click

import minwise as mw
from minwise._internal.temporary import delete_folders
from minwise.cli import INTERRUPTED
from minwise.cli.audit import audit
from minwise.cli.base import Group
from minwise.cli.compare import compare
from minwise.cli.decontaminate import decontaminate
from minwise.cli.dedup import dedup
from minwise.cli.explain import explain, rethreshold, thresholds
from minwise.cli.index_documents import add, create, expire, query, remove
from minwise.cli.index_maintenance import backup, compact, export, stats, verify
from minwise.cli.nearest import nearest
from minwise.cli.options import with_option_names
from minwise.cli.pairs import clusters, pairs
from minwise.cli.passages import passages
from minwise.cli.plan import plan
from minwise.cli.report import report, restore
from minwise.cli.serve import serve, token
from minwise.cli.session import Session
from minwise.cli.vectors import vectors
from minwise.errors import ConfigError

__all__ = ["command", "run"]

# Exit codes of failures; usage errors of click are 2, too.
FAILURE, USAGE, INPUT_OUTPUT = 1, 2, 74
# Signals that end a run as an error does, so that temporary files are removed; no system has all of them.
STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))


class _Terminated(SystemExit):
    """Exit after one of ``STOP_SIGNALS``; its code is 128 and the number of the signal."""


class _MainGroup(Group):
    """Command group that handles an interrupt itself; click would print an empty line first."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _interrupt(ctx.ensure_object(Session))
        except _Terminated as stopped:
            session = ctx.ensure_object(Session)
            with suppress(OSError):  # the terminal may be gone
                _print_error(session, _with_hint("terminated", session), int(str(stopped.code)))
            raise


@click.group(cls=_MainGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(mw.__version__, prog_name="minwise")
def command() -> None:
    """Find near-duplicates in texts, sets, records and vectors.

    Examples:
        minwise dedup news.csv --text-column body -o clean
        minwise compare draft.txt final.txt
        minwise dedup --help
    """


@click.group(cls=Group)
def index() -> None:
    """Store documents and find near-duplicates of new ones.

    An index is a directory. What a command has added or removed survives a crash. One command can write at a time; any
    number can read.

    Examples:
        minwise index create news.mw --threshold 0.7
        minwise index add news.mw day1.jsonl
        minwise index query news.mw day2.jsonl --top 3
    """


index.add_tasks(
    {
        "Fill": (create, add, remove, expire),
        "Search": (query,),
        "Inspect": (stats, verify),
        "Maintain": (compact, backup, export),
    }
)
command.add_tasks(
    {
        "Clean a corpus": (dedup, decontaminate, restore, rethreshold),
        "List near-duplicates": (pairs, clusters, nearest, passages),
        "Look before and after": (plan, thresholds, audit, report, explain, compare),
        "Keep an index and serve it": (index, serve, token),
        "Other data": (vectors,),
    }
)


def run() -> NoReturn:
    """Run the command; an error prints one line on standard error and sets the exit code, without a traceback."""
    _handle_signals()
    session = Session()
    try:
        command.main(standalone_mode=False, obj=session)
        if sys.stdout is not None:
            sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        _interrupt(session)
    except click.ClickException as error:
        _fail(session, _click_message(error), error.exit_code)
    except ConfigError as error:
        _fail(session, with_option_names(str(error)), USAGE)
    except mw.MinwiseError as error:
        _fail(session, with_option_names(str(error)), FAILURE)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the pipe is gone
        sys.exit(FAILURE)
    except OSError as error:
        _fail(session, f"{error.filename or 'input or output'}: {error.strerror or error}", INPUT_OUTPUT)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a panic of the kernel
            raise
        _fail(session, f"a bug in minwise, please report it: {error}", FAILURE)
    sys.exit(0)


def _handle_signals() -> None:
    for number in STOP_SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
            signal.signal(number, _stop)


def _stop(number: int, frame: object) -> NoReturn:
    """End the command; further signals do not interrupt the deletion of temporary files."""
    for ignored in STOP_SIGNALS:
        signal.signal(ignored, signal.SIG_IGN)
    raise _Terminated(128 + number)


def _click_message(error: click.ClickException) -> str:
    """Return the message of a usage error on one line, with the command whose help explains it."""
    message = " ".join(error.format_message().split())
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return message
    return f"{message.removesuffix('.')}{' See' if '?' in message else '; see'} {error.ctx.command_path} --help"


def _with_hint(what: str, session: Session) -> str:
    return "; ".join(filter(None, [what, session.continuation]))


def _interrupt(session: Session) -> NoReturn:
    """End at once: a normal exit would wait for threads that still copy."""
    _print_error(session, _with_hint("interrupted", session), INTERRUPTED)
    sys.stderr.flush()
    delete_folders()
    os._exit(INTERRUPTED)


def _fail(session: Session, message: str, status: int) -> NoReturn:
    _print_error(session, message, status)
    sys.exit(status)


def _print_error(session: Session, message: str, status: int) -> None:
    """Print one line, or one JSON object if the output is JSON; a usage error may precede the parsing of options."""
    if session.as_json or session.log_format == "json" or "--json" in sys.argv[1:]:
        click.echo(json.dumps({"error": {"message": message, "exit_status": status}}, ensure_ascii=False), err=True)
    else:
        click.echo(
            f"minwise: {' '.join(message.splitlines())}", err=True
        )  # messages of libraries may have several lines
