"""What a training on a cluster took: of each worker its documents, speed, waiting, and bytes sent."""

from __future__ import annotations

import logging
import statistics
from dataclasses import dataclass, field

logger = logging.getLogger("rankwell")

# A worker is named if it works this many times as long as the others, for this long.
_SLOW, _SECONDS_TO_TELL = 1.5, 5.0
_SHORT_OF_MEMORY = 2**29


@dataclass
class WorkerFigures:
    """One worker.

    number, host, process : who it is
    n_docs, n_queries : its part of the data
    seconds_reading : to read its part
    seconds, seconds_waiting : in training, and of these waiting for other workers
    bytes_sent : to other workers, in training
    n_restarts : how often it was lost and started again
    """

    number: int
    host: str = ""
    process: int = 0
    n_docs: int = 0
    n_queries: int = 0
    seconds_reading: float = 0.0
    seconds: float = 0.0
    seconds_waiting: float = 0.0
    bytes_sent: int = 0
    n_restarts: int = 0

    @property
    def seconds_working(self) -> float:
        return self.seconds - self.seconds_waiting

    def __str__(self) -> str:
        return f"worker {self.number} (process {self.process} on {self.host})"


@dataclass
class ClusterReport:
    """The workers of one training; `division` says what each has: "documents" or "features"."""

    workers: list[WorkerFigures] = field(default_factory=list)
    division: str = "documents"
    n_steps: int = 0
    _named: set[int] = field(default_factory=set)

    def documents_per_second(self, number: int) -> float:
        """How many documents a worker goes through in a second of work, one step (round, pass, tree) being once."""
        worker = self.workers[number]
        return worker.n_docs * self.n_steps / worker.seconds_working if worker.seconds_working > 0 else 0.0

    @property
    def share_waiting(self) -> float:
        """The share of all workers' time that was lost waiting."""
        seconds = sum(worker.seconds for worker in self.workers)
        return sum(worker.seconds_waiting for worker in self.workers) / seconds if seconds > 0 else 0.0

    def line(self) -> str:
        """All of them in a few words, for a progress bar."""
        speed = sum(self.documents_per_second(number) for number in range(len(self.workers)))
        return f"{len(self.workers)} workers  {speed / 1e6:.3g} M documents/s  {self.share_waiting:.0%} waiting"

    def name_the_slow(self) -> None:
        """Warn, once, of a worker that all others wait for."""
        for worker in self.workers:
            others = [other.seconds_working for other in self.workers if other is not worker]
            if not others or worker.number in self._named or worker.seconds < _SECONDS_TO_TELL:
                continue
            times = worker.seconds_working / max(statistics.median(others), 1e-9)
            if times > _SLOW:
                self._named.add(worker.number)
                logger.warning(
                    "%s is slow: it works %.1f times as long as the others, which wait for it. It has %d documents.",
                    *(worker, times, worker.n_docs),
                )

    def note_memory(self, number: int, n_bytes: int) -> None:
        """Warn if a worker's machine has little memory left."""
        if n_bytes < _SHORT_OF_MEMORY:
            logger.warning(
                "%s is short of memory: %.2f GiB are left on its machine. Use more workers, on more machines.",
                *(self.workers[number], n_bytes / 2**30),
            )
