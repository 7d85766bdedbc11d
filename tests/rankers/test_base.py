"""What every ranker has from its base, shown on the least-squares baseline."""

import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwell
from rankwell import DataError, LeastSquares, NotFittedError, ParameterError, RankingDataset
from rankwell.rankers.registry import RANKERS, ranker_class

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def judged(n_queries=30, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), 8)
    X = rng.normal(size=(len(qid), n_features)).astype(np.float32)
    y = np.clip(np.round(2 * X[:, 0] - X[:, 1]), 0, 4)
    return X, y, qid


def test_arrays_dataset_group_and_frames_give_the_same_ranker():
    X, y, qid = judged()
    names = ["a", "b", "c", "d"]
    expected = LeastSquares(normalize="standard").fit(X, y, qid=qid).predict(X)
    for fitted in (
        LeastSquares(normalize="standard").fit(RankingDataset(X, y, qid=qid)),
        LeastSquares(normalize="standard").fit(X, y, group=[8] * 30),
        LeastSquares(normalize="standard").fit(pd.DataFrame(X, columns=names), y, qid=qid),
        LeastSquares(normalize="standard").fit(pl.DataFrame(X, schema=names), y, qid=qid),
    ):
        np.testing.assert_array_equal(fitted.predict(X), expected)


def test_unsorted_rows_give_scores_in_the_users_order():
    X, y, qid = judged()
    order = np.random.default_rng(1).permutation(len(X))
    sorted_ranker = LeastSquares(normalize="query-minmax").fit(X, y, qid=qid)
    shuffled_ranker = LeastSquares(normalize="query-minmax").fit(X[order], y[order], qid=qid[order])
    np.testing.assert_allclose(
        shuffled_ranker.predict(X[order], qid=qid[order]), sorted_ranker.predict(X, qid=qid)[order], atol=1e-12
    )


def test_rank_lists_rows_of_the_user_best_first():
    ranker = LeastSquares(normalize="none").fit([[0.0], [1.0]], [0, 1], group=[2])
    rows = [[5.0], [1.0], [9.0], [2.0], [9.0]]
    rankings = ranker.rank(rows, qid=["x", "y", "x", "y", "x"])
    # x owns rows 0, 2, 4 with values 5, 9, 9 (equal scores keep their order); y owns rows 1, 3 with values 1, 2
    assert [ranking.tolist() for ranking in rankings] == [[2, 4, 0], [3, 1]]


def test_query_normalisers_ask_for_queries_at_prediction():
    X, y, qid = judged()
    ranker = LeastSquares(normalize="letor").fit(X, y, qid=qid)
    with pytest.raises(DataError, match=r"trained with normalize='letor', which works by query: pass qid"):
        ranker.predict(X)


def test_weight_two_is_the_same_as_the_query_twice():
    X, y, qid = judged()
    first = qid == 0
    twice = LeastSquares(normalize="none").fit(
        np.vstack([X, X[first]]), np.append(y, y[first]), qid=np.append(qid, np.full(first.sum(), 99))
    )
    weighted = LeastSquares(normalize="none").fit(X, y, qid=qid, sample_weight=[2.0] + [1.0] * 29)
    by_row = LeastSquares(normalize="none").fit(X, y, qid=qid, sample_weight=np.where(first, 2.0, 1.0))
    np.testing.assert_allclose(weighted.predict(X), twice.predict(X), atol=1e-12)
    np.testing.assert_allclose(by_row.predict(X), twice.predict(X), atol=1e-12)


def test_clone_and_parameters():
    ranker = LeastSquares(ridge=0.5, normalize="none")
    copy = clone(ranker)
    assert copy is not ranker
    assert copy.get_params() == {"ridge": 0.5, "normalize": "none"}


def test_grid_search_with_groups():
    X, y, qid = judged()
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(LeastSquares(), {"ridge": [1e-4, 1e4]}, cv=GroupKFold(3))
        search.fit(X, y, qid=qid, groups=qid)
        scores = cross_val_score(LeastSquares(), X, y, cv=GroupKFold(3), params={"qid": qid, "groups": qid})
    assert search.best_params_ == {"ridge": 1e-4}
    by_hand = np.mean(
        [
            LeastSquares().fit(X[train], y[train], qid=qid[train]).score(X[test], y[test], qid=qid[test])
            for train, test in GroupKFold(3).split(X, y, qid)
        ]
    )
    assert search.best_score_ == pytest.approx(by_hand)
    assert scores.mean() == pytest.approx(by_hand)


def test_grid_search_over_a_pipeline():
    X, y, qid = judged()
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), LeastSquares(normalize="none"))
        search = GridSearchCV(pipeline, {"leastsquares__ridge": [1e-4, 1e4]}, cv=GroupKFold(3), error_score="raise")
        search.fit(X, y, qid=qid, groups=qid)
        assert search.score(X, y, qid=qid) == pytest.approx(
            LeastSquares(normalize="standard").fit(X, y, qid=qid).score(X, y, qid=qid)
        )


