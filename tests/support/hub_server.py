"""Fixture of the Hugging Face hub: a server on loopback with the files of one dataset repository."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

__all__ = ["hub_server"]

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def hub_server(repository: str, files: dict[str, bytes]) -> Iterator[str]:
    """Serve a dataset repository with these files; yield the endpoint."""
    handler = type("Handler", (_HubHandler,), {"repository": repository, "files": files})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _HubHandler(BaseHTTPRequestHandler):
    """Answers what the fsspec driver asks: the repository, its tree, paths in it, and ranges of files."""

    repository: str
    files: dict[str, bytes]

    def do_GET(self) -> None:
        """Answer about the repository or send a file."""
        path = unquote(urlsplit(self.path).path)
        api = f"/api/datasets/{self.repository}"
        if path in (api, f"{api}/revision/main"):
            self._send_json({"id": self.repository, "sha": COMMIT, "siblings": []})
        elif path.startswith(f"{api}/tree/"):
            self._send_json(self._tree(path.removeprefix(f"{api}/tree/").partition("/")[2]))
        else:
            self._send_file(path)

    do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

    def do_POST(self) -> None:
        """Answer about paths of the repository."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if not self.path.startswith(f"/api/datasets/{self.repository}/paths-info/"):
            self._send(404, b"")
            return
        paths = json.loads(body)["paths"] if body.startswith("{") else parse_qs(body)["paths"]
        self._send_json([entry for entry in self._entries() if entry["path"] in paths])

    def _entries(self) -> list[dict[str, object]]:
        folders = {name[:end] for name in self.files for end in range(len(name)) if name[end] == "/"}
        found = [{"type": "directory", "path": folder, "oid": COMMIT, "size": 0} for folder in sorted(folders)]
        return found + [
            {"type": "file", "path": name, "oid": COMMIT, "size": len(data)} for name, data in self.files.items()
        ]

    def _tree(self, folder: str) -> list[dict[str, object]]:
        everything = "true" in parse_qs(urlsplit(self.path).query).get("recursive", [""])[0].lower()
        inside = [entry for entry in self._entries() if str(entry["path"]).startswith(f"{folder}/" if folder else "")]
        start = len(folder) + 1 if folder else 0
        return [entry for entry in inside if everything or "/" not in str(entry["path"])[start:]]

    def _send_file(self, path: str) -> None:
        data = self.files.get(path.removeprefix(f"/datasets/{self.repository}/resolve/").partition("/")[2])
        if data is None:
            self._send(404, b"")
            return
        first, _, last = (self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")
        end = min(int(last) + 1 if last else len(data), len(data))
        self._send(206 if "Range" in self.headers else 200, data[int(first) : end])

    def _send_json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str = "application/octet-stream") -> None:
        self.send_response(status)
        if status == 404:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("Content-Type", kind)
        self.send_header("ETag", f'"{COMMIT}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the standard library
        """Log nothing."""
