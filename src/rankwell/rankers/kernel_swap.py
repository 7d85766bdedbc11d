"""Kernel swapping: which number format trains which epoch (chapter 5 of the thesis), any number of times.

A `swap` parameter is one of

    None                                        the precision stays
    ((50, "fixed8"), (250, "float32"))          from those epochs on (counted from 1), those formats
    ("gain", 1e-4, "fixed8", "float32")         when the validation figure's gain per second, over the last WINDOW
                                                epochs in the present format, falls below 1e-4: the next format of the
                                                list, round and round

The rule measures time, so the epoch it swaps at can differ from run to run; a schedule cannot.
"""

from __future__ import annotations

from typing import Any

from rankwell.errors import Parameter, ParameterError
from rankwell.kernels.lists.fixed_point_format import bits_of_precision

WINDOW = 5


class KernelSwap:
    """Follows one training run and says what format its next epoch is trained in.

    Parameters
    ----------
    precision : str
        The format to begin with.
    swap : tuple or None
        See the head of this file.
    """

    def __init__(self, precision: str, swap: Any) -> None:
        self.precision = precision
        self.swaps = 0
        self._swap = swap
        self._gains: list[tuple[float, float]] = []

    def before(self, epoch: int) -> str:
        """The format of `epoch`, counted from 1."""
        if self._swap is not None and self._swap[0] != "gain":
            for start, precision in self._swap:
                if epoch == start:
                    self._change(precision)
        return self.precision

    def after(self, value: float | None, seconds: float) -> None:
        """Take note of an epoch's validation figure and training time."""
        if self._swap is None or self._swap[0] != "gain" or value is None:
            return
        self._gains.append((value, seconds))
        if len(self._gains) <= WINDOW:
            return
        recent = self._gains[-WINDOW - 1 :]
        elapsed = sum(seconds for _, seconds in recent[1:])
        if recent[-1][0] - recent[0][0] < self._swap[1] * elapsed:
            formats = self._swap[2:]
            self._change(formats[self.swaps % len(formats)])

    def resume(self, epoch: int, swaps: int) -> None:
        """Be as a run was after `epoch` epochs and `swaps` swaps."""
        if self._swap is None:
            return
        if self._swap[0] == "gain":
            if swaps:
                self.precision = self._swap[2 + (swaps - 1) % len(self._swap[2:])]
            self.swaps = swaps
            return
        for number in range(1, epoch + 1):
            self.before(number)

    def _change(self, precision: str) -> None:
        self.precision = precision
        self.swaps += 1
        self._gains.clear()


def check_swap(swap: Any, has_validation: bool) -> None:
    """Refuse a swap that says nothing the trainer could follow."""
    if swap is None:
        return
    if not isinstance(swap, tuple | list) or not swap:
        raise ParameterError(
            "must be None, epochs with formats as ((50, 'fixed8'), (250, 'float32')), or a rule as "
            f"('gain', 1e-4, 'fixed8', 'float32'), got {swap!r}.",
            parameter="swap",
        )
    if swap[0] == "gain":
        if len(swap) < 3 or not isinstance(swap[1], int | float):
            raise ParameterError(f"swap by gain needs a threshold and at least one format, got {swap!r}.")
        if not has_validation:
            raise ParameterError(
                "swap by gain watches the validation figure: pass ", Parameter("eval_set"), ", or give epochs instead."
            )
        formats = swap[2:]
    else:
        if not all(isinstance(entry, tuple | list) and len(entry) == 2 for entry in swap):
            raise ParameterError(f"must hold pairs of an epoch and a format, got {swap!r}.", parameter="swap")
        epochs = [entry[0] for entry in swap]
        if any(not isinstance(epoch, int) or epoch < 1 for epoch in epochs) or epochs != sorted(set(epochs)):
            raise ParameterError(f"swap's epochs must be whole numbers from 1 up, in ascending order, got {epochs}.")
        formats = [entry[1] for entry in swap]
    for precision in formats:
        bits_of_precision(precision)


def formats_of(precision: str, swap: Any) -> set[str]:
    """Every format that a run may use."""
    if swap is None:
        return {precision}
    return {precision, *(swap[2:] if swap[0] == "gain" else (entry[1] for entry in swap))}
