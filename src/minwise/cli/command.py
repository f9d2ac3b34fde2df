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
from minwise.cli.help import Group
from minwise.cli.index_documents import add, create, query, remove
from minwise.cli.index_maintenance import backup, compact, export, stats, verify
from minwise.cli.options import with_option_names
from minwise.cli.pairs import clusters, pairs
from minwise.cli.plan import plan
from minwise.cli.report import report, restore
from minwise.cli.serve import serve, token
from minwise.cli.vectors import vectors
from minwise.errors import ConfigError

__all__ = ["main"]

# Exit codes of failures; usage errors of click are 2, too.
FAILURE, USAGE, INPUT_OUTPUT, INTERRUPTED = 1, 2, 74, 130


class _MainGroup(Group):
    """Command group that handles an interrupt itself; click would print an empty line first."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _fail("interrupted", INTERRUPTED)


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
        "Fill": (create, add, remove),
        "Search": (query,),
        "Inspect": (stats, verify),
        "Maintain": (compact, backup, export),
    }
)
command.add_tasks(
    {
        "Clean a corpus": (dedup, restore),
        "List near-duplicates": (pairs, clusters),
        "Look before and after": (plan, audit, report, compare),
        "Keep an index": (index,),
        "Serve": (serve, token),
        "Other data": (vectors,),
    }
)


def main() -> NoReturn:
    """Run the command; an error prints one line on standard error and sets the exit code, without a traceback."""
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
        _fail(with_option_names(str(error)), USAGE)
    except mw.MinwiseError as error:
        _fail(with_option_names(str(error)), FAILURE)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the pipe is gone
        sys.exit(FAILURE)
    except OSError as error:
        _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", INPUT_OUTPUT)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a panic of the kernel
            raise
        _fail(f"a bug in minwise, please report it: {error}", FAILURE)
    sys.exit(0)


def _stop(number: int, frame: object) -> NoReturn:
    """Exit as after an error, so that temporary files are removed."""
    raise SystemExit(128 + number)


def _fail(message: str, status: int) -> NoReturn:
    click.echo(f"minwise: {message}", err=True)
    if status == INTERRUPTED:  # at once: a normal exit would wait for threads that still copy
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
