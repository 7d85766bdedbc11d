"""The deadline of a request: one absolute time that travels through all its stages."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, order=True)
class Deadline:
    """A time of `time.monotonic()`."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """The deadline that is so many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def remaining(self) -> float:
        """The seconds that are left; negative once it is over."""
        return self.at - time.monotonic()

    @property
    def is_over(self) -> bool:
        return self.remaining <= 0
