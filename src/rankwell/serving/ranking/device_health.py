"""Whether a device can be used: one that failed is left alone for a while, then tried again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from rankwell.errors import RankwellError

_log = logging.getLogger("rankwell.serving")

PAUSE_SECONDS = 30.0
"""How long a device that failed is not used."""


class DeviceHealth:
    """What is known about the device that a node should use.

    Attributes
    ----------
    reason : str or None
        Why the device is not used; None while it works.
    """

    def __init__(
        self, device: str, *, pause: float = PAUSE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.device = device
        self.reason: str | None = None
        self._pause, self._clock = pause, clock
        self._next_try = 0.0

    @property
    def may_be_used(self) -> bool:
        """Whether it works, or has not been tried for long enough."""
        return self.reason is None or self._clock() >= self._next_try

    def report_failure(self, error: Exception) -> None:
        """Leave the device alone; logged when it worked until now, and not at every further try."""
        if self.reason is None:
            _log.error(
                "%s failed, rankers run on the CPU and it is tried again every %.0f s: %s",
                self.device,
                self._pause,
                error,
                # Errors of our own say all that there is to say.
                exc_info=None if isinstance(error, RankwellError) else error,
            )
        self.reason = f"{self.device} failed: {_first_line(error)}"
        self._next_try = self._clock() + self._pause

    def report_success(self) -> None:
        if self.reason is not None:
            _log.warning("%s works again", self.device)
        self.reason = None


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
