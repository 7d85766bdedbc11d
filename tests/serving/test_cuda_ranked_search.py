"""Ranked search on a CUDA device, from an index on disk to the results, compared with the CPU's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.features.random_hits import random_documents
from tests.features.small_index import text_of
from tests.tolerances import TOLERANCES

from rankwell.data.dataset import RankingDataset
from rankwell.features.feature_set import FeatureSet, make_feature_set
from rankwell.features.queries import QueryText
from rankwell.features.training_data import judged_features
from rankwell.index.reader import Index
from rankwell.index.search.bm25 import BM25F
from rankwell.index.text.analysis import Analysis
from rankwell.index.writer import IndexWriter
from rankwell.kernels.device_report import report_device
from rankwell.rankers.base import Ranker
from rankwell.rankers.registry import RANKERS, ranker_class
from rankwell.scoring.composition import FirstPass, RankerPart
from rankwell.scoring.description import ExpressionInputs, RankerDescription, default_feature_names
from rankwell.scoring.normaliser import Normaliser
from rankwell.serving.ranking.feature_log import FeatureLog, FeatureLogReader
from rankwell.serving.ranking.ranked_search import RankedResult, RankedSearch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not report_device("cuda").usable, reason=report_device("cuda").description),
]

STREAMS = ("title", "body")
STATICS = ("rank", "age")
FULL = make_feature_set("full", STREAMS, STATICS)
# Logarithms may differ in the last place on a device; all other features are the same to the bit.
EXACT = FeatureSet([name for name in FULL.names if not name.startswith("lm_")])
# Of these rankers, so are the scores of equal features.
EXACT_RANKERS = ("least-squares", "rankboost", "ranksvm")
SETTINGS = {
    "least-squares": {"normalize": "query-minmax"},
    "rankboost": {"n_rounds": 20},
    "ranksvm": {},
    "lambdamart": {"n_rounds": 20},
}
N_DOCS = 300
TRAINED = [QueryText(str(number), text_of([number % 9, (number * 5) % 11, 3])) for number in range(12)]
# Words, one of them twice; a phrase; signs; words that no document has, alone and among others; a stop word; nothing.
ASKED = ["w1 w5 w5", '"w2 w3"', "+w4 w0 -w7", "unknown", "w6 unknown", "gap", "", "w8 w0 w2 w10 w3"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Several segments, deleted documents among them."""
    rng = np.random.default_rng(4)
    path = tmp_path_factory.mktemp("ranked") / "docs.idx"
    with IndexWriter(path, analysis=Analysis(stop_words=("gap",))) as writer:
        for start in range(0, N_DOCS, 100):
            writer.add(
                {
                    "id": f"d{start + number}",
                    **{stream: text_of(words) for stream, words in fields.items()},
                    "rank": float(rng.random()),
                    **({"age": int(rng.integers(0, 99))} if number % 3 else {}),
                }
                for number, fields in enumerate(random_documents(rng, 100, streams=STREAMS))
            )
            writer.commit()
        writer.delete([f"d{number}" for number in range(0, N_DOCS, 7)])
        writer.commit()
    return Index.open(path)


def train_on(index: Index, feature_set: FeatureSet) -> RankingDataset:
    rng = np.random.default_rng(5)
    qrels = {query.id: {f"d{doc}": float(rng.integers(0, 3)) for doc in range(N_DOCS)} for query in TRAINED}
    return judged_features(index, TRAINED, qrels, feature_set, source="top", n_candidates=60).dataset


@pytest.fixture(scope="module", params=RANKERS)
def ranker(index: Index, request: pytest.FixtureRequest) -> Ranker:
    """Each kind of ranker there is, trained on the CPU."""
    settings = SETTINGS.get(request.param, {"n_epochs": 3})
    data = train_on(index, EXACT if request.param in EXACT_RANKERS else FULL)
    fitted: Ranker = ranker_class(request.param)(**settings).fit(data)
    return fitted


def assert_same(on_device: RankedResult, on_host: RankedResult, *, exact: bool) -> None:
    """The same documents in the same order; only those whose scores are within the tolerance may change places."""
    assert on_device.n_candidates == on_host.n_candidates == len(on_host.ids)
    assert on_device.scores.dtype == np.float64
    if exact:
        assert on_device.ids == on_host.ids
        np.testing.assert_array_equal(on_device.scores, on_host.scores)
    else:
        expected = dict(zip(on_host.ids, on_host.scores.tolist(), strict=True))
        assert set(on_device.ids) == set(expected)
        in_its_order = np.array([expected[one] for one in on_device.ids])
        # Of the largest score: features or exponentials differ in their last places.
        most = TOLERANCES["cuda"]["scores of extracted features"]["rtol"] * np.abs(on_host.scores).max(initial=1.0)
        np.testing.assert_allclose(on_device.scores, in_its_order, rtol=0, atol=most)
        assert (np.diff(in_its_order) <= 2 * most).all()
    assert (np.diff(on_device.scores) <= 0).all()
    first = dict(zip(on_host.ids, on_host.first_scores.tolist(), strict=True))
    assert [first[one] for one in on_device.ids] == on_device.first_scores.tolist()


