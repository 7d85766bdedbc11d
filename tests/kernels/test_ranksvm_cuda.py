"""RankSVM's CUDA kernels against every pair written out, and a whole training against the CPU's."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.ranksvm_cases import CASES, points_of
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
