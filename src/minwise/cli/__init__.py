"""The minwise command. The file tree is the command tree: a file per command."""

import sys

import click

import minwise as mw
from minwise.cli.compare import compare

__all__ = ["main"]

FAILURE, INPUT_OUTPUT, INTERRUPTED = 1, 74, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(mw.__version__, prog_name="minwise")
def command() -> None:
    """Find near-duplicates."""


command.add_command(compare)


def main() -> None:
    """Runs the command: one line on standard error and an exit code for whatever goes wrong, never a traceback."""
    try:
        status = command.main(standalone_mode=False)
    except click.exceptions.Abort:
        _fail("interrupted", INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except mw.ConfigError as error:
        _fail(str(error), click.UsageError.exit_code)
    except mw.MinwiseError as error:
        _fail(str(error), FAILURE)
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away; there is nobody left to tell
        sys.exit(FAILURE)
    except OSError as error:
        _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", INPUT_OUTPUT)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int) -> None:
    click.echo(f"minwise: {message}", err=True)
    sys.exit(status)
