"""StepwiseRanker: what rankers that are trained step by step have in common."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from rankwell.metrics.conventions import get_convention
from rankwell.metrics.names import AnyMetric, parse_metric
from rankwell.rankers.base import SECONDS, Ranker, TrainingTask
from rankwell.rankers.checkpoints import Checkpoints
from rankwell.rankers.early_stopping import check_early_stopping
from rankwell.rankers.history_plot import plot_history
from rankwell.rankers.training_run import StepSource, TrainingRun
from rankwell.rankers.validation import Validation


class StepwiseRanker(Ranker):
    """A ranker whose `_train` drives a `TrainingRun`.

    A subclass names its steps, and has the parameters early_stopping_rounds, eval_metric, eval_convention
    and n_jobs.
    """

    step_name: ClassVar[str]
    # Settings in the history, which are plotted only if they change; and what is never plotted.
    settings_in_history: ClassVar[frozenset[str]] = frozenset()
    unplotted: ClassVar[frozenset[str]] = frozenset({SECONDS})

    early_stopping_rounds: int | None
    eval_metric: AnyMetric
    eval_convention: str
    n_jobs: int | None

    def _check_parameters(self) -> None:
        parse_metric(self.eval_metric, parameter="eval_metric")
        get_convention(self.eval_convention)

    def _validation(self, task: TrainingTask) -> Validation | None:
        """What the run watches if there is validation data; early stopping requires it."""
        check_early_stopping(self.early_stopping_rounds, task.validation is not None)
        if task.validation is None:
            return None
        return Validation(task.eval_sets, self.eval_metric, self.eval_convention, self.n_jobs)

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
            patience=None if validation is None else self.early_stopping_rounds,
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
