"""A real S3 server process on loopback, and what reaches it."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["s3_server"]

START_SECONDS = 60


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Start the server; yield the environment variables that make S3 clients use it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            _await(url, server)
            names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
            yield {
                **dict.fromkeys(names, "test"),
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_CONFIG_FILE": os.devnull,
                "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
                "AWS_ENDPOINT_URL": url,
            }
        finally:
            server.terminate()


def _await(url: str, server: "subprocess.Popen[bytes]") -> None:
    """Wait until the server answers."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        with suppress(OSError):
            urllib.request.urlopen(f"{url}/moto-api/", timeout=1).close()
            return
        time.sleep(0.1)
    raise TimeoutError(f"no S3 server at {url}")
