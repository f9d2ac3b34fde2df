"""Metrics: what the service has done, for Prometheus."""

from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]

# Seconds: from what a lookup takes to what nobody waits for.
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
TOGETHER = (1, 2, 4, 8, 16, 32, 64, 128, 256)

Work = Callable[[Sequence[Any]], Sequence[Any]]


class Metrics:
    """Counts of one server.

    Attributes:
        in_flight: Requests that are worked on now.
        connections: Connections that are open now.
        documents: Documents in the index, when they were last counted.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "minwise_requests", "Requests by route and status.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "minwise_request_seconds",
            "From the last byte of the headers to the answer.",
            ["method", "route"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._together = Histogram(
            "minwise_changes_together",
            "Requests whose changes became durable in one go.",
            buckets=TOGETHER,
            registry=self._registry,
        )
        self._fates = Counter("minwise_added", "What became of documents.", ["fate"], registry=self._registry)
        self._refused = Counter(
            "minwise_refused", "Clients refused before their request was whole.", ["code"], registry=self._registry
        )
        self.connections = Gauge("minwise_connections", "Connections open now.", registry=self._registry)
        self.in_flight = Gauge("minwise_requests_in_flight", "Requests worked on now.", registry=self._registry)
        self.documents = Gauge("minwise_documents", "Documents in the index.", registry=self._registry)
        self._known: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts a request that was answered."""
        key = (method, route, status)
        counters = self._known.get(key)
        if counters is None:
            counters = self._requests.labels(method, route, str(status)), self._seconds.labels(method, route)
            self._known[key] = counters
        counters[0].inc()
        counters[1].observe(seconds)

    def note_refusal(self, code: str) -> None:
        """Counts a client that was refused before there was a request to answer."""
        self._refused.labels(code).inc()

    def note_fate(self, fate: str) -> None:
        """Counts a document that was to be added."""
        self._fates.labels(fate).inc()

    def counting_changes(self, work: Work) -> Work:
        """The same work, with a note of how many changes were made at a time."""

        def counted(tasks: Sequence[Any]) -> Sequence[Any]:
            self._together.observe(len(tasks))
            return work(tasks)

        return counted

    def page(self) -> bytes:
        """All of it in the format of Prometheus."""
        return generate_latest(self._registry)
