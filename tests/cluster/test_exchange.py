"""Exchanges between workers: what each receives, what is counted, and what happens when one is gone or a stranger."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from tests.cluster.worker_threads import run_workers

from rankwell.cluster.exchange import DIRECT_BYTES, HEADER, CompanionLostError, Exchange


@pytest.mark.parametrize("n_workers", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [0, 1, 7, DIRECT_BYTES // 8, DIRECT_BYTES // 8 + 1, 300_001])
def test_sum_adds_every_worker(n_workers, length):
    values = np.arange(length, dtype=np.int64).reshape(-1, 1)
    results = run_workers(n_workers, lambda exchange: exchange.sum(values * (exchange.number + 1)))
    for result in results:
        np.testing.assert_array_equal(result, values * (n_workers * (n_workers + 1) // 2))


def test_floats_are_added_in_the_order_of_the_workers():
    numbers = np.array([[1e16, 1.0, -1e16]]).T
    results = run_workers(3, lambda exchange: exchange.sum(numbers[exchange.number]))
    assert [float(result[0]) for result in results] == [(1e16 + 1.0) - 1e16] * 3


def test_gather_keeps_the_order_and_lengths():
    results = run_workers(3, lambda exchange: exchange.gather(np.full(exchange.number, exchange.number)))
    for result in results:
        assert [found.tolist() for found in result] == [[], [1], [2, 2]]


def test_values_are_handed_on_from_first_to_last():
    def add(exchange):
        received = exchange.hand_on(np.zeros(1))
        mine = np.array([10.0**exchange.number]) + (0.0 if received is None else received)
        exchange.pass_on(mine)
        return float(exchange.announce(mine, 2)[0])

    assert run_workers(3, add) == [111.0, 111.0, 111.0]


def test_trade_gives_each_its_own():
    def trade(exchange):
        others = [other for other in range(3) if other != exchange.number]
        given = {other: np.array([10 * exchange.number + other], dtype=np.uint8) for other in others}
        return {other: int(found[0]) for other, found in exchange.trade(given).items()}

    assert run_workers(3, trade) == [{1: 10, 2: 20}, {0: 1, 2: 21}, {0: 2, 1: 12}]


def test_bytes_are_counted_with_their_headers():
    def send(exchange):
        exchange.gather(np.zeros(5, dtype=np.int64))
        return exchange.bytes_sent

    assert run_workers(3, send) == [2 * (HEADER.size + 40)] * 3


def test_a_large_sum_sends_two_slices_of_it_to_each():
    length = 8 * DIRECT_BYTES

    def send(exchange):
        exchange.sum(np.zeros(length, dtype=np.int64))
        return exchange.bytes_sent

    assert run_workers(4, send) == [2 * 3 * (HEADER.size + length // 4 * 8)] * 4


def test_waiting_is_counted_against_who_is_late():
    def meet(exchange):
        if exchange.number == 1:
            time.sleep(0.2)
        exchange.gather(np.zeros(1))
        return exchange.seconds_waited.tolist()

    waited = run_workers(2, meet)
    assert waited[0][1] > 0.1
    assert waited[1][0] < 0.1


def test_the_loss_of_a_worker_is_noticed_by_all():
    def leave(exchange):
        if exchange.number == 1:
            exchange.close()
            return "left"
        with pytest.raises(CompanionLostError):
            exchange.sum(np.zeros(10))
        return "noticed"

    assert run_workers(3, leave) == ["noticed", "left", "noticed"]


def test_a_stranger_is_not_accepted():
    first, second, impostor = (
        Exchange(number, 2, secret, "127.0.0.1") for number, secret in ((0, b"secret"), (1, b"secret"), (1, b"guess"))
    )
    with socket.create_connection(first.address) as stranger, ThreadPoolExecutor(3) as pool:
        stranger.sendall(b"x" * 200)
        calling = pool.submit(impostor._call, first.address, 1, time.monotonic() + 30)
        addresses = [first.address, second.address]
        for future in [pool.submit(exchange.connect, addresses, 1) for exchange in (first, second)]:
            future.result(timeout=30)
        answers = [pool.submit(exchange.gather, np.array([exchange.number])) for exchange in (first, second)]
        assert [[int(found[0]) for found in answer.result()] for answer in answers] == [[0, 1], [0, 1]]
        for exchange in (first, second, impostor):
            exchange.end()
        # The impostor was heard before the second worker, or not at all.
        with suppress(OSError):
            calling.result().close()
