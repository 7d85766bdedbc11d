"""Own features in serving: by a node and by shards, as in Python, with the features logged and explained."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("msgspec", reason="the server needs the extra 'serve'")

from tests.serving.in_process_shards import InProcessLink, in_time, run_with

from rankwell import Index, IndexWriter, LeastSquares, MadeRanker, RankedSearch
from rankwell.errors import DataError
from rankwell.features.feature_set import FeatureSet
from rankwell.features.own_features import OwnFeatures
from rankwell.index.schema import Schema
from rankwell.serving.answer import SearchRequest
from rankwell.serving.node import Node
from rankwell.serving.shards.aggregator import Aggregator
from rankwell.serving.shards.messages import AskedQuery
from rankwell.serving.shards.shard import Shard
from rankwell.serving.shards.shard_node import ShardNode

NAMES = ("bm25.whole", "own.rate(default=0)", "own.size(default=0)", "cosine.embedding(default=0)", "length.whole")
QUERIES = ["word1 word2", "Word3", "+word4 word5", "word1~1 word2", "word9 word8 word7"]


def write(folder, rows, kind):
    with IndexWriter(folder, schema=Schema(["body"], vectors={"embedding": (6, kind)})) as writer:
        writer.add(rows)
        writer.commit()
    return folder


@pytest.fixture(scope="module", params=["float32", "int8"])
def served(request, tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("served"), np.random.default_rng(2)
    rows = [
        {"id": f"d{number}", "body": " ".join(f"word{one}" for one in rng.integers(0, 10, 6))}
        | ({"embedding": rng.normal(size=6).tolist()} if number % 5 else {})
        for number in range(60)
    ]
    parts = [rows[start::3] for start in range(3)]
    whole = write(folder / "whole", [row for part in parts for row in part], request.param)
    shards = [write(folder / f"part-{number}", part, request.param) for number, part in enumerate(parts)]
    pairs = [
        {"query": query, "document": f"d{doc}", "rate": float(rng.random())} for query in QUERIES for doc in range(9)
    ]
    (folder / "rates.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    own = OwnFeatures(
        [folder / "rates.jsonl"],
        {"size": lambda query, documents: [len(document) for document in documents]},
        {"embedding": lambda text: np.sin(np.arange(6) + len(text))},
    )
    features, labels = rng.normal(size=(60, len(NAMES))).astype(np.float32), rng.integers(0, 3, 60).astype(float)
    fitted = LeastSquares(normalize="none").fit(features, labels, group=[20] * 3)
    description = replace(fitted.description_, feature_names=FeatureSet(NAMES).names)
    MadeRanker.from_description(description).save(folder / "own.rank")
    return whole, shards, folder / "own.rank", own


def test_nodes_and_shards_answer_as_ranked_search_does(served):
    whole, shards, ranker, own = served
    search = RankedSearch(Index.open(whole), ranker, n_candidates=20, own=own)
    node = Node(whole, {"own": ranker}, n_candidates=20, own=own)
    aggregator = Aggregator(
        [Shard([InProcessLink(ShardNode(part, own=own))]) for part in shards], {"own": ranker}, n_candidates=20
    )
    requests = [SearchRequest(query, in_time(), k=8) for query in QUERIES]

    async def ask(aggregator):
        answers = [await aggregator.answer(request) for request in requests]
        features = await aggregator.features(AskedQuery(QUERIES[0]), ["d1", "d8", "d0"], "own")
        return answers, features, await aggregator.explain(AskedQuery(QUERIES[0]), answers[0].results[0].id, "own")

    answers, features, explained = run_with(aggregator, ask)
    for request, one, other in zip(requests, node.answer(requests), answers, strict=True):
        found = search.search(request.query, 8)
        expected = list(zip(found.ids, found.scores.tolist(), strict=True))
        assert [(result.id, result.score) for result in one.results] == expected
        assert [(result.id, result.score) for result in other.results] == expected
    rows = search.features(QUERIES[0], ["d1", "d8", "d0"])
    np.testing.assert_array_equal(features, rows)
    # What is asked for is there: rates of documents 0 to 8, sizes of ids, vectors of all but every fifth.
    assert (rows[:, 1] > 0).all()
    assert rows[:, 2].tolist() == [2, 2, 2]
    assert (rows[:2, 3] != 0).all()
    assert rows[2, 3] == 0
    (alone,) = search.explain(QUERIES[0], document=explained.id)
    assert alone.values == explained.values
    assert "cosine.embedding(default=0)" in alone.values


def test_without_its_sources_a_ranker_is_refused(served):
    whole, shards, ranker, _ = served
    with pytest.raises(DataError, match=r"there is no source of own\.rate\(default=0\)"):
        Node(whole, {"own": ranker})
    content = ranker.read_bytes()
    with pytest.raises(DataError, match=r"there is no source of own\.rate\(default=0\)"):
        ShardNode(shards[0]).put_ranker(type("PutRanker", (), {"content": content}))
