"""LightGBM and XGBoost put feature 1 of text into their column 1: such models score here as they do there."""

import json
import logging
import warnings

import numpy as np
import pytest

import rankwell
from rankwell import DataError, FileFormatError, ImportedRanker, ParameterError

WARNING = logging.WARNING


@pytest.fixture
def text(tmp_path):
    """LETOR text without query ids, as both libraries read it, with the sizes of its queries beside it."""
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(300, 6)), 2)
    y = np.clip(np.round(2 * X[:, 5] - X[:, 0] + rng.normal(size=300) / 4), 0, 4).astype(int)
    path = tmp_path / "rank.train"
    rows = (f"{label} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(row)) for label, row in zip(y, X, strict=True))
    path.write_text("\n".join(rows) + "\n")
    (tmp_path / "rank.train.query").write_text("15\n" * 20)
    return path


@pytest.fixture
def lightgbm_model(text):
    lightgbm = pytest.importorskip("lightgbm")
    settings = {"objective": "lambdarank", "verbose": -1, "num_leaves": 8, "min_data_in_leaf": 5, "num_threads": 1}
    return lightgbm.train(settings, lightgbm.Dataset(str(text)), 10)


@pytest.fixture
def xgboost_model(text):
    xgboost = pytest.importorskip("xgboost")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases advise against text
        with xgboost.config_context(verbosity=0):
            matrix = xgboost.DMatrix(f"{text}?format=libsvm")
    return xgboost.train({"objective": "reg:squarederror", "nthread": 1}, matrix, 10), matrix


def save_lightgbm(model, path):
    if path.suffix == ".json":
        path.write_text(json.dumps(model.dump_model()))
    else:
        model.save_model(path)


@pytest.mark.parametrize("name", ["model.txt", "model.json"])
def test_a_lightgbm_file_is_taken_for_one_trained_from_text(text, lightgbm_model, tmp_path, caplog, name):
    save_lightgbm(lightgbm_model, tmp_path / name)
    expected = lightgbm_model.predict(str(text))
    ranker = ImportedRanker.from_model(tmp_path / name)
    assert "column 0 of this model was empty in training" in caplog.text
    assert "import it with first_index=0" in caplog.text
    assert ranker.description_.feature_names == ("f1", "f2", "f3", "f4", "f5", "f6")
    np.testing.assert_allclose(ranker.predict(rankwell.read(text)), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["model.txt", "model.json"])
def test_a_lightgbm_file_of_which_it_is_said(text, lightgbm_model, tmp_path, caplog, name):
    save_lightgbm(lightgbm_model, tmp_path / name)
    expected = lightgbm_model.predict(str(text))
    data = rankwell.read(text)
    from_text = ImportedRanker.from_model(tmp_path / name, first_index=1)
    np.testing.assert_allclose(from_text.predict(data), expected, rtol=1e-12)
    whole = ImportedRanker.from_model(tmp_path / name, first_index=0)
    with_column_0 = np.hstack([np.zeros((data.n_docs, 1)), data.dense_features()])
    np.testing.assert_allclose(whole.predict(with_column_0), expected, rtol=1e-12)
    with pytest.raises(DataError, match=r"X has 6 features.*trained from text.*imported with first_index=1"):
        whole.predict(data)
    assert not [record for record in caplog.records if record.levelno >= WARNING]


def test_the_number_of_features_decides(text, lightgbm_model, xgboost_model, tmp_path, caplog):
    lightgbm_model.save_model(tmp_path / "model.txt")
    booster, matrix = xgboost_model
    booster.save_model(tmp_path / "model.json")
    data = rankwell.read(text)
    names = [f"name{i}" for i in range(6)]
    for name, expected, close in (
        ("model.txt", lightgbm_model.predict(str(text)), 1e-12),
        ("model.json", booster.predict(matrix), 1e-5),
    ):
        for said in ({"n_features": 6}, {"feature_names": names}):
            ranker = ImportedRanker.from_model(tmp_path / name, **said)
            np.testing.assert_allclose(ranker.predict(data), expected, rtol=close, atol=close)
        assert ImportedRanker.from_model(tmp_path / name, n_features=7).n_features_in_ == 7
    assert not [record for record in caplog.records if record.levelno >= WARNING]


def test_a_lightgbm_booster_keeps_its_columns_with_a_warning(text, lightgbm_model, caplog):
    data = rankwell.read(text)
    with_column_0 = np.hstack([np.zeros((data.n_docs, 1)), data.dense_features()])
    kept = ImportedRanker.from_model(lightgbm_model)
    assert "import it with first_index=1" in caplog.text
    np.testing.assert_allclose(kept.predict(with_column_0), lightgbm_model.predict(with_column_0), rtol=1e-12)
    shifted = ImportedRanker.from_model(lightgbm_model, first_index=1)
    np.testing.assert_allclose(shifted.predict(data), lightgbm_model.predict(str(text)), rtol=1e-12)


def test_a_lightgbm_file_trained_on_an_array_is_as_it_was(text, tmp_path, caplog):
    lightgbm = pytest.importorskip("lightgbm")
    data = rankwell.read(text)
    X = data.dense_features()
    model = lightgbm.LGBMRanker(n_estimators=5, min_child_samples=5, verbose=-1).fit(
        X[:, [5, 1, 2]], data.labels, group=data.query_sizes
    )
    model.booster_.save_model(tmp_path / "model.txt")
    ranker = ImportedRanker.from_model(tmp_path / "model.txt")
    np.testing.assert_allclose(ranker.predict(X[:, [5, 1, 2]]), model.predict(X[:, [5, 1, 2]]), rtol=1e-12)
    # A first column that is not used, but was not empty.
    unused = X.copy()
    unused[:, 0] = np.arange(len(X)) % 2
    model = lightgbm.LGBMRanker(n_estimators=1, num_leaves=2, verbose=-1).fit(
        unused, data.labels, group=data.query_sizes
    )
    model.booster_.save_model(tmp_path / "model.txt")
    assert 0 not in model.booster_.trees_to_dataframe()["split_feature"].unique()
    assert ImportedRanker.from_model(tmp_path / "model.txt").n_features_in_ == 6
    assert ImportedRanker.from_model(model).n_features_in_ == 6
    assert not [record for record in caplog.records if record.levelno >= WARNING]


def test_an_xgboost_file_is_told_of_and_shifted_if_it_is_said(text, xgboost_model, tmp_path, caplog):
    booster, matrix = xgboost_model
    data = rankwell.read(text)
    expected = booster.predict(matrix)
    for name in ("model.json", "model.ubj"):
        booster.save_model(tmp_path / name)
        caplog.clear()
        assert ImportedRanker.from_model(tmp_path / name).n_features_in_ == 7
        assert "no tree of this model tests column 0" in caplog.text
        assert "import it with first_index=1" in caplog.text
        ranker = ImportedRanker.from_model(tmp_path / name, first_index=1)
        np.testing.assert_allclose(ranker.predict(data), expected, rtol=1e-5, atol=1e-5)


def test_a_column_0_that_trees_test_is_not_left_out(text, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    data = rankwell.read(text)
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(data.dense_features(), data.labels), 5)
    booster.save_model(tmp_path / "model.json")
    with pytest.raises(FileFormatError, match=r"column 0 of the model is tested by its trees.*first_index=0"):
        ImportedRanker.from_model(tmp_path / "model.json", first_index=1)
    with pytest.raises(ParameterError, match=r"first_index must be 0 or 1, the model's column .* got 2"):
        ImportedRanker.from_model(tmp_path / "model.json", first_index=2)


def test_lightgbm_reads_text_for_an_exported_model(text, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    data = rankwell.read(text)
    ranker = rankwell.LambdaMART(n_rounds=5, min_docs_leaf=5).fit(data)
    named = rankwell.LambdaMART(n_rounds=5, min_docs_leaf=5).fit(
        rankwell.RankingDataset(
            data.features, data.labels, group=data.query_sizes, feature_names=[f"name{i}" for i in range(6)]
        )
    )
    for trained in (ranker, named):
        rankwell.export(trained, tmp_path / "model.txt", to="lightgbm", first_index=1)
        exported = lightgbm.Booster(model_file=tmp_path / "model.txt")
        np.testing.assert_allclose(exported.predict(str(text)), ranker.predict(data), rtol=1e-12)
    rankwell.export(ranker, tmp_path / "model.txt", to="lightgbm")
    arrays = lightgbm.Booster(model_file=tmp_path / "model.txt")
    np.testing.assert_allclose(arrays.predict(data.dense_features()), ranker.predict(data), rtol=1e-12)


@pytest.mark.parametrize("first_index", [0, 1])
def test_an_exported_model_comes_back(text, tmp_path, caplog, first_index):
    data = rankwell.read(text)
    ranker = rankwell.LambdaMART(n_rounds=5, min_docs_leaf=5).fit(data)
    rankwell.export(ranker, tmp_path / "model.txt", to="lightgbm", first_index=first_index)
    back = ImportedRanker.from_model(tmp_path / "model.txt")
    np.testing.assert_array_equal(back.predict(data), ranker.predict(data))
