"""What users of scikit-learn expect: its own checks, its errors, attributes and model selection."""

import contextlib
import logging
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import NotFittedError as NotFittedInScikitLearn
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import rankwell
from rankwell import DataError, ImportedRanker, LeastSquares, ListNet, NotFittedError, RankBoost, RankSVM
from rankwell.rankers.registry import RANKERS, ranker_class

# Short trainings: the checks fit each ranker some hundred times.
SHORT = {"n_rounds": 5, "n_epochs": 3, "device": "cpu"}
# The checks of scikit-learn that a ranker does not pass, and why.
NOT_PASSED = {
    "check_dtype_object": "X that holds no numbers is a DataError, which is a ValueError, not a TypeError",
    "check_sample_weight_equivalence_on_dense_data": "the normaliser's statistics count every row once",
}
# Networks are trained on whole lists.
NOT_PASSED_BY_NETWORKS = {
    "check_sample_weights_not_overwritten": "weights that differ within a query are refused",
    "check_sample_weight_equivalence_on_sparse_data": "weights that differ within a query are refused",
}
# LambdaMART's weights multiply gradients, as LightGBM's do.
NOT_PASSED_BY_TREES = {
    "check_sample_weight_equivalence_on_sparse_data": "a row of weight 0 keeps its place in the ranking, and its bin",
}


def short(name):
    ranker = ranker_class(name)()
    return ranker.set_params(**{key: value for key, value in SHORT.items() if key in ranker.get_params()})


def judged(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(240, 4)).astype(np.float32)
    return X, np.clip(np.round(2 * X[:, 0] - X[:, 1]), 0, 4), np.repeat(np.arange(30), 8)


@pytest.fixture(scope="module", params=RANKERS)
def fitted(request):
    X, y, qid = judged()
    return short(request.param).fit(X, y, qid=qid)


@pytest.mark.parametrize("name", RANKERS)
def test_the_checks_of_scikit_learn(name, caplog):
    caplog.set_level(logging.CRITICAL, logger="rankwell")  # the checks know no queries
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = check_estimator(short(name), on_fail=None, on_skip=None)
    failed = {outcome["check_name"]: outcome["exception"] for outcome in outcomes if outcome["status"] == "failed"}
    assert len(outcomes) > 40
    is_network = "hidden" in ranker_class(name)().get_params()
    excused = NOT_PASSED_BY_NETWORKS if is_network else NOT_PASSED_BY_TREES if name == "lambdamart" else {}
    assert set(failed) <= {*NOT_PASSED, *excused}, failed


def test_the_error_before_training_is_scikit_learns_too():
    for name in RANKERS:
        for call in (lambda ranker: ranker.predict(np.ones((2, 2))), lambda ranker: ranker.best_score_):
            with pytest.raises(NotFittedInScikitLearn, match="is not trained yet") as caught:
                call(ranker_class(name)())
            assert isinstance(caught.value, NotFittedError)
            assert type(caught.value).__name__ == "NotFittedError"


class TestAttributes:
    def test_every_ranker_has_importances(self, fitted):
        X, y, qid = judged()
        longer = fitted.untrained()
        more = {"n_epochs": 60, "n_rounds": 60}
        longer.set_params(**{name: value for name, value in more.items() if name in longer.get_params()})
        importances = longer.fit(X, y, qid=qid).feature_importances_
        assert importances.shape == (4,)
        assert (importances >= 0).all()
        # The labels are made from the first two features.
        assert importances[:2].min() > importances[2:].max()

    def test_the_best_step_is_known_where_one_was_watched(self, fitted):
        assert fitted.best_iteration_ is None
        assert fitted.best_score_ is None

    @pytest.mark.parametrize("normalize", ["none", "standard"])
    def test_coefficients_give_the_scores(self, normalize):
        X, y, qid = judged()
        for ranker in (LeastSquares, RankSVM, lambda **more: ListNet(hidden=(), n_epochs=3, device="cpu", **more)):
            linear = ranker(normalize=normalize).fit(3 * X + 1, y, qid=qid)
            found = (3 * X + 1) @ linear.coef_ + linear.intercept_
            np.testing.assert_allclose(found, linear.predict(3 * X + 1), rtol=1e-5, atol=1e-5)

    def test_only_linear_rankers_have_coefficients(self):
        X, y, qid = judged()
        assert not hasattr(RankBoost(n_rounds=2).fit(X, y, qid=qid), "coef_")
        assert not hasattr(LeastSquares(), "coef_")

    def test_an_imported_model_has_the_importances_of_its_library(self, tmp_path):
        lightgbm = pytest.importorskip("lightgbm")
        X, y, qid = judged()
        model = lightgbm.LGBMRanker(n_estimators=10, num_leaves=5, min_child_samples=5, verbose=-1)
        model.fit(X, y, group=np.bincount(qid))
        model.booster_.save_model(tmp_path / "model.txt")
        imported = ImportedRanker.from_model(tmp_path / "model.txt")
        np.testing.assert_array_equal(imported.feature_importances_, model.feature_importances_)


