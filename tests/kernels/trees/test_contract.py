"""What devices accept."""

from dataclasses import replace

import pytest
from tests.kernels.trees.tree_inputs import random_case, random_rules

from rankwell.kernels.trees.contract import BOOSTED_TREES


@pytest.mark.parametrize("what", ["nothing", "directions", "groups", "categories", "all"])
def test_cuda_accepts_rules_of_features(what):
    case = random_case(1, 50, 6)
    rules = random_rules(case, 3, what)
    given = {"directions": rules.is_bounded, "groups": rules.has_groups, "categories": rules.has_categories}
    assert given == {name: what in (name, "all") for name in given}
    assert BOOSTED_TREES.devices["cuda"].lacks(case.problem()) is None
    assert BOOSTED_TREES.devices["cuda"].lacks(replace(case.problem(), feature_rules=rules)) is None
