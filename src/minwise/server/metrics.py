"""Prometheus metrics of the server."""

from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]

# Histogram buckets in seconds: from a lookup to longer than clients wait.
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

Work = Callable[[Sequence[Any]], Sequence[Any]]


class Metrics:
    """Counters of one server.

    Attributes:
        in_flight: Requests in progress.
        connections: Open connections.
        documents: Documents in the index when they were last counted.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "minwise_requests", "Requests by route and status.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "minwise_request_seconds",
            "Seconds from the end of the request headers to the response.",
            ["method", "route"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._batch_sizes = Histogram(
            "minwise_changes_together",
            "Requests whose changes were committed together.",
            buckets=BATCH_SIZES,
            registry=self._registry,
        )
        self._fates = Counter(
            "minwise_added", "Documents sent to be added, by outcome.", ["fate"], registry=self._registry
        )
        self._refused = Counter(
            "minwise_refused",
            "Clients refused before their request was complete.",
            ["code"],
            registry=self._registry,
        )
        self.connections = Gauge("minwise_connections", "Open connections.", registry=self._registry)
        self.in_flight = Gauge("minwise_requests_in_flight", "Requests in progress.", registry=self._registry)
        self.documents = Gauge("minwise_documents", "Documents in the index.", registry=self._registry)
        self._request_counters: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        key = (method, route, status)
        counters = self._request_counters.get(key)
        if counters is None:
            counters = self._requests.labels(method, route, str(status)), self._seconds.labels(method, route)
            self._request_counters[key] = counters
        counters[0].inc()
        counters[1].observe(seconds)

    def count_refusal(self, code: str) -> None:
        """Count a client that was refused before there was a request to answer."""
        self._refused.labels(code).inc()

    def count_fate(self, fate: str) -> None:
        """Count a document that was sent to be added."""
        self._fates.labels(fate).inc()

    def counting_changes(self, work: Work) -> Work:
        """Return the same work with its batch sizes counted."""

        def counted(tasks: Sequence[Any]) -> Sequence[Any]:
            self._batch_sizes.observe(len(tasks))
            return work(tasks)

        return counted

    def page(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)
