"""The circuit breaker of a node, and the delay after which a request is hedged."""

import numpy as np

from rankwell.serving.shards.circuit_breaker import CLOSED, HALF_OPEN, OPEN, CircuitBreaker
from rankwell.serving.shards.latency_quantile import LatencyQuantile


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_it_opens_after_failures_in_a_row():
    breaker = CircuitBreaker(3, clock=Clock())
    for _ in range(2):
        breaker.fail()
    breaker.succeed()
    for _ in range(2):
        breaker.fail()
    assert breaker.state == CLOSED
    breaker.fail()
    assert breaker.state == OPEN
    assert not breaker.allows()


def test_it_is_tried_by_one_request_and_each_failure_doubles_the_pause():
    clock = Clock()
    breaker = CircuitBreaker(3, pause=0.5, longest_pause=1.5, clock=clock)
    breaker.fail(at_once=True)
    for pause in (0.5, 1.0, 1.5, 1.5):
        assert breaker.state == OPEN
        clock.now += pause - 0.01
        assert not breaker.allows()
        clock.now += 0.02
        assert breaker.state == HALF_OPEN
        assert breaker.allows()
        breaker.begin()
        assert not breaker.allows()
        breaker.fail()
    clock.now += 2.0
    breaker.begin()
    breaker.succeed()
    assert breaker.state == CLOSED
    breaker.fail(at_once=True)
    clock.now += 0.51
    assert breaker.state == HALF_OPEN


def test_a_trial_that_says_nothing_lets_the_next_one_try():
    clock = Clock()
    breaker = CircuitBreaker(clock=clock)
    breaker.fail(at_once=True)
    clock.now += 1.0
    breaker.begin()
    breaker.withdraw()
    assert breaker.allows()


def test_the_estimate_is_near_the_95th_percentile():
    durations = np.random.default_rng(1).exponential(0.02, 5000)
    estimate = LatencyQuantile()
    values = []
    for seconds in durations:
        estimate.add(float(seconds))
        values.append(estimate.value)
    assert abs(np.mean(values[1000:]) / np.quantile(durations, 0.95) - 1.0) < 0.2
