"""Files of every format version still open and score as they did when they were written."""

import json
from pathlib import Path

import numpy as np
import pytest

import rankwell
from rankwell.scoring.imports.reader import import_model
from rankwell.scoring.scorer import RankerScorer

GOLDEN = Path(__file__).resolve().parent
RANKERS = sorted(GOLDEN.glob("version*.rank"))


def expected():
    return json.loads((GOLDEN / "scores.json").read_text())


def rows(name):
    return np.array([[np.nan if value is None else value for value in row] for row in expected()[name]], np.float32)


def test_there_is_a_file_of_each_kind():
    assert {path.stem.partition("-")[2] for path in RANKERS} == {
        *("every-input", "trees", "buckets", "linear", "mean", "two-passes")
    }


@pytest.mark.parametrize("path", RANKERS, ids=lambda path: path.stem)
def test_a_ranker_file_scores_as_it_did(path):
    scores = rankwell.load(path).predict(rows("rows7"), group=[len(rows("rows7"))])
    np.testing.assert_allclose(scores, expected()[path.stem.partition("-")[2]], rtol=1e-12)


@pytest.mark.parametrize("name", ["lightgbm.txt", "lightgbm.json", "xgboost.json", "xgboost.ubj", "catboost.json"])
def test_a_model_of_another_library_scores_as_it_did_there(name):
    scores = RankerScorer(import_model(GOLDEN / name)).score(rows("rows4"))
    np.testing.assert_allclose(scores, expected()[name.partition(".")[0]], rtol=1e-6, atol=1e-6)


def test_trees_in_onnx_score_as_they_did_in_onnx_runtime():
    pytest.importorskip("onnx")
    scores = RankerScorer(import_model(GOLDEN / "trees.onnx")).score(rows("rows4"))
    np.testing.assert_allclose(scores, expected()["onnx"], rtol=1e-6, atol=1e-6)
