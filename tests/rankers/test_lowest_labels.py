"""What the lowest label is: that of the training data, which need not be 0."""

from __future__ import annotations

import numpy as np
import pytest

from rankwell import DataError, LambdaMART, LambdaRank, RankingDataset
from rankwell.rankers.tree_data import gains_of


def judged(labels=None) -> RankingDataset:
    generator = np.random.default_rng(3)
    X = generator.normal(size=(400, 4)).astype(np.float32)
    return RankingDataset(X, (X[:, 0] > 0.5) + 0.0 if labels is None else labels, group=[20] * 20)


@pytest.mark.parametrize("loss", ["map", "mrr"])
def test_relevant_is_what_is_above_the_lowest_label(loss):
    data = judged()
    from_0, from_1, from_below = (
        LambdaMART(n_rounds=5, loss=loss).fit(judged(data.labels + lowest)).predict(data) for lowest in (0, 1, -3)
    )
    assert len(np.unique(from_0)) > 5
    np.testing.assert_array_equal(from_1, from_0)
    np.testing.assert_array_equal(from_below, from_0)


def test_gains_of_other_losses_count_labels_from_0():
    """As LightGBM's: the gain of label 1 is 1, whether there is a label 0 or not."""
    assert gains_of(np.array([1.0, 2.0]), "auto").tolist() == [1.0, 3.0]
    assert gains_of(np.array([-1.0, 2.0]), "auto").tolist() == [0.0, 7.0]
    assert gains_of(np.array([1.0, 2.0]), "auto", from_lowest=True).tolist() == [0.0, 1.0]


def test_documents_that_are_all_relevant_are_refused():
    """Labels differ within queries, but no query has documents of the lowest label and others."""
    labels = np.tile([1.0, 2.0], 200)
    labels[:20] = 0.0
    with pytest.raises(
        DataError, match=r"no pairs to learn from: loss='map' .* above the lowest, 0\. Use another loss"
    ):
        LambdaMART(n_rounds=2, loss="map").fit(judged(labels))
    assert len(LambdaMART(n_rounds=2).fit(judged(labels)).trees_) == 2


@pytest.mark.parametrize("loss", ["map", "mrr"])
def test_networks_refuse_labels_that_are_all_above_0(loss):
    data = judged()
    ranker = LambdaRank(n_epochs=1, n_seeds=1, loss=loss, device="cpu")
    ranker.fit(data)
    with pytest.raises(DataError, match=rf"loss='{loss}' .* all 400 are: the lowest label is 1\. Subtract it"):
        ranker.fit(judged(data.labels + 1))
