"""make_ranking: the sizes asked for, the same bytes for the same seed, and something to learn."""

import numpy as np
import pytest

from rankwell import ParameterError, make_ranking
from rankwell.data.shapes import SHAPES, UNNAMED
from rankwell.data.synthetic import BLOCK

# What the papers' tables say: documents, queries, features, pairs.
PAPERS = {
    "far": (1_196_711, 25_724, 646, 15_146_236),
    "cuda2010": (173_354, None, 2_576, 2_927_004),
    "mslr10k": (723_421, 6_000, 136, 31_783_391),
    "mslr30k": (2_270_296, 18_919, 136, 101_312_036),
    "mq2007-list": (743_790, 1_017, 46, 285_943_893),
    "mq2008-list": (540_679, 471, 46, 323_151_792),
    "mq2007": (42_158, 1_017, 46, 246_015),
    "mq2008": (9_630, 471, 46, 52_325),
}


def fingerprint(dataset):
    return dataset.features.tobytes(), dataset.labels.tobytes(), dataset.query_ptr.tobytes()


def count_pairs(dataset):
    """Pairs of one query's documents with different labels: (n² - Σ n_level²) / 2."""
    pairs = 0
    for rows in dataset.queries():
        _, counts = np.unique(dataset.labels[rows], return_counts=True)
        pairs += (counts.sum() ** 2 - (counts**2).sum()) // 2
    return pairs


def pairwise_accuracy(dataset, scores):
    right = total = 0
    for rows in dataset.queries():
        better = dataset.labels[rows][:, np.newaxis] > dataset.labels[rows]
        right += (better & (scores[rows][:, np.newaxis] > scores[rows])).sum()
        total += better.sum()
    return right / total


class TestShapes:
    @pytest.mark.parametrize("name", list(PAPERS))
    def test_numbers_of_the_papers(self, name):
        n_docs, n_queries, n_features, n_pairs = PAPERS[name]
        shape = SHAPES[name]
        assert (shape.n_docs, shape.n_features, shape.n_pairs) == (n_docs, n_features, n_pairs)
        assert n_queries is None or shape.n_queries == n_queries
        assert shape.source

    def test_every_shape_is_tested(self):
        assert set(SHAPES) == set(PAPERS)

    @pytest.mark.parametrize("name", list(PAPERS))
    def test_scaled_down(self, name):
        shape = SHAPES[name]
        dataset = make_ranking(name, scale=0.02, n_features=3)
        assert dataset.n_queries == round(shape.n_queries * 0.02)
        assert dataset.n_docs == round(shape.n_docs * 0.02)
        assert dataset.n_features == 3
        assert dataset.query_sizes.min() >= 1
        if shape.longest is not None:
            assert dataset.query_sizes.max() <= shape.longest

    @pytest.mark.parametrize("name", ["far", "cuda2010", "mslr10k", "mq2007-list", "mq2008-list", "mq2007", "mq2008"])
    def test_pairs_are_about_as_many_as_the_paper_counts(self, name):
        scale = min(1.0, 200_000 / SHAPES[name].n_docs)
        dataset = make_ranking(name, scale=scale, n_features=2)
        assert count_pairs(dataset) == pytest.approx(SHAPES[name].n_pairs * scale, rel=0.15)

    def test_listwise_labels_order_each_query_totally(self):
        dataset = make_ranking("mq2008-list", scale=0.01)
        for rows in dataset.queries():
            size = rows.stop - rows.start
            assert sorted(dataset.labels[rows]) == list(range(1, size + 1))

    def test_letor_shapes_are_scaled_within_each_query(self):
        dataset = make_ranking("mq2007", scale=0.05)
        for rows in dataset.queries():
            lowest, highest = dataset.features[rows].min(axis=0), dataset.features[rows].max(axis=0)
            assert (lowest == 0).all()
            assert np.isin(highest, (0, 1)).all()


