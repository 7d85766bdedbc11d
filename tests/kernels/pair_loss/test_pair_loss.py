"""RankSVM's kernels on the CPU, against every pair written out, against differences, and against each other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from tests.kernels.pair_loss.pair_loss_cases import CASES, pair_data, points_of, random_data
from tests.tolerances import TOLERANCES

from rankwell.kernels.pair_loss.cpu.loss import CpuPairLoss, score_rows
from rankwell.kernels.pair_loss.cpu.preparation import count_pairs, has_missing, label_levels
from rankwell.kernels.pair_loss.cpu.queries import divide_queries
from rankwell.kernels.pair_loss.method import METHODS, SumCosts, choose_method
from rankwell.kernels.pair_loss.reference import ReferencePairLoss


def magnitude(data, w):
    """How large the parts are that a gradient sums up: rounding is relative to these."""
    dense = np.abs(data.features.toarray() if sparse.issparse(data.features) else data.features).astype(np.float64)
    column = 1.0 if data.column_scale is None else data.column_scale
    largest = np.diff(data.query_ptr).max(initial=1)
    return (dense * column).sum(axis=0) * largest * (1.0 + np.abs(dense * column @ w).max(initial=0.0)) + 1e-300


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
class TestAgainstEveryPair:
    def test_loss_and_gradient(self, case, method):
        data = CASES[case]()
        reference, loss = ReferencePairLoss(data), CpuPairLoss(data, method=method)
        for w in points_of(data):
            expected, gradient = reference.loss_and_gradient(w)
            found, found_gradient = loss.loss_and_gradient(w)
            np.testing.assert_allclose(found, expected, **TOLERANCES["cpu"]["pair loss"])
            assert (np.abs(found_gradient - gradient) <= 1e-11 * magnitude(data, w)).all()

    def test_hessian_vector(self, case, method):
        data = CASES[case]()
        reference, loss = ReferencePairLoss(data), CpuPairLoss(data, method=method)
        v = points_of(data, seed=8)[1]
        for w in points_of(data):
            for each in (reference, loss):
                each.loss_and_gradient(w)
                each.accept()
            difference = np.abs(loss.hessian_vector(v) - reference.hessian_vector(v))
            assert (difference <= 1e-11 * magnitude(data, v)).all()

    def test_curvature_is_near_the_diagonal(self, case, method):
        """An approximation: never negative, 0 where nothing varies, and of the right size."""
        data = CASES[case]()
        reference, loss = ReferencePairLoss(data), CpuPairLoss(data, method=method)
        w = points_of(data)[0]
        for each in (reference, loss):
            each.loss_and_gradient(w)
            each.accept()
        exact, found = reference.curvature(), loss.curvature()
        assert (found >= 0).all()
        if not sparse.issparse(data.features):
            seen = exact > 1e-9 * np.maximum(exact.max(initial=0), 1e-300)
            assert (found[seen] <= 2.0 * exact[seen] * (1 + 1e-9)).all()
            assert (found[seen] >= 0.25 * exact[seen]).all()


class TestAgainstDifferences:
    @pytest.mark.parametrize("method", METHODS)
    def test_gradient_is_the_slope_of_the_loss(self, method):
        data = random_data([20, 31], 4, 4, seed=9)
        loss = CpuPairLoss(data, method=method)
        w = np.array([0.3, -0.2, 0.5, 0.1])
        gradient = loss.loss_and_gradient(w)[1]
        step = 1e-6
        for j, unit in enumerate(np.eye(4)):
            rise = loss.loss_and_gradient(w + step * unit)[0] - loss.loss_and_gradient(w - step * unit)[0]
            assert gradient[j] == pytest.approx(rise / (2 * step), rel=1e-7)

    @pytest.mark.parametrize("method", METHODS)
    def test_hessian_vector_is_the_slope_of_the_gradient(self, method):
        """The loss has no second derivative where a pair's margin is exactly 1: a step of 1e-9 crosses none here."""
        data = random_data([20, 31], 4, 4, seed=9)
        loss = CpuPairLoss(data, method=method)
        w, v, step = np.array([0.3, -0.2, 0.5, 0.1]), np.array([1.0, 2.0, -1.0, 0.5]), 1e-9
        rise = loss.loss_and_gradient(w + step * v)[1] - loss.loss_and_gradient(w - step * v)[1]
        loss.loss_and_gradient(w)
        loss.accept()
        np.testing.assert_allclose(loss.hessian_vector(v), rise / (2 * step), rtol=1e-5)

    def test_hessian_is_symmetric_and_not_negative(self):
        data = random_data([20, 31, 7], 6, 5, seed=2)
        loss = CpuPairLoss(data)
        loss.loss_and_gradient(np.full(6, 0.4))
        loss.accept()
        hessian = np.array([loss.hessian_vector(unit) for unit in np.eye(6)])
        np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12, atol=1e-9)
        assert np.linalg.eigvalsh(hessian).min() > -1e-9 * np.abs(hessian).max()


