"""The minwise command line, a module per command or group of commands."""

import os
import signal
from typing import NoReturn

__all__ = ["INTERRUPTED", "main"]

# Exit code of an interrupted command.
INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command. An interrupt while its modules are imported ends the process without a traceback, too."""
    waiting = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # ignored in background jobs
    if waiting:
        signal.signal(signal.SIGINT, _exit_interrupted)
    from minwise.cli.command import run

    if waiting:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _exit_interrupted(number: int, frame: object) -> NoReturn:
    """End the process; nothing is open yet. An exception inside an import would be reported as a broken package."""
    os._exit(INTERRUPTED)