class TestSizes:
    @pytest.mark.parametrize(
        ("n_docs", "n_queries"), [(1, 1), (5, 5), (BLOCK - 1, 7), (BLOCK, 8), (BLOCK + 1, 9), (3 * BLOCK, 1)]
    )
    def test_exactly_what_was_asked_for(self, n_docs, n_queries):
        dataset = make_ranking(n_docs=n_docs, n_queries=n_queries, n_features=4)
        assert (dataset.n_docs, dataset.n_queries, dataset.n_features) == (n_docs, n_queries, 4)
        assert dataset.query_sizes.sum() == n_docs
        assert dataset.query_sizes.min() >= 1
        assert np.isfinite(dataset.features).all()
        assert dataset.features.dtype == np.float32

    def test_defaults(self):
        dataset = make_ranking()
        assert (dataset.n_docs, dataset.n_queries, dataset.n_features) == (10_000, 100, 50)

    def test_of_two_sizes_one_brings_the_other_along(self):
        # 100 documents a query without a name; 173,354 / 3,726 = 46.5 at `cuda2010`.
        assert make_ranking(n_docs=500, n_features=1).n_queries == 5
        assert make_ranking(n_queries=7, n_features=1).n_docs == 700
        assert make_ranking("cuda2010", n_queries=10, n_features=1).n_docs == 465
        assert make_ranking("mq2008-list", n_docs=5000, n_features=1).query_sizes.max() <= 1_831

    def test_query_sizes_vary(self):
        sizes = make_ranking(n_docs=20_000, n_queries=200, n_features=1).query_sizes
        assert np.log(sizes).std() == pytest.approx(UNNAMED.size_spread, rel=0.15)


class TestLabels:
    def test_shares_of_mslr(self):
        labels = make_ranking(n_features=1).labels
        assert np.bincount(labels.astype(int)).tolist() == [5200, 3200, 1300, 200, 100]

    def test_n_levels_halves_each_time(self):
        # Shares 4 : 2 : 1 of 7,000.
        labels = make_ranking(n_docs=7000, n_queries=70, n_features=1, n_levels=3).labels
        assert np.bincount(labels.astype(int)).tolist() == [4000, 2000, 1000]

    @pytest.mark.parametrize("skew", [True, False])
    def test_a_linear_model_learns_and_noise_does_not(self, skew):
        dataset = make_ranking(n_docs=6000, n_queries=60, n_features=40, skew=skew, standardised=True)
        train, test = dataset.subset(range(40)), dataset.subset(range(40, 60))
        weights, *_ = np.linalg.lstsq(train.features, train.labels, rcond=None)
        assert pairwise_accuracy(test, test.features @ weights) > 0.7
        assert pairwise_accuracy(test, np.random.default_rng(0).random(test.n_docs)) == pytest.approx(0.5, abs=0.03)

    def test_less_noise_is_easier(self):
        def accuracy(noise):
            dataset = make_ranking(n_docs=6000, n_queries=60, n_features=40, noise=noise, standardised=True)
            weights, *_ = np.linalg.lstsq(dataset.features, dataset.labels, rcond=None)
            return pairwise_accuracy(dataset, dataset.features @ weights)

        assert accuracy(0.0) > accuracy(1.0) + 0.05 > accuracy(5.0) + 0.1

    def test_more_is_learned_than_a_line_can_say(self):
        from sklearn.ensemble import HistGradientBoostingRegressor

        dataset = make_ranking(n_docs=20_000, n_queries=200, n_features=50, noise=0.2, standardised=True)
        train, test = dataset.subset(range(140)), dataset.subset(range(140, 200))
        weights, *_ = np.linalg.lstsq(train.features, train.labels, rcond=None)
        trees = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(train.features, train.labels)
        line = pairwise_accuracy(test, test.features @ weights)
        assert pairwise_accuracy(test, trees.predict(test.features)) > line + 0.015


