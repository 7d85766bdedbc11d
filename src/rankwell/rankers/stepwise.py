"""StepwiseRanker: what rankers that are trained step by step have in common."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from rankwell.errors import ParameterError
from rankwell.metrics.conventions import get_convention
from rankwell.metrics.names import AnyMetric, parse_metric
from rankwell.rankers.base import SECONDS, Ranker, TrainingTask
from rankwell.rankers.checkpoints import Checkpoints
from rankwell.rankers.early_stopping import check_early_stopping
from rankwell.rankers.history_plot import plot_history
from rankwell.rankers.training_run import StepSource, TrainingRun
from rankwell.rankers.validation import Validation
from rankwell.streams.whole_files import why_not_writable


class StepwiseRanker(Ranker):
    """A ranker whose `_train` drives a `TrainingRun`.

    A subclass names its steps, and has the parameters early_stopping_rounds, eval_metric, eval_convention
    and n_jobs.
    """

    step_name: ClassVar[str]
    # Settings in the history, which are plotted only if they change; and what is never plotted.
    settings_in_history: ClassVar[frozenset[str]] = frozenset()
    unplotted: ClassVar[frozenset[str]] = frozenset({SECONDS})

    # The parameter that is the number of steps, if validation data may choose it.
    steps_parameter: ClassVar[str | None] = None
    # The patience that "auto" means, for a ranker whose early_stopping_rounds may be "auto".
    automatic_patience: ClassVar[int | None] = None

    early_stopping_rounds: int | Literal["auto"] | None
    eval_metric: AnyMetric
    eval_convention: str
    n_jobs: int | None

    def _check_parameters(self) -> None:
        parse_metric(self.eval_metric, parameter="eval_metric")
        get_convention(self.eval_convention)
        checkpoint = getattr(self, "checkpoint", None)
        if checkpoint is not None and not isinstance(checkpoint, str | os.PathLike):
            raise ParameterError(f"must be the path of a file, or None, got {checkpoint!r}.", parameter="checkpoint")
        # Before the first steps, not when the first checkpoint is due.
        reason = "" if checkpoint is None else why_not_writable(Path(checkpoint))
        if reason:
            raise ParameterError(f"{checkpoint} {reason}", parameter="checkpoint")

    def _validation(self, task: TrainingTask) -> Validation | None:
        """What the run watches if there is validation data; early stopping requires it."""
        check_early_stopping(self._patience(task), task.validation is not None)
        if task.validation is None:
            return None
        return Validation(task.eval_sets, self.eval_metric, self.eval_convention, self.n_jobs)

    def _patience(self, task: TrainingTask) -> int | None:
        """Steps without a better validation figure before training ends; None turns early stopping off.

        "auto" stops early where there is validation data, without being told.
        """
        if self.early_stopping_rounds != "auto":
            return self.early_stopping_rounds
        return None if task.validation is None else self.automatic_patience

    def settled(self, trained: Sequence[Self], share: float) -> Self:
        """With the mean of the trained rankers' best steps as the number of steps, without early stopping."""
        best = [ranker.best_iteration_ for ranker in trained]
        known = [step for step in best if step is not None]
        if self.steps_parameter is None or not known or not self._keeps_best():
            return self.untrained()
        n_steps = max(1, round(sum(known) / len(known)))
        return self.untrained().set_params(**{self.steps_parameter: n_steps, "early_stopping_rounds": None})

    def _keeps_best(self) -> bool:
        """Whether a run with validation data keeps the model of the best step instead of the last."""
        return self.early_stopping_rounds is not None

    def _run(
        self,
        source: StepSource,
        n_steps: int,
        task: TrainingTask,
        validation: Validation | None,
        checkpoints: Checkpoints | None = None,
    ) -> TrainingRun:
        """Train with `source` to the end; early stopping only if there is validation data."""
        run = TrainingRun(
            source,
            n_steps,
            callback=task.callback,
            validation=validation,
            patience=None if validation is None else self._patience(task),
            checkpoints=checkpoints,
        )
        run.train()
        return run

    def plot_history(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the history by step, the best one marked (needs the extra `plot`); saved if a path is given.

        Returns
        -------
        matplotlib.figure.Figure
        """
        self._fitted_description()
        drawn = {
            name: values
            for name, values in self.history_.items()
            if name not in self.unplotted and (name not in self.settings_in_history or len(set(values)) > 1)
        }
        return plot_history(
            drawn, step_name=self.step_name, best_step=self.best_iteration_, title=type(self).__name__, path=path
        )
