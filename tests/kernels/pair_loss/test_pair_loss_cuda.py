"""RankSVM's CUDA kernels against every pair written out, and a whole training against the CPU's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from tests.kernels.pair_loss.pair_loss_cases import CASES, pair_data, points_of, random_data
from tests.kernels.pair_loss.test_pair_loss import magnitude
from tests.tolerances import TOLERANCES

from rankwell import RankingDataset, RankSVM, make_ranking
from rankwell.kernels.device_report import report_device
from rankwell.kernels.pair_loss.method import METHODS
from rankwell.kernels.pair_loss.reference import ReferencePairLoss

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not report_device("cuda").usable, reason=report_device("cuda").description),
]


def promised(data, v):
    """How far a product that is fused, and so multiplies in float32, may be from the exact one.

    Each step below rounds once, by 2^-24 of what it is about. A product x·v is at most `product`, so a factor, of at
    most `largest` partners, is at most 2·largest·product; and the Hessian has a factor 2.
    """
    if sparse.issparse(data.features):
        return 1e-11 * magnitude(data, v)
    scale = 1.0 if data.column_scale is None else data.column_scale
    dense = data.features.astype(np.float64)
    centred = np.abs((dense - dense.mean(axis=0)) * scale)
    product = (centred @ np.abs(v)).max(initial=0.0)
    largest = np.diff(data.query_ptr).max(initial=1)
    weights = 1.0 if data.query_weights is None else data.query_weights.max() * data.document_weights.max() ** 2
    # x - centre, v, a lane's columns and 5 sums over lanes; the factor; x - centre, a run of 8 rows.
    steps = 2 + -(-data.features.shape[1] // 32) + 5 + 1 + 1 + 8
    return 4.0 * steps * 2.0**-24 * weights * largest * product * centred.sum(axis=0) + 1e-11 * magnitude(data, v)


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "three launches"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_every_pass_is_the_sum_over_all_pairs(case, method, fused):
    from rankwell.kernels.pair_loss.cuda.loss import CudaPairLoss

    data = CASES[case]()
    reference, loss = ReferencePairLoss(data), CudaPairLoss(data, method=method, fused=fused)
    v = points_of(data, seed=8)[1]
    for w in points_of(data):
        expected, gradient = reference.loss_and_gradient(w)
        found, found_gradient = loss.loss_and_gradient(loss.to_device(w))
        np.testing.assert_allclose(found, expected, **TOLERANCES["cuda"]["pair loss"])
        assert (np.abs(loss.to_host(found_gradient) - gradient) <= 1e-11 * magnitude(data, w)).all()
        reference.accept()
        loss.accept()
        product = loss.to_host(loss.hessian_vector(loss.to_device(v)))
        allowed = promised(data, v) if fused else 1e-11 * magnitude(data, v)
        assert (np.abs(product - reference.hessian_vector(v)) <= allowed).all()
        assert (loss.to_host(loss.curvature()) >= 0).all()


# Each multiprocessor gets several queries: more rows than its shared memory holds, in an order in which long and short
# ones meet.
LONG_QUERIES = {
    "136 features": lambda: random_data([700, 37, 2, 360, 345, 400, 1, 130] * 100, 136, 5),
    "46 features": lambda: random_data([1300, 37, 990, 1, 0, 700, 256] * 60, 46, 40),
    "more features than registers hold": lambda: random_data([90, 37, 0, 130, 64] * 100, 301, 3),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", LONG_QUERIES)
def test_rows_that_go_round_the_ring_count_as_those_read_twice(case, method):
    from rankwell.kernels.pair_loss.cuda.loss import CudaPairLoss

    data = LONG_QUERIES[case]()
    w, v = np.random.default_rng(1).normal(scale=0.05, size=(2, data.features.shape[1]))
    products = []
    for fused in (True, True, False):
        loss = CudaPairLoss(data, method=method, fused=fused)
        loss.loss_and_gradient(loss.to_device(w))
        loss.accept()
        products.append(loss.to_host(loss.hessian_vector(loss.to_device(v))))
    np.testing.assert_array_equal(products[0], products[1])
    assert (np.abs(products[0] - products[2]) <= promised(data, v)).all()
    # Roundings of many rows are not all in one direction.
    assert np.linalg.norm(products[0] - products[2]) <= 2.0**-22 * np.linalg.norm(products[2])


def test_values_whose_products_overflow_in_float32_are_multiplied_in_float64():
    from rankwell.kernels.pair_loss.cuda.loss import CudaPairLoss

    data = random_data([20, 30], 6, 3)
    data = pair_data(data.features * np.float32(1e25), data.levels, [20, 30])
    reference, loss = ReferencePairLoss(data), CudaPairLoss(data)
    for each in (reference, loss):
        each.loss_and_gradient(each.to_device(np.zeros(6)))
        each.accept()
    v = np.full(6, 1e-20)
    product = loss.to_host(loss.hessian_vector(loss.to_device(v)))
    assert (np.abs(product - reference.hessian_vector(v)) <= 1e-11 * magnitude(data, v)).all()


def test_blocks_get_about_as_many_rows_each():
    from rankwell.kernels.pair_loss.cuda.features import share_queries

    # Queries of 4, 1, 5 and 2 rows: of 6 rows a block, 5 come nearer than 10; a query stays whole.
    assert share_queries(np.array([0, 4, 5, 10, 12]), 2).tolist() == [0, 2, 4]
    assert share_queries(np.array([0, 9]), 3).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("shape", ["mq2008", "mq2008-list"])
def test_a_training_ends_where_the_cpu_ends(shape):
    dataset = make_ranking(shape, scale=0.05)
    objectives = [
        RankSVM(tol=1e-6, normalize="none", device=device).fit(dataset).history_["objective"][-1]
        for device in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(objectives[1], objectives[0], **TOLERANCES["cuda"]["training objective"])


def test_features_far_from_0_train_as_on_the_cpu():
    """Their differences are a 10,000th of their values: without a centre, float32 would lose half of the digits."""
    rng = np.random.default_rng(3)
    features = (rng.normal(size=(3000, 10)) + 1e4).astype(np.float32)
    labels = np.clip(np.round(features[:, 0] - 1e4 + rng.normal(size=3000)), 0, 2)
    dataset = RankingDataset(features, labels, group=np.full(60, 50))
    trained = [RankSVM(tol=1e-6, normalize="none", device=device).fit(dataset) for device in ("cpu", "cuda")]
    on_cpu, on_cuda = (ranker.history_ for ranker in trained)
    tolerance = TOLERANCES["cuda"]["training objective"]
    np.testing.assert_allclose(on_cuda["objective"][-1], on_cpu["objective"][-1], **tolerance)
    assert abs(on_cuda["products"][-1] - on_cpu["products"][-1]) <= 1


def test_the_same_training_twice_gives_the_same_bits():
    dataset = make_ranking("mq2008", scale=0.2)
    first, second = (RankSVM(device="cuda").fit(dataset).weights_ for _ in range(2))
    np.testing.assert_array_equal(first, second)
