"""Work handed to threads, its results taken in order: the output does not depend on which thread is faster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class InlineExecutor(Executor):
    """Runs each call at once, in the caller's thread: for one thread, the same code as with a pool."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **options))
        except Exception as cause:
            future.set_exception(cause)
        return future


def in_order(function: Callable[[Item], Result], items: Iterable[Item], pool: Executor, ahead: int) -> Iterator[Result]:
    """`function` of each item in turn, with up to `ahead` of them in progress."""
    under_way: deque[Future[Result]] = deque()
    for item in items:
        under_way.append(pool.submit(function, item))
        if len(under_way) > ahead:
            yield under_way.popleft().result()
    while under_way:
        yield under_way.popleft().result()


def one_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items: the next one is made in another thread while the caller uses this one."""
    with ThreadPoolExecutor(1, thread_name_prefix="rankwell-ahead") as pool:
        end = object()
        future = pool.submit(next, items, end)
        while (item := future.result()) is not end:
            future = pool.submit(next, items, end)
            yield item  # type: ignore[misc]
