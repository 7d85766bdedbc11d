"""Nodes that die: partial answers, then whole ones again without a restart."""

import asyncio
import time

import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

from tests.serving.node_network import Node, ask, forget_counts, network, shown, until_whole
from tests.serving.shard_faults.faulty_shards import aggregator_index, of_kind, until, until_whole_or_refused

from rankwell import RankedSearch
from rankwell.serving.batching import OverloadError
from rankwell.serving.http import messages as api
from rankwell.serving.http.aggregator_service import AggregatorService
from rankwell.serving.shards import messages


def test_a_node_that_dies_is_missing_until_it_is_back(folders, rankers):
    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes], {"linear": rankers["linear"]}) as aggregator:
            whole = await ask(aggregator)
            await nodes[3].die()
            partial = await ask(aggregator)
            assert partial.missing == (aggregator.shards[3].name,)
            # Words that were never counted before are counted without it, and again when it is back.
            rare = await ask(aggregator, "w3 w11 w8")
            assert rare.missing
            assert rare.results
            await nodes[3].start()
            started = time.monotonic()
            assert shown(await until_whole(aggregator)) == shown(whole)
            assert time.monotonic() - started < 5.0
            expected = RankedSearch(aggregator_index(folders), rankers["linear"], n_candidates=30).search("w3 w11 w8")
            again = await until_whole(aggregator, query="w3 w11 w8")
            for _ in range(100):
                if [one.score for one in again.results] == expected.scores.tolist():
                    break
                await asyncio.sleep(0.05)
                again = await ask(aggregator, "w3 w11 w8")
            assert [(one.id, one.score) for one in again.results] == list(
                zip(expected.ids, expected.scores, strict=True)
            )

    asyncio.run(run())


COUNTED = {
    "words": {"query": "w3 w11 w8", "ranker": "bm25"},
    "typing errors": {"query": "w3 w11x", "ranker": "bm25", "typos": True},
    "a prefix": {"query": "w3 w1*", "ranker": "bm25"},
    "feedback": {"query": "w3 w11", "ranker": "linear"},
    "a document": {"query": "", "like": "d0"},
}


@pytest.mark.parametrize("asked", COUNTED.values(), ids=COUNTED.keys())
def test_what_was_counted_without_a_shard_is_told_when_the_shard_is_back(folders, rankers, asked):
    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes], {"linear": rankers["linear"]}) as aggregator:
            whole = await ask(aggregator, **asked)
            assert not whole.is_degraded
            await forget_counts(aggregator)
            async with aggregator._changing:
                nodes[1].change = of_kind(messages.Counted, lambda received: None)
                assert (await ask(aggregator, seconds=1.0, **asked)).missing
                nodes[1].change = None
                answer = await ask(aggregator, **asked)
                assert (answer.missing, answer.is_partly_counted, answer.is_degraded) == ((), True, True)
            end = time.monotonic() + 10.0
            while (answer := await ask(aggregator, **asked)).is_degraded:
                assert time.monotonic() < end
                await asyncio.sleep(0.02)
            assert shown(answer) == shown(whole)

    asyncio.run(run())


def test_what_was_counted_without_a_shard_is_told_over_http_and_not_kept(folders, rankers):
    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes], {"alone": rankers["alone"]}) as aggregator:
            service = AggregatorService(aggregator)
            await forget_counts(aggregator)
            async with aggregator._changing:
                nodes[1].change = of_kind(messages.Counted, lambda received: None)
                await service.search(api.SearchParameters("w3 w11", timeout_ms=1000))
                nodes[1].change = None
                answer = await service.search(api.SearchParameters("w3 w11", timeout_ms=5000))
                assert (answer.coverage.missing, answer.degraded.reason, answer.cached) == ([], "counts", False)
                assert "counted while a shard was missing" in answer.degraded.text
                assert len(service.cache) == 0
                with pytest.raises(OverloadError, match="counted while a shard was missing"):
                    await aggregator.features(messages.AskedQuery("w3 w11"), ["d0"], "alone")

    asyncio.run(run())


def test_a_node_that_is_back_is_not_asked_with_counts_made_without_it(folders):
    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes]) as aggregator:
            queries = [f"w{number} w{number + 1}" for number in range(1, 12)]
            whole = {query: shown(await ask(aggregator, query)) for query in queries}
            await nodes[1].die()
            await until(lambda: not aggregator.shards[1].links[0].is_up)
            await forget_counts(aggregator)
            assert all([(await ask(aggregator, query)).missing for query in queries])
            await nodes[1].start()
            complete, end = 0, time.monotonic() + 20.0
            while complete < 2 * len(queries):
                assert time.monotonic() < end
                for query in queries:
                    answer = await ask(aggregator, query)
                    if not answer.missing:
                        complete += 1
                        assert not answer.is_degraded
                        assert shown(answer) == whole[query]

    asyncio.run(run())


def test_a_node_that_dies_between_selection_and_captions_loses_its_results_alone(folders):
    """Results of the shard that is gone make room for the next ones of the others."""

    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes]) as aggregator:
            nodes[0].change = of_kind(messages.Shown, lambda received: b"\xff\xff\xff\xff")
            answer = await ask(aggregator, "w1 w2 w3", k=10)
            assert len(answer.results) == 10
            assert [one.rank for one in answer.results] == list(range(1, 11))
            assert all(int(one.id[1:]) % 4 != 0 for one in answer.results)
            assert len(answer.missing) == 1

    asyncio.run(run())


def test_without_any_node_there_is_an_honest_refusal(folders):
    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes]) as aggregator:
            service = AggregatorService(aggregator)
            assert service.is_ready()
            for node in nodes:
                await node.die()
            with pytest.raises(OverloadError, match="no shard answered"):
                await ask(aggregator)
            assert not service.is_ready()
            for node in nodes:
                await node.start()
            await until_whole_or_refused(aggregator)

    asyncio.run(run())
