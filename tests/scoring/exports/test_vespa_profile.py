"""Rank profiles, evaluated by the rules of Vespa's reference for ranking expressions (Vespa itself is not run)."""

from dataclasses import replace

import numpy as np
import pytest
from tests.scoring.exports.exported_rankers import (
    BY_DOCUMENT,
    N_FEATURES,
    RANKERS,
    expected_scores,
    linear,
    rows_for,
    trees,
)
from tests.scoring.exports.ranking_expressions import RankProfile

import rankwell
from rankwell import ParameterError
from rankwell.scoring.composition import FirstPass, RankerPart


def scores_of(profile, features, phase="first-phase"):
    named = [{f"attribute(f{i + 1})": float(x) for i, x in enumerate(row)} for row in features]
    return np.array([profile.score(row, phase) for row in named])


@pytest.mark.parametrize("name", BY_DOCUMENT)
def test_scores_are_the_same(name):
    profile = RankProfile(rankwell.export(RANKERS[name], to="vespa", name="mine").decode())
    assert profile.name == "mine"
    features = rows_for(name, 60)
    expected = expected_scores(RANKERS[name], features)
    assert np.abs(scores_of(profile, features) - expected).max() <= 1e-6 * max(1.0, np.abs(expected).max())


def test_two_passes_are_two_phases():
    """The first phase is the part's score, the second the ranker's for the documents that are kept."""
    part = RankerPart("first", tuple(range(N_FEATURES)), linear())
    description = replace(trees(), parts=(part,), first_pass=FirstPass(0, 50))
    profile = RankProfile(rankwell.export(description, to="vespa").decode())
    assert profile.rerank_count == 50
    features = rows_for("trees", 20)
    np.testing.assert_allclose(scores_of(profile, features), expected_scores(linear(), features), rtol=1e-9)
    second = scores_of(profile, features, "second-phase")
    np.testing.assert_allclose(second, expected_scores(trees(), features), rtol=1e-9)
    with pytest.raises(
        ParameterError, match="ranking_pass is needed: this ranker ranks in two passes, and onnx scores in one"
    ):
        rankwell.export(description, to="onnx")
    first_alone = rankwell.export(description, to="ranklib", ranking_pass="first")
    assert first_alone == rankwell.export(linear(), to="ranklib")
    assert rankwell.export(description, to="ranklib", ranking_pass="second") == rankwell.export(trees(), to="ranklib")


def test_features_of_an_index_are_rank_features():
    names = ("bm25.title", "static.age", "clicks", "length.title", "a", "b", "c")
    description = replace(linear(), feature_names=names)
    with pytest.raises(ParameterError, match=r"no rank feature that is length\.title: give an expression for each"):
        rankwell.export(description, to="vespa")
    text = rankwell.export(description, to="vespa", features={"length.title": "fieldLength(title)"}).decode()
    expressions = {name: " ".join(tokens) for name, tokens in RankProfile(text).functions.items()}
    assert expressions["ranker_feature_bm25_title"] == "bm25 ( title )"
    assert expressions["ranker_feature_static_age"] == "attribute ( age )"
    assert expressions["ranker_feature_clicks"] == "attribute ( clicks )"
    assert expressions["ranker_feature_length_title"] == "fieldLength ( title )"
    with pytest.raises(ParameterError, match="the ranker has no feature 'other'"):
        rankwell.export(description, to="vespa", features={"other": "1"})


@pytest.mark.parametrize("name", ["letor", "query-minmax"])
def test_normalisers_by_query_are_refused(name):
    with pytest.raises(ParameterError, match=f"A Vespa rank profile cannot say the normaliser {name}"):
        rankwell.export(RANKERS[name], to="vespa")
