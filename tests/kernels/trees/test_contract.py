"""What devices refuse."""

import numpy as np
import pytest
from tests.kernels.trees.tree_inputs import random_case

from rankwell.kernels.trees.contract import BOOSTED_TREES, TreeProblem
from rankwell.kernels.trees.sampling import Sampling


@pytest.mark.parametrize(
    ("sampling", "is_refused"),
    [
        (None, False),
        (Sampling(), False),
        (Sampling(queries=0.5), True),
        (Sampling(documents=0.5), True),
        (Sampling(features=0.5), True),
        (Sampling(node_features=0.5), True),
    ],
)
def test_cuda_refuses_random_parts(sampling, is_refused):
    made = random_case(1, 20, 3).problem()
    problem = TreeProblem(made.slabs, made.columns, made.settings, query_ptr=np.array([0, 20]), sampling=sampling)
    refusal = BOOSTED_TREES.devices["cuda"].lacks(problem)
    assert (refusal is not None) == is_refused
