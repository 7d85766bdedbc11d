"""Labels and weights near and beyond the limits of single precision."""

from __future__ import annotations

import numpy as np
import pytest

import rankwell
from rankwell import DataError, LambdaMART, ParameterError, RankingDataset


def judged(factor: float = 1.0, **more) -> RankingDataset:
    generator = np.random.default_rng(4)
    X = generator.normal(size=(400, 4)).astype(np.float32)
    labels = np.clip(np.round(2.0 * X[:, 0] + generator.normal(size=400)), 0.0, 4.0)
    return RankingDataset(X, labels * factor, group=[20] * 20, **more)


def small(**parameters) -> LambdaMART:
    return LambdaMART(**{"n_rounds": 5, "n_leaves": 8, "min_docs_leaf": 5, "gain": "linear", **parameters})


@pytest.mark.parametrize("factor", [2.0**120, 2.0**126, 2.0**130, 2.0**1000, 2.0**-130, 2.0**-1000])
@pytest.mark.parametrize("loss", ["lambdarank", "lambdaloss", "pairwise", "map", "mrr"])
def test_a_factor_of_all_labels_changes_nothing(loss, factor):
    data = judged()
    expected = small(loss=loss).fit(data).predict(data)
    assert len(np.unique(expected)) > 5
    np.testing.assert_array_equal(small(loss=loss).fit(judged(factor)).predict(data), expected)


def test_labels_that_xendcg_has_no_gains_for_are_refused():
    data = judged()
    assert len(np.unique(small(loss="xendcg").fit(judged(1e37)).predict(data))) > 5
    with pytest.raises(DataError, match=r"labels give gains up to 4e\+39, and loss='xendcg' takes 3\.40282e\+38 at"):
        small(loss="xendcg").fit(judged(1e39))


def test_labels_too_far_apart_are_refused():
    data = judged(4e307)
    data.labels[0] = -1e308
    with pytest.raises(DataError, match=r"labels begin at -1e\+308 and are further apart than a number can say"):
        small().fit(data)


@pytest.mark.parametrize("weight", [1e31, 1e300, 1e-31, 1e-44, 1e-300])
@pytest.mark.parametrize(
    "loss", ["lambdarank", "xendcg", lambda labels, scores, query_ptr: (scores - labels, labels + 1)]
)
def test_weights_that_single_precision_has_no_room_for_are_refused(loss, weight):
    with pytest.raises(DataError, match=r"from 1e-30 to 1e\+30.* got .*Multiply all weights by one number"):
        small(loss=loss).fit(judged(document_weights=np.full(400, weight)))
    with pytest.raises(DataError, match="the largest weight of a row"):
        small(loss=loss).fit(judged(query_weights=np.full(20, weight)))


@pytest.mark.parametrize("weight", [2.0**99, 2.0**-99])
def test_weights_within_the_limits_are_a_factor_of_nothing(weight):
    data = judged()
    expected = small(min_hessian_leaf=0.0).fit(data).predict(data)
    weighted = judged(document_weights=np.full(400, weight))
    np.testing.assert_array_equal(small(min_hessian_leaf=0.0).fit(weighted).predict(data), expected)


def test_a_few_tiny_weights_are_only_tiny():
    weights = np.where(np.arange(400) < 40, 1e-300, 1.0)
    zeros = np.where(np.arange(400) < 40, 0.0, 1.0)
    data = judged()
    tiny = small().fit(judged(document_weights=weights)).predict(data)
    np.testing.assert_array_equal(tiny, small().fit(judged(document_weights=zeros)).predict(data))


@pytest.mark.parametrize("rate", [1e38, 1e300])
@pytest.mark.parametrize("loss", ["lambdarank", lambda labels, scores, query_ptr: (scores - labels, labels * 0 + 1)])
def test_a_learning_rate_that_leaves_single_precision_is_refused(rate, loss):
    with pytest.raises(ParameterError, match=r"learning_rate is too large .* leaves of round \d+, scores may leave"):
        small(loss=loss, n_rounds=60, learning_rate=rate).fit(judged())


def test_a_large_learning_rate_is_saved_and_read(tmp_path):
    data = judged()
    ranker = small(n_rounds=20, learning_rate=1e30).fit(data)
    ranker.save(tmp_path / "large.rank")
    np.testing.assert_array_equal(rankwell.load(tmp_path / "large.rank").predict(data), ranker.predict(data))


def test_rounds_of_a_checkpoint_count(tmp_path):
    """Scores that the checkpoint has are as far from 0 as those of a run that was not ended."""

    class EndError(Exception):
        pass

    def end(step):
        if step.number == 6:
            raise EndError

    loss = lambda labels, scores, query_ptr: (np.where(labels > 1, -1.0, 1.0), labels * 0 + 1)  # noqa: E731
    ranker = small(loss=loss, n_rounds=40, learning_rate=2e37, checkpoint=str(tmp_path / "run"), checkpoint_every=1)
    with pytest.raises(ParameterError, match=r"by the leaves of round (\d+)") as whole:
        small(loss=loss, n_rounds=40, learning_rate=2e37).fit(judged())
    with pytest.raises(EndError):
        ranker.fit(judged(), callback=end)
    with pytest.raises(ParameterError, match="by the leaves of round") as resumed:
        ranker.fit(judged())
    assert str(resumed.value) == str(whole.value)
