"""Measured costs: which work features share, and that all features are covered."""

import numpy as np
import pytest
from tests.features.random_hits import random_documents
from tests.features.small_index import index_of

from rankwell.errors import DataError
from rankwell.features.cost_measurement import index_costs, measure_costs
from rankwell.features.feature_set import FeatureSet, make_feature_set

STREAMS = ("title", "body")


@pytest.fixture(scope="module")
def index():
    documents = random_documents(np.random.default_rng(4), 200, streams=STREAMS)
    return index_of(documents, streams=STREAMS, statics={"rank": [1.0] * 200})


@pytest.fixture(scope="module")
def costs(index):
    names = make_feature_set("full", STREAMS, ("rank",)).names
    return measure_costs(index, FeatureSet([*names, "x = bm25.title + length.body"]))


def test_every_feature_has_a_cost(costs):
    for name in costs.features:
        assert costs.of([name], 100) > 0
    everything = costs.of(costs.features, 100)
    assert everything >= max(costs.of([name], 100) for name in costs.features)


def test_features_share_what_the_kernels_compute_together(costs):
    shared = {name: set(cost.shared) for name, cost in costs.features.items()}
    assert shared["bm25.title"] == {"hits", "extraction", "matched.title"}
    assert shared["tf_sum.body"] == {"hits", "extraction", "figures.body"}
    assert shared["window_all.body"] == {"hits", "positions", "extraction", "matched.body", "places.body"}
    assert shared["phrase_count.body"] == shared["window_all.body"] | {"sequences.body"}
    assert shared["relevance_model.whole"] == {"hits", "extraction", "feedback(documents=10;terms=10;original=0.5)"}
    assert set().union(*shared.values()) | {"lookup"} == set(costs.shared)


def test_an_expression_costs_what_it_reads(costs):
    assert costs.features["x = bm25.title + length.body"].reads == ("bm25.title", "length.body")
    assert costs.of(["completeness.title"], 100) > costs.of(["query_completeness.title"], 100)


def test_what_selection_knows_is_cheap(costs):
    assert costs.selected == {"bm25.whole", "length.title", "length.body", "length.whole", "static.rank"}
    assert costs.of(["bm25.whole", "static.rank"], 1000) < costs.of(["bm25.title"], 1000)


def test_an_index_without_words_has_no_costs():
    empty = index_of([], streams=STREAMS)
    with pytest.raises(DataError, match="no words"):
        index_costs(empty, FeatureSet(["bm25.title"]))
