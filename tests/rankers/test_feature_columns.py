"""Columns are taken by their names, in whatever order they come."""

import numpy as np
import pytest
from scipy import sparse

import rankwell
from rankwell import DataError, LeastSquares, RankBoost, RankingDataset, RankSVM

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4)).astype(np.float32)
    return X, np.clip(np.round(2 * X[:, 0] - X[:, 1]), 0, 4), np.repeat(np.arange(30), 8)


@pytest.fixture(scope="module")
def frame(judged):
    return pd.DataFrame(judged[0], columns=NAMES)


@pytest.fixture(scope="module", params=["least-squares", "rankboost", "ranksvm"])
def ranker(request, judged, frame):
    rankers = {
        "least-squares": LeastSquares(normalize="standard"),
        "rankboost": RankBoost(n_rounds=5, normalize="none"),
        "ranksvm": RankSVM(normalize="standard"),
    }
    return rankers[request.param].fit(frame, judged[1], qid=judged[2])


def test_a_frame_in_another_order_gets_the_same_scores(ranker, frame, judged):
    expected = ranker.predict(frame)
    turned = frame[["c", "a", "d", "b"]]
    np.testing.assert_array_equal(ranker.predict(turned), expected)
    np.testing.assert_array_equal(ranker.predict(pl.DataFrame(turned)), expected)
    assert ranker.score(turned, judged[1], qid=judged[2]) == ranker.score(frame, judged[1], qid=judged[2])
    # Columns without names are taken by place.
    np.testing.assert_array_equal(ranker.predict(judged[0]), expected)


def test_rows_of_queries_and_columns_in_another_order(ranker, frame, judged):
    rows = np.random.default_rng(1).permutation(240)
    turned = frame[["d", "c", "b", "a"]].iloc[rows]
    np.testing.assert_array_equal(ranker.predict(turned, qid=judged[2][rows]), ranker.predict(frame)[rows])


def test_sparse_columns_are_put_in_order_too(judged):
    X, y, qid = judged
    named = RankingDataset(sparse.csr_matrix(X), y, qid=qid, feature_names=NAMES)
    turned = RankingDataset(sparse.csr_matrix(X[:, ::-1]), y, qid=qid, feature_names=NAMES[::-1])
    ranker = RankBoost(n_rounds=3, normalize="none").fit(named)
    np.testing.assert_array_equal(ranker.predict(turned), ranker.predict(named))


def test_the_default_names_count_as_names(judged):
    """A ranker trained on f1, f2, ... reads a frame with these columns by name."""
    X, y, qid = judged
    ranker = LeastSquares(normalize="standard").fit(X, y, qid=qid)
    turned = pd.DataFrame(X[:, ::-1], columns=["f4", "f3", "f2", "f1"])
    np.testing.assert_array_equal(ranker.predict(turned), ranker.predict(X))


def test_staged_scores_go_through_the_same_checks(frame, judged):
    ranker = RankBoost(n_rounds=5, normalize="none").fit(frame, judged[1], qid=judged[2])
    *_, last = ranker.staged_predict(frame[["c", "a", "d", "b"]])
    np.testing.assert_array_equal(last, list(ranker.staged_predict(frame))[-1])
    np.testing.assert_allclose(last, ranker.predict(frame), rtol=1e-12)
    with pytest.raises(DataError, match=r"Absent: 'd'. Not known: 'e'"):
        next(ranker.staged_predict(frame.rename(columns={"d": "e"})))
    with pytest.raises(DataError, match="X has 2 features, but RankBoost is expecting 4"):
        next(ranker.staged_predict(judged[0][:, :2]))
    by_query = RankBoost(n_rounds=2, normalize="query-minmax").fit(judged[0], judged[1], qid=judged[2])
    with pytest.raises(DataError, match="works by query: pass qid"):
        next(by_query.staged_predict(judged[0]))


def test_the_first_rounds_are_scored_like_all_of_them(judged):
    X, y, _ = judged
    ranker = RankBoost(n_rounds=4, normalize="query-minmax").fit(X, y)
    np.testing.assert_array_equal(ranker.predict(X, n_rounds=4), ranker.predict(X))
    assert not np.array_equal(ranker.predict(X, n_rounds=2), ranker.predict(X))


def test_other_names_are_refused(ranker, frame):
    with pytest.raises(DataError, match=r"in any order. Absent: 'b'. Not known: 'x'"):
        ranker.predict(frame.rename(columns={"b": "x"}))
    with pytest.raises(DataError, match=r"X has 3 features, but \w+ is expecting 4 features as input. Absent: 'b'"):
        ranker.predict(frame[["d", "a", "c"]])
    with pytest.raises(DataError, match=r"X has 5 features.* Not known: 'x'"):
        ranker.predict(frame.assign(x=1.0))


def test_validation_data_is_put_in_order(frame, judged):
    _, y, qid = judged
    straight = RankBoost(n_rounds=5, normalize="none").fit(frame, y, qid=qid, eval_set=(frame, y), eval_qid=qid)
    turned = RankBoost(n_rounds=5, normalize="none").fit(
        frame, y, qid=qid, eval_set=(frame[NAMES[::-1]], y), eval_qid=qid
    )
    assert turned.history_["validation ndcg@10"] == straight.history_["validation ndcg@10"]
    with pytest.raises(DataError, match=r"Not known: 'x'"):
        RankBoost(n_rounds=5, normalize="none").fit(
            frame, y, qid=qid, eval_set=(frame.rename(columns={"a": "x"}), y), eval_qid=qid
        )


def test_training_continues_in_the_order_of_the_earlier_model(frame, judged, tmp_path):
    _, y, qid = judged
    RankBoost(n_rounds=3, normalize="none").fit(frame, y, qid=qid).save(tmp_path / "first.rank")
    straight = RankBoost(n_rounds=3, normalize="none").fit(frame, y, qid=qid, init_model=tmp_path / "first.rank")
    turned = RankBoost(n_rounds=3, normalize="none").fit(
        frame[NAMES[::-1]], y, qid=qid, init_model=tmp_path / "first.rank"
    )
    assert turned.description_.feature_names == tuple(NAMES)
    np.testing.assert_array_equal(turned.predict(frame), straight.predict(frame))


def test_names_are_an_attribute_where_there_are_some(ranker, judged, tmp_path):
    assert ranker.feature_names_in_.tolist() == NAMES
    ranker.save(tmp_path / "named.rank")
    assert rankwell.load(tmp_path / "named.rank").feature_names_in_.tolist() == NAMES
    assert not hasattr(LeastSquares(), "feature_names_in_")
    assert not hasattr(LeastSquares().fit(judged[0], judged[1], qid=judged[2]), "feature_names_in_")
