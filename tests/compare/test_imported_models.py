"""Models of LightGBM and XGBoost score here as they do there: to the bit, or to the rounding of float32 sums.

Legitimate differences: XGBoost adds leaves in float32, so 1e-6 of the largest score is allowed. LightGBM's order of
summation is its own, so its last places may differ.
"""

import json

import numpy as np
import pytest

from rankwell.errors import FileFormatError
from rankwell.scoring.imports.reader import import_model
from rankwell.scoring.scorer import RankerScorer

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

N_DOCS = 400


@pytest.fixture(scope="module")
def data():
    """Features with missing values, zeros, and one that is a category; labels for any objective."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N_DOCS, 6)).astype(np.float32)
    X[rng.random(X.shape) < 0.15] = np.nan
    X[rng.random(X.shape) < 0.1] = 0
    X[:, 5] = rng.integers(0, 9, N_DOCS)
    y = np.nan_to_num(X[:, 0]) + (X[:, 5] % 3 == 1) + rng.normal(size=N_DOCS) / 10
    return X, y


def labels_for(objective, y):
    if objective in ("binary", "cross_entropy", "binary:logistic", "reg:logistic", "binary:logitraw", "rank:map"):
        return (y > 0).astype(float)
    if objective in ("poisson", "tweedie", "gamma", "count:poisson", "reg:gamma", "reg:tweedie", "survival:cox"):
        return np.round(np.abs(y)) + 1
    if "rank" in objective:
        return np.clip(np.round(y), 0, 3)
    return y


def awkward(X):
    """Values that training never saw, on the edges of what counts as zero, and strange categories."""
    rows = X.copy()
    rows[::7, 0] = 1e-36
    rows[1::7, 1] = -1e-35
    rows[2::7, 2] = 1.5e-35
    rows[3::7, 5] = 99
    rows[4::7, 5] = np.nan
    rows[5::7, 5] = 2.7
    rows[6::7, 3] = -3e38
    return rows


LIGHTGBM_SETTINGS = {
    "defaults": {},
    "zero as missing": {"zero_as_missing": True},
    "no missing values": {"use_missing": False},
    "dart": {"boosting": "dart"},
    "forest": {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7},
    "categories": {
        "categorical_feature": [5],
        "max_cat_to_onehot": 1,
        "min_data_per_group": 5,
        "cat_smooth": 1,
    },
}


def train_lightgbm(X, y, objective, **settings):
    group = [20] * (N_DOCS // 20) if "rank" in objective else None
    categories = settings.pop("categorical_feature", "auto")
    dataset = lightgbm.Dataset(
        X, labels_for(objective, y), group=group, params=settings, categorical_feature=categories
    )
    fixed = {"objective": objective, "num_leaves": 15, "min_data_in_leaf": 3, "verbose": -1, "num_threads": 1}
    return lightgbm.train(fixed | settings, dataset, 12)


@pytest.mark.parametrize("settings", LIGHTGBM_SETTINGS)
@pytest.mark.parametrize("objective", ["lambdarank", "regression", "binary"])
def test_lightgbm_text_and_json(data, tmp_path, objective, settings):
    X, y = data
    booster = train_lightgbm(X, y, objective, **LIGHTGBM_SETTINGS[settings])
    booster.save_model(tmp_path / "model.txt")
    (tmp_path / "model.json").write_text(json.dumps(booster.dump_model()))
    rows = awkward(X)
    expected = booster.predict(rows)
    for name in ("model.txt", "model.json"):
        scores = RankerScorer(import_model(tmp_path / name)).score(rows)
        np.testing.assert_allclose(scores, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    "objective", ["poisson", "tweedie", "cross_entropy", "rank_xendcg", "regression_l1", "quantile"]
)
def test_lightgbm_objectives(data, tmp_path, objective):
    X, y = data
    booster = train_lightgbm(X, y, objective)
    booster.save_model(tmp_path / "model.txt")
    scores = RankerScorer(import_model(tmp_path / "model.txt")).score(X)
    np.testing.assert_allclose(scores, booster.predict(X), rtol=1e-13, atol=1e-15)


def test_lightgbm_first_rounds(data, tmp_path):
    X, y = data
    booster = train_lightgbm(X, y, "lambdarank")
    booster.save_model(tmp_path / "model.txt")
    scorer = RankerScorer(import_model(tmp_path / "model.txt"))
    np.testing.assert_allclose(scorer.score(X, n_rounds=5), booster.predict(X, num_iteration=5), rtol=1e-13)


def test_lightgbm_thresholds_decide_float32_features_exactly(tmp_path, data):
    """Every threshold and the float32 values on both sides of it."""
    X, y = data
    booster = train_lightgbm(X, y, "regression")
    booster.save_model(tmp_path / "model.txt")
    description = import_model(tmp_path / "model.txt")
    trees = description.inputs[0]
    rows = []
    for column, threshold in zip(trees.column, trees.threshold, strict=True):
        for value in (
            np.nextafter(threshold, np.float32(-np.inf)),
            threshold,
            np.nextafter(threshold, np.float32(np.inf)),
        ):
            row = np.zeros(6, np.float32)
            row[trees.column_feature[column]] = value
            rows.append(row)
    rows = np.array(rows)
    np.testing.assert_allclose(RankerScorer(description).score(rows), booster.predict(rows), rtol=1e-13, atol=1e-15)


XGBOOST_OBJECTIVES = [
    "rank:ndcg",
    "rank:pairwise",
    "rank:map",
    "reg:squarederror",
    "binary:logistic",
    "binary:logitraw",
    "count:poisson",
    "reg:gamma",
    "survival:cox",
]


def train_xgboost(X, y, objective, n_rounds=12, **settings):
    group = [20] * (N_DOCS // 20) if "rank" in objective else None
    matrix = xgboost.DMatrix(X, labels_for(objective, y), group=group)
    return xgboost.train({"objective": objective, "max_depth": 4, "nthread": 1} | settings, matrix, n_rounds)


def assert_close(scores, expected):
    assert np.abs(scores - expected).max() <= 1e-6 * max(1, np.abs(expected).max())


@pytest.mark.parametrize("booster_kind", [{}, {"booster": "dart", "rate_drop": 0.3}, {"base_score": 0.25}])
@pytest.mark.parametrize("objective", XGBOOST_OBJECTIVES)
def test_xgboost_json_and_ubjson(data, tmp_path, objective, booster_kind):
    X, y = data
    booster = train_xgboost(X, y, objective, **booster_kind)
    rows = awkward(X)
    expected = booster.predict(xgboost.DMatrix(rows))
    for name in ("model.json", "model.ubj"):
        booster.save_model(tmp_path / name)
        assert_close(RankerScorer(import_model(tmp_path / name)).score(rows), expected)


def test_xgboost_leaves_are_the_same_and_so_sums_agree_but_for_rounding(data, tmp_path):
    """The leaves XGBoost reaches, added in float64, are our score to the bit of that sum."""
    X, y = data
    booster = train_xgboost(X, y, "reg:squarederror", n_rounds=40)
    booster.save_model(tmp_path / "model.json")
    tree_by_tree = [
        booster.predict(xgboost.DMatrix(X), iteration_range=(i, i + 1), output_margin=True).astype(np.float64)
        for i in range(40)
    ]
    description = import_model(tmp_path / "model.json")
    bias = description.layers[0].bias
    # each prediction holds base_score once, added in float32
    total = sum(values - bias for values in tree_by_tree) + bias
    np.testing.assert_allclose(RankerScorer(description).score(X), total, atol=40 * 1e-7)


def test_xgboost_rounds_of_several_trees(data, tmp_path):
    X, y = data
    booster = train_xgboost(X, y, "reg:squarederror", num_parallel_tree=3, subsample=0.5)
    booster.save_model(tmp_path / "model.json")
    description = import_model(tmp_path / "model.json")
    assert description.n_rounds == 12
    expected = booster.predict(xgboost.DMatrix(X), iteration_range=(0, 5))
    assert_close(RankerScorer(description).score(X, n_rounds=5), expected)


def test_xgboost_categories(data, tmp_path):
    X, y = data
    types = ["q"] * 5 + ["c"]
    matrix = xgboost.DMatrix(X, y, feature_types=types, enable_categorical=True)
    for most_one_hot in (2, 100):
        booster = xgboost.train({"max_depth": 5, "max_cat_to_onehot": most_one_hot, "nthread": 1}, matrix, 12)
        booster.save_model(tmp_path / "model.json")
        rows = awkward(X)
        expected = booster.predict(xgboost.DMatrix(rows, feature_types=types, enable_categorical=True))
        assert_close(RankerScorer(import_model(tmp_path / "model.json")).score(rows), expected)


def test_several_classes_are_refused(data, tmp_path):
    X, y = data
    labels = np.digitize(y, [-0.5, 0.5])
    booster = xgboost.train({"objective": "multi:softprob", "num_class": 3}, xgboost.DMatrix(X, labels), 2)
    booster.save_model(tmp_path / "model.json")
    with pytest.raises(FileFormatError, match="3 numbers per document"):
        import_model(tmp_path / "model.json")
    dataset = lightgbm.Dataset(X, labels)
    booster = lightgbm.train({"objective": "multiclass", "num_class": 3, "verbose": -1}, dataset, 2)
    booster.save_model(tmp_path / "model.txt")
    with pytest.raises(FileFormatError, match="3 classes"):
        import_model(tmp_path / "model.txt")


def test_linear_boosters_and_leaves_are_refused(data, tmp_path):
    X, y = data
    booster = xgboost.train({"booster": "gblinear", "nthread": 1}, xgboost.DMatrix(X, y), 2)
    booster.save_model(tmp_path / "model.json")
    with pytest.raises(FileFormatError, match="'gblinear'; gbtree and dart"):
        import_model(tmp_path / "model.json")
    booster = train_lightgbm(np.nan_to_num(X), y, "regression", linear_tree=True)
    booster.save_model(tmp_path / "model.txt")
    (tmp_path / "dump.json").write_text(json.dumps(booster.dump_model()))
    for name in ("model.txt", "dump.json"):
        with pytest.raises(FileFormatError, match=rf"{name}: the LightGBM model has linear leaves"):
            import_model(tmp_path / name)
