"""What devices refuse."""

from dataclasses import replace

import pytest
from tests.kernels.trees.tree_inputs import random_case, random_rules

from rankwell.kernels.trees.contract import BOOSTED_TREES


@pytest.mark.parametrize("what", ["nothing", "directions", "groups"])
def test_cuda_accepts_rules_of_features(what):
    case = random_case(1, 50, 6)
    rules = random_rules(case, 3, what)
    assert (rules.is_bounded, rules.has_groups) == (what == "directions", what == "groups")
    assert BOOSTED_TREES.devices["cuda"].lacks(case.problem()) is None
    assert BOOSTED_TREES.devices["cuda"].lacks(replace(case.problem(), feature_rules=rules)) is None


def test_cuda_refuses_categories():
    case = random_case(1, 50, 6)
    problem = replace(case.problem(), feature_rules=random_rules(case, 3, "categories"))
    assert BOOSTED_TREES.devices["cuda"].lacks(problem).got == "categorical features"
