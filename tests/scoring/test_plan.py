"""The plan: one entry a group of inputs and a layer, in the dtypes that kernels take."""

import numpy as np
import pytest
from tests.scoring.random_rankers import describe, forest, random_buckets, random_trees

from rankwell import ParameterError
from rankwell.kernels.scoring import kinds
from rankwell.kernels.scoring.cpu import table as cpu_table
from rankwell.kernels.scoring.cuda import table as cuda_table
from rankwell.kernels.scoring.rules import ACTIVATIONS
from rankwell.scoring.description import Dense, ExpressionInputs, LinearInputs, LogLinearInputs, Mean, Sum
from rankwell.scoring.plan import make_plan


def test_entries_follow_each_other():
    rng = np.random.default_rng(0)
    lines = LinearInputs.identity(3)
    groups = [
        lines,
        random_buckets(rng, 4, 3),
        LogLinearInputs(lines.feature, lines.scale, lines.offset, lines.missing),
        ExpressionInputs(("f1 + f2",), np.zeros(1)),
        random_trees(rng, 5, 3),
    ]
    n_inputs = 3 + 4 + 3 + 1 + 5
    layers = [Dense(np.ones((2, n_inputs)), np.zeros(2), "tanh"), Mean()]
    plan = make_plan(describe(3, groups, layers))
    assert [group.kind for group in plan.inputs] == [
        kinds.LINEAR,
        kinds.BUCKET,
        kinds.LOG_LINEAR,
        kinds.EXPRESSION,
        kinds.TREE,
    ]
    assert [(group.first, group.n_inputs) for group in plan.inputs] == [(0, 3), (3, 4), (7, 3), (10, 1), (11, 5)]
    assert plan.n_inputs == n_inputs
    assert [layer.kind for layer in plan.layers] == [kinds.DENSE, kinds.SUM]
    assert plan.layers[0].arrays.activation == ACTIVATIONS.index("tanh")
    assert plan.layers[1].arrays == (True, 0.0)


def test_a_sum_of_trees_is_one_entry():
    trees = random_trees(np.random.default_rng(0), 6, 3)
    plan = make_plan(forest(trees, 3, bias=0.25))
    assert [(group.kind, group.n_inputs) for group in plan.inputs] == [(kinds.TREE_SUM, 1)]
    assert plan.layers == ()
    arrays = plan.inputs[0].arrays
    assert (arrays.n_trees, arrays.is_mean, arrays.bias) == (6, False, 0.25)
    shorter = plan.first_rounds(2).inputs[0].arrays
    assert shorter.n_trees == 2
    assert shorter.trees is arrays.trees
    assert plan.first_rounds(None) is plan


def test_arrays_are_as_kernels_take_them():
    """Wider integers, narrower floats, columns of a matrix, read-only memory: one kernel serves them all."""
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    table.flags.writeable = False
    lines = LinearInputs(np.arange(3), table[:, 0], table[:, 1], table[:, 2])
    arrays = make_plan(describe(3, [lines], [Sum(1)])).inputs[0].arrays
    assert [array.dtype for array in arrays] == [np.int32, np.float64, np.float64, np.float64]
    assert all(array.flags.carray for array in arrays)
    np.testing.assert_array_equal(arrays.offset, [1, 5, 9])


def test_the_memory_of_a_plan_is_that_of_its_arrays():
    plan = make_plan(describe(3, [LinearInputs.identity(3)], [Dense(np.ones((1, 3)), np.zeros(1))]))
    assert plan.nbytes == 3 * (4 + 8 + 8 + 8) + (3 + 1) * 8


def test_rounds_that_are_not_there_are_refused():
    plan = make_plan(forest(random_trees(np.random.default_rng(0), 6, 3), 3))
    for wrong in (0, 7):
        with pytest.raises(ParameterError, match=f"between 1 and the model's 6, got {wrong}"):
            plan.first_rounds(wrong)
    for wrong in (2.5, 3.0, True, "3"):
        with pytest.raises(ParameterError, match=rf"n_rounds must be a whole number, got {wrong!r}"):
            plan.first_rounds(wrong)
    assert plan.first_rounds(np.int64(3)).inputs[0].arrays.n_trees == 3
    with pytest.raises(ParameterError, match="only a sum of trees has scores after some of its rounds"):
        make_plan(describe(3, [LinearInputs.identity(3)], [Sum()])).first_rounds(1)


def test_every_kind_has_a_kernel():
    inputs = {kinds.LINEAR, kinds.LOG_LINEAR, kinds.BUCKET, kinds.EXPRESSION, kinds.TREE, kinds.TREE_SUM}
    assert set(cpu_table.INPUTS) == inputs
    assert set(cpu_table.LAYERS) == {kinds.DENSE, kinds.SUM}
    assert set(cuda_table.INPUTS) == inputs
    assert set(cuda_table.LAYERS) == set(cpu_table.LAYERS)
    assert set(cpu_table.COSTS) == set(cuda_table.UPLOADS) == inputs | set(cpu_table.LAYERS)
