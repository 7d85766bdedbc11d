"""Early stopping: which step of a run was best on the validation set, and when to stop."""

from __future__ import annotations

from collections.abc import Iterable

from rankwell.errors import DataError, Parameter, ParameterError
from rankwell.parameters import is_whole_number


class EarlyStopping:
    """Watches one validation figure, step by step; the larger, the better.

    Parameters
    ----------
    patience : int or None
        Stop after this many steps without improvement. None never stops; the best step is still known.

    Attributes
    ----------
    best_step : int
        The step with the best figure so far, counted from 1; the earliest of equals. 0 before the first one.
    best_value : float or None
    """

    def __init__(self, patience: int | None) -> None:
        self.patience = patience
        self.best_step = 0
        self.best_value: float | None = None

    def update(self, step: int, value: float) -> bool:
        """Record the figure of `step`; returns whether to stop. NaN is never better than a number."""
        if value == value and (self.best_value is None or value > self.best_value):
            self.best_step, self.best_value = step, value
        return self.patience is not None and step - self.best_step >= self.patience

    def steps_until_stop(self, step: int) -> int | None:
        """How many steps are done after `step` for certain: the run stops then, unless one of them is better."""
        return None if self.patience is None else max(1, self.patience - (step - self.best_step))

    def replay(self, values: Iterable[float]) -> None:
        """Record the figures of steps 1, 2, ... again, as when a run resumes."""
        for step, value in enumerate(values, start=1):
            self.update(step, value)


def check_early_stopping(patience: int | None, has_validation: bool) -> None:
    """Refuse a patience of less than one step, or without a validation set."""
    if patience is None:
        return
    if not is_whole_number(patience) or patience < 1:
        raise ParameterError(
            f"must be a whole number of steps to wait for a better one, 1 or more, got {patience!r}. None turns early "
            "stopping off.",
            parameter="early_stopping_rounds",
        )
    if not has_validation:
        raise DataError(
            "early stopping needs a validation set to watch: pass ",
            Parameter("eval_set"),
            ", or turn early stopping off.",
        )