class TestTags:
    def test_missing_values_are_taken_as_the_tag_says(self, fitted):
        X, y, qid = judged()
        X[::7, 1] = np.nan
        assert get_tags(fitted).input_tags.allow_nan
        assert np.isfinite(fitted.untrained().fit(X, y, qid=qid).predict(X, qid=qid)).all()

    @pytest.mark.parametrize("normalize", ["none", "standard"])
    def test_sparse_features_are_taken_where_the_tag_says_so(self, fitted, normalize):
        from scipy import sparse

        X, y, qid = judged()
        ranker = fitted.untrained().set_params(normalize=normalize)
        takes = get_tags(ranker).input_tags.sparse
        assert takes == (normalize == "none")
        with contextlib.nullcontext() if takes else pytest.raises(DataError, match="would fill a sparse matrix"):
            ranker.fit(sparse.csr_matrix(X), y, qid=qid)


class TestQueriesThatDoNotArrive:
    """Without metadata routing scikit-learn passes `qid` to fit and not to score."""

    def test_cross_validation_gives_no_wrong_score(self):
        X, y, qid = judged()
        with pytest.warns(UserWarning, match="Scoring failed"):
            scores = cross_val_score(RankSVM(), X, y, groups=qid, cv=GroupKFold(3), params={"qid": qid})
        assert np.isnan(scores).all()
        with pytest.raises(DataError, match=r"score was given no queries.*enable_metadata_routing=True"):
            cross_val_score(RankSVM(), X, y, groups=qid, cv=GroupKFold(3), params={"qid": qid}, error_score="raise")

    def test_a_pipeline_gives_no_wrong_score(self):
        X, y, qid = judged()
        pipeline = make_pipeline(StandardScaler(), LeastSquares()).fit(X, y, leastsquares__qid=qid)
        with pytest.raises(DataError, match="all 240 rows would count as one query"):
            pipeline.score(X, y)
        with sklearn.config_context(enable_metadata_routing=True):
            routed = make_pipeline(StandardScaler(), LeastSquares()).fit(X, y, qid=qid)
            found = routed.score(X, y, qid=qid)
        assert found == pytest.approx(LeastSquares().fit(X, y, qid=qid).score(X, y, qid=qid))

    def test_a_ranker_trained_without_queries_is_scored_without_them(self, caplog):
        X, y, _ = judged()
        LeastSquares().fit(X, y).score(X, y)
        assert "without qid or group all 240 rows are scored as one query" in caplog.text

    def test_a_loaded_ranker_is_scored_with_a_warning(self, caplog, tmp_path):
        X, y, qid = judged()
        LeastSquares().fit(X, y, qid=qid).save(tmp_path / "model.rank")
        rankwell.load(tmp_path / "model.rank").score(X, y)
        assert "are scored as one query" in caplog.text

    def test_evaluation_without_queries_is_warned_about(self, caplog):
        rankwell.evaluate([1, 0, 1], [3.0, 2.0, 1.0])
        assert "all 3 rows are evaluated as one query: pass one of them (group=[3]" in caplog.text
        caplog.clear()
        rankwell.evaluate([1, 0, 1], [3.0, 2.0, 1.0], group=[3])
        assert caplog.text == ""

    def test_validation_sets_are_routed_by_default(self):
        X, y, qid = judged()
        with sklearn.config_context(enable_metadata_routing=True):
            pipeline = make_pipeline(RankBoost(n_rounds=5, early_stopping_rounds=2))
            pipeline.fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
        assert "validation ndcg@10" in pipeline[-1].history_
