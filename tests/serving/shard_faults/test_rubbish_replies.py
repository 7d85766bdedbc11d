"""Nodes that reply rubbish, fail or have damaged files: left out, told once, and used again when they are well."""

import asyncio
import re
import time

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

import msgspec
from tests.serving.node_network import Node, ask, network, shown, until_whole
from tests.serving.shard_faults.faulty_shards import of_kind, until, until_whole_or_refused, with_body

from rankwell.errors import FileFormatError
from rankwell.serving.shards import messages
from rankwell.serving.shards.circuit_breaker import OPEN
from rankwell.serving.shards.frames import MOST_BYTES, encoded


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
