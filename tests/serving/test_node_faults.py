"""Nodes that die, hang, are slow or reply rubbish: partial answers in time, then whole ones again without a restart."""

import asyncio
import gc
import re
import time

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

import msgspec
from tests.serving.in_process_shards import shards_client
from tests.serving.node_network import Node, ask, forget_counts, make_shards, network, shown, until_whole
from tests.serving.served_index import save_alone

from rankwell import IndexWriter, MadeRanker, RankedSearch
from rankwell.errors import DataError, FileFormatError
from rankwell.serving.batching import OverloadError
from rankwell.serving.http import messages as api
from rankwell.serving.http.aggregator_service import AggregatorService
from rankwell.serving.ranking.ranking_pass import RankingPass
from rankwell.serving.shards import messages
from rankwell.serving.shards.circuit_breaker import CLOSED, OPEN
from rankwell.serving.shards.frames import MOST_BYTES, encoded, read_frame
from rankwell.serving.shards.shard import HEDGED_SHARE
from rankwell.serving.shards.shard_rankers import ShardRankers


@pytest.fixture
def folders(tmp_path):
    return make_shards(tmp_path, 4)


@pytest.fixture(scope="session")
def rankers(served, tmp_path_factory):
    """The rankers of `served_index`, and one that scores each document alone, so that nodes do."""
    return {**served[1], "alone": save_alone(served[1]["boosted"], tmp_path_factory.mktemp("alone") / "alone.rank")}


def with_body(received, **changes):
    return msgspec.structs.replace(received, body=msgspec.structs.replace(received.body, **changes))


def of_kind(kind, change):
    """Change the replies of one kind."""
    return lambda received: change(received) if isinstance(received.body, kind) else received


def scores_of(body):
    return np.frombuffer(body.scores, np.float64).copy()


def with_nan(received):
    scores = scores_of(received.body)
    scores[-1:] = np.nan
    return with_body(received, scores=scores.tobytes())


RUBBISH = {
    "bytes that are no message": of_kind(messages.Selected, lambda received: b"\x00\x00\x00\x05hello"),
    "a frame that is too long": of_kind(messages.Selected, lambda received: (MOST_BYTES + 1).to_bytes(4, "big")),
    "another schema": of_kind(messages.Selected, lambda received: encoded([received.number, 0.0, ["selected", 1, 2]])),
    "another kind of reply": of_kind(
        messages.Selected, lambda received: msgspec.structs.replace(received, body=messages.Found([1]))
    ),
    "NaN in selection": of_kind(messages.Selected, with_nan),
    "NaN in ranking": of_kind(messages.Scored, with_nan),
    "scores that rise": of_kind(
        messages.Selected, lambda received: with_body(received, scores=scores_of(received.body)[::-1].tobytes())
    ),
    "documents of no one": of_kind(
        messages.Selected,
        lambda received: with_body(received, docs=(np.frombuffer(received.body.docs, np.int64) + 10**6).tobytes()),
    ),
    "one document twice": of_kind(
        messages.Selected,
        lambda received: with_body(received, docs=np.zeros(len(received.body.docs) // 8, np.int64).tobytes()),
    ),
    "half an array": of_kind(messages.Selected, lambda received: with_body(received, docs=received.body.docs[:-3])),
    "too few scores": of_kind(messages.Scored, lambda received: with_body(received, scores=received.body.scores[8:])),
    "captions of other documents": of_kind(
        messages.Shown, lambda received: with_body(received, documents=received.body.documents[1:])
    ),
}


@pytest.mark.parametrize("change", RUBBISH.values(), ids=RUBBISH.keys())
def test_a_node_that_replies_rubbish_is_left_out_until_it_is_well(folders, rankers, change):
    async def run():
        nodes = [Node(folder) for folder in folders]
        async with network([[node] for node in nodes], {"alone": rankers["alone"]}) as aggregator:
            whole = await ask(aggregator, k=40)
            nodes[2].change = change
            partial = await ask(aggregator, k=40)
            assert partial.missing == (aggregator.shards[2].name,)
            # The results are those of the other shards, and all of them.
            others = {one[0] for one in shown(whole) if int(one[0][1:]) % 4 != 2}
            found = {one.id for one in partial.results}
            assert others
            assert others <= found
            assert all(int(name[1:]) % 4 != 2 for name in found)
            assert aggregator.shards[2].links[0].breaker.state == OPEN
            nodes[2].change = None
            assert shown(await until_whole(aggregator, k=40)) == shown(whole)

    asyncio.run(run())


IMPOSSIBLE_FACTS = {
    "no schema": {"schema": {"hello": 1}},
    "fields that are not names": {"schema": {"streams": "title", "statics": []}},
    "an analysis of another release": {"analysis": {"words": "unheard of"}},
    "too few counts of words": {"tokens": [7]},
    "a negative count": {"tokens": [-1, 3, 2]},
    "more documents than numbers": {"n_docs": 10**6},
    "more words than there can be": {"n_bytes": 1 << 63},
}


@pytest.mark.parametrize("changes", IMPOSSIBLE_FACTS.values(), ids=IMPOSSIBLE_FACTS.keys())
def test_facts_that_cannot_be_true_are_rubbish(folders, changes):
    async def run():
        node = Node(folders[0])
        await node.start()
        node.change = of_kind(messages.Facts, lambda received: with_body(received, **changes))
        link = node.link()
        await link.look()
        assert not link.is_up
        assert link.facts is None
        assert re.search("none|not names|cannot read|counts", link.last_error)
        node.change = None
        await link.look()
        assert link.is_up
        await node.die()

    asyncio.run(run())


def test_impossible_facts_of_a_node_do_not_end_the_care_for_the_others(folders):
    """A reply that is well-formed and wrong costs its node alone, until it is right; nodes still come back."""

    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes]) as aggregator:
            whole = await ask(aggregator)
            wrong = {"commit": "another", "schema": {"hello": 1}}
            nodes[0].change = of_kind(messages.Facts, lambda received: with_body(received, **wrong))
            await until(lambda: not aggregator.shards[0].links[0].is_up)
            assert (await ask(aggregator)).missing == (aggregator.shards[0].name,)
            nodes[0].change = None
            assert shown(await until_whole(aggregator)) == shown(whole)
            await nodes[1].die()
            await nodes[1].start()
            assert shown(await until_whole(aggregator)) == shown(whole)

    asyncio.run(run())


