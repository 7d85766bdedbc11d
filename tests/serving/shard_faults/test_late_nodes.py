"""Nodes that hang or are slow: partial answers within the deadline."""

import asyncio
import time

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

from tests.serving.node_network import Node, ask, forget_counts, network, shown, until_whole
from tests.serving.shard_faults.faulty_shards import aggregator_index, of_kind, with_body

from rankwell import RankedSearch
from rankwell.serving.batching import OverloadError
from rankwell.serving.ranking.ranking_pass import RankingPass
from rankwell.serving.shards import messages


def test_a_node_that_hangs_costs_no_more_than_the_deadline_and_then_nothing(folders):
    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes]) as aggregator:
            whole = await ask(aggregator)
            nodes[1].change = lambda received: None
            for _ in range(3):
                started = time.monotonic()
                partial = await ask(aggregator, seconds=0.5)
                assert time.monotonic() - started < 0.75
                assert partial.missing == (aggregator.shards[1].name,)
                assert partial.results
            # It failed often enough: it is not asked, and not waited for.
            asked = nodes[1].n_requests
            started = time.monotonic()
            partial = await ask(aggregator, seconds=20.0)
            assert time.monotonic() - started < 5.0
            assert len(partial.missing) == 1
            assert nodes[1].n_requests <= asked + 1
            nodes[1].change = None
            assert shown(await until_whole(aggregator)) == shown(whole)

    asyncio.run(run())


ASKED = {
    "words": {"query": "w3 w7 w1", "ranker": "bm25"},
    "typing errors": {"query": "w3 w7x w1", "ranker": "bm25", "typos": True},
    "a prefix": {"query": "w3 w1*", "ranker": "bm25"},
    "a ranker of lists": {"query": "w3 w7 w1", "ranker": "linear"},
    "a ranker of documents": {"query": "w3 w7 w1", "ranker": "alone"},
    "a cascade": {"query": "w3 w7 w1", "ranker": "cascade"},
    "a document": {"query": "", "like": "d0"},
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_whatever_is_asked_a_node_that_hangs_is_missing_alone(folders, rankers, asked):
    """A query needs more rounds of counting than one: each has time, whatever the rounds before it had to wait for."""

    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes], rankers) as aggregator:
            await forget_counts(aggregator)
            nodes[1].change = lambda received: None
            started = time.monotonic()
            partial = await ask(aggregator, seconds=2.0, **asked)
            assert time.monotonic() - started < 2.25
            assert partial.missing == (aggregator.shards[1].name,)
            assert not partial.is_partial
            assert partial.results
            assert all(int(one.id[1:]) % 4 != 1 for one in partial.results)

    asyncio.run(run())


LOST = {"words": messages.WordsOf, "terms": messages.Counted, "ranking": messages.Scored}


@pytest.mark.parametrize("name", ["linear", "alone", "cascade"])
@pytest.mark.parametrize("lost", LOST)
def test_if_no_shard_ranks_in_time_the_order_is_that_of_selection(folders, rankers, name, lost):
    """Nobody is missing for it, and nothing is learnt from it: with more time the answer is exact again."""

    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes], {name: rankers[name]}) as aggregator:
            await forget_counts(aggregator)
            selected = await ask(aggregator, "w3 w7", ranker="bm25")
            for node in nodes:
                node.change = of_kind(LOST[lost], lambda received: None)
            late = await ask(aggregator, "w3 w7", seconds=1.0)
            assert (late.is_partial, late.missing, late.n_ranked) == (True, (), 0)
            assert [one.id for one in late.results] == [one.id for one in selected.results]
            for node in nodes:
                node.change = None
            expected = RankedSearch(aggregator_index(folders), rankers[name], n_candidates=30).search("w3 w7")
            whole = await until_whole(aggregator, query="w3 w7")
            assert [(one.id, one.score) for one in whole.results] == list(
                zip(expected.ids, expected.scores.tolist(), strict=True)
            )

    asyncio.run(run())


@pytest.mark.parametrize(("name", "passes"), [("linear", 1), ("alone", 1), ("cascade", 2)])
def test_a_shard_that_ranks_too_late_keeps_its_documents_below_those_that_were_ranked(folders, rankers, name, passes):
    """They come in the order of the stage before, and the answer says whose they are."""

    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes], {name: rankers[name]}, n_candidates=80) as aggregator:
            whole = await ask(aggregator, "w3 w7", k=80)
            scored = 0

            def without_the_last_pass(received):
                nonlocal scored
                scored += 1
                return None if scored % passes == 0 else received

            nodes[1].change = of_kind(messages.Scored, without_the_last_pass)
            late = await ask(aggregator, "w3 w7", seconds=3.0, k=80)
            own = [one.id for one in late.results if int(one.id[1:]) % 4 == 1]
            assert {one.id for one in late.results} == {one.id for one in whole.results}
            assert own
            assert (late.is_partial, late.missing) == (True, ())
            assert late.unranked == (aggregator.shards[1].name,)
            assert 0 < late.n_ranked < late.n_kept == whole.n_kept
            assert all(int(one.id[1:]) % 4 != 1 for one in late.results[: late.n_ranked])
            if passes == 1:
                below = late.results[late.n_ranked :]
                assert [one.id for one in below] == own
                assert [one.first_score for one in below] == sorted((one.first_score for one in below), reverse=True)
            # Captions of the documents that were not ranked are made as usual.
            assert all(one.caption for one in late.results)

    asyncio.run(run())


