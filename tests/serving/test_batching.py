"""Batching: what waits is answered together, a full queue refuses, and expired work is dropped."""

import threading
import time
from concurrent.futures import wait
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from rankwell.serving import batching
from rankwell.serving.batching import Batcher, OverloadError
from rankwell.serving.deadline import Deadline


@dataclass(frozen=True)
class Number:
    value: int
    deadline: Deadline


class Gate:
    """Answers with squares, once it is open; remembers the batches."""

    def __init__(self):
        self.is_open, self.is_working, self.batches = threading.Event(), threading.Event(), []

    def answer(self, numbers):
        self.batches.append([number.value for number in numbers])
        self.is_working.set()
        assert self.is_open.wait(10)
        return [ValueError("odd") if number.value == 13 else number.value**2 for number in numbers]


def number(value, seconds=10.0):
    return Number(value, Deadline.after(seconds))


@pytest.fixture
def gate():
    return Gate()


def held(gate, **settings):
    """A batcher that works on request 0 until the gate opens."""
    batcher = Batcher(gate.answer, **settings)
    first = batcher.submit(number(0))
    assert gate.is_working.wait(10)
    return batcher, first


def test_what_waits_is_answered_together_in_order(gate):
    sizes = []
    batcher, first = held(gate, most=3, on_batch=sizes.append)
    others = [batcher.submit(number(value)) for value in range(1, 6)]
    gate.is_open.set()
    assert [future.result(10) for future in (first, *others)] == [0, 1, 4, 9, 16, 25]
    assert gate.batches == [[0], [1, 2, 3], [4, 5]]
    assert sizes == [1, 3, 2]
    batcher.close()


def test_a_window_gathers_a_batch(gate):
    gate.is_open.set()
    batcher = Batcher(gate.answer, most=4, window=5.0)
    futures = [batcher.submit(number(value)) for value in range(4)]
    # The window ends early, since the batch is full.
    assert [future.result(4) for future in futures] == [0, 1, 4, 9]
    assert gate.batches == [[0, 1, 2, 3]]
    batcher.close()


def test_a_full_queue_refuses_and_says_when_to_come_again(gate):
    batcher, _ = held(gate, capacity=2)
    kept = [batcher.submit(number(value)) for value in (1, 2)]
    with pytest.raises(OverloadError, match="too many requests: 2 wait, and the queue holds no more") as refused:
        batcher.submit(number(3))
    assert refused.value.retry_after >= 1
    gate.is_open.set()
    assert [future.result(10) for future in kept] == [1, 4]
    batcher.close()


def test_what_cannot_be_answered_in_time_is_refused_at_once(gate):
    batcher, first = held(gate)
    threading.Timer(0.2, gate.is_open.set).start()
    first.result(10)
    # A request takes 0.2 s now.
    gate.is_open.clear()
    gate.is_working.clear()
    batcher.submit(number(1))
    assert gate.is_working.wait(10)
    batcher.submit(number(2))
    with pytest.raises(
        OverloadError,
        match=r"too many requests: 2 come before it, which is expected to take \d+\.\d ms of its (99\.\d|100\.0) ms",
    ):
        batcher.submit(number(3, seconds=0.1))
    batcher.submit(number(4, seconds=5.0))
    gate.is_open.set()
    batcher.close()


def test_the_cost_of_a_request_is_that_of_requests_in_large_batches(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(batching, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def answer(numbers):
        now[0] += 0.16  # whatever the batch's size
        return [one.value for one in numbers]

    batcher = Batcher(answer, most=16, window=5.0)
    for _ in range(3):
        wait([batcher.submit(number(value)) for value in range(16)], 10)
    batcher._window = 0.0
    batcher.submit(number(0)).result(10)
    batcher.close()
    # 0.01 s each, and hardly more after one that was alone.
    assert batcher._cost == pytest.approx(0.01 + 0.03 * (0.16 - 0.01))


def test_expired_work_is_dropped_when_it_is_taken(gate):
    batcher, _ = held(gate)
    late, cancelled, in_time = (
        batcher.submit(number(1, seconds=0.1)),
        batcher.submit(number(2)),
        batcher.submit(number(3)),
    )
    cancelled.cancel()
    time.sleep(0.2)
    gate.is_open.set()
    assert in_time.result(10) == 9
    with pytest.raises(OverloadError, match="the deadline passed while the request waited"):
        late.result(10)
    assert gate.batches == [[0], [3]]
    batcher.close()


def test_a_failure_reaches_the_one_who_asked(gate):
    gate.is_open.set()
    batcher = Batcher(gate.answer)
    with pytest.raises(ValueError, match="odd"):
        batcher.submit(number(13)).result(10)
    assert batcher.submit(number(4)).result(10) == 16
    batcher.close()


def test_a_batch_that_fails_as_a_whole_does_not_end_the_thread():
    def answer(numbers):
        if numbers[0].value == 1:
            raise RuntimeError("broken")
        return [number.value for number in numbers]

    batcher = Batcher(answer)
    with pytest.raises(RuntimeError, match="broken"):
        batcher.submit(number(1)).result(10)
    assert batcher.submit(number(2)).result(10) == 2
    batcher.close()


def test_an_answer_does_not_wait_for_the_others_of_its_batch():
    may_go_on = threading.Event()

    def answer(numbers):
        for one in numbers:
            yield one.value
            if one.value == 1:
                assert may_go_on.wait(10)
            if one.value == 2:
                raise RuntimeError("broken")

    batcher = Batcher(answer, most=4, window=5.0)
    first, second, *others = [batcher.submit(number(value)) for value in (1, 2, 3, 4)]
    assert first.result(10) == 1
    assert not second.done()
    may_go_on.set()
    assert second.result(10) == 2
    for future in others:
        with pytest.raises(RuntimeError, match="broken"):
            future.result(10)
    assert batcher.submit(number(1)).result(10) == 1
    batcher.close()


def test_too_few_answers_are_a_failure_of_those_without_one():
    batcher = Batcher(lambda numbers: [one.value for one in numbers[:1]], most=2, window=5.0)
    first, second = (batcher.submit(number(value)) for value in (1, 2))
    assert first.result(10) == 1
    with pytest.raises(ValueError, match="shorter"):
        second.result(10)
    batcher.close()


def test_closing_answers_what_is_queued_and_refuses_the_rest(gate):
    batcher, first = held(gate)
    last = batcher.submit(number(5))
    closing = threading.Thread(target=batcher.close)
    closing.start()
    gate.is_open.set()
    closing.join(10)
    wait([first, last], 10)
    assert last.result(0) == 25
    with pytest.raises(OverloadError, match="about to stop"):
        batcher.submit(number(6))
