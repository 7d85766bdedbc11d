"""The duration that 95 of 100 requests do not exceed, estimated as they come."""

from __future__ import annotations

QUANTILE = 0.95
# How far one observation moves the estimate, and where it begins.
_STEP = 0.05
_FIRST_SECONDS = 0.05
_LEAST_SECONDS = 0.001


class LatencyQuantile:
    """A stochastic estimate: each duration above it moves it up by 19 times as much as one below moves it down."""

    def __init__(self) -> None:
        self.value = _FIRST_SECONDS

    def add(self, seconds: float) -> None:
        share = QUANTILE if seconds > self.value else QUANTILE - 1.0
        self.value = max(_LEAST_SECONDS, self.value * (1.0 + _STEP * share))
