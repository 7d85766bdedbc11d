"""An executor that runs each call at once, in the caller's thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class InlineExecutor(Executor):
    """For one thread: the same code as with a pool, without one."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **options))
        except Exception as cause:
            future.set_exception(cause)
        return future
