"""Row: one of our figures with its target, the rival's figure in the same run, and the paper's."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Row:
    """One line of a results table.

    Attributes
    ----------
    case : str
        What was measured.
    value : float
        Our figure, in `unit`.
    target : float or None
        The goal, in `unit`; met if `value` is not worse.
    better : "lower" or "higher"
    rival : str or None
        The compared library, measured in the same run; with `rival_value` None it was not installed.
    rival_value : float or None
    paper : float, str or None
        The figure that the paper prints, with its hardware if it is a text.
    interval : pair of float or None
        The 95 % confidence interval of the difference, `value` − `rival_value`, where both are means over queries.
    note : str
    """

    case: str
    value: float
    unit: str
    target: float | None = None
    better: Better = "lower"
    rival: str | None = None
    rival_value: float | None = None
    paper: float | str | None = None
    note: str = ""
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.better not in ("lower", "higher"):
            raise ValueError(f"{self.case}: better must be 'lower' or 'higher', got {self.better!r}.")
        for name in ("value", "target", "rival_value"):
            number = getattr(self, name)
            if number is not None:
                object.__setattr__(self, name, _plain_number(f"{self.case}: {name}", number))
        if self.interval is not None:
            low, high = (_plain_number(f"{self.case}: interval", number) for number in self.interval)
            if low > high:
                raise ValueError(
                    f"{self.case}: interval must be its lower end and its upper end, got {low} and {high}."
                )
            object.__setattr__(self, "interval", (low, high))
        if self.paper is not None and not isinstance(self.paper, str):
            object.__setattr__(self, "paper", _plain_number(f"{self.case}: paper", self.paper))

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.target is None:
            return None
        return self.value <= self.target if self.better == "lower" else self.value >= self.target

    @property
    def advantage(self) -> float | None:
        """How many times better than the rival we are (above 1: better); None if that is unknown."""
        if self.rival_value is None or min(self.value, self.rival_value) <= 0:
            return None
        return self.rival_value / self.value if self.better == "lower" else self.value / self.rival_value

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Row:
        """The row that `as_json` gave."""
        return cls(**{name: part for name, part in row.items() if name != "met"})

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


def _plain_number(where: str, number: Any) -> float:
    plain = float(number)
    if not math.isfinite(plain):
        raise ValueError(f"{where} must be a finite number, got {number}.")
    return plain
