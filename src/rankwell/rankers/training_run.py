"""The training run: what every ranker that is trained step by step shares.

A ranker gives it a `StepSource`, which knows how to run further steps (rounds, epochs, outer iterations). The run does
the rest: it measures each step on the validation data, stops early, writes checkpoints and resumes from them, keeps the
history, and calls the callback.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankwell.rankers.base import SECONDS, Callback, TrainingStep
from rankwell.rankers.checkpoints import Checkpoints
from rankwell.rankers.early_stopping import EarlyStopping
from rankwell.rankers.validation import Validation

# A signal (Ctrl-C) and progress wait for the end of a batch. A user should wait for at most a second; a quarter of it,
# because steps differ in length.
_SECONDS_PER_BATCH = 0.25
_MOST_STEPS_PER_BATCH = 64


@dataclass(frozen=True)
class Steps:
    """The steps that a source ran.

    figures : one mapping per step, by the names in `StepSource.figures`
    finished : whether training has ended, so that there are no further steps
    """

    figures: Sequence[Mapping[str, float]]
    finished: bool = False


class StepSource(ABC):
    """What a training run drives. The model must not depend on how many steps are run at once.

    Attributes
    ----------
    figures : tuple of str
        The names of what is measured in every step.
    """

    figures: tuple[str, ...]

    @abstractmethod
    def run(self, n_steps: int) -> Steps:
        """Run the next steps: `n_steps` at most, and at least one unless training has ended."""

    @abstractmethod
    def validation_scores(self) -> np.ndarray:
        """The scores of the validation data, float64 (n_docs,), after one more of the steps that `run` returned.

        Called once for each of them, in order, before `run` is called again; never without validation data.
        """

    def scores_of_steps(self) -> Sequence[np.ndarray]:
        """As `validation_scores`, after each of some further steps, one at least: those that are measured together."""
        return [self.validation_scores()]

    def step_done(self, seconds: float, validation: float | None, is_best: bool) -> None:  # noqa: B027
        """Called when the next of the steps that `run` returned has been measured; many sources ignore it.

        Parameters
        ----------
        seconds : float
            How long the step took.
        validation : float, optional
            The validation figure, if there is validation data.
        is_best : bool
            Whether it is the best so far; a source that cannot return to a step later must copy its model now.
        """

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint must hold for `restore`. Only a source that is given checkpoints needs it."""
        raise TypeError(f"{type(self).__name__} cannot be checkpointed: it must define arrays and restore.")

    def restore(self, arrays: Mapping[str, np.ndarray], n_steps: int) -> None:
        """Restore the state after `n_steps` steps, when `arrays` were taken, to the last bit."""
        raise TypeError(f"{type(self).__name__} cannot be checkpointed: it must define arrays and restore.")


class BatchSize:
    """How many steps to run before control returns to the host: as many as fit in a fraction of a second.

    It starts at one step and at most quadruples, since the first steps may include compilation or a transfer.

    Attributes
    ----------
    n_steps : int
    """

    def __init__(self) -> None:
        self.n_steps = 1

    def measured(self, n_steps: int, seconds: float) -> None:
        """Record that `n_steps` steps took `seconds`."""
        most = min(4 * self.n_steps, _MOST_STEPS_PER_BATCH)
        fitting = most if seconds * most <= _SECONDS_PER_BATCH * n_steps else _SECONDS_PER_BATCH * n_steps / seconds
        self.n_steps = max(1, int(fitting))


