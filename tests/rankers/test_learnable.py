"""Every ranker refuses data without anything to learn from, with the same words."""

import numpy as np
import pytest

from rankwell import LeastSquares, ListNet, RankBoost, RankingDataset, RankSVM
from rankwell.errors import DataError

RANKERS = [
    RankBoost(n_rounds=2, device="cpu"),
    RankSVM(device="cpu"),
    LeastSquares(),
    ListNet(n_epochs=1, n_seeds=1, device="cpu"),
]
LABELS, GROUP = np.array([1.0, 0.0, 1.0, 0.0]), [2, 2]


@pytest.fixture(params=RANKERS, ids=lambda ranker: ranker.name)
def ranker(request):
    return request.param


class TestFit:
    @pytest.mark.parametrize("normalize", ["auto", "none", "standard"])
    def test_features_that_are_all_constant(self, ranker, normalize):
        ranker = ranker.untrained().set_params(normalize=normalize)
        with pytest.raises(DataError, match=r"no feature varies within a query whose labels differ.*normalize"):
            ranker.fit(np.full((4, 3), 7.0), LABELS, group=GROUP)

    def test_features_without_a_value_are_named(self, ranker, caplog):
        features = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
        labels, group = np.arange(200) % 3, [10] * 20
        features[:199, 1] = np.nan
        ranker.untrained().fit(features, labels, group=group)
        assert "has a value" not in caplog.text
        features[:, 2:] = np.nan
        names = [f"own.{letter}" for letter in "abcdefgh"]
        ranker.untrained().fit(RankingDataset(features, labels, group=group, feature_names=names))
        shown = "own.c, own.d, own.e, own.f, own.g, ... (6 features)"
        assert f"{shown}: no row of the training data has a value. Check where it comes from" in caplog.text

    def test_features_that_vary_only_between_queries(self, ranker):
        with pytest.raises(DataError, match="no feature varies within a query whose labels differ"):
            ranker.fit([[1.0], [1.0], [5.0], [5.0]], LABELS, group=GROUP)

    def test_features_that_vary_only_where_labels_do_not(self, ranker):
        with pytest.raises(DataError, match="no feature varies within a query whose labels differ"):
            ranker.fit([[1.0], [2.0], [5.0], [5.0]], [1, 1, 1, 0], group=GROUP)

    def test_labels_that_are_equal_in_every_query(self, ranker):
        with pytest.raises(DataError, match=r"no pairs to learn from: within every query all labels are equal"):
            ranker.fit(np.arange(8.0).reshape(4, 2), [1, 1, 0, 0], group=GROUP)

    def test_one_query_that_varies_is_enough(self, ranker):
        ranker.untrained().fit([[1.0], [1.0], [5.0], [6.0]], LABELS, group=GROUP)


def test_documents_without_weight_do_not_count():
    weights = [1.0, 1.0, 0.0]
    for ranker in RANKERS[:3]:
        with pytest.raises(DataError, match="no feature varies"):
            ranker.fit([[1.0], [1.0], [5.0]], [1, 0, 2], group=[3], sample_weight=weights)


def test_a_missing_value_is_a_value_of_its_own_for_rankboost_alone():
    features = [[np.nan], [0.0]]
    for ranker in RANKERS[1:]:
        with pytest.raises(DataError, match="no feature varies"):
            ranker.untrained().set_params(normalize="none").fit(features, [0, 1], group=[2])
    boosted = RankBoost(n_rounds=2, normalize="none", device="cpu").fit(features, [0, 1], group=[2])
    assert boosted.predict(features)[1] > boosted.predict(features)[0]


def test_the_path_of_ranksvm():
    dataset = RankingDataset(np.ones((4, 1)), LABELS, group=GROUP)
    with pytest.raises(DataError, match="no feature varies"):
        RankSVM(device="cpu").path(dataset, dataset)


def test_pairs_of_documents_that_are_alike():
    features = [[1.0], [1.0], [5.0]]
    with pytest.raises(DataError, match="no feature varies within any of the pairs"):
        RankBoost(n_rounds=2).fit_pairs(features, [[0, 1]], group=[3])
    RankBoost(n_rounds=2).fit_pairs(features, [[0, 1], [2, 1]], group=[3])
