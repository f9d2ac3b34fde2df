"""Clients that write until the server stops, and record the acknowledged changes."""

import random
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from itertools import count

from server.running import Answer, Server

__all__ = ["Writer"]


class Writer(threading.Thread):
    """Adds documents, single and in batches, and replaces and removes some of them.

    Nothing is known about a change that was not acknowledged.

    Attributes:
        there: Texts of documents whose addition or replacement was acknowledged.
        gone: Documents whose removal was acknowledged.
        responses: Number of responses.
    """

    def __init__(self, server: Server, name: str) -> None:
        super().__init__(name=name)
        self._server, self._draw = server, random.Random(name)
        self.there: dict[str, str] = {}
        self.gone: set[str] = set()
        self.responses = 0

    def run(self) -> None:
        """Write; an incomplete response is no acknowledgement."""
        connection = self._server.connect()
        with suppress(OSError, HTTPException):
            for number in count():
                parts = range(self._draw.choice([1, 1, 5]))
                self._write(connection, [f"{self.name}-{number}-{part}" for part in parts])
        connection.close()

    def _write(self, connection: HTTPConnection, names: list[str]) -> None:
        """Add documents, and possibly replace or remove them."""
        self._add(connection, names, "error")
        match self._draw.randrange(4):
            case 0:
                self._add(connection, names, "replace")
            case 1:
                self._remove(connection, names)

    def _add(self, connection: HTTPConnection, names: list[str], on_duplicate_id: str) -> None:
        texts = {name: f"{name} has the text {self._draw.random()}" for name in names}
        documents = [{"id": name, "text": text, "metadata": {"by": self.name}} for name, text in texts.items()]
        body = documents[0] if len(documents) == 1 else {"documents": documents}
        self._forget(names)
        path = f"/v1/documents?on_duplicate_id={on_duplicate_id}"
        if self._heard(self._server.post(path, body, connection=connection)):
            self.there |= texts

    def _remove(self, connection: HTTPConnection, names: list[str]) -> None:
        self._forget(names)
        if len(names) == 1:
            answer = self._server.ask("DELETE", f"/v1/documents/{names[0]}", connection=connection)
        else:
            answer = self._server.ask("DELETE", "/v1/documents", {"ids": names}, connection=connection)
        if self._heard(answer):
            assert answer.json["removed"] == len(names)
            self.gone |= set(names)

    def _heard(self, answer: Answer) -> bool:
        """Return whether a response acknowledges the change; a stopping server is busy."""
        self.responses += 1
        assert answer.status in (200, 503), answer
        return answer.status == 200

    def _forget(self, names: list[str]) -> None:
        for name in names:
            self.there.pop(name, None)
