"""A terminal that runs what a page shows: commands in a shell one after the other, a server in the background."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["BLOCK", "Terminal", "steps", "terminal_in"]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What pages show; a test takes any port that is free.
SHOWN_PORT = "8765"
SERVE = re.compile(r"minwise serve [^;|&]*")
PATIENCE_SECONDS = 60


def steps(block: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with what is shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        yield line, shown


class Terminal:
    """A folder in which commands are run. A ``minwise serve`` goes on until the next one, or the end."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._folder = folder
        self._environment = {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"}
        self._server: subprocess.Popen[str] | None = None
        self._port = SHOWN_PORT

    def run(self, line: str, shown: str) -> str:
        """What a command prints on either stream, without the blanks that pad its lines.

        Args:
            line: The command.
            shown: What it should print: of a server that many lines are waited for.
        """
        printed = self._serve(line, shown.count("\n")) if SERVE.fullmatch(line) else self._run(self.with_port(line))
        printed = re.sub(rf":{self._port}\b", f":{SHOWN_PORT}", printed)
        printed = re.sub(r" +$", "", printed, flags=re.MULTILINE)
        # An answer of a server does not end its line, and the next prompt stands on one of its own.
        return printed if printed.endswith("\n") or not printed else f"{printed}\n"

    def with_port(self, text: str) -> str:
        """A command or a program with the port of the server that runs."""
        return re.sub(rf":{SHOWN_PORT}\b", f":{self._port}", text)

    def _run(self, line: str) -> str:
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        return done.stdout

    def _serve(self, line: str, lines: int) -> str:
        self.close()
        self._server = subprocess.Popen(
            ["sh", "-c", f"exec {line} --port 0"],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        assert self._server.stdout is not None
        printed = "".join(self._server.stdout.readline() for _ in range(lines))
        found = re.search(r" at http://[^/]*:(\d+)/$", printed, re.MULTILINE)
        assert found, printed
        self._port = found[1]
        return printed

    def close(self) -> None:
        """Stops the server, which has said nothing else and ends well."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.terminate()
        try:
            rest, _ = server.communicate(timeout=PATIENCE_SECONDS)
        finally:
            server.kill()
        assert (rest, server.returncode) == ("", 0)


@contextmanager
def terminal_in(folder: Path) -> Iterator[Terminal]:
    """A terminal whose server does not outlive it."""
    terminal = Terminal(folder)
    try:
        yield terminal
    except BaseException:
        if terminal._server is not None:
            terminal._server.kill()
            terminal._server.communicate()
        raise
    terminal.close()
