"""What devices refuse."""

from dataclasses import replace

import pytest
from tests.kernels.trees.tree_inputs import random_case, random_rules

from rankwell.kernels.trees.contract import BOOSTED_TREES
from rankwell.kernels.trees.feature_rules import FeatureRules


def test_cuda_accepts_rising_and_falling_features():
    case = random_case(1, 50, 6)
    problem = replace(case.problem(), feature_rules=random_rules(case, 3, "directions"))
    assert problem.feature_rules.is_bounded
    assert BOOSTED_TREES.devices["cuda"].lacks(problem) is None


@pytest.mark.parametrize("what", ["categories", "groups"])
def test_cuda_refuses_rules_of_features(what):
    case = random_case(1, 50, 6)
    assert BOOSTED_TREES.devices["cuda"].lacks(case.problem()) is None
    problem = replace(case.problem(), feature_rules=FeatureRules.none(6))
    assert BOOSTED_TREES.devices["cuda"].lacks(problem) is None
    problem = replace(case.problem(), feature_rules=random_rules(case, 3, what))
    assert "categorical features" in BOOSTED_TREES.devices["cuda"].lacks(problem).got
