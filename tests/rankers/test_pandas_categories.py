"""Columns that pandas holds as categories: trees take them for numbers unless they are named."""

from __future__ import annotations

import numpy as np
import pytest

from rankwell import LambdaMART, RankBoost, RankingDataset

pandas = pytest.importorskip("pandas")
SAID = "LambdaMART takes the pandas categories of shop, colour for numbers"


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pandas.DataFrame(
        {
            "price": rng.normal(size=200),
            "shop": pandas.Categorical(rng.integers(0, 6, 200)),
            "colour": pandas.Categorical(rng.integers(0, 3, 200)),
            "label": rng.integers(0, 3, 200),
            "qid": np.repeat(np.arange(20), 10),
        }
    )


def fitted(ranker, frame):
    return ranker.fit(frame[["price", "shop", "colour"]], frame["label"], qid=frame["qid"])


def test_they_are_told_in_fit(frame, caplog):
    fitted(LambdaMART(n_rounds=2), frame).predict(frame[["price", "shop", "colour"]])
    assert caplog.text.count(SAID) == 1
    assert "name them: categorical_features=['shop', 'colour']" in caplog.text
    caplog.clear()
    fitted(LambdaMART(n_rounds=2, categorical_features=[1]), frame)
    assert "categories of colour for numbers; to cut by sets of them, name them" in caplog.text
    assert "categorical_features=['shop', 'colour']" in caplog.text
    caplog.clear()
    fitted(LambdaMART(n_rounds=2, categorical_features=["shop", "colour"]), frame)
    fitted(LambdaMART(n_rounds=2), frame.astype(float))
    assert "categories" not in caplog.text


def test_a_dataset_of_a_frame_keeps_them(frame, caplog):
    data = RankingDataset.from_frame(frame)
    assert data.category_columns == ("shop", "colour")
    LambdaMART(n_rounds=2).fit(data, sample_weight=np.ones(20))
    assert SAID in caplog.text


def test_rankers_without_categories_have_no_such_parameter(frame, caplog):
    fitted(RankBoost(n_rounds=2), frame)
    assert "RankBoost takes the pandas categories of shop, colour for numbers." in caplog.text
    assert "categorical_features" not in caplog.text
