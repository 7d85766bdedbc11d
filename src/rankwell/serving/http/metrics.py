"""What a server counts and times, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from rankwell.serving.log_losses import LogLosses

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._gauges: dict[str, Gauge] = {}
        # Labels are few and remembered: the library takes longer to find a label than to count.
        self._requests = cache(
            Counter(
                "rankwell_requests", "Requests by path and status.", ("path", "status"), registry=self._registry
            ).labels
        )
        self._seconds = cache(
            Histogram(
                "rankwell_request_seconds",
                "Duration of requests.",
                ("path",),
                buckets=_SECONDS,
                registry=self._registry,
            ).labels
        )
        self._stages = cache(
            Histogram(
                "rankwell_stage_seconds", "Duration of stages.", ("stage",), buckets=_SECONDS, registry=self._registry
            ).labels
        )
        self._cache = cache(
            Counter(
                "rankwell_cache_lookups", "Lookups in the result cache.", ("result",), registry=self._registry
            ).labels
        )
        self._partials = Counter(
            "rankwell_partial_answers",
            "Answers that lack ranking or shards.",
            registry=self._registry,
        )
        self._ranked = cache(
            Counter(
                "rankwell_ranked", "Answers by the device that ranked them.", ("device",), registry=self._registry
            ).labels
        )
        self._late = Counter(
            "rankwell_late_answers", "Whole answers that came after their deadline.", registry=self._registry
        )
        self._fallbacks = Counter(
            "rankwell_fallbacks", "Answers that the CPU ranked in place of a device.", registry=self._registry
        )
        self._refused = Counter("rankwell_refused", "Requests refused because of overload.", registry=self._registry)

    def gauge(self, name: str, text: str, value: Callable[[], float], **labels: object) -> None:
        """A metric whose value is asked for when metrics are read; one name may have several values by label."""
        gauge = self._gauges.get(name)
        if gauge is None:
            gauge = self._gauges[name] = Gauge(name, text, tuple(labels), registry=self._registry)
        (gauge.labels(**labels) if labels else gauge).set_function(value)

    def log_losses(self, name: str, losses: LogLosses | None) -> None:
        """Show what a log could not keep."""
        if losses is not None:
            self.gauge("rankwell_log_lost", "Entries that a log could not keep.", lambda: losses.n_lost, log=name)

    def add_request(self, path: str, status: int, seconds: float, *, is_refused: bool) -> None:
        self._requests(path, status).inc()
        self._seconds(path).observe(seconds)
        if is_refused:
            self._refused.inc()

    def batch_sizes(self) -> Callable[[int], None]:
        """What counts the sizes of batches, where this process ranks them."""
        sizes = Histogram(
            "rankwell_batch_size", "Queries that are ranked together.", buckets=_SIZES, registry=self._registry
        )
        return sizes.observe

    def add_lookup(self, *, is_hit: bool) -> None:
        self._cache("hit" if is_hit else "miss").inc()

    def add_answer(
        self, seconds: Mapping[str, float], device: str, *, is_partial: bool, is_late: bool, is_fallback: bool
    ) -> None:
        for stage, duration in seconds.items():
            self._stages(stage).observe(duration)
        self._ranked(device).inc()
        if is_partial:
            self._partials.inc()
        elif is_late:
            self._late.inc()
        if is_fallback:
            self._fallbacks.inc()

    def text(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self._registry)
