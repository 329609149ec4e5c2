"""Numbers for Prometheus: requests as they come, the database's counts when asked."""

import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import Scope

from backend.services.monitoring import Counts

#: Anybody can invent others, and every label is kept for ever.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0)


class Monitor(Collector):
    """One app's numbers; apps in one process (tests) do not share them."""

    def __init__(self, count: Callable[[], Counts]) -> None:
        """Start empty.

        Args:
            count: Reads the database; called once for every scrape.
        """
        self._count = count
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "etascope_request_seconds",
            "Time to answer a request.",
            ("method", "route", "status"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._registry.register(self)

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Note a request, by its route: paths hold ids, and those are endless."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._requests.labels(method, route, str(status or "none")).observe(seconds)

    def render(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)

    def describe(self) -> Iterator[Metric]:
        """Name nothing beforehand: registering must not ask the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield what the database knows."""
        counts = self._count()
        yield _gauge("etascope_queue_depth", "Shards that wait.", "queue", counts.waiting)
        yield _gauge("etascope_shards", "Shards by state.", "state", counts.shards)
        yield _gauge("etascope_trials", "Trials by state.", "state", counts.trials)
        yield _gauge(
            "etascope_shard_seconds", "Mean time of recent shards.", "device", counts.shard_seconds
        )
        now = time.time()
        ages = {name: max(0.0, now - beat) for name, beat in counts.heartbeats.items()}
        yield _gauge(
            "etascope_worker_heartbeat_age_seconds", "Since a worker's last sign.", "worker", ages
        )
        yield _gauge("etascope_workers", "Workers by state.", "state", counts.workers)


def _gauge(name: str, text: str, label: str, values: dict[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([key], value)
    return family