def test_weights_of_queries_in_the_score():
    ranker = LeastSquares().fit(*judged()[:2], qid=judged()[2])
    X, y, qid = judged()
    alone = ranker.score(X[qid == 3], y[qid == 3], group=[8])
    assert ranker.score(X, y, qid=qid, sample_weight=np.arange(30) == 3) == pytest.approx(alone)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (
            lambda X, y, qid: LeastSquares().fit(X, y, qid=qid).predict(X[:, :2]),
            "X has 2 features, but",
        ),
        (lambda X, y, qid: LeastSquares().fit(X, qid=qid), "no labels to learn from"),
        (lambda X, y, qid: LeastSquares().fit(X[:0], y[:0], qid=qid[:0]), "no documents to learn from"),
        (lambda X, y, qid: LeastSquares().fit(RankingDataset(X, y, qid=qid), y), "has its own labels and queries"),
        (lambda X, y, qid: LeastSquares().fit(X, y, qid=qid, sample_weight=[1, 2]), r"one weight per query \(30\)"),
        (
            lambda X, y, qid: LeastSquares().fit(X, y, qid=qid, sample_weight=np.zeros(30)),
            "sample_weight is zero",
        ),
        (lambda X, y, qid: LeastSquares().fit(X, y, qid=qid, eval_set=(X[:, :1], y), eval_qid=qid), "4 features"),
        (
            lambda X, y, qid: LeastSquares().fit(X, y, qid=qid, eval_set=[(X, y)] * 2, eval_qid=qid),
            "a list of 2",
        ),
        (lambda X, y, qid: LeastSquares().fit(X, y, qid=qid, eval_set=[]), "at least one validation set"),
        (lambda X, y, qid: LeastSquares().fit(X[:1], y[:1], qid=qid[:1]), "X has 1 sample"),
        (lambda X, y, qid: LeastSquares().fit(X, y, qid=qid, eval_set=(X, y, qid)), "queries go into eval_qid"),
        (lambda X, y, qid: LeastSquares().fit(X[:, :0], y, qid=qid), "no features to learn from"),
    ],
)
def test_mistakes_with_data_are_explained(mistake, message):
    with pytest.raises(DataError, match=message):
        mistake(*judged())


@pytest.mark.parametrize("ridge", [-1.0, float("nan"), float("inf")])
def test_ridge_out_of_range(ridge):
    with pytest.raises(ParameterError, match="ridge must be a finite number of 0 or more"):
        LeastSquares(ridge=ridge).fit(*judged()[:2])


def test_a_ranker_that_cannot_continue_says_so():
    X, y, qid = judged()
    ranker = LeastSquares().fit(X, y, qid=qid)
    with pytest.raises(ParameterError, match="LeastSquares cannot continue from an earlier model"):
        LeastSquares().fit(X, y, qid=qid, init_model=ranker)


def test_predict_before_fit():
    with pytest.raises(NotFittedError, match="not trained yet: call fit first"):
        LeastSquares().predict(np.ones((1, 1)))


def test_registered_rankers_know_their_names():
    for name in RANKERS:
        assert ranker_class(name).name == name
    with pytest.raises(ParameterError, match="no ranker called 'nothing'"):
        ranker_class("nothing")


def test_public_names_exist():
    for name in rankwell.__all__:
        assert getattr(rankwell, name) is not None
    assert dir(rankwell) == rankwell.__all__


def test_rows_without_queries_are_one_query_with_a_warning(caplog):
    X, y, qid = judged()
    LeastSquares().fit(X, y)
    assert "without qid or group all 240 rows are one query" in caplog.text
    LeastSquares().fit(X, y, qid=qid, eval_set=(X, y))
    assert "eval_set is one query: pass eval_qid or eval_group" in caplog.text
    caplog.clear()
    LeastSquares().fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
    assert caplog.text == ""


def test_a_folder_is_not_a_ranker_file(tmp_path):
    X, y, qid = judged()
    ranker = LeastSquares().fit(X, y, qid=qid)
    with pytest.raises(DataError, match=r"is a folder. Give the name of a file in it"):
        ranker.save(tmp_path)
    with pytest.raises(rankwell.FileFormatError, match="is a folder, not a ranker file"):
        rankwell.load(tmp_path)


def test_only_a_sum_of_rounds_has_first_rounds():
    X, y, qid = judged()
    ranker = LeastSquares(normalize="standard").fit(X, y, qid=qid)
    with pytest.raises(ParameterError, match="only a sum of trees has scores after some of its rounds"):
        ranker.predict(X, n_rounds=1)
    with pytest.raises(ParameterError, match="device must be one of"):
        ranker.predict(X, device="tpu")


@pytest.mark.parametrize("wrong", [2.5, True, "3"])
def test_first_rounds_are_a_whole_number(wrong):
    X, y, qid = judged()
    ranker = rankwell.LambdaMART(n_rounds=4).fit(X, y, qid=qid)
    for score in (ranker.predict, ranker.contributions):
        with pytest.raises(ParameterError, match=f"n_rounds must be a whole number, got {wrong!r}"):
            score(X, n_rounds=wrong)
    np.testing.assert_array_equal(ranker.predict(X, n_rounds=np.int64(4)), ranker.predict(X))


def test_a_ranker_says_what_metadata_it_takes():
    ranker = LeastSquares()
    assert ranker.get_metadata_routing().fit.requests["qid"] is True
    assert ranker.get_metadata_routing().fit.requests["sample_weight"] is None
    with pytest.raises(rankwell.ParameterError, match="metadata routing, which is disabled"):
        ranker.set_fit_request(sample_weight=True)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker.set_fit_request(sample_weight=True).set_score_request(qid=False)
        copy = clone(ranker)
    assert copy.get_metadata_routing().fit.requests["sample_weight"] is True
    assert copy.get_metadata_routing().score.requests["qid"] is False


def test_an_unknown_parameter_is_named_with_the_known_ones():
    with pytest.raises(rankwell.ParameterError, match=r"no parameter 'alpha'\. It is called ridge here\.$"):
        LeastSquares().set_params(alpha=1.0, normalize="none")


def test_the_representation_has_the_parameters_that_differ():
    assert repr(LeastSquares()) == "LeastSquares()"
    assert repr(LeastSquares(normalize="none")) == "LeastSquares(normalize='none')"


def test_training_does_not_import_scikit_learn():
    code = (
        "import sys, rankwell; rankwell.RankBoost(n_rounds=1).set_params(n_rounds=2); print('sklearn' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False"]