class TestByHand:
    def test_one_pair(self):
        """x_a − x_b = (2, −1), w = (0.1, 0.2): margin 0, loss 1; ∇ = −2·(2, −1); ∇²v = 2·(2, −1)·(2, −1)·v."""
        loss = CpuPairLoss(pair_data([[2.0, 0.0], [0.0, 1.0]], [1, 0], [2]))
        value, gradient = loss.loss_and_gradient(np.array([0.1, 0.2]))
        assert value == pytest.approx((1 - (0.1 * 2 - 0.2 * 1)) ** 2)
        np.testing.assert_allclose(gradient, [-4.0, 2.0], rtol=1e-12)
        loss.accept()
        np.testing.assert_allclose(loss.hessian_vector(np.array([1.0, 1.0])), [4.0, -2.0], rtol=1e-12)

    def test_margin_of_one_is_no_loss(self):
        """Scores 0, 1, 2, 1 and labels 0, 1, 2, 0: margins 1, 2, 0, 1, 1; only the pair (1, 1) with margin 0 loses."""
        data = CASES["margin exactly one"]()
        loss = CpuPairLoss(data)
        value, gradient = loss.loss_and_gradient(np.array([1.0]))
        assert value == 1.0
        np.testing.assert_allclose(gradient, [0.0], atol=1e-12)
        loss.accept()
        np.testing.assert_allclose(loss.hessian_vector(np.array([1.0])), [0.0], atol=1e-12)

    def test_a_refused_point_leaves_the_hessian_alone(self):
        data = random_data([30], 3, 3)
        loss = CpuPairLoss(data)
        v = np.array([1.0, -1.0, 2.0])
        loss.loss_and_gradient(np.zeros(3))
        loss.accept()
        before = loss.hessian_vector(v)
        loss.loss_and_gradient(np.array([5.0, 5.0, 5.0]))
        np.testing.assert_array_equal(loss.hessian_vector(v), before)
        loss.accept()
        assert not np.allclose(loss.hessian_vector(v), before)


class TestProperties:
    def test_both_methods_give_the_same_counts(self):
        """The degrees, which the curvature sums up, are whole numbers: both methods must agree to the last bit."""
        data = random_data([40, 130, 77], 5, 30, seed=4)
        losses = [CpuPairLoss(data, method=method) for method in METHODS]
        for loss in losses:
            loss.loss_and_gradient(np.full(5, 0.3))
            loss.accept()
        direct, tree = (loss.curvature() for loss in losses)
        assert (direct > 0).all()
        np.testing.assert_array_equal(direct, tree)

    @pytest.mark.parametrize("case", ["five levels", "weights", "sparse", "edges of blocks"])
    def test_the_same_bits_on_any_number_of_threads(self, case):
        data = CASES[case]()
        w, v = points_of(data)[1], points_of(data, seed=1)[2]
        results = []
        for n_jobs in (1, 2):
            loss = CpuPairLoss(data, n_jobs=n_jobs)
            value, gradient = loss.loss_and_gradient(w)
            loss.accept()
            results.append((value, gradient, loss.hessian_vector(v), loss.curvature()))
        for one, two in zip(*results, strict=True):
            np.testing.assert_array_equal(one, two)

    def test_weight_two_is_the_query_or_the_document_twice(self):
        generator = np.random.default_rng(7)
        features, labels = generator.normal(size=(9, 3)), generator.integers(0, 3, 9)
        weighted = pair_data(
            features, labels, [5, 4], query_weights=np.array([2.0, 1.0]), document_weights=np.array([2.0] + [1.0] * 8)
        )
        first = np.r_[0, 0:5]
        rows = np.r_[first, first, 5:9]
        repeated = pair_data(features[rows], labels[rows], [6, 6, 4])
        w = np.array([0.2, -0.4, 0.1])
        one, two = CpuPairLoss(weighted).loss_and_gradient(w), CpuPairLoss(repeated).loss_and_gradient(w)
        assert one[0] == pytest.approx(two[0], rel=1e-13)
        np.testing.assert_allclose(one[1], two[1], rtol=1e-12)

    def test_the_order_of_documents_does_not_matter(self):
        generator = np.random.default_rng(8)
        features, labels = generator.normal(size=(40, 4)), generator.integers(0, 4, 40)
        shuffled = generator.permutation(40)
        w = np.array([0.2, -0.4, 0.1, 0.3])
        one = CpuPairLoss(pair_data(features, labels, [40])).loss_and_gradient(w)
        two = CpuPairLoss(pair_data(features[shuffled], labels[shuffled], [40])).loss_and_gradient(w)
        assert one[0] == pytest.approx(two[0], rel=1e-13)
        np.testing.assert_allclose(one[1], two[1], rtol=1e-11)

    def test_sparse_and_dense_agree(self):
        data = CASES["sparse"]()
        dense = dataclasses.replace(data, features=np.ascontiguousarray(data.features.toarray()))
        w, v = points_of(data)[1], points_of(data, seed=1)[1]
        one, two = CpuPairLoss(data), CpuPairLoss(dense)
        value, gradient = one.loss_and_gradient(w)
        other_value, other_gradient = two.loss_and_gradient(w)
        assert value == pytest.approx(other_value, rel=1e-12)
        np.testing.assert_allclose(gradient, other_gradient, rtol=1e-10, atol=1e-12)
        one.accept()
        two.accept()
        np.testing.assert_allclose(one.hessian_vector(v), two.hessian_vector(v), rtol=1e-10, atol=1e-10)

    def test_an_infinite_score_ends(self):
        """Overflow must not send the sweep past the end of a query."""
        data = pair_data(np.array([[1e38], [-1e38], [3e38], [0.0]]), [0, 1, 2, 1], [4])
        value, _ = CpuPairLoss(data).loss_and_gradient(np.array([1e300]))
        assert not np.isfinite(value)


