"""What surrounds every request: an id, a duration, a last net; and the numbers for Prometheus."""

import logging
import re
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.logs import about
from backend.services.shards import Counts
from backend.web.failures import failure
from backend.web.gate import READING

log = logging.getLogger("etascope.web")

REQUEST_ID = "X-Request-ID"
#: Answers are what they say they are, in no other site's frame, and links tell where from to none.
SAFER = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
}
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
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


class RequestScope:
    """Outermost of our layers."""

    def __init__(self, app: ASGIApp, *, monitor: Monitor) -> None:
        self._app = app
        self._monitor = monitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Name the request, time it, and answer 500 without a traceback if it breaks."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        given = Headers(scope=scope).get(REQUEST_ID.lower(), "")
        request_id = given if _SANE_ID.fullmatch(given) else uuid4().hex
        started, status = time.perf_counter(), 0

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = request_id
                for name, value in SAFER.items():
                    headers[name] = value
            await send(message)

        with about(request_id=request_id):
            try:
                await self._answer(scope, receive, named, lambda: status, request_id)
            finally:
                seconds = time.perf_counter() - started
                self._monitor.observe(scope, status, seconds)
                level = logging.DEBUG if scope["method"] in READING else logging.INFO
                log.log(level, "%s %d %.0f ms", _asked(scope), status, seconds * 1000)

    async def _answer(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        status: Callable[[], int],
        request_id: str,
    ) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception:
            log.exception("request %s failed: %s", request_id, _asked(scope))
            if status():  # too late to say anything; the server must cut the connection
                raise
            answer = failure(
                500,
                "internal",
                "Something went wrong here; it is in the server's log.",
                hint=f"Look for request {request_id}.",
            )
            await answer(scope, receive, send)


def _asked(scope: Scope) -> str:
    """Return a request as it is logged.

    Without the query, which may hold what nobody but the asker should know, and with the path as
    it was sent: a decoded one could hold a line's end, and the line after it would be a lie.
    """
    path = scope.get("raw_path") or scope["path"].encode("ascii", "backslashreplace")
    return f"{scope['method']} {path.decode('ascii', 'backslashreplace')}"
