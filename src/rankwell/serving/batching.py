"""Batching: requests of many clients are answered together, by one thread, from a queue of limited length.

While one batch is worked on, the next one gathers in the queue, so that batches grow with the load. An answer is given
as soon as it is there, and does not wait for the others of its batch. A request that
cannot be answered in time is refused when it comes, and one whose deadline passes while it waits is dropped when it is
taken from the queue: overload does not make latency grow.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from rankwell.errors import RankwellError
from rankwell.serving.deadline import Deadline


class Request(Protocol):
    """What a batch consists of."""

    @property
    def deadline(self) -> Deadline: ...


Asked = TypeVar("Asked", bound=Request)
Answered = TypeVar("Answered")

# How much the newest request counts in the mean cost of a request. Those of a batch all count, so that the mean is soon
# that of the large batches of a high load: a request that is ranked alone costs more than one among others.
_NEWEST = 0.03
# How much of the time that is left a request may be expected to wait: its batch is answered as a whole, and costs vary.
_WAITING_SHARE = 0.5
# How much less than other threads the one that ranks is preferred. On two cores, at three times the capacity, the
# slowest refusals take 10 ms with 3 and 8.5 with 5, and goodput is .95 and .92 of the capacity (five and three runs).
_NICENESS = 4


class OverloadError(RankwellError, RuntimeError):
    """More requests came than can be answered in time.

    retry_after : seconds after which it may be tried again
    """

    def __init__(self, message: str, *, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(message)


def too_short() -> OverloadError:
    """The refusal of a request that had no time left when it came."""
    return OverloadError("the deadline passed before the work could begin: allow more time.", retry_after=1.0)


@dataclass(eq=False)
class _Waiting(Generic[Asked, Answered]):
    request: Asked
    future: Future[Answered] = field(default_factory=Future)


class Batcher(Generic[Asked, Answered]):
    """A queue of requests, and the thread that answers them.

    Parameters
    ----------
    answer : the answers of a batch, in the order of its requests; each is given when the iteration comes to it, and an
        exception in place of an answer is raised to who asked
    most : int
        The largest batch.
    window : float
        How many seconds the first request of a batch waits for others. 0 takes what is in the queue. On a CPU, waiting
        saves processor time and costs latency: of the demo at half of its capacity, windows of 0, 1 and 5 ms take 822,
        676 and 575 µs a query, and the median answer 2.7, 4.9 and 12 ms (`python -m benchmarks serve_batch_sizes`).
    capacity : int
        The length of the queue.
    on_batch : called with the size of each batch, for metrics
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Asked]], Iterable[Answered | Exception]],
        *,
        most: int = 16,
        window: float = 0.0,
        capacity: int = 256,
        on_batch: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._answer, self._most, self._window, self._capacity = answer, most, window, capacity
        self._on_batch = on_batch
        self._queue: deque[_Waiting[Asked, Answered]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._n_running = 0
        self._cost = 0.0
        self._thread = threading.Thread(target=self._run, name="rankwell-ranking", daemon=True)
        self._thread.start()

    @property
    def length(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    def submit(self, request: Asked) -> Future[Answered]:
        """Queue a request. Raises OverloadError if it could not be answered before its deadline."""
        with self._changed:
            refusal = self.refusal(request.deadline.remaining)
            if refusal is not None:
                raise refusal
            waiting: _Waiting[Asked, Answered] = _Waiting(request)
            self._queue.append(waiting)
            self._changed.notify()
        return waiting.future

    def refuses(self, seconds: float) -> bool:
        """Whether a request that has so many seconds would be refused now."""
        n_waiting = len(self._queue)
        wait = self._cost * (n_waiting + self._n_running)
        return self._is_closed or seconds <= 0 or n_waiting >= self._capacity or wait > _WAITING_SHARE * seconds

    def refusal(self, seconds: float) -> OverloadError | None:
        """Why a request that has so many seconds would be refused now; None if it would be queued."""
        if not self.refuses(seconds):
            return None
        if self._is_closed:
            return OverloadError("the server is about to stop. Ask another one.", retry_after=1.0)
        if seconds <= 0:
            return too_short()
        n_before = len(self._queue) + self._n_running
        wait = self._cost * n_before
        if len(self._queue) >= self._capacity:
            why = f"{len(self._queue)} wait, and the queue holds no more"
        else:
            why = f"{n_before} come before it, which is expected to take {_in_ms(wait)} of its {_in_ms(seconds)}"
        text = f"too many requests: {why}. Try again in {math.ceil(wait) or 1} s."
        return OverloadError(text, retry_after=max(wait, 1.0))

    def close(self) -> None:
        """Answer what is in the queue, and end the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        _give_way()
        while batch := self._take():
            in_time = [waiting for waiting in batch if not self._is_dropped(waiting)]
            if in_time:
                self._on_batch(len(in_time))
                self._work(in_time)

    def _take(self) -> list[_Waiting[Asked, Answered]]:
        """The next batch, after at least one request has come; empty at the end."""
        with self._changed:
            self._n_running = 0
            self._changed.wait_for(lambda: self._queue or self._is_closed)
            if self._window > 0 and not self._is_closed:
                self._changed.wait_for(lambda: len(self._queue) >= self._most or self._is_closed, self._window)
            self._n_running = min(self._most, len(self._queue))
            return [self._queue.popleft() for _ in range(self._n_running)]

    def _is_dropped(self, waiting: _Waiting[Asked, Answered]) -> bool:
        """Whether nobody waits for the answer any more: its deadline is over, or it was cancelled."""
        if not waiting.future.set_running_or_notify_cancel():
            return True
        if waiting.request.deadline.is_over:
            message = "the deadline passed while the request waited. Try again, or allow more time."
            waiting.future.set_exception(OverloadError(message, retry_after=1.0))
            return True
        return False

    def _work(self, batch: Sequence[_Waiting[Asked, Answered]]) -> None:
        started = time.perf_counter()
        try:
            for waiting, answer in zip(batch, self._answer([one.request for one in batch]), strict=True):
                _give(waiting, answer)
                self._n_running -= 1
        except Exception as error:
            for waiting in batch:
                if not waiting.future.done():
                    _give(waiting, error)
        cost = (time.perf_counter() - started) / len(batch)
        weight = 1 - (1 - _NEWEST) ** len(batch) if self._cost else 1.0
        self._cost += (cost - self._cost) * weight


def _in_ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"


def _give_way() -> None:
    """Let threads that wait for connections run before this one, also those of other processes on the same core.

    What they do is short, and a refusal waits for them; without it, they would wait until this one's turn is over.
    """
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS)


def _give(waiting: _Waiting[Asked, Answered], answer: Answered | Exception) -> None:
    if isinstance(answer, Exception):
        waiting.future.set_exception(answer)
    else:
        waiting.future.set_result(answer)