class TestPreparation:
    def test_levels_are_dense_ranks_within_the_query(self):
        labels = np.array([5.0, -1.0, 5.0, 2.5, 7.0, 7.0, 0.0])
        levels, n_levels = np.empty(7, dtype=np.int32), np.empty(4, dtype=np.int32)
        label_levels(labels, np.array([0, 4, 4, 6, 7]), levels, n_levels)
        assert levels.tolist() == [2, 0, 2, 1, 0, 0, 0]
        assert n_levels.tolist() == [3, 0, 1, 1]

    def test_pairs_are_counted(self):
        """Labels 0 0 1 2: 2·1 + 2·1 + 1·1 = 5 pairs; without the last document 2; a query of weight 0 has none."""
        data = pair_data(np.zeros((4, 1)), [0, 0, 1, 2], [4])
        none = np.empty(0)
        assert count_pairs(data.levels, data.n_levels, data.query_ptr, none, none) == 5
        without_last = np.array([1.0, 1.0, 1.0, 0.0])
        assert count_pairs(data.levels, data.n_levels, data.query_ptr, none, without_last) == 2
        assert count_pairs(data.levels, data.n_levels, data.query_ptr, np.zeros(1), none) == 0

    @pytest.mark.parametrize("place", [0, 65_535, 65_536, 99_999])
    def test_a_missing_value_is_found_wherever_it_is(self, place):
        values = np.ones(100_000, dtype=np.float32)
        assert not has_missing(values)
        values[place] = np.nan
        assert has_missing(values)

    def test_chunks_cover_every_query_once(self):
        query_ptr = np.concatenate(([0], np.cumsum(np.random.default_rng(0).integers(0, 900, 200)))).astype(np.int64)
        chunks = divide_queries(query_ptr, 136)
        assert chunks[0] == 0
        assert chunks[-1] == 200
        assert (np.diff(chunks) >= 0).all()
        rows = np.diff(query_ptr[chunks])
        assert rows.sum() == query_ptr[-1]
        assert rows.max() < 3 * query_ptr[-1] / (len(chunks) - 1) + 900

    def test_wide_features_have_few_chunks(self):
        """Partial sums stay at 64 MiB: 2²² features take 32 MiB a chunk."""
        assert len(divide_queries(np.arange(0, 1_000_001, 10), 2**22)) - 1 == 2

    def test_scores_of_rows(self):
        features = np.random.default_rng(1).normal(size=(2_100, 5)).astype(np.float32)
        weights = np.arange(5.0)
        expected = features.astype(np.float64) @ weights
        np.testing.assert_allclose(score_rows(features, weights), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(score_rows(sparse.csr_matrix(features), weights), expected, rtol=1e-12, atol=1e-12)


class TestChoiceOfMethod:
    COSTS = SumCosts(few_levels=2, few=1.0, fixed=4.0, per_level=1.0, tree_fixed=10.0, tree_per_bit=2.0)

    def test_the_cheaper_one_is_taken_and_named(self, caplog):
        """4 levels: 4 + 4·1 = 8 against 10 + 2·2 = 14; 64 levels: 4 + 64 = 68 against 10 + 2·6 = 22."""
        sizes = np.array([100, 100])
        with caplog.at_level("INFO", logger="rankwell"):
            assert choose_method("auto", sizes, np.array([4, 4]), self.COSTS) == "direct"
            assert choose_method("auto", sizes, np.array([64, 64]), self.COSTS) == "order-statistic"
        assert "picked direct" in caplog.text
        assert "picked order-statistic" in caplog.text

    def test_few_levels_have_a_cost_of_their_own(self):
        """Per document: 1 against 10 + 2·1 = 12 with 2 levels, 4 + 20 = 24 against 10 + 2·log2 20 = 18.6 with 20."""
        sizes = np.array([100, 100])
        assert choose_method("auto", sizes, np.array([2, 20]), self.COSTS) == "direct"
        assert choose_method("auto", np.array([100, 300]), np.array([2, 20]), self.COSTS) == "order-statistic"

    def test_queries_without_pairs_do_not_count(self):
        assert choose_method("auto", np.array([10, 10_000]), np.array([64, 1]), self.COSTS) == "order-statistic"

    def test_a_wish_is_followed(self):
        assert choose_method("direct", np.array([10]), np.array([500]), self.COSTS) == "direct"
