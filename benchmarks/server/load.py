"""A real ``minwise serve`` in its own process, loaded by wrk with sixteen connections."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from benchmarks.processes import ROOT, status_bytes

SCRIPT = Path(__file__).with_name("load.lua")
CONNECTIONS = 16
# One thread of wrk: the machine has two cores, and one of them is for the server.
THREADS = 1
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_SECONDS = 60

Measured = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Served:
    """A running server.

    Attributes:
        pid: Its process id.
        url: Its URL without a path.
    """

    pid: int
    url: str

    def load(self, seconds: float, kind: str, *words: str) -> Measured:
        """Return the results of wrk and the processor time of the server; `words` are arguments of `SCRIPT`."""
        shape = ["-t", str(THREADS), "-c", str(CONNECTIONS), "-d", f"{seconds:g}s"]
        command = ["wrk", *shape, "--timeout", "10s", "-s", str(SCRIPT), self.url, "--", kind, *words]
        before = self.processor_seconds()
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, cwd=ROOT)
        found: Measured = json.loads(done.stdout.splitlines()[-1])
        spent = self.processor_seconds() - before
        return {**found, "processor_seconds": spent, "per_second": found["requests"] / found["seconds"]}

    def ask(self, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """Return the response to one request."""
        content = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, content, {"Content-Type": "application/json"})
        with urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)

    def processor_seconds(self) -> float:
        """Return the processor time of the server."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> Measured:
        """Return its memory: the peak including mapped files, and the current anonymous memory."""
        return {"peak_bytes": status_bytes(self.pid, "VmHWM"), "anonymous_bytes": status_bytes(self.pid, "RssAnon")}


@contextmanager
def serving(index: Path) -> Iterator[Served]:
    """Run a server as a user would start it."""
    command = [sys.executable, "-m", "minwise", "serve", "--index", str(index), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    try:
        line = process.stdout.readline().decode()
        if not line:
            raise SystemExit(f"the server did not start: exit code {process.wait(PATIENCE_SECONDS)}")
        yield Served(process.pid, line.split()[-1].rstrip("/"))
        process.send_signal(signal.SIGTERM)
        if process.wait(PATIENCE_SECONDS):
            raise SystemExit(f"the server ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
