"""Workers as threads of the test's process: exchanges over the loopback interface, without Ray."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rankwell.cluster.exchange import Exchange

Result = TypeVar("Result")


def run_workers(n_workers: int, task: Callable[[Exchange], Result]) -> list[Result]:
    """``task(exchange)`` of every worker at the same time; the results in the order of the workers."""
    exchanges = [Exchange(number, n_workers, b"secret", "127.0.0.1") for number in range(n_workers)]
    addresses = [exchange.address for exchange in exchanges]

    def run(exchange: Exchange) -> Result:
        exchange.connect(addresses, 1)
        try:
            return task(exchange)
        except BaseException:
            exchange.close()
            raise

    try:
        with ThreadPoolExecutor(n_workers) as pool:
            return list(pool.map(run, exchanges))
    finally:
        for exchange in exchanges:
            exchange.end()
