"""What is refused, and when: too many requests, no node, shards that do not belong together."""

import asyncio

import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

from tests.serving.in_process_shards import shards_client
from tests.serving.node_network import Node, network

from rankwell import IndexWriter
from rankwell.errors import DataError
from rankwell.serving.batching import OverloadError
from rankwell.serving.http import messages as api
from rankwell.serving.http.aggregator_service import AggregatorService


def test_a_queue_that_is_full_is_told_as_overload(folders):
    async def run():
        nodes = [Node(folder, queue=1, batch_size=1) for folder in folders[:2]]
        async with network([[node] for node in nodes]) as aggregator:
            service = AggregatorService(aggregator, most=4)
            asked = [api.SearchParameters(f"w1 w{n} w5", timeout_ms=5000) for n in range(12)]
            answers = await asyncio.gather(*map(service.search, asked), return_exceptions=True)
            refused = [one for one in answers if isinstance(one, OverloadError)]
            complete = [one for one in answers if not isinstance(one, Exception)]
            assert len(refused) >= 8
            assert all(one.retry_after >= 1 for one in refused)
            assert len(refused) + len(complete) == 12
            # A full queue says nothing about the node.
            assert all(link.breaker.state == "closed" for link in aggregator.links)

    asyncio.run(run())


def test_shards_that_do_not_belong_together_are_refused(tmp_path):
    with IndexWriter(tmp_path / "one") as writer:
        writer.add([{"id": "a", "title": "x", "body": "y"}])
        writer.commit()
    with IndexWriter(tmp_path / "other") as writer:
        writer.add([{"id": "b", "body": "y", "title": "x"}])
        writer.commit()
    with IndexWriter(tmp_path / "english", language="en") as writer:
        writer.add([{"id": "c", "title": "x", "body": "y"}])
        writer.commit()

    async def run(names):
        async with network([[Node(tmp_path / name)] for name in names]):
            pass

    with pytest.raises(DataError, match=r"the streams of .*other \(body, title\) are in another order than"):
        asyncio.run(run(["one", "other"]))
    with pytest.raises(DataError, match=r"english cuts text into words otherwise than .*one \(language"):
        asyncio.run(run(["one", "english"]))


def test_without_any_node_at_the_start_it_says_which(folders):
    async def run():
        node = Node(folders[0])
        await node.start()
        await node.die()
        from rankwell.serving.shards.aggregator import Aggregator
        from rankwell.serving.shards.shard import Shard

        await Aggregator([Shard([node.link()])]).start(0.3)

    with pytest.raises(DataError, match=r"no node answers \(127\.0\.0\.1:\d+: .*Start them with `rankwell node`"):
        asyncio.run(run())


def test_calls_besides_searches_take_turns_and_too_many_are_refused(folders, rankers, monkeypatch):
    """So that they do not take the nodes from searches."""

    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes], {"linear": rankers["linear"]}) as aggregator:
            service = AggregatorService(aggregator, timeout=30.0)
            features, running, most = aggregator.features, 0, 0
            may_go_on = asyncio.Event()

            async def held(*asked):
                nonlocal running, most
                running, most = running + 1, max(most, running + 1)
                await may_go_on.wait()
                try:
                    return await features(*asked)
                finally:
                    running -= 1

            monkeypatch.setattr(aggregator, "features", held)
            calls = {
                "features": lambda: service.features(api.DocumentParameters("w1 w2", id="d0")),
                "rank": lambda: service.rank(api.RankBody(query="w1 w2", documents=["d0"])),
            }
            waiting = [asyncio.create_task(calls["features" if number % 2 else "rank"]()) for number in range(16)]
            await asyncio.sleep(0.05)
            explained = api.DocumentParameters("w1 w2", id="d0")
            rows = api.RankBody(features=[[0.0] * len(features_of_ranker(aggregator))])
            for call in (*calls.values(), lambda: service.explain(explained), lambda: service.rank(rows)):
                with pytest.raises(OverloadError, match="too many requests: 16 such calls are waiting") as refused:
                    await call()
                assert refused.value.retry_after >= 1.0
            # Searches are not refused meanwhile.
            answer = await service.search(api.SearchParameters("w1 w2"))
            assert answer.coverage.missing == []
            may_go_on.set()
            assert all(await asyncio.gather(*waiting))
            assert most == 1
            assert (await calls["features"]()).features

    asyncio.run(run())


def features_of_ranker(aggregator):
    return aggregator.snapshot.passes("linear").feature_set.names


def test_that_no_shard_answers_is_no_refusal(folders, served):
    """Who asks /readyz again and again would look like overload."""
    with shards_client(folders, {"linear": served[1]["linear"]}) as client:
        service = client.service
        assert client.get("/readyz").status_code == 200
        for shard in service.aggregator.shards:
            shard.links[0].is_up = False
        assert [client.get("/readyz").status_code for _ in range(3)] == [503] * 3
        metrics = client.get("/metrics").text
        assert 'rankwell_requests_total{path="/readyz",status="503"} 3.0' in metrics
        assert "rankwell_refused_total 0.0" in metrics
        service._most = 0
        assert client.get("/search?q=w1").status_code == 503
        assert "rankwell_refused_total 1.0" in client.get("/metrics").text


def test_a_vote_counts_among_the_requests_that_nodes_answer(folders, rankers):
    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes], {"linear": rankers["linear"]}) as aggregator:
            service = AggregatorService(aggregator, timeout=30.0, most=1)
            assert await service.has_document("d0")
            found = await asyncio.gather(*(service.has_document("d0") for _ in range(3)), return_exceptions=True)
            assert found[0] is True
            assert all(isinstance(one, OverloadError) for one in found[1:])

    asyncio.run(run())
