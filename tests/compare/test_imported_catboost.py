"""CatBoost's models score here as they do there."""

import json

import numpy as np
import pytest

import rankwell
from rankwell import FileFormatError
from rankwell.scoring.imports.reader import import_model, model_format

catboost = pytest.importorskip("catboost")

N_DOCS = 300


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N_DOCS, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X, np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + rng.normal(size=N_DOCS) / 10


def awkward(X):
    rows = X.copy()
    rows[::5, 0], rows[1::5, 1], rows[2::5, 2] = 3e38, -3e38, 0
    rows[3::5] = np.nan
    return rows


def train(X, y, **settings):
    fixed = {"iterations": 15, "depth": 4, "verbose": False, "thread_count": 1, "allow_writing_files": False}
    return catboost.CatBoostRegressor(**(fixed | settings)).fit(X, y)


SETTINGS = {
    "symmetric": {},
    "missing values above all": {"nan_mode": "Max"},
    "depthwise": {"grow_policy": "Depthwise"},
    "lossguide": {"grow_policy": "Lossguide", "max_leaves": 12},
    "stumps": {"depth": 1},
    "many borders": {"border_count": 250, "iterations": 60},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_files(data, tmp_path, name):
    X, y = data
    model = train(X, y, **SETTINGS[name])
    model.save_model(tmp_path / "model.json", format="json")
    rows = awkward(X)
    scores = rankwell.ImportedRanker.from_model(tmp_path / "model.json").predict(rows)
    np.testing.assert_allclose(scores, model.predict(rows), rtol=1e-12, atol=1e-12)
    assert model_format(tmp_path / "model.json") is not None


def test_rankers_in_memory_keep_their_names(data):
    X, y = data
    pool = catboost.Pool(X, np.round(np.abs(y)), group_id=np.arange(N_DOCS) // 20, feature_names=list("abcde"))
    model = catboost.CatBoostRanker(iterations=8, verbose=False, thread_count=1, allow_writing_files=False).fit(pool)
    ranker = rankwell.ImportedRanker.from_model(model)
    assert ranker.description_.feature_names == ("a", "b", "c", "d", "e")
    np.testing.assert_allclose(ranker.predict(X), model.predict(X), rtol=1e-12, atol=1e-12)


def test_borders_decide_float32_features_exactly(data, tmp_path):
    """Every border and the float32 values on both sides of it."""
    X, y = data
    model = train(X, y)
    model.save_model(tmp_path / "model.json", format="json")
    (trees,) = import_model(tmp_path / "model.json").inputs
    rows = []
    # The border of missing values is the lowest float32.
    tested = [pair for pair in zip(trees.column, trees.threshold, strict=True) if abs(pair[1]) < 1e30]
    assert len(tested) > 100
    for column, threshold in tested:
        for toward in (-np.inf, threshold, np.inf):
            row = np.zeros(5, np.float32)
            row[trees.column_feature[column]] = np.nextafter(threshold, np.float32(toward))
            rows.append(row)
    scores = rankwell.ImportedRanker.from_model(model).predict(np.array(rows))
    np.testing.assert_allclose(scores, model.predict(np.array(rows)), rtol=1e-12, atol=1e-12)


def altered(content, change):
    copy = json.loads(json.dumps(content))
    change(copy)
    return copy


def set_border(content):
    content["oblivious_trees"][0]["splits"][0]["border"] = "x"


def set_feature(content):
    content["oblivious_trees"][0]["splits"][0]["float_feature_index"] = 99


def drop_leaf(content):
    content["oblivious_trees"][0]["leaf_values"].pop()


def add_depth(content):
    tree = content["oblivious_trees"][0]
    tree["splits"] = tree["splits"][:1] * 40


def set_type(content):
    content["oblivious_trees"][0]["splits"][0]["split_type"] = "OnlineCtr"


def set_categories(content):
    content["features_info"]["categorical_features"] = [{"feature_index": 0}]


def set_biases(content):
    content["scale_and_bias"] = [1, [0, 1]]


def set_infinite_leaf(content):
    content["oblivious_trees"][0]["leaf_values"][0] = 1e999


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (set_border, "damaged"),
        (set_feature, "tests feature 99, which it does not have"),
        (drop_leaf, "4 levels and 15 leaf values"),
        (add_depth, "40 levels"),
        (set_type, "split of type 'OnlineCtr'"),
        (set_categories, "reads categories or texts"),
        (set_biases, "2 numbers per document"),
        (set_infinite_leaf, "not finite"),
    ],
)
def test_what_cannot_be_read_is_named(data, tmp_path, change, complaint):
    X, y = data
    path = tmp_path / "model.json"
    train(X, y, iterations=2).save_model(path, format="json")
    path.write_text(json.dumps(altered(json.loads(path.read_text()), change)))
    with pytest.raises(FileFormatError, match=complaint):
        import_model(path)


def test_every_cut_is_refused(data, tmp_path):
    X, y = data
    path = tmp_path / "model.json"
    train(X, y, iterations=2).save_model(path, format="json")
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole.rstrip()) - 1, 30).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match=r"model\.json"):
            import_model(path)
