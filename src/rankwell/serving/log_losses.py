"""What a log of a server could not keep: searches go on without it, and somebody is told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from rankwell.streams.appended_file import WriteError

T = TypeVar("T")
_log = logging.getLogger("rankwell.serving")


class LogLosses:
    """The losses of one log, which `name` says in messages.

    Attributes
    ----------
    n_lost : how many entries could not be written
    """

    def __init__(self, name: str) -> None:
        self.n_lost = 0
        self._name, self._n_in_a_row = name, 0

    def attempt(self, write: Callable[[], T]) -> T | None:
        """What `write` returns; None if the log cannot be written, which is counted, and told once until it works."""
        try:
            written = write()
        except WriteError as error:
            self.n_lost += 1
            self._n_in_a_row += 1
            if self._n_in_a_row == 1:
                _log.error("the %s loses entries, and searches go on: %s", self._name, error)
            return None
        if self._n_in_a_row:
            _log.warning("the %s is written again, after %d entries were lost", self._name, self._n_in_a_row)
            self._n_in_a_row = 0
        return written
