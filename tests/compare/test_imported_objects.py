"""Boosters and estimators of LightGBM and XGBoost that are in memory score here as they do there."""

import warnings

import numpy as np
import pytest

import rankwell
from rankwell import ImportedRanker, NotFittedError, ParameterError

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.clip(np.round(2 * np.nan_to_num(X[:, 0]) + rng.normal(size=400)), 0, 4), np.repeat(np.arange(20), 20)


def lightgbm_ranker(X, y, qid, **more):
    return lightgbm.LGBMRanker(n_estimators=20, num_leaves=7, min_child_samples=5, verbose=-1).fit(
        X, y, group=np.bincount(qid), **more
    )


def xgboost_ranker(X, y, qid, **more):
    return xgboost.XGBRanker(n_estimators=20, max_depth=3, **more).fit(
        X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid], verbose=False
    )


def test_lightgbm_objects(judged, tmp_path):
    X, y, qid = judged
    model = lightgbm_ranker(X, y, qid)
    for imported in (ImportedRanker.from_model(model), ImportedRanker.from_model(model.booster_)):
        np.testing.assert_allclose(imported.predict(X), model.predict(X), rtol=1e-12)
        imported.save(tmp_path / "imported.rank")
        np.testing.assert_array_equal(rankwell.load(tmp_path / "imported.rank").predict(X), imported.predict(X))
    assert ImportedRanker.from_model(model).source == "LGBMRanker"


def test_lightgbm_up_to_the_best_iteration(judged):
    X, y, qid = judged
    stop = lightgbm.early_stopping(2, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases have eval_X and eval_y
        model = lightgbm_ranker(X, y, qid, eval_set=[(X[::-1], y)], eval_group=[np.bincount(qid)], callbacks=[stop])
    assert model.best_iteration_ < 20
    np.testing.assert_allclose(ImportedRanker.from_model(model).predict(X), model.predict(X), rtol=1e-12)


def test_xgboost_objects(judged):
    X, y, qid = judged
    model = xgboost_ranker(X, y, qid)
    for imported in (ImportedRanker.from_model(model), ImportedRanker.from_model(model.get_booster())):
        np.testing.assert_allclose(imported.predict(X), model.predict(X), rtol=1e-5, atol=1e-6)


def test_xgboost_up_to_the_best_iteration(judged):
    X, y, qid = judged
    model = xgboost.XGBRanker(n_estimators=50, early_stopping_rounds=2).fit(
        X, y, qid=qid, eval_set=[(X[::-1], y)], eval_qid=[qid], verbose=False
    )
    assert model.best_iteration < 49
    np.testing.assert_allclose(ImportedRanker.from_model(model).predict(X), model.predict(X), rtol=1e-5, atol=1e-6)
    # The booster itself predicts with all of its trees.
    whole = model.get_booster().predict(xgboost.DMatrix(X))
    np.testing.assert_allclose(ImportedRanker.from_model(model.get_booster()).predict(X), whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("trees", [{}, {"booster": "dart"}, {"num_parallel_tree": 3}], ids=["trees", "dart", "forests"])
@pytest.mark.parametrize("name", ["stopped.json", "stopped.ubj"])
def test_an_xgboost_file_up_to_the_best_iteration(judged, tmp_path, caplog, name, trees):
    """As the estimator that reads the file predicts; all rounds, as the booster does, if it is said."""
    X, y, qid = judged
    path = tmp_path / name
    xgboost.XGBRanker(n_estimators=20, early_stopping_rounds=3, **trees).fit(
        X, y, qid=qid, eval_set=[(X[::-1], y)], eval_qid=[qid], verbose=False
    ).save_model(path)
    estimator, booster = xgboost.XGBRanker(), xgboost.Booster(model_file=path)
    estimator.load_model(path)
    best, n_rounds = estimator.best_iteration + 1, booster.num_boosted_rounds()
    assert best < n_rounds
    expected, whole = estimator.predict(X), booster.predict(xgboost.DMatrix(X))
    assert abs(expected - whole).max() > 0.01
    with caplog.at_level("INFO", "rankwell"):
        from_file = ImportedRanker.from_model(path)
    assert f"its best {best} of {n_rounds} rounds are imported, as XGBRanker predicts" in caplog.text
    close = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(from_file.predict(X), expected, **close)
    np.testing.assert_allclose(ImportedRanker.from_model(estimator).predict(X), expected, **close)
    np.testing.assert_allclose(ImportedRanker.from_model(path, all_rounds=True).predict(X), whole, **close)
    np.testing.assert_allclose(ImportedRanker.from_model(estimator, all_rounds=True).predict(X), whole, **close)
    np.testing.assert_allclose(ImportedRanker.from_model(booster).predict(X), whole, **close)


def test_a_lightgbm_file_up_to_the_best_iteration(judged, tmp_path):
    """LightGBM writes no trees after the best round, so that there is nothing to leave out."""
    X, y, qid = judged
    stop = lightgbm.early_stopping(2, verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases have eval_X and eval_y
        model = lightgbm_ranker(X, y, qid, eval_set=[(X[::-1], y)], eval_group=[np.bincount(qid)], callbacks=[stop])
    assert model.best_iteration_ < 20
    model.booster_.save_model(tmp_path / "stopped.txt")
    imported = ImportedRanker.from_model(tmp_path / "stopped.txt")
    np.testing.assert_allclose(imported.predict(X), model.predict(X), rtol=1e-12)


def test_a_best_iteration_that_the_model_lacks_is_refused(judged, tmp_path):
    X, y, qid = judged
    model = xgboost_ranker(X, y, qid)
    model.get_booster().set_attr(best_iteration="20")
    model.save_model(tmp_path / "model.json")
    with pytest.raises(
        rankwell.FileFormatError, match=r"best_iteration must be one of its 20 rounds, counted from 0, got 20"
    ):
        ImportedRanker.from_model(tmp_path / "model.json")


def test_what_is_no_trained_model_is_refused():
    for model in (lightgbm.LGBMRanker(), xgboost.XGBRanker()):
        with pytest.raises(NotFittedError, match="not trained yet"):
            ImportedRanker.from_model(model)
    with pytest.raises(ParameterError, match=r"a model of LightGBM, XGBoost, CatBoost or ONNX is needed .* got dict"):
        ImportedRanker.from_model({})


def test_loading_a_foreign_file_points_to_import(judged, tmp_path):
    X, y, qid = judged
    lightgbm_ranker(X, y, qid).booster_.save_model(tmp_path / "lgb.txt")
    xgboost_ranker(X, y, qid).save_model(tmp_path / "xgb.json")
    xgboost_ranker(X, y, qid).save_model(tmp_path / "xgb.ubj")
    for name in ("lgb.txt", "xgb.json", "xgb.ubj"):
        with pytest.raises(rankwell.FileFormatError, match=rf"{name} is a model .*ImportedRanker.from_model\(path\)"):
            rankwell.load(tmp_path / name)
    (tmp_path / "note.txt").write_text("some text")
    with pytest.raises(rankwell.FileFormatError, match="is not a ranker file"):
        rankwell.load(tmp_path / "note.txt")
