"""A worker: a process that reads its parts, trains on them in step with the others, and answers the driver."""

from __future__ import annotations

import importlib
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.exchange import CompanionLostError, Exchange
from rankwell.cluster.learner import Learner, LearnerPlan
from rankwell.cluster.part_reading import Reading, read_parts
from rankwell.cluster.parts import Part
from rankwell.data.row_storage import available_memory
from rankwell.errors import RankwellError
from rankwell.kernels.threads import kernel_threads

# By the name of the ranker; nothing else is ever loaded.
LEARNERS = {
    "least-squares": "rankwell.cluster.least_squares:LeastSquaresLearner",
    "lambdamart": "rankwell.cluster.lambdamart:LambdaMARTLearner",
    "rankboost": "rankwell.cluster.rankboost:RankBoostLearner",
    "ranksvm": "rankwell.cluster.ranksvm:RankSVMLearner",
    **dict.fromkeys(("listnet", "ranknet", "lambdarank", "listmle"), "rankwell.cluster.networks:NetworkLearner"),
}

# The first element of an answer.
DONE, REFUSED, LOST = "done", "refused", "lost"


class TrainingWorker:
    """The actor. Answers are tuples of plain values and arrays: (DONE, result, figures), (REFUSED, the error's class,
    its message) or (LOST, the number of the worker that is gone).

    Parameters
    ----------
    number, n_workers : int
    secret : bytes
    is_local : bool
        Whether all workers are on this machine.
    n_threads : int
    """

    def __init__(self, number: int, n_workers: int, secret: bytes, is_local: bool, n_threads: int) -> None:
        self._number, self._n_threads = number, n_threads
        self._exchange = Exchange(number, n_workers, secret, "127.0.0.1" if is_local else _own_address())
        # Of this process: a worker that was restarted has another one.
        self._life = os.urandom(8).hex()
        self._learner: Learner | None = None
        self._doing, self._since = "nothing", time.monotonic()

    def introduce(self) -> dict[str, Any]:
        return {
            "life": self._life,
            "process": os.getpid(),
            "host": socket.gethostname(),
            "address": list(self._exchange.address),
        }

    def pulse(self) -> tuple[str, float]:
        """What this worker is doing, and for how long; answered while it works."""
        return self._doing, time.monotonic() - self._since

    def connect(self, addresses: Sequence[tuple[str, int]], generation: int) -> tuple[Any, ...]:
        return self._answer("connecting", lambda: self._exchange.connect(addresses, generation))

    def prepare(
        self,
        plan: dict[str, Any],
        parts: Sequence[tuple[str, float, float]],
        cut_files: Sequence[str],
        reading: dict[str, Any],
        recorded: Sequence[np.ndarray] | None,
    ) -> tuple[Any, ...]:
        """Read the parts and keep what training needs; `recorded` are the answers that the workers agreed on before."""

        def read_and_keep() -> dict[str, Any]:
            began = time.perf_counter()
            self._learner = None
            agreement = WorkersAgreement(self._exchange, recorded)
            dataset = read_parts([Part(*part) for part in parts], list(cut_files), Reading(**reading), agreement)
            seconds = time.perf_counter() - began
            settings = LearnerPlan(**plan)
            learner = learner_class(settings.ranker)(settings, dataset, agreement, self._exchange, self._n_threads)
            self._learner = learner
            answers = agreement.answers if self._number == 0 else []
            return {**learner.summary(), "answers": answers, "seconds_reading": seconds, "memory": available_memory()}

        return self._answer("reading " + ", ".join(part[0] for part in parts), read_and_keep)

    def work(self, method: str, *arguments: Any) -> tuple[Any, ...]:
        """Call a method of the learner."""
        return self._answer(method, lambda: getattr(self._learner, method)(*arguments))

    def _answer(self, doing: str, task: Callable[[], Any]) -> tuple[Any, ...]:
        self._doing, self._since = doing, time.monotonic()
        sent, waited = self._exchange.bytes_sent, float(self._exchange.seconds_waited.sum())
        began = time.perf_counter()
        try:
            with kernel_threads(self._n_threads):
                result = task()
        except RankwellError as error:
            self._exchange.close()
            return REFUSED, type(error).__name__, str(error)
        except CompanionLostError as lost:
            return LOST, lost.worker, str(lost)
        except (ConnectionError, TimeoutError) as lost:
            return LOST, -1, str(lost)
        finally:
            self._doing, self._since = "nothing", time.monotonic()
        figures = (
            time.perf_counter() - began,
            float(self._exchange.seconds_waited.sum()) - waited,
            self._exchange.bytes_sent - sent,
        )
        return DONE, result, figures


def learner_class(ranker: str) -> type[Learner]:
    module, name = LEARNERS[ranker].split(":")
    found: type[Learner] = getattr(importlib.import_module(module), name)
    return found


def _own_address() -> str:
    import ray

    return str(ray.util.get_node_ip_address())