class TrainingRun:
    """One training, from its first step or its checkpoint to its end.

    Parameters
    ----------
    source : StepSource
    n_steps : int
        Steps at most, those of a checkpoint included.
    callback : callable
        Called with a `TrainingStep` after each step; a true return value ends the run.
    validation : Validation, optional
        Measured after every step.
    patience : int, optional
        Steps without a better validation figure before the run ends; None disables this.
    checkpoints : Checkpoints, optional
    clock : callable
        The time in seconds.

    Attributes
    ----------
    history : dict of str to list of float
        The figures of every step by name: the source's, the validation figures, and `seconds`, how long all steps up to
        this one took, without validation and callbacks. A resumed run continues from its checkpoint's.
    ended_by : "steps", "source", "patience", "callback" or None
        None before the end; "steps" when all `n_steps` are done.
    """

    def __init__(
        self,
        source: StepSource,
        n_steps: int,
        *,
        callback: Callback,
        validation: Validation | None = None,
        patience: int | None = None,
        checkpoints: Checkpoints | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._source = source
        self._n_steps = n_steps
        self._callback = callback
        self._validation = validation
        self._early_stopping = EarlyStopping(patience)
        self._checkpoints = Checkpoints(None, 1, "") if checkpoints is None else checkpoints
        self._clock = clock
        names = [*source.figures, *(() if validation is None else validation.names), SECONDS]
        self.history: dict[str, list[float]] = {name: [] for name in names}
        self.ended_by: Literal["steps", "source", "patience", "callback"] | None = None

    @property
    def n_done(self) -> int:
        """Steps in the history."""
        return len(self.history[SECONDS])

    @property
    def n_kept(self) -> int:
        """Steps whose model is kept: up to the best one with early stopping, otherwise all."""
        return self.n_done if self._early_stopping.patience is None else self._early_stopping.best_step

    def train(self) -> None:
        """Run to the end, from the checkpoint if there is one; then delete the checkpoint."""
        self._resume()
        batch = BatchSize()
        while self.ended_by is None and self.n_done < self._n_steps:
            self._run_batch(batch)
            if self.ended_by is None and self._checkpoints.steps_until_due(self.n_done) <= 0:
                self._checkpoints.save(self.n_done, self._source.arrays(), self.history)
        self.ended_by = self.ended_by or "steps"
        self._checkpoints.remove()

    def _resume(self) -> None:
        found = self._checkpoints.load(self._n_steps)
        if found is None:
            return
        self._source.restore(found.arrays, found.step)
        self.history = {name: list(found.history[name]) for name in self.history}
        if self._validation is not None:
            self._early_stopping.replay(self.history[self._validation.name])

    def _run_batch(self, batch: BatchSize) -> None:
        left = min(self._n_steps - self.n_done, self._checkpoints.steps_until_due(self.n_done))
        # A step after the last one would be done for nothing.
        left = min(left, self._early_stopping.steps_until_stop(self.n_done) or left)
        before = self._clock()
        steps = self._source.run(min(batch.n_steps, left))
        seconds = self._clock() - before
        n_steps = max(1, len(steps.figures))
        batch.measured(n_steps, seconds)
        measured: deque[Mapping[str, float]] = deque()
        for figures in steps.figures:
            if self._validation is not None and not measured:
                measured.extend(self._validation.measure_steps(self._source.scores_of_steps()))
            self._finish_step(figures, seconds / n_steps, measured.popleft() if measured else None)
            if self.ended_by is not None:
                return
        if steps.finished:
            self.ended_by = "source"

    def _finish_step(self, figures: Mapping[str, float], seconds: float, measured: Mapping[str, float] | None) -> None:
        number = self.n_done + 1
        before = self.history[SECONDS][-1] if self.n_done else 0.0
        values = {**figures, SECONDS: before + seconds}
        watched = None
        if self._validation is not None and measured is not None:
            values |= measured
            watched = measured[self._validation.name]
            if self._early_stopping.update(number, watched):
                self.ended_by = "patience"
        values = {name: values[name] for name in self.history}
        for name, value in values.items():
            self.history[name].append(value)
        self._source.step_done(seconds, watched, is_best=self._early_stopping.best_step == number)
        if self._callback(TrainingStep(number, self._n_steps, values)) and self.ended_by is None:
            self.ended_by = "callback"
