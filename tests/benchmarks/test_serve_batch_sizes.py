"""The open load of the sweep: every request is answered and counted, in batches that are as large as they may be."""

from __future__ import annotations

import time

import numpy as np
from benchmarks.serve_batch_sizes import Measured, Setting, open_load

from rankwell.serving.answer import SearchRequest
from rankwell.serving.deadline import Deadline


class SlowNode:
    """Takes so many seconds for a batch, whatever its size."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.n_answered = 0

    def answers(self, requests):
        time.sleep(self.seconds)
        self.n_answered += len(requests)
        return [request.query for request in requests]


def measured(setting: Setting, seconds: float = 0.01) -> Measured:
    node, outcome = SlowNode(seconds), Measured()
    requests = [SearchRequest(text, Deadline.after(60.0)) for text in ("oil", "sea")]
    for turn in range(2):
        open_load(node, requests, setting, 400.0, 0.2, turn, outcome)
    assert len(outcome.latencies) == node.n_answered == sum(outcome.batches)
    assert node.n_answered > 50
    return outcome


def test_batches_are_no_larger_than_they_may_be():
    assert max(measured(Setting(1, 0.0)).batches) == 1
    several = measured(Setting(4, 0.0)).batches
    assert 1 < np.mean(several) <= max(several) <= 4


def test_latencies_count_from_when_requests_were_due():
    # 400 a second, one every 10 ms: of about 80, the last waits for more than half a second.
    alone, together = measured(Setting(1, 0.0)), measured(Setting(64, 0.0))
    assert max(alone.latencies) > 0.3
    assert alone.percentile_ms(50) > together.percentile_ms(50) >= 10.0


def test_a_window_makes_queries_wait():
    # 0.1 s in place of nothing for who comes first.
    assert measured(Setting(64, 100.0), 0.0).percentile_ms(50) > measured(Setting(64, 0.0), 0.0).percentile_ms(50)


def test_settings_in_words():
    assert str(Setting(16, 0.0)) == "batches of 16"
    assert str(Setting(8, 0.5)) == "batches of 8, window 0.5 ms"
