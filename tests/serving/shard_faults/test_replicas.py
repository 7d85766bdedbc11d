"""Replicas and spares: hedged requests, and who takes over."""

import asyncio
import time

import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

from tests.serving.node_network import Node, ask, network, shown, until_whole
from tests.serving.shard_faults.faulty_shards import until

from rankwell.serving.http import messages as api
from rankwell.serving.http.aggregator_service import AggregatorService
from rankwell.serving.shards import messages
from rankwell.serving.shards.circuit_breaker import CLOSED, OPEN
from rankwell.serving.shards.shard import HEDGED_SHARE


def test_a_slow_replica_is_hedged_and_the_quick_one_answers(folders):
    async def run():
        replicas = [Node(folders[0]), Node(folders[0])]
        async with network([replicas, [Node(folders[1])]]) as aggregator:
            shard = aggregator.shards[0]
            for _ in range(30):
                await ask(aggregator)
            slow = next(node for node in replicas if node.port == shard.links[0].port)
            slow.delay = 1.0
            started = time.monotonic()
            answer = await ask(aggregator, seconds=10.0)
            assert time.monotonic() - started < 1.0
            assert not answer.missing
            assert shard.n_hedged >= 1
            assert shard.n_won >= 1
            slow.delay = 0.0

    asyncio.run(run())


def test_a_replica_that_lost_against_another_is_not_asked_first(folders):
    """Its ranking hangs: it says that it lives, and a hedge that it loses is no failure of a request."""

    async def run():
        replicas = [Node(folders[0]), Node(folders[0])]
        async with network([replicas]) as aggregator:
            shard = aggregator.shards[0]
            for _ in range(30):
                await ask(aggregator)
            hangs = shard.ready(set())[0]
            node = next(node for node in replicas if node.port == hangs.port)
            node.change = lambda received: None if isinstance(received.body, messages.Selected) else received
            for _ in range(20):
                assert not (await ask(aggregator, seconds=10.0)).missing
                if hangs.pace.state == OPEN:
                    assert shard.ready(set())[-1] is hangs
            assert hangs.is_up
            # It was tried again after longer and longer pauses.
            assert 1 <= shard.n_hedged <= 6
            node.change = None
            await until(lambda: hangs.pace.state != OPEN)
            for _ in range(5):
                await ask(aggregator)
            assert hangs.pace.state == CLOSED

    asyncio.run(run())


def test_hedged_requests_are_a_bounded_share(folders):
    async def run():
        replicas = [Node(folders[0]), Node(folders[0])]
        async with network([replicas]) as aggregator:
            shard = aggregator.shards[0]
            for node in replicas:
                node.delay = 0.06
            for _ in range(40):
                await ask(aggregator)
            # Two calls a query; what was saved before is used first.
            assert shard.n_hedged <= 10 + HEDGED_SHARE * 2 * 41

    asyncio.run(run())


def test_a_replica_takes_over_at_once(folders, rankers):
    async def run():
        replicas = [Node(folders[0]), Node(folders[0])]
        async with network([replicas, [Node(folders[1])]], {"cascade": rankers["cascade"]}) as aggregator:
            whole = await ask(aggregator)
            await replicas[0].die()
            for _ in range(5):
                answer = await ask(aggregator)
                assert shown(answer) == shown(whole)
                assert not answer.missing

    asyncio.run(run())


def test_a_spare_takes_the_place_of_a_dead_node_and_gives_it_back(folders, rankers):
    async def run():
        nodes, spare = [Node(folder) for folder in folders[:2]], Node(None, folders=folders)
        async with network([[node] for node in nodes], {"boosted": rankers["boosted"]}, spares=[spare]) as aggregator:
            whole = await ask(aggregator)
            await nodes[1].die()
            assert (await ask(aggregator)).missing
            assert shown(await until_whole(aggregator)) == shown(whole)
            assert aggregator.spares.n_used == 1
            await nodes[1].start()
            for _ in range(100):
                if aggregator.spares.n_used == 0:
                    break
                await asyncio.sleep(0.05)
            assert aggregator.spares.n_used == 0
            assert shown(await until_whole(aggregator)) == shown(whole)
            assert [link.port for link in aggregator.shards[1].links] == [nodes[1].port]

    asyncio.run(run())


def test_a_spare_that_dies_in_use_is_replaced_by_another(folders):
    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        spares = [Node(None, folders=folders) for _ in range(2)]
        async with network([[node] for node in nodes], spares=spares) as aggregator:
            whole = await ask(aggregator)
            await nodes[1].die()
            await until(lambda: aggregator.spares.n_used == 1)
            assert shown(await until_whole(aggregator)) == shown(whole)
            used = aggregator.shards[1].links[-1]
            await next(spare for spare in spares if spare.port == used.port).die()
            await until(lambda: not used.is_up)
            assert shown(await until_whole(aggregator)) == shown(whole)
            assert aggregator.spares.n_used == 1
            other = next(spare for spare in spares if spare.port != used.port)
            assert [link.port for link in aggregator.shards[1].links] == [nodes[1].port, other.port]
            await nodes[1].start()
            await until(lambda: aggregator.spares.n_used == 0)
            assert shown(await until_whole(aggregator)) == shown(whole)

    asyncio.run(run())


def test_partial_answers_are_never_cached(folders):
    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes]) as aggregator:
            service = AggregatorService(aggregator)
            asked = api.SearchParameters("w1", timeout_ms=5000)
            await nodes[0].die()
            partial = await service.search(asked)
            assert (partial.coverage.shards, partial.coverage.answered) == (2, 1)
            assert partial.coverage.missing == [aggregator.shards[0].name]
            assert partial.degraded.reason == "shards"
            assert len(service.cache) == 0
            await nodes[0].start()
            await until_whole(aggregator)
            whole = await service.search(asked)
            assert (whole.cached, whole.degraded, whole.coverage.missing) == (False, None, [])
            assert (await service.search(asked)).cached

    asyncio.run(run())