def test_every_ranker_ranks_as_on_the_cpu(index: Index, ranker: Ranker, tmp_path: Path) -> None:
    exact = ranker.name in EXACT_RANKERS
    ranker.save(tmp_path / "model.rank")
    on_device = RankedSearch(index, tmp_path / "model.rank", n_candidates=N_DOCS, device="cuda")
    on_host = RankedSearch(index, ranker, n_candidates=N_DOCS, device="cpu")
    together = on_device.search_many(ASKED, k=N_DOCS)
    for query, found, expected in zip(ASKED, together, on_host.search_many(ASKED, k=N_DOCS), strict=True):
        assert_same(found, expected, exact=exact)
        assert_same(on_device.search(query, k=N_DOCS), expected, exact=exact)
    assert [len(result.ids) > 0 for result in together] == [True, True, True, False, True, False, False, True]
    assert all(int(one[1:]) % 7 for result in together for one in result.ids)
    alone = on_device.search(ASKED[0], k=3)
    assert alone.ids == together[0].ids[:3]
    assert alone.n_candidates == together[0].n_candidates > 3


@pytest.fixture(scope="module")
def linear(index: Index) -> Ranker:
    fitted: Ranker = ranker_class("least-squares")().fit(train_on(index, EXACT))
    return fitted


def test_the_first_pass_is_the_same_on_every_device(index: Index, linear: Ranker) -> None:
    settings = {"n_candidates": 20, "model": BM25F({"title": 2.0, "body": 1.0}), "match": "all"}
    on_device = RankedSearch(index, linear, device="cuda", **settings)
    on_host = RankedSearch(index, linear, device="cpu", **settings)
    for found, expected in zip(on_device.search_many(ASKED, 20), on_host.search_many(ASKED, 20), strict=True):
        assert_same(found, expected, exact=True)
        assert len(found.ids) <= 20


def test_two_passes_rank_as_on_the_cpu(index: Index, linear: Ranker) -> None:
    second = ranker_class("rankboost")(n_rounds=20).fit(train_on(index, EXACT)).description_
    part = RankerPart("first", tuple(range(len(EXACT))), linear.description_)
    cascade = replace(second, parts=(part,), first_pass=FirstPass(0, 15))
    on_device, on_host = (RankedSearch(index, cascade, n_candidates=N_DOCS, device=on) for on in ("cuda", "cpu"))
    for found, expected in zip(on_device.search_many(ASKED, N_DOCS), on_host.search_many(ASKED, N_DOCS), strict=True):
        assert_same(found, expected, exact=True)
        assert found.n_ranked == expected.n_ranked <= 15


def test_expressions_over_other_names_than_the_feature_set_s(index: Index, linear: Ranker) -> None:
    part = RankerPart("learned", tuple(range(len(EXACT))), linear.description_)
    names = default_feature_names(len(EXACT))
    group = ExpressionInputs(("f1 * 2 - f2",), np.zeros(1))
    plain = RankerDescription(names, Normaliser("none"), (group,), ())
    boosted = replace(plain, parts=(part,), inputs=(ExpressionInputs(("learned * (1 + f3)",), np.zeros(1)),))
    for description in (plain, boosted):
        settings = {"n_candidates": N_DOCS, "feature_set": EXACT}
        on_device, on_host = (RankedSearch(index, description, device=on, **settings) for on in ("cuda", "cpu"))
        for found, expected in zip(
            on_device.search_many(ASKED, N_DOCS), on_host.search_many(ASKED, N_DOCS), strict=True
        ):
            assert_same(found, expected, exact=True)


def test_nothing_to_rank(index: Index, linear: Ranker) -> None:
    searcher = RankedSearch(index, linear, device="cuda")
    assert searcher.search_many([]) == []
    for result in [searcher.search("unknown"), *searcher.search_many(["", "unknown words", "gap"])]:
        assert (result.ids, len(result.docs), len(result.scores), result.n_candidates) == ((), 0, 0, 0)
    assert [len(result.ids) for result in searcher.search_many(["", "w1", ""], k=2)] == [0, 2, 0]


def test_what_is_logged_is_what_the_device_saw(index: Index, linear: Ranker, tmp_path: Path) -> None:
    logs = {}
    for device in ("cuda", "cpu"):
        with FeatureLog(tmp_path / device, EXACT) as log:
            searcher = RankedSearch(index, linear, n_candidates=40, log=log, device=device)
            results = searcher.search_many(ASKED, k=5, query_ids=[str(number) for number in range(len(ASKED))])
        logs[device] = (list(FeatureLogReader(tmp_path / device)), results)
    for seen, expected in zip(logs["cuda"][0], logs["cpu"][0], strict=True):
        assert (seen.query_id, seen.document_ids) == (expected.query_id, expected.document_ids)
        np.testing.assert_array_equal(seen.features, expected.features)
    for found, expected in zip(logs["cuda"][1], logs["cpu"][1], strict=True):
        assert found.ids == expected.ids
        np.testing.assert_array_equal(found.scores, expected.scores)


def test_the_device_is_chosen_where_there_is_one(index: Index, linear: Ranker) -> None:
    searcher = RankedSearch(index, linear, device="auto")
    assert searcher.device == "cuda"
    assert_same(searcher.search("w1 w2", N_DOCS), RankedSearch(index, linear).search("w1 w2", N_DOCS), exact=True)
