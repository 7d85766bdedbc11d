"""Binner: what a user sees of binning. The kernels have their own tests."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from rankwell import Binner, DataError, NotFittedError, ParameterError, RankingDataset

finite_or_missing = st.one_of(
    st.floats(width=32, allow_infinity=False), st.sampled_from([0.0, -0.0, 1.0, 2.0, 3e38, -3e38, 1e-45])
)
matrices = hnp.arrays(
    np.float32, st.tuples(st.integers(1, 40), st.integers(1, 5)), elements=finite_or_missing, fill=st.nothing()
)


def column(*values):
    return np.array(values, dtype=np.float32).reshape(-1, 1)


class TestExactness:
    @settings(max_examples=150, deadline=None)
    @given(matrices, matrices, st.sampled_from(["width", "quantile"]), st.integers(2, 256))
    def test_bin_above_b_is_value_above_threshold_b(self, train, other, strategy, n_bins):
        binner = Binner(n_bins, strategy).fit(train)
        other = np.resize(other, (len(other), train.shape[1]))
        for features in (train, other):
            bins = binner.transform(features)
            for feature, thresholds in enumerate(binner.thresholds):
                assert len(thresholds) <= n_bins - 1
                assert bins[:, feature].max(initial=0) <= len(thresholds)
                bin_above = bins[:, [feature]] > np.arange(len(thresholds))
                np.testing.assert_array_equal(bin_above, features[:, [feature]] > thresholds)

    def test_a_sum_of_weak_rankers_is_the_same_on_bins_and_on_numbers(self):
        generator = np.random.default_rng(8)
        train = np.exp(3 * generator.standard_normal((500, 6))).astype(np.float32)
        train[generator.random(train.shape) < 0.2] = np.nan
        test = np.exp(4 * generator.standard_normal((300, 6))).astype(np.float32)
        binner = Binner(strategy="quantile").fit(train)
        bins = binner.transform(test)
        on_bins, on_numbers = np.zeros(300), np.zeros(300)
        for _ in range(50):
            feature = int(generator.integers(6))
            b = int(generator.integers(len(binner.thresholds[feature])))
            alpha = generator.standard_normal()
            on_bins += alpha * (bins[:, feature] > b)
            on_numbers += alpha * (test[:, feature] > binner.thresholds[feature][b])
        np.testing.assert_array_equal(on_bins, on_numbers)

    def test_missing_is_bin_0_and_no_value_is(self):
        features = column(np.nan, 1, 2, 3, np.nan)
        for strategy in ("width", "quantile"):
            bins = Binner(strategy=strategy).fit_transform(features)[:, 0]
            assert (bins[[0, 4]] == 0).all()
            assert (bins[1:4] >= 1).all()


class TestWidth:
    def test_by_hand(self):
        # 5 bins for values between 0 and 10: boundaries at 2, 4, 6, 8.
        binner = Binner(n_bins=6).fit(column(0, 10, 3))
        assert binner.thresholds[0].tolist() == [-np.inf, 2, 4, 6, 8]
        assert binner.transform(column(-7, 0, 2, 2.1, 8, 10, 1e9, np.nan))[:, 0].tolist() == [1, 1, 1, 2, 4, 5, 5, 0]

    def test_uses_all_255_bins_for_values(self):
        binner = Binner().fit(column(*range(256)))
        assert len(binner.thresholds[0]) == 255
        assert binner.transform(column(0, 1, 1.5, 254, 255))[:, 0].tolist() == [1, 1, 2, 254, 255]

    def test_range_that_overflows_float32(self):
        largest = np.finfo(np.float32).max
        bins = Binner(n_bins=5).fit_transform(column(-largest, largest, 0, np.nan))
        assert bins[:, 0].tolist() == [1, 4, 2, 0]


class TestQuantile:
    def test_few_distinct_values_get_a_bin_each(self):
        binner = Binner(strategy="quantile").fit(column(1, 2, 2, 5, np.nan))
        assert binner.thresholds[0].tolist() == [-np.inf, 1.5, 3.5]
        assert binner.transform(column(0, 1, 2, 3.5, 4, 9, np.nan))[:, 0].tolist() == [1, 1, 2, 2, 3, 3, 0]

    def test_neighbouring_floats_are_separated(self):
        one = np.float32(1)
        above = np.nextafter(one, np.float32(2))
        assert Binner(strategy="quantile").fit_transform(column(one, above))[:, 0].tolist() == [1, 2]

    def test_equal_shares(self):
        # 1000 different values in 4 bins: 250 each.
        bins = Binner(n_bins=5, strategy="quantile").fit_transform(np.random.default_rng(0).random((1000, 1)))
        assert np.bincount(bins[:, 0]).tolist() == [0, 250, 250, 250, 250]

    def test_many_zeros_take_one_bin(self):
        # 900 zeros and 100 values in 11 value bins: one for the zeros, ten values in each other bin.
        values = np.concatenate([np.zeros(900), 1 + np.random.default_rng(0).random(100)])
        bins = Binner(n_bins=12, strategy="quantile").fit_transform(values.reshape(-1, 1))
        assert np.bincount(bins[:, 0]).tolist() == [0, 900] + [10] * 10

    def test_both_zeros_are_one_value(self):
        assert Binner(strategy="quantile").fit_transform(column(-0.0, 0.0, 1.0))[:, 0].tolist() == [1, 1, 2]

    def test_subsample_is_seeded(self):
        values = np.random.default_rng(1).random((2000, 3))
        few = {"n_bins": 16, "strategy": "quantile", "subsample": 100}
        first, again, other = (Binner(**few, random_state=seed).fit(values).threshold_table for seed in (0, 0, 1))
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
        exact = Binner(n_bins=16, strategy="quantile", subsample=None).fit(values).threshold_table
        assert np.abs(first[:, 1:15] - exact[:, 1:15]).max() < 0.2  # a sample's quantiles are near the collection's
        assert (first != exact).any()


class TestDegenerate:
    @pytest.mark.parametrize("strategy", ["width", "quantile"])
    def test_constant_and_empty_features(self, strategy):
        features = np.array([[4, np.nan, 1], [4, np.nan, np.nan], [4, np.nan, 2]], dtype=np.float32)
        binner = Binner(strategy=strategy).fit(features)
        assert binner.thresholds[0].tolist() == [-np.inf]
        assert binner.thresholds[1].tolist() == []
        bins = binner.transform(np.array([[-1, 5, np.nan], [9, np.nan, 7]], dtype=np.float32))
        assert bins[:, :2].tolist() == [[1, 0], [1, 0]]
        assert bins[0, 2] == 0
        assert bins[1, 2] == len(binner.thresholds[2])

    @pytest.mark.parametrize("strategy", ["width", "quantile"])
    def test_no_documents(self, strategy):
        binner = Binner(strategy=strategy).fit(np.empty((0, 3), dtype=np.float32))
        assert [len(row) for row in binner.thresholds] == [0, 0, 0]
        assert binner.transform(np.empty((0, 3), dtype=np.float32)).shape == (0, 3)

    def test_two_bins_only_tell_missing_from_present(self):
        for strategy in ("width", "quantile"):
            bins = Binner(2, strategy).fit_transform(column(1, 2, 3, np.nan))
            assert bins[:, 0].tolist() == [1, 1, 1, 0]


class TestLayouts:
    @pytest.mark.parametrize("strategy", ["width", "quantile"])
    @pytest.mark.parametrize(("n_docs", "n_features"), [(1, 1), (16, 16), (17, 33), (200, 20)])
    def test_shapes_padding_and_content(self, strategy, n_docs, n_features):
        features = np.random.default_rng(2).standard_normal((n_docs, n_features)).astype(np.float32)
        binner = Binner(strategy=strategy).fit(features)
        rows = binner.transform(features)
        by_feature = binner.transform(features, "features")
        interleaved = binner.transform(features, layout="interleaved16")
        assert rows.shape == (n_docs, n_features)
        assert by_feature.shape == (n_features, (n_docs + 15) // 16 * 16)
        assert interleaved.shape == ((n_features + 15) // 16, n_docs, 16)
        for bins in (rows, by_feature, interleaved):
            assert bins.dtype == np.uint8
            assert bins.flags.c_contiguous
        np.testing.assert_array_equal(by_feature[:, :n_docs], rows.T)
        assert (by_feature[:, n_docs:] == 0).all()
        for feature in range(n_features):
            np.testing.assert_array_equal(interleaved[feature // 16, :, feature % 16], rows[:, feature])
        assert (interleaved[-1, :, (n_features - 1) % 16 + 1 :] == 0).all()

    @pytest.mark.parametrize("strategy", ["width", "quantile"])
    @pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
    def test_chosen_rows_in_their_order(self, strategy, make, monkeypatch):
        monkeypatch.setattr("rankwell.data.binning._ROWS_DENSIFIED", 64)
        features = make(np.random.default_rng(2).standard_normal((200, 20)).astype(np.float32))
        binner = Binner(strategy=strategy).fit(features)
        chosen = np.random.default_rng(3).permutation(200)[:150]
        everything = binner.transform(features)
        np.testing.assert_array_equal(binner.transform(features, rows=chosen), everything[chosen])
        by_feature = binner.transform(features, "features", rows=chosen)
        assert by_feature.shape == (20, 160)
        np.testing.assert_array_equal(by_feature[:, :150], everything[chosen].T)
        interleaved = binner.transform(features, "interleaved16", rows=chosen)
        np.testing.assert_array_equal(interleaved.transpose(1, 0, 2).reshape(150, 32)[:, :20], everything[chosen])

    @pytest.mark.parametrize("bad", [-1, 3])
    def test_rows_that_are_not_there(self, bad):
        with pytest.raises(DataError, match=f"rows must be from 0 to 2, got .*{bad}"):
            Binner().fit(np.zeros((3, 1))).transform(np.zeros((3, 1)), rows=np.array([0, bad]))

    @pytest.mark.parametrize("bad", [[True, False, True], [0.0, 1.5], [[0], [1]]])
    def test_rows_that_are_not_valid(self, bad):
        """A mask, in particular, would be read as the rows 1, 0 and 1."""
        with pytest.raises(DataError, match="rows must be whole numbers of shape"):
            Binner().fit(np.zeros((3, 1))).transform(np.zeros((3, 1)), rows=np.array(bad))


class TestInputs:
    @pytest.mark.parametrize("strategy", ["width", "quantile"])
    def test_sparse_is_binned_as_if_dense(self, strategy, monkeypatch):
        monkeypatch.setattr("rankwell.data.binning._ROWS_DENSIFIED", 64)
        monkeypatch.setattr("rankwell.data.binning._COLUMNS_DENSIFIED", 16)
        generator = np.random.default_rng(4)
        dense = generator.standard_normal((300, 37)).astype(np.float32)
        dense[generator.random(dense.shape) < 0.7] = 0
        dense[5, 3] = np.nan
        binner = Binner(strategy=strategy).fit(dense)
        on_sparse = Binner(strategy=strategy).fit(sparse.csr_matrix(dense))
        np.testing.assert_array_equal(binner.threshold_table, on_sparse.threshold_table)
        for layout in ("rows", "features", "interleaved16"):
            np.testing.assert_array_equal(
                binner.transform(dense, layout), on_sparse.transform(sparse.csr_matrix(dense), layout)
            )

    def test_dataset_and_array_are_the_same(self):
        features = np.random.default_rng(0).random((30, 4))
        dataset = RankingDataset(features, group=[10, 20])
        np.testing.assert_array_equal(Binner().fit_transform(dataset), Binner().fit_transform(features))

    @pytest.mark.parametrize("strategy", ["width", "quantile"])
    def test_any_number_of_threads_gives_the_same(self, strategy):
        features = np.random.default_rng(6).standard_normal((1000, 50)).astype(np.float32)
        one, two = (Binner(strategy=strategy).fit(features, n_jobs=n_jobs) for n_jobs in (1, 2))
        assert one.threshold_table.tobytes() == two.threshold_table.tobytes()
        assert one.transform(features, n_jobs=1).tobytes() == two.transform(features, n_jobs=2).tobytes()


class TestMistakes:
    @pytest.mark.parametrize("n_bins", [1, 257, 0])
    def test_n_bins(self, n_bins):
        with pytest.raises(ParameterError, match=f"n_bins must be from 2 to 256.*got {n_bins}"):
            Binner(n_bins)

    def test_strategy_layout_and_subsample(self):
        with pytest.raises(ParameterError, match="strategy must be one of 'width', 'quantile', got 'kmeans'"):
            Binner(strategy="kmeans")
        with pytest.raises(ParameterError, match=r"subsample must be .* got 0"):
            Binner(subsample=0)
        with pytest.raises(ParameterError, match=r"layout must be one of 'rows', .* got 'columns'"):
            Binner().fit(column(1)).transform(column(1), "columns")

    def test_not_fitted(self):
        with pytest.raises(NotFittedError, match="Call fit first"):
            Binner().transform(column(1))
        with pytest.raises(NotFittedError, match="Call fit first"):
            _ = Binner().thresholds

    def test_other_number_of_features(self):
        with pytest.raises(DataError, match="the 1 features that were fitted, it has 2"):
            Binner().fit(column(1)).transform(np.ones((3, 2)))

    def test_infinities_are_refused(self):
        with pytest.raises(DataError, match="row 1, feature 0 is inf"):
            Binner().fit(column(1, np.inf))