def test_an_unexpected_failure_does_not_end_the_care_for_nodes(folders, monkeypatch, caplog):
    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes]) as aggregator:
            whole = await ask(aggregator)
            look_after = aggregator.spares.look_after

            async def fail(shards, served):
                raise KeyError("statics")

            aggregator.spares.look_after = fail
            await until(lambda: any("served together" in one.message for one in caplog.records))
            await asyncio.sleep(0.8)
            aggregator.spares.look_after = look_after
            await nodes[1].die()
            await nodes[1].start()
            assert shown(await until_whole(aggregator)) == shown(whole)
            with monkeypatch.context() as patched:
                patched.setattr("rankwell.serving.shards.node_link._without_load", None)
                await until(lambda: any("cannot be looked at" in one.message for one in caplog.records))
            await until_whole_or_refused(aggregator)
            assert shown(await ask(aggregator)) == shown(whole)

    asyncio.run(run())
    logged = [one.message for one in caplog.records if one.levelname == "ERROR"]
    # Of each node, and of the collection: every failure once.
    assert [one for one in logged if "served together" in one] == [logged[0]]
    assert len(logged) == len(set(logged)) <= 3


async def until(condition, within=10.0):
    """Wait for a condition; fails after some seconds."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


def test_a_shard_whose_files_are_damaged_is_missing_and_its_node_logs_why_once(folders, caplog):
    def damaged(body, deadline):
        raise FileFormatError("shard-1: a block of postings is damaged. Build the index again.")

    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes]) as aggregator:
            nodes[1].server.node._one = damaged
            for _ in range(5):
                assert (await ask(aggregator)).missing == (aggregator.shards[1].name,)

    asyncio.run(run())
    told = [one.message for one in caplog.records if "a block of postings is damaged" in one.message]
    # By the node, and by the server that leaves it alone.
    assert [one.split(",")[0] for one in told[:1]] == ["a request failed"]
    assert len(told) == 2
    assert "is left alone for a while" in told[1]


FAILURES = {
    "rubbish": (RUBBISH["one document twice"], "documents that the shard does not have, or one twice"),
    "no message": (RUBBISH["bytes that are no message"], "a frame is not a message"),
    "nothing": (of_kind(messages.Selected, lambda received: None), "no answer within"),
}


@pytest.mark.parametrize(("change", "words"), FAILURES.values(), ids=FAILURES.keys())
def test_a_node_that_is_left_alone_is_logged_once_with_the_reason(folders, caplog, change, words):
    async def run():
        nodes = [Node(folder) for folder in folders[:2]]
        async with network([[node] for node in nodes]) as aggregator:
            nodes[1].change = change
            end = time.monotonic() + 2.5
            while time.monotonic() < end:
                assert (await ask(aggregator, seconds=0.6)).missing
                await asyncio.sleep(0.02)

    asyncio.run(run())
    told = [one.message for one in caplog.records if "is left alone for a while" in one.message]
    assert len(told) == 1
    assert words in told[0]


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


def aggregator_index(folders):
    from rankwell import Index

    return Index.open(folders[0].parent / "all")


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


async def until_whole_or_refused(aggregator):
    for _ in range(200):
        try:
            if not (await ask(aggregator)).missing:
                return
        except OverloadError:
            pass
        await asyncio.sleep(0.05)
    raise AssertionError("the shards are not back")


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


def test_a_wrong_token_is_refused_and_told(folders):
    async def run():
        node = Node(folders[0], token="right")
        await node.start()
        node.token = "wrong"
        link = node.link()
        await link.look()
        assert not link.is_up
        assert "token is missing or wrong" in link.last_error
        await node.die()

    asyncio.run(run())


def test_who_has_not_said_the_token_cannot_send_much(folders):
    async def run():
        node = Node(folders[0], token="right")
        await node.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", node._behind)
        writer.write((1 << 20).to_bytes(4, "big") + b"x" * 100)
        assert await reader.read() == b""
        writer.close()
        await node.die()

    asyncio.run(run())


def test_who_does_not_say_the_token_is_not_kept(folders, monkeypatch):
    monkeypatch.setattr("rankwell.serving.shards.node_server._HELLO_SECONDS", 0.5)

    async def run():
        node = Node(folders[0], token="right")
        await node.start()
        silent = [await asyncio.open_connection("127.0.0.1", node._behind) for _ in range(5)]
        # Half a frame is no word either.
        silent[0][1].write(b"\x00\x00")
        link = node.link()
        await link.look()
        async with asyncio.timeout(10.0):
            assert [await reader.read() for reader, _ in silent] == [b""] * 5
        await link.look()
        assert link.is_up
        for _, writer in silent:
            writer.close()
        await node.die()

    asyncio.run(run())


def test_many_who_do_not_say_the_token_do_not_keep_out_who_does(folders, monkeypatch):
    monkeypatch.setattr("rankwell.serving.shards.node_server._MOST_STRANGERS", 3)
    monkeypatch.setattr("rankwell.serving.shards.node_server._HELLO_SECONDS", 60.0)

    async def run():
        node = Node(folders[0], token="right")
        await node.start()
        silent = [await asyncio.open_connection("127.0.0.1", node._behind) for _ in range(10)]
        link = node.link()
        await link.look()
        assert link.is_up
        await until(lambda: sum(reader.at_eof() or reader.exception() is not None for reader, _ in silent) == 8)
        assert len(node.server._connections) == 3
        for _, writer in silent:
            writer.close()
        await node.die()

    asyncio.run(run())


@pytest.mark.parametrize("name", ["asyncio", "uvloop"])
def test_a_reply_to_an_aggregator_that_is_gone_is_no_error(folders, name):
    """As after SIGSTOP and SIGCONT: what came before is answered when the connection is closed already."""
    loops = pytest.importorskip(name)
    wrong = []

    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: wrong.append(context))
        node = Node(folders[0], batch_window=0.2)
        await node.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", node._behind)
        writer.write(encoded(messages.Sent(0, 5.0, messages.Hello(messages.PROTOCOL, ""))))
        assert await read_frame(reader)
        for number in range(3):
            find = messages.Find(messages.Version("", ""), ["d0"])
            writer.write(encoded(messages.Sent(number, 5.0, find)))
        await asyncio.sleep(0.05)
        writer.transport.abort()
        await asyncio.sleep(0.5)
        await node.die()
        gc.collect()

    with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
        runner.run(run())
    assert wrong == []


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
