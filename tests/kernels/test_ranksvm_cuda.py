"""RankSVM's CUDA kernels against every pair written out, and a whole training against the CPU's."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.ranksvm_cases import CASES, points_of, random_data
from tests.kernels.test_ranksvm import magnitude

from rankwell import RankSVM, make_ranking
from rankwell.kernels.device import report_device
from rankwell.kernels.ranksvm_method import METHODS
from rankwell.kernels.reference.ranksvm import ReferencePairLoss

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not report_device("cuda").usable, reason=report_device("cuda").description),
]


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "three launches"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_every_pass_is_the_sum_over_all_pairs(case, method, fused):
    from rankwell.kernels.cuda.ranksvm import CudaPairLoss

    data = CASES[case]()
    reference, loss = ReferencePairLoss(data), CudaPairLoss(data, method=method, fused=fused)
    v = points_of(data, seed=8)[1]
    for w in points_of(data):
        expected, gradient = reference.loss_and_gradient(w)
        found, found_gradient = loss.loss_and_gradient(loss.to_device(w))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert (np.abs(loss.to_host(found_gradient) - gradient) <= 1e-11 * magnitude(data, w)).all()
        reference.accept()
        loss.accept()
        product = loss.to_host(loss.hessian_vector(loss.to_device(v)))
        assert (np.abs(product - reference.hessian_vector(v)) <= 1e-11 * magnitude(data, v)).all()
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
    from rankwell.kernels.cuda.ranksvm import CudaPairLoss

    data = LONG_QUERIES[case]()
    w, v = np.random.default_rng(1).normal(scale=0.05, size=(2, data.features.shape[1]))
    products = []
    for fused in (True, True, False):
        loss = CudaPairLoss(data, method=method, fused=fused)
        loss.loss_and_gradient(loss.to_device(w))
        loss.accept()
        products.append(loss.to_host(loss.hessian_vector(loss.to_device(v))))
    np.testing.assert_array_equal(products[0], products[1])
    assert (np.abs(products[0] - products[2]) <= 1e-11 * magnitude(data, v)).all()


@pytest.mark.parametrize("shape", ["mq2008", "mq2008-list"])
def test_a_training_ends_where_the_cpu_ends(shape):
    dataset = make_ranking(shape, scale=0.05)
    objectives = [
        RankSVM(tol=1e-6, normalize="none", device=device).fit(dataset).history_["objective"][-1]
        for device in ("cpu", "cuda")
    ]
    assert objectives[1] == pytest.approx(objectives[0], rel=1e-6)


def test_the_same_training_twice_gives_the_same_bits():
    dataset = make_ranking("mq2008", scale=0.2)
    first, second = (RankSVM(device="cuda").fit(dataset).weights_ for _ in range(2))
    np.testing.assert_array_equal(first, second)
