"""A ranker as a sum of trees over its features: no decision changes."""

import numpy as np
import pytest
from tests.scoring.exports.exported_rankers import RANKERS, expected_scores, rows_for
from tests.scoring.random_rankers import describe

from rankwell import ParameterError
from rankwell.scoring.exports.tree_sum import tree_sum, with_raw_thresholds
from rankwell.scoring.layers import Sum
from rankwell.scoring.tree_builder import float32_above

SUMS = ["trees", "mean of trees", "weighted trees", "standardised trees", "buckets", "standardised buckets"]


@pytest.mark.parametrize("name", SUMS)
def test_scores_are_the_same(name):
    whole = tree_sum(RANKERS[name], "A format")
    assert whole.activation == "identity"
    features = rows_for(name)
    scores = expected_scores(describe(7, whole.groups, [Sum(whole.bias)]), features)
    np.testing.assert_allclose(scores, expected_scores(RANKERS[name], features), rtol=1e-13, atol=1e-14)


def test_raw_thresholds_are_the_last_values_that_go_left():
    """On each side of every threshold, a raw value goes where its normalised value went."""
    description = RANKERS["standardised trees"]
    (trees,), normaliser = description.inputs, description.normaliser
    raw = with_raw_thresholds(trees, normaliser)
    feature = trees.column_feature[trees.column]
    mean, scale = normaliser.arrays["mean"][feature], normaliser.arrays["scale"][feature]

    varies = np.isfinite(scale)

    def goes_left(x):
        return ((x - mean)[varies] / scale[varies]).astype(np.float32) <= trees.threshold[varies]

    assert goes_left(raw.threshold).all()
    assert not goes_left(float32_above(raw.threshold)).any()
    # A feature that does not vary is 0 after the normaliser: all of its values go the same way.
    largest = np.finfo(np.float32).max
    constant = np.where(trees.threshold >= 0, largest, -largest)
    np.testing.assert_array_equal(raw.threshold[~varies], constant[~varies])


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("letor", "A format cannot say the normaliser letor, which reads all documents of a query"),
        ("query-minmax", "A format cannot say the normaliser query-minmax"),
        ("made of rankers", r"A format cannot say rankers inside a ranker \(trees, unread, few\)"),
        ("network", "A format cannot say linear inputs: it holds decision trees"),
        ("expressions", "A format cannot say expression inputs"),
    ],
)
def test_what_is_no_sum_of_trees_is_named(name, complaint):
    with pytest.raises(ParameterError, match=complaint):
        tree_sum(RANKERS[name], "A format")
