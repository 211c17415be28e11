"""Metrics for Prometheus: requests, streams, and the load of the environment."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import field

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.api.workspace import Workspace
from clew.deferred import dataclass
from clew.server.protection.question_pool import QuestionPool
from clew.server.streams import EventStreams

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_API = "/api/v1"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


@dataclass(frozen=True, eq=False)
class Metrics:
    """The metrics of one application."""

    workspace: Workspace
    streams: EventStreams
    questions: QuestionPool
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    requests: Counter = field(init=False)
    seconds: Histogram = field(init=False)

    def __post_init__(self) -> None:
        requests = Counter(
            "clew_http_requests",
            "Requests by route, method and status.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        seconds = Histogram(
            "clew_http_request_seconds",
            "Time until the response was complete.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        object.__setattr__(self, "requests", requests)
        object.__setattr__(self, "seconds", seconds)
        self.registry.register(_Gauges(self.workspace, self.streams, self.questions))

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


@dataclass(frozen=True, eq=False)
class _Gauges(Collector):
    """Metrics that are read on every scrape."""

    workspace: Workspace
    streams: EventStreams
    questions: QuestionPool

    def collect(self) -> Iterable[Metric]:
        """The current values."""
        return self._families()

    def _families(self) -> Iterator[Metric]:
        load = self.workspace.operations.load()
        runs = GaugeMetricFamily("clew_runs", "Runs of the environment that have not ended.", labels=["state"])
        runs.add_metric(["running"], load.running)
        runs.add_metric(["queued"], load.queued)
        yield runs
        yield GaugeMetricFamily(
            "clew_event_stream_listeners", "Clients that follow the events of a run.", value=self.streams.listeners
        )
        questions = GaugeMetricFamily("clew_questions", "Questions about rows.", labels=["state"])
        questions.add_metric(["running"], self.questions.running)
        questions.add_metric(["waiting"], self.questions.waiting)
        yield questions
        stopped = CounterMetricFamily(
            "clew_questions_stopped", "Questions refused or stopped before they were answered.", labels=["reason"]
        )
        for reason, count in sorted(self.questions.stopped.items()):
            stopped.add_metric([reason], count)
        yield stopped

    def describe(self) -> Iterable[Metric]:
        """Registering the collector does not query the store."""
        return ()


class CountedRequests:
    """Counts every request under the pattern of its route, so that paths do not become labels."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            route = _pattern(scope)
            self._metrics.requests.labels(route, _method(scope), str(status)).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - started)


def _method(scope: Scope) -> str:
    """The method, if HTTP knows it: clients can send any word, of any length."""
    return scope["method"] if scope["method"] in _METHODS else "other"


def _pattern(scope: Scope) -> str:
    """The pattern of the route that answered, `none` without one.

    API routers are included under a prefix that their patterns lack.
    """
    pattern: str | None = getattr(scope.get("route"), "path", None)
    if pattern is None:
        return "none"
    return f"{_API}{pattern}" if scope["path"].startswith(f"{_API}/") and not pattern.startswith(_API) else pattern