def test_a_shard_that_ranks_a_part_in_time_says_which(folders, rankers):
    """A node that has little time replies with what it has, and is not late."""

    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes], {"alone": rankers["alone"]}, n_candidates=80) as aggregator:
            whole = await ask(aggregator, "w3 w7", k=80)
            score_of = {one.id: one.score for one in whole.results}

            def first_three(received):
                scores = received.body.scores[: 3 * 8]
                return with_body(received, scores=scores, ranked=np.arange(3, dtype=np.int64).tobytes())

            nodes[1].change = of_kind(messages.Scored, first_three)
            early = await ask(aggregator, "w3 w7", k=80)
            ranked = early.results[: early.n_ranked]
            assert (early.is_partial, early.missing, early.unranked) == (True, (), (aggregator.shards[1].name,))
            assert early.n_ranked < early.n_kept == len(early.results)
            own = [one.first_score for one in whole.results if int(one.id[1:]) % 4 == 1]
            best = sorted(own, reverse=True)[:3]
            assert sorted((one.first_score for one in ranked if int(one.id[1:]) % 4 == 1), reverse=True) == best
            assert all(one.score == score_of[one.id] for one in ranked)
            # Scores of documents that were not asked for are rubbish.
            nodes[1].change = of_kind(
                messages.Scored,
                lambda received: with_body(received, ranked=np.arange(1, 4, dtype=np.int64).tobytes()),
            )
            assert (await ask(aggregator, "w3 w7")).missing == (aggregator.shards[1].name,)

    asyncio.run(run())


def test_a_node_replies_with_what_it_has_ranked_before_its_deadline(folders, rankers, monkeypatch):
    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes], {"alone": rankers["alone"]}, n_candidates=80) as aggregator:
            whole = await ask(aggregator, "w3 w7", k=80)
            score_of = {one.id: one.score for one in whole.results}
            # Each document is a block, and all blocks together take longer than there is time.
            score, seconds = RankingPass.score, 4.0
            monkeypatch.setattr("rankwell.serving.ranking.pass_in_time._LEAST_BLOCK", 1)
            monkeypatch.setattr("rankwell.serving.ranking.pass_in_time._BLOCK_SHARE", 0.0)
            monkeypatch.setattr("rankwell.serving.ranking.pass_in_time._AMPLE", 1e12)

            def slow(self, hits):
                time.sleep(2 * seconds * len(folders) / whole.n_kept)
                return score(self, hits)

            monkeypatch.setattr(RankingPass, "score", slow)
            early = await ask(aggregator, "w3 w7", k=80, seconds=seconds)
            assert (early.is_partial, early.missing) == (True, ())
            assert 0 < early.n_ranked < early.n_kept == whole.n_kept
            assert [one.score for one in early.results[: early.n_ranked]] == [
                score_of[one.id] for one in early.results[: early.n_ranked]
            ]
            assert {one.id for one in early.results} == score_of.keys()

    asyncio.run(run())


def test_captions_that_a_shard_owes_make_room_for_those_of_others(folders):
    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes]) as aggregator:
            nodes[0].change = of_kind(messages.Shown, lambda received: None)
            answer = await ask(aggregator, "w1 w2 w3", seconds=1.0, k=10)
            assert answer.missing == (aggregator.shards[0].name,)
            assert len(answer.results) == 10
            assert all(int(one.id[1:]) % 4 != 0 for one in answer.results)

    asyncio.run(run())


def test_what_needs_all_shards_is_refused_if_one_hangs(folders, rankers, monkeypatch):
    monkeypatch.setattr("rankwell.serving.shards.aggregator.ASIDE_SECONDS", 0.6)

    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes], {"linear": rankers["linear"]}) as aggregator:
            for node in nodes:
                node.change = of_kind(messages.Scored, lambda received: None)
            with pytest.raises(OverloadError, match=r"needs all shards.*no answer within"):
                await aggregator.features(messages.AskedQuery("w1 w2"), ["d0"], "linear")

    asyncio.run(run())
