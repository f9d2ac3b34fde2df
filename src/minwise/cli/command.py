"""The minwise command: its subcommands, exit codes and error handling."""

import os
import signal
import sys
from typing import NoReturn

import click

import minwise as mw
from minwise.cli.audit import audit
from minwise.cli.compare import compare
from minwise.cli.dedup import dedup
from minwise.cli.index_documents import add, create, query, remove
from minwise.cli.index_maintenance import backup, compact, export, stats, verify
from minwise.cli.pairs import clusters, pairs
from minwise.cli.plan import plan
from minwise.cli.report import report, restore
from minwise.cli.serve import serve, token
from minwise.cli.vectors import vectors
from minwise.errors import ConfigError

__all__ = ["main"]

# Exit codes beside 0; click's own usage errors are 2.
FAILURE, USAGE, INPUT_OUTPUT, INTERRUPTED = 1, 2, 74, 130


class _Group(click.Group):
    """A group that leaves an interrupt to us; click would print an empty line before it."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _fail("interrupted", INTERRUPTED)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(mw.__version__, prog_name="minwise")
def command() -> None:
    """Find near-duplicates.

    Exit codes: 0 fine, 1 failure, 2 usage, 74 input or output failed, 130 interrupted.
    """


@click.group()
def index() -> None:
    """Remember documents, and find near-duplicates of new ones at once.

    An index is a directory. What a command has added or removed survives a crash; one command writes at a time, any
    number read.
    """


for subcommand in (create, add, query, remove, stats, verify, compact, backup, export):
    index.add_command(subcommand)
for one in (dedup, pairs, clusters, compare, index, serve, token, plan, audit, report, restore, vectors):
    command.add_command(one)


def main() -> NoReturn:
    """Runs the command: one line on standard error and an exit code for whatever goes wrong, never a traceback."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        command.main(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except (click.exceptions.Abort, KeyboardInterrupt):
        _fail("interrupted", INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ConfigError as error:
        _fail(str(error), USAGE)
    except mw.MinwiseError as error:
        _fail(str(error), FAILURE)
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away; there is nobody left to tell
        sys.exit(FAILURE)
    except OSError as error:
        _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", INPUT_OUTPUT)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # what a bug in the kernel arrives as
            raise
        _fail(f"a bug in minwise, please report it: {error}", FAILURE)
    sys.exit(0)


def _stop(number: int, frame: object) -> NoReturn:
    """Ends the command as an error would, so that what is temporary is cleared away."""
    raise SystemExit(128 + number)


def _fail(message: str, status: int) -> NoReturn:
    click.echo(f"minwise: {message}", err=True)
    if status == INTERRUPTED:  # at once: threads that still copy would be waited for otherwise
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
