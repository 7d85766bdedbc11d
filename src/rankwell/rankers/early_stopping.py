"""Early stopping: which step of a run was best on the validation set, and when to stop waiting for a better one."""

from __future__ import annotations

from collections.abc import Iterable

from rankwell.errors import DataError, Parameter, ParameterError
from rankwell.parameters import is_whole_number


class EarlyStopping:
    """Watches one validation figure, step by step; the larger, the better.

    Parameters
    ----------
    patience : int or None
        Stop when this many steps in a row brought nothing better. None never stops; the best step is still known.

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
        """Take note of the figure of `step`; whether it is time to stop. NaN is never better than a number."""
        if value == value and (self.best_value is None or value > self.best_value):
            self.best_step, self.best_value = step, value
        return self.patience is not None and step - self.best_step >= self.patience

    def replay(self, values: Iterable[float]) -> None:
        """Take note of the figures of steps 1, 2, ... again, as when a run resumes."""
        for step, value in enumerate(values, start=1):
            self.update(step, value)


def check_early_stopping(patience: int | None, has_validation: bool) -> None:
    """Refuse a patience that cannot work: less than one step, or nothing to watch."""
    if patience is None:
        return
    if not is_whole_number(patience) or patience < 1:
        raise ParameterError(f"early stopping must wait for 1 step or more, got {patience!r}. None switches it off.")
    if not has_validation:
        raise DataError(
            "early stopping needs a validation set to watch: pass ",
            Parameter("eval_set"),
            ", or switch early stopping off.",
        )
