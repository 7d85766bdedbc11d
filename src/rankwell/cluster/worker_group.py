"""The driver's side of the workers: starts them, calls all of them, and brings back those that are lost.

A worker that is lost is started again by Ray. It reads its part, is told what the workers had agreed on, all connect
anew, and a ranker's `restoration` brings every worker to where the driver is; then the call is made again. What a
worker has done since the last answer is lost with it, nothing else.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from rankwell import errors
from rankwell.cluster.learner import LearnerPlan
from rankwell.cluster.part_reading import Reading
from rankwell.cluster.parts import Part
from rankwell.cluster.report import ClusterReport, WorkerFigures
from rankwell.cluster.session import Session
from rankwell.cluster.worker import DONE, LOST, REFUSED, TrainingWorker
from rankwell.errors import ClusterError, RankwellError

logger = logging.getLogger("rankwell")

# A worker that is lost so often without any progress in between will not do better the next time.
_MOST_LOSSES = 5
_SECONDS_TO_RESTART = 120.0
_SECONDS_BETWEEN_LOOKS = 0.05
_SECONDS_BEFORE_ASKING = 30.0


class _WorkerLostError(Exception):
    """A worker did not answer, or lost another one; the text says what is known."""


class WorkerGroup:
    """The workers of one training.

    Parameters
    ----------
    session : Session
    parts : list of list of Part
        Those of each worker.
    reading : Reading
    plan : LearnerPlan
    n_threads : int
        Of each worker; also the CPUs that it takes of the cluster.
    gpus_per_worker : float

    Attributes
    ----------
    n_workers : int
    device : str
        Where the workers compute, "cpu" or "cuda".
    report : ClusterReport
    restoration : callable or None
        Returns the method and the arguments that bring a learner to where the driver is; called after a loss.
    """

    def __init__(
        self,
        session: Session,
        parts: Sequence[Sequence[Part]],
        reading: Reading,
        plan: LearnerPlan,
        *,
        n_threads: int = 1,
        gpus_per_worker: float = 0,
    ) -> None:
        self._ray, self._plan, self._parts, self._reading = session.ray, plan, parts, reading
        self.n_workers, self.device = len(parts), plan.device
        self._cut_files = _cut_files(parts)
        self._answers: list[np.ndarray] | None = None
        self._lives: list[str] = [""] * self.n_workers
        self._generation = self._n_losses = 0
        self.restoration: Callable[[], tuple[Any, ...]] | None = None
        self.report = ClusterReport([WorkerFigures(number) for number in range(self.n_workers)])
        actor = session.ray.remote(
            num_cpus=n_threads, num_gpus=gpus_per_worker, max_restarts=-1, max_task_retries=0, max_concurrency=2,
            scheduling_strategy="SPREAD",
        )(TrainingWorker)  # fmt: skip
        secret = os.urandom(32)
        self._actors = [
            actor.remote(number, self.n_workers, secret, session.is_local, n_threads)
            for number in range(self.n_workers)
        ]

    def close(self) -> None:
        """End the workers."""
        for actor in self._actors:
            self._ray.kill(actor, no_restart=True)

    def prepare(self) -> list[Mapping[str, Any]]:
        """Have every worker read its parts; what each says of them, in order."""
        summaries = [summary for summary, _ in self._until_done(self._prepare_all)]
        self._answers = summaries[0]["answers"]
        for worker, summary in zip(self.report.workers, summaries, strict=True):
            worker.n_docs, worker.n_queries = summary["n_docs"], summary["n_queries"]
            worker.seconds_reading = summary["seconds_reading"]
            self.report.note_memory(worker.number, summary["memory"])
        return summaries

    def run(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of every worker's learner; the results in the order of the workers."""
        answers = self._until_done(lambda: self._call_all("work", method, *arguments))
        for worker, (_, figures) in zip(self.report.workers, answers, strict=True):
            worker.seconds += figures[0]
            worker.seconds_waiting += figures[1]
            worker.bytes_sent += figures[2]
        self.report.name_the_slow()
        return [result for result, _ in answers]

    def _until_done(self, attempt: Callable[[], list[Any]]) -> list[Any]:
        is_ready = self._generation > 0
        while True:
            try:
                if not is_ready:
                    self._gather_all()
                results = attempt()
                self._n_losses = 0
                return results
            except _WorkerLostError as lost:
                is_ready = False
                self._n_losses += 1
                if self._n_losses > _MOST_LOSSES:
                    raise ClusterError(
                        f"workers were lost {self._n_losses} times without any progress; the last time: {lost} Check "
                        "the memory of their machines, and Ray's logs."
                    ) from lost

    def _prepare_all(self) -> list[Any]:
        return self._collect([self._prepare(number, None) for number in range(self.n_workers)])

    def _prepare(self, number: int, recorded: Sequence[np.ndarray] | None) -> Any:
        parts = [(part.path, part.first, part.last) for part in self._parts[number]]
        return self._actors[number].prepare.remote(
            _plain(self._plan), parts, self._cut_files, asdict(self._reading), recorded
        )

    def _gather_all(self) -> None:
        """Wait for all workers, connect them, and bring those that are new to where the others are."""
        introductions = [self._introduction(number) for number in range(self.n_workers)]
        fresh = [number for number, found in enumerate(introductions) if found["life"] != self._lives[number]]
        for number in fresh:
            worker, found = self.report.workers[number], introductions[number]
            if self._lives[number]:
                worker.n_restarts += 1
                logger.warning("%s was lost and is started again; it reads its part anew.", worker)
            worker.host, worker.process = found["host"], found["process"]
        self._generation += 1
        addresses = [tuple(found["address"]) for found in introductions]
        self._call_all("connect", addresses, self._generation)
        if self._answers is not None:
            self._collect([self._prepare(number, self._answers) for number in fresh], fresh)
            if self.restoration is not None:
                self._call_all("work", *self.restoration())
        self._lives = [found["life"] for found in introductions]

    def _introduction(self, number: int) -> Mapping[str, Any]:
        end = time.monotonic() + _SECONDS_TO_RESTART
        while True:
            try:
                found: Mapping[str, Any] = self._ray.get(
                    self._actors[number].introduce.remote(), timeout=_SECONDS_TO_RESTART
                )
                return found
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError) as cause:
                if time.monotonic() > end:
                    raise ClusterError(
                        f"{self.report.workers[number]} did not start within {_SECONDS_TO_RESTART:.0f} s: "
                        f"{_first_line(cause)}"
                    ) from cause
                time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _call_all(self, method: str, *arguments: Any) -> list[Any]:
        return self._collect([getattr(actor, method).remote(*arguments) for actor in self._actors])

    def _collect(self, calls: Sequence[Any], numbers: Sequence[int] | None = None) -> list[Any]:
        """Results of calls of workers, each with the figures of the call (seconds, of these waited, bytes sent).

        The first refusal is raised at once, a loss when every call has ended.
        """
        number_of = dict(zip(calls, range(self.n_workers) if numbers is None else numbers, strict=True))
        results: dict[Any, Any] = {}
        lost: list[str] = []
        pending = list(calls)
        while pending:
            ready, pending = self._ray.wait(pending, num_returns=1, timeout=_SECONDS_BEFORE_ASKING)
            if not ready:
                self._name_the_busy([number_of[call] for call in pending])
            for call in ready:
                worker = self.report.workers[number_of[call]]
                try:
                    answer = self._ray.get(call)
                except self._ray.exceptions.RayActorError as cause:
                    lost.append(f"{worker} is gone: {_first_line(cause)}")
                    continue
                if answer[0] == REFUSED:
                    raise _error(answer[1], answer[2])
                if answer[0] == LOST:
                    lost.append(f"{worker} lost worker {answer[1]}: {answer[2]}")
                    continue
                assert answer[0] == DONE
                results[call] = answer[1:]
        if lost:
            raise _WorkerLostError(lost[0])
        return [results[call] for call in calls]

    def _name_the_busy(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            try:
                doing, seconds = self._ray.get(self._actors[number].pulse.remote(), timeout=1.0)
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError):
                continue
            logger.info("%s: %s for %.0f s", self.report.workers[number], doing, seconds)


def _cut_files(parts: Sequence[Sequence[Part]]) -> list[str]:
    """The files of which some worker has a share only."""
    return sorted({part.path for own in parts for part in own if not part.is_whole})


def _plain(plan: LearnerPlan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in plan.__dataclass_fields__}


def _error(name: str, message: str) -> RankwellError:
    found = getattr(errors, name, None)
    if name == "BadLineError" or not (isinstance(found, type) and issubclass(found, RankwellError)):
        found = errors.DataError
    error: RankwellError = found(message)
    return error


def _first_line(cause: BaseException) -> str:
    return str(cause).strip().partition("\n")[0]