class TestFeatures:
    def test_kinds_that_real_collections_hold(self):
        features = make_ranking(n_docs=5000, n_queries=50, n_features=50).features
        score, count, ratio, log_probability, level, amount, flag, rank, of_query, rare = (
            features[:, first : first + 5] for first in range(0, 50, 5)
        )
        assert (score >= 0).all()
        assert (score == 0).any(axis=0).all()
        assert (count == np.floor(count)).all()
        assert (count == 0).mean() > 0.2
        assert ((ratio >= 0) & (ratio <= 1)).all()
        assert (log_probability < 0).all()
        assert set(np.unique(level)) <= set(range(8))
        assert (amount.max(axis=0) > 50 * np.median(amount, axis=0)).all()
        assert set(np.unique(flag)) == {0, 1}
        assert rank.max() <= 65535
        assert all(len(np.unique(column)) == 50 for column in of_query.T)
        assert (rare == 0).mean() > 0.95

    def test_streams_go_together(self):
        features = make_ranking(n_docs=5000, n_queries=50, n_features=5, skew=False).features
        correlation = np.corrcoef(features.T)
        assert correlation[np.triu_indices(5, 1)].min() > 0.02

    def test_without_skew_features_are_normal(self):
        features = make_ranking(n_docs=20_000, n_queries=2000, n_features=10, skew=False).features
        centred = features - features.mean(axis=0)
        skewness = (centred**3).mean(axis=0) / features.std(axis=0) ** 3
        assert skewness == pytest.approx(np.zeros(10), abs=0.15)

    def test_missing_values(self):
        dataset = make_ranking(missing=0.2)
        share_of_feature = np.isnan(dataset.features).mean(axis=0)
        assert share_of_feature.mean() == pytest.approx(0.2, abs=0.03)
        assert share_of_feature.std() > 0.05
        assert np.isfinite(dataset.labels).all()

    def test_missing_values_change_nothing_else(self):
        whole, holes = make_ranking(n_features=5), make_ranking(n_features=5, missing=0.3)
        np.testing.assert_array_equal(whole.labels, holes.labels)

    @pytest.mark.parametrize("missing", [0.0, 0.2])
    def test_standardised(self, missing):
        features = make_ranking(n_docs=2 * BLOCK + 5, n_queries=100, standardised=True, missing=missing).features
        wide = features.astype(np.float64)
        assert np.nanmean(wide, axis=0) == pytest.approx(np.zeros(50), abs=1e-4)
        varies = np.nanmax(wide, axis=0) > np.nanmin(wide, axis=0)
        assert np.nanvar(wide, axis=0)[varies] == pytest.approx(np.ones(varies.sum()), abs=1e-3)
        assert varies.mean() > 0.9


class TestSeeds:
    @pytest.mark.parametrize("options", [{}, {"missing": 0.1}, {"standardised": True}, {"shape": "mq2008"}])
    def test_same_seed_same_bytes_on_any_number_of_threads(self, options):
        options = {"n_docs": 3 * BLOCK + 17, "n_queries": 300, "n_features": 12, "random_state": 5, **options}
        shape = options.pop("shape", None)
        one, again, two = (make_ranking(shape, **options, n_jobs=n_jobs) for n_jobs in (1, 1, 2))
        assert fingerprint(one) == fingerprint(again) == fingerprint(two)

    def test_other_seed_other_collection(self):
        assert fingerprint(make_ranking(random_state=0)) != fingerprint(make_ranking(random_state=1))


class TestMistakes:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"scale": 0}, "scale must be above 0, got 0"),
            ({"scale": float("nan")}, "scale must be above 0, got nan"),
            ({"n_docs": 3, "n_queries": 4}, "n_docs must be at least n_queries: 3 documents for 4 queries"),
            ({"n_features": 0}, "n_features must be 1 or more, got 0"),
            ({"n_docs": 0}, "n_docs must be 1 or more, got 0"),
            ({"n_queries": -1}, "n_queries must be 1 or more, got -1"),
            ({"n_levels": 1}, "n_levels must be 2 or more, got 1"),
            ({"missing": 0.7}, "missing must be a share from 0 to 0.5, got 0.7"),
            ({"noise": -1}, "noise must be 0 or more, got -1"),
            ({"random_state": -1}, "random_state must be a whole number, 0 or more, got -1"),
            ({"random_state": None}, "random_state must be a whole number, 0 or more, got None"),
            ({"n_jobs": 0}, "n_jobs must be a number of threads"),
        ],
    )
    def test_parameters(self, options, message):
        with pytest.raises(ParameterError, match=message):
            make_ranking(**options)

    def test_unknown_shape_lists_the_known(self):
        with pytest.raises(ParameterError, match=r"far, cuda2010, mslr10k.*got 'web'"):
            make_ranking("web")

    def test_a_number_for_a_name(self):
        with pytest.raises(
            ParameterError, match=r"shape must be a name, got 1000\. Give sizes by name too: n_docs=1000"
        ):
            make_ranking(1000)
