"""What devices refuse."""

from dataclasses import replace

import numpy as np
import pytest
from tests.kernels.trees.tree_inputs import random_case, random_rules

from rankwell.kernels.trees.contract import BOOSTED_TREES, TreeProblem
from rankwell.kernels.trees.feature_rules import FeatureRules
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


@pytest.mark.parametrize("what", ["directions", "categories", "groups"])
def test_cuda_refuses_rules_of_features(what):
    case = random_case(1, 50, 6)
    assert BOOSTED_TREES.devices["cuda"].lacks(case.problem()) is None
    problem = replace(case.problem(), feature_rules=FeatureRules.none(6))
    assert BOOSTED_TREES.devices["cuda"].lacks(problem) is None
    problem = replace(case.problem(), feature_rules=random_rules(case, 3, what))
    assert "categorical features" in BOOSTED_TREES.devices["cuda"].lacks(problem).got


def test_cuda_refuses_symmetric_trees():
    problem = random_case(1, 50, 6).problem()
    symmetric = replace(problem, settings=replace(problem.settings, is_symmetric=True))
    assert "symmetric trees" in BOOSTED_TREES.devices["cuda"].lacks(symmetric).got
