"""Terminal that runs the commands of a page: in a shell one after another, a server in the background."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.commands import without_stages

__all__ = ["BLOCK", "Terminal", "steps", "terminal_in", "without_timings"]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# The port that pages show; a test uses any free one.
SHOWN_PORT = "8765"
SERVE = re.compile(r"minwise serve [^;|&]*")
TIMING = re.compile(r"\bin [\d.,]+ s\b(?: \([\d,]+ a second\))?")
STAGE = re.compile(r"\b[\d.,]+ s(?= ·|$)", re.MULTILINE)
STOP_TIMEOUT_SECONDS = 60


def steps(block: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a block, each with the output shown below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        yield line, shown


def without_timings(text: str) -> str:
    """Return a text without the seconds and rates of a summary: ``in 0.1 s (462 a second)``, ``band 0.1 s``."""
    return STAGE.sub("… s", TIMING.sub("in … s", text))


class Terminal:
    """Directory in which commands are run. A ``minwise serve`` runs until the next one, or until the end."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._folder = folder
        self._environment = {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"}
        self._server: subprocess.Popen[str] | None = None
        self._port = SHOWN_PORT

    def check(self, line: str, shown: str) -> None:
        """Run a command and assert that it prints what a page shows, apart from timings.

        Args:
            line: The command.
            shown: Its expected output, on both streams.
        """
        assert without_timings(self._output(line, shown)) == without_timings(shown), line

    def with_port(self, text: str) -> str:
        """Return a command or a program with the port of the running server."""
        return re.sub(rf":{SHOWN_PORT}\b", f":{self._port}", text)

    def _output(self, line: str, shown: str) -> str:
        """Return what a command prints, without trailing blanks; of a server as many lines as are shown."""
        printed = self._serve(line, shown.count("\n")) if SERVE.fullmatch(line) else self._run(self.with_port(line))
        printed = re.sub(rf":{self._port}\b", f":{SHOWN_PORT}", printed)
        printed = re.sub(r" +$", "", printed, flags=re.MULTILINE)
        # A response of a server does not end its line, but a page shows the next prompt on a new line.
        return printed if printed.endswith("\n") or not printed else f"{printed}\n"

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
        return without_stages(done.stdout)  # a terminal shows bars in their place

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
        """Stop the server and assert that it printed nothing else and exits with 0."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.terminate()
        try:
            rest, _ = server.communicate(timeout=STOP_TIMEOUT_SECONDS)
        finally:
            server.kill()
        assert (rest, server.returncode) == ("", 0)

    def kill(self) -> None:
        """Stop the server, if one runs, without any check."""
        if self._server is not None:
            self._server.kill()
            self._server.communicate()


@contextmanager
def terminal_in(folder: Path) -> Iterator[Terminal]:
    """Return a terminal whose server ends with the context."""
    terminal = Terminal(folder)
    try:
        yield terminal
    except BaseException:
        terminal.kill()
        raise
    terminal.close()
