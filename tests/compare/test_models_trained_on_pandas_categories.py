"""Models of LightGBM and XGBoost that were trained on pandas categories score a frame here as they do there."""

import json

import numpy as np
import pytest

from rankwell import FileFormatError, ImportedRanker
from rankwell.scoring.imports.reader import parse_model

pandas = pytest.importorskip("pandas")
VALUES = [10, 20, 30, 40, 55, 60, 70]


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    return pandas.DataFrame(
        {
            "number": rng.normal(size=400).astype(np.float32),
            "shop": pandas.Categorical(rng.choice(VALUES, 400), categories=VALUES),
            "kind": pandas.Categorical(rng.integers(0, 4, 400)),
        }
    )


def labels(frame):
    shop, kind = frame["shop"].astype(float), frame["kind"].astype(float)
    return frame["number"] + 2.0 * np.isin(shop, [20, 55]) - np.isin(shop, [70]) + 0.5 * (kind == 2)


def train_lightgbm(frame, y=None, **more):
    lightgbm = pytest.importorskip("lightgbm")
    settings = {"verbose": -1, "min_data_per_group": 1, "cat_smooth": 1, "num_threads": 1, "min_data_in_leaf": 5}
    return lightgbm.train(settings, lightgbm.Dataset(frame, labels(frame) if y is None else y, **more), 10)


def train_xgboost(frame, y=None):
    xgboost = pytest.importorskip("xgboost")
    matrix = xgboost.DMatrix(frame, labels(frame) if y is None else y, enable_categorical=True)
    return xgboost.train({"nthread": 1, "max_cat_to_onehot": 2}, matrix, 10), matrix


def test_lightgbm(frame, tmp_path, caplog):
    model = train_lightgbm(frame)
    model.save_model(tmp_path / "model.txt")
    (tmp_path / "model.json").write_text(json.dumps(model.dump_model()))
    expected = model.predict(frame)
    for source in (model, tmp_path / "model.txt", tmp_path / "model.json"):
        caplog.clear()
        ranker = ImportedRanker.from_model(source)
        np.testing.assert_allclose(ranker.predict(frame), expected, rtol=1e-12)
        assert "categories 10, 20, 30, 40, 55, ... of column 'shop'" in caplog.text
        assert "must hold these values, not their places" in caplog.text
        assert "'kind'" not in caplog.text
    new = frame.assign(shop=np.where(np.arange(400) % 2, 99.0, np.nan))
    np.testing.assert_allclose(ranker.predict(new), model.predict(new.assign(shop=pandas.Categorical([None] * 400))))


def test_xgboost(frame, tmp_path, caplog):
    model, matrix = train_xgboost(frame)
    expected = model.predict(matrix)
    for source in (model, tmp_path / "model.json", tmp_path / "model.ubj"):
        if source is not model:
            model.save_model(source)
        caplog.clear()
        np.testing.assert_allclose(ImportedRanker.from_model(source).predict(frame), expected, rtol=1e-5, atol=1e-5)
        assert "categories 10, 20, 30, 40, 55, ... of column 'shop'" in caplog.text


@pytest.mark.parametrize("train", [train_lightgbm, train_xgboost])
def test_texts_are_told_to_be_places(frame, caplog, train):
    texts = frame.assign(shop=frame["shop"].cat.rename_categories([f"shop {value}" for value in VALUES]))
    model = train(texts, labels(frame))
    model, expected = (
        (model, model.predict(texts)) if train is train_lightgbm else (model[0], model[0].predict(model[1]))
    )
    ranker = ImportedRanker.from_model(model)
    assert "categories 'shop 10', 'shop 20'," in caplog.text
    assert "the data must hold 0, 1, 2, ... for them" in caplog.text
    codes = frame.assign(shop=frame["shop"].cat.codes)
    np.testing.assert_allclose(ranker.predict(codes), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("train", [train_lightgbm, train_xgboost])
def test_texts_of_numbers_are_their_numbers(frame, train):
    """A frame with such a column is read as numbers here."""
    texts = frame.assign(shop=frame["shop"].cat.rename_categories([str(value) for value in VALUES]))
    model = train(texts, labels(frame))
    model, expected = (
        (model, model.predict(texts)) if train is train_lightgbm else (model[0], model[0].predict(model[1]))
    )
    np.testing.assert_allclose(ImportedRanker.from_model(model).predict(texts), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("values", [[-1, *VALUES[1:]], [2**24 + 1, *VALUES[1:]]])
@pytest.mark.parametrize("train", [train_lightgbm, train_xgboost])
def test_numbers_that_cannot_be_categories_here_are_refused(frame, train, values):
    model = train(frame.assign(shop=frame["shop"].cat.rename_categories(values)), labels(frame))
    model = model if train is train_lightgbm else model[0]
    with pytest.raises(FileFormatError, match=rf"the categories {values[0]}, 20.* of column 'shop'.*\.cat\.codes"):
        ImportedRanker.from_model(model)


def test_fractions_are_refused(frame):
    model = train_lightgbm(
        frame.assign(shop=frame["shop"].cat.rename_categories([value + 0.5 for value in VALUES])), labels(frame)
    )
    with pytest.raises(FileFormatError, match=r"categories 10\.5, 20\.5"):
        ImportedRanker.from_model(model)


def test_lists_of_values_that_no_feature_has_are_refused(frame):
    """An ordered column has places too, and is no feature of categories in LightGBM."""
    ordered = frame.assign(shop=frame["shop"].cat.as_ordered(), kind=frame["kind"].astype(int))
    with pytest.raises(FileFormatError, match=r"1 columns of categories, and 0 of its features have categories"):
        ImportedRanker.from_model(train_lightgbm(ordered, labels(frame)))


def test_models_without_such_values_are_as_they_were(frame, caplog):
    codes = frame.assign(shop=pandas.Categorical(frame["shop"].cat.codes))
    model = train_lightgbm(codes, labels(frame))
    np.testing.assert_allclose(ImportedRanker.from_model(model).predict(codes), model.predict(codes), rtol=1e-12)
    array = np.column_stack([frame["number"], frame["shop"].astype(float)])
    model = train_lightgbm(array, labels(frame), categorical_feature=[1])
    np.testing.assert_allclose(ImportedRanker.from_model(model).predict(array), model.predict(array), rtol=1e-12)
    assert caplog.text == ""


@pytest.mark.parametrize("lists", ["[1", "[1]", "{}"])
def test_damaged_lists_are_refused(frame, lists):
    text = train_lightgbm(frame).model_to_string()
    damaged = text[: text.rindex("pandas_categorical:")] + f"pandas_categorical:{lists}\n"
    with pytest.raises(FileFormatError, match="pandas_categorical"):
        parse_model(damaged.encode())
