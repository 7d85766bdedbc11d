"""Commits and rankers that change while nodes serve: no failed query, no mixture."""

import asyncio

import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

import msgspec
from tests.serving.node_network import Node, ask, forget_counts, network, shown, until_whole
from tests.serving.shard_faults.faulty_shards import aggregator_index, of_kind, until_whole_or_refused

from rankwell import IndexWriter, MadeRanker, RankedSearch
from rankwell.errors import DataError
from rankwell.serving.batching import OverloadError
from rankwell.serving.http import messages as api
from rankwell.serving.http.aggregator_service import AggregatorService
from rankwell.serving.shards import messages
from rankwell.serving.shards.shard_rankers import ShardRankers


def test_a_commit_of_one_shard_is_served_without_a_failed_query(folders):
    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes]) as aggregator:
            service = AggregatorService(aggregator)
            asked = api.SearchParameters("w1 brandnew", k=100, timeout_ms=5000)
            before = await service.search(asked)
            add(folders[1], "new", "brandnew w1")
            for _ in range(200):
                answer = await service.search(asked)
                assert answer.degraded is None
                if answer.n_matches == before.n_matches + 1:
                    break
                await asyncio.sleep(0.02)
            assert answer.results is not None
            assert (await ask(aggregator, "brandnew")).results[0].id == "new"

    asyncio.run(run())


def add(folder, name, text):
    with IndexWriter(folder) as writer:
        writer.add([{"id": name, "title": text, "body": text}])
        writer.commit()


def test_an_answer_is_of_one_ranker_while_it_is_replaced(folders, rankers):
    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes], {"it": rankers["boosted"]}) as aggregator:
            found = {}
            for name in ("boosted", "linear"):
                search = RankedSearch(aggregator_index(folders), rankers[name], n_candidates=30)
                found[name] = [(one, score) for one, score in zip(*_ids_and_scores(search), strict=True)]
            stop, answers = asyncio.Event(), []

            async def load():
                while not stop.is_set():
                    answers.append(await ask(aggregator, "w1 w2"))

            loading = [asyncio.create_task(load()) for _ in range(3)]
            for name in ("linear", "boosted", "linear", "boosted", "linear"):
                await asyncio.sleep(0.1)
                await aggregator.put_ranker("it", rankers[name])
            stop.set()
            await asyncio.gather(*loading)
            answers.append(await ask(aggregator, "w1 w2"))
            seen = [[(one.id, one.score) for one in answer.results] for answer in answers]
            assert all(one in found.values() for one in seen)
            assert seen[-1] == found["linear"]
            assert not any(answer.missing for answer in answers)

    asyncio.run(run())


def _ids_and_scores(search):
    found = search.search("w1 w2")
    return found.ids, found.scores.tolist()


@pytest.fixture
def unusable(tmp_path):
    """A ranker that reads a feature of one's own, of which nodes have no source."""
    (tmp_path / "own.yaml").write_text("inputs: [{expression: bm25.body + own.fresh}]")
    MadeRanker.from_yaml(tmp_path / "own.yaml").save(tmp_path / "own.rank")
    return tmp_path / "own.rank"


@pytest.mark.parametrize("name", ["it", "another"])
def test_a_ranker_that_nodes_cannot_use_is_refused_and_the_old_one_stays(folders, rankers, unusable, name):
    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes], {"it": rankers["linear"]}) as aggregator:
            whole, rankers_before = await ask(aggregator), aggregator.snapshot.files
            with pytest.raises(DataError, match=r"no source of own\.fresh: name the file or function"):
                await aggregator.put_ranker(name, unusable)
            assert aggregator.snapshot.files == rankers_before
            assert shown(await ask(aggregator)) == shown(whole)
            for node in nodes:
                node.change = of_kind(
                    messages.Done, lambda received: with_reply(received, messages.Failure("failed", "no room"))
                )
            with pytest.raises(DataError, match=r"node 127\.0\.0\.1:\d+ cannot use the ranker: no room"):
                await aggregator.put_ranker(name, rankers["boosted"])
            assert shown(await ask(aggregator)) == shown(whole)

    asyncio.run(run())


def with_reply(received, reply):
    return msgspec.structs.replace(received, body=reply)


def test_a_ranker_that_one_node_cannot_use_is_told_once_and_named_as_the_reason(folders, rankers, monkeypatch, caplog):
    put = ShardRankers.put

    def put_of_one_alone(self, content, index, sample):
        if index.path == folders[1]:
            raise DataError("there is no source of own.fresh.")
        put(self, content, index, sample)

    monkeypatch.setattr(ShardRankers, "put", put_of_one_alone)

    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes], {"it": rankers["linear"]}) as aggregator:
            await asyncio.sleep(1.0)
            with pytest.raises(OverloadError, match=r"needs all shards.* did not take what it needs.*own\.fresh"):
                await aggregator.features(messages.AskedQuery("w1 w2"), ["d1"], "it")
            assert (await ask(aggregator, ranker="it")).missing == (aggregator.shards[1].name,)

    asyncio.run(run())
    assert len([one for one in caplog.records if "did not take a ranker" in one.message]) == 1


def test_a_ranker_that_nodes_have_given_up_is_sent_again(folders, rankers, monkeypatch):
    """Nodes keep a bounded number of rankers: here two, and the default is not used while others come."""
    monkeypatch.setattr("rankwell.serving.shards.shard_rankers._RANKERS_KEPT", 2)

    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes], {"linear": rankers["linear"]}) as aggregator:
            whole = await ask(aggregator)
            for name in ("boosted", "alone", "cascade"):
                await aggregator.put_ranker("other", rankers[name])
            await forget_counts(aggregator)
            await until_whole_or_refused(aggregator)
            assert shown(await ask(aggregator)) == shown(whole)
            assert not (await until_whole(aggregator, ranker="other")).missing

    asyncio.run(run())


def test_a_ranker_that_is_used_is_not_given_up(folders, rankers, monkeypatch):
    """There is room for those in use and for the one that was replaced."""
    monkeypatch.setattr("rankwell.serving.shards.shard_rankers._RANKERS_KEPT", 3)

    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes], {"linear": rankers["linear"]}) as aggregator:
            for name in ("boosted", "alone", "cascade", "boosted"):
                await aggregator.put_ranker("other", rankers[name])
                await forget_counts(aggregator)
                assert not (await ask(aggregator)).missing
                assert not (await ask(aggregator, ranker="other")).missing

    asyncio.run(run())


def test_a_census_that_a_node_has_given_up_is_sent_again(folders, monkeypatch):
    """As if other aggregators used the same nodes: the census that is used is kept, others take its place otherwise."""
    monkeypatch.setattr("rankwell.serving.shards.shard_node._CENSUSES_KEPT", 2)

    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes]) as aggregator:
            whole, collection = await ask(aggregator), aggregator.snapshot.collection

            def prepare_others(epochs):
                for shard, node in enumerate(nodes):
                    for epoch in epochs:
                        census = msgspec.structs.replace(collection.census, epoch=epoch)
                        node.server.node.prepare(messages.Prepare(collection.facts[shard].commit, census))

            for epoch in range(100, 104):
                prepare_others([epoch])
                assert shown(await ask(aggregator)) == shown(whole)
            prepare_others(range(104, 107))
            await until_whole_or_refused(aggregator)
            assert shown(await ask(aggregator)) == shown(whole)

    asyncio.run(run())
