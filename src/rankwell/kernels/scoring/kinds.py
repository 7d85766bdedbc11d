"""The kinds of inputs and layers that a plan consists of, and the arrays that the kernels of each kind take.

A device is a table from these kinds to its kernels. The arrays are flat named tuples, in the order and the dtypes that
the kernels are compiled for; on a device they hold that device's arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# Inputs. `TREE_SUM` is the sum of all trees as one input: the values of single trees are never stored.
LINEAR, LOG_LINEAR, BUCKET, EXPRESSION, TREE, TREE_SUM = (
    "linear",
    "log-linear",
    "bucket",
    "expression",
    "tree",
    "tree-sum",
)
# Layers. A mean is a sum divided by the number of its inputs.
DENSE, SUM = "dense", "sum"

# Documents that the CPU kernels process at a time.
LANES = 64

# A node to evaluate from the leaves up, as one 64-bit word: the bin it compares with in bits 0-7, the slots of its left
# and right child, the bin column it tests. The slots of a tree's nodes come after those of 256 leaves.
LEFT_BIT, RIGHT_BIT, COLUMN_BIT = 8, 18, 28
SLOT_BITS, COLUMN_BITS = 10, 32
NODE_SLOT = 256


class LineArrays(NamedTuple):
    """Linear and log-linear inputs. feature : int32; scale, offset, missing : float64; each (n_inputs,)"""

    feature: Any
    scale: Any
    offset: Any
    missing: Any


class BucketArrays(NamedTuple):
    """Bucket inputs. Input i has the edges ``edge_ptr[i]:edge_ptr[i + 1]`` and one value more than edges.

    feature : int32 (n_inputs,); edge_ptr : int64 (n_inputs + 1,); edges : float32; values : float64 (n_edges +
    n_inputs,); missing : float64 (n_inputs,)
    """

    feature: Any
    edge_ptr: Any
    edges: Any
    values: Any
    missing: Any


class ProgramArrays(NamedTuple):
    """Expression inputs: programs for a stack machine, one after another.

    program_ptr, constant_ptr : int64 (n_inputs + 1,); operation, operand : int32; constants : float64; missing :
    float64 (n_inputs,)
    """

    program_ptr: Any
    operation: Any
    operand: Any
    constant_ptr: Any
    constants: Any
    missing: Any


class ColumnArrays(NamedTuple):
    """The columns that trees test, and how each becomes bins.

    feature : int32, kind : uint8 (n_columns,); category_ptr : int64 (n_columns + 1,); categories : int32, ascending
    threshold_ptr : int64 (n_columns + 1,); thresholds : float32, ascending within a column, +inf after the last
    bin_ptr : int64 (n_columns + 1,), the bin columns of a column; first_rank : int32, missing_bin : uint8
    (n_bin_columns,)
    """

    feature: Any
    kind: Any
    category_ptr: Any
    categories: Any
    threshold_ptr: Any
    thresholds: Any
    bin_ptr: Any
    first_rank: Any
    missing_bin: Any


class TreeArrays(NamedTuple):
    """Trees over bin columns, in two forms: as nodes to evaluate from the leaves up, and as words to walk down by; and
    those with few different tests, as symmetric trees have, as tables of the value for each outcome of the tests.

    node_ptr : int64 (n_trees + 1,); depth : int64 (n_trees,), the nodes on the longest path
    nodes : uint64 (n_nodes,), see `LEFT_BIT`; the last node of a tree first
    leaf_value : float64 (n_nodes + n_trees,)
    words : uint32 or uint64 (2 * n_nodes + n_trees,), see `rules.BIN_BITS`; tree t begins at ``2 * node_ptr[t] + t``,
        and the children of its node k are its words 2k + 1 and 2k + 2
    word_value : float64, the value of a word that is a leaf
    child_shift, child_mask : of the words' dtype; ``word >> child_shift`` is the bin column, ``word >> BIN_BITS &
        child_mask`` the left child
    test_ptr : int64 (n_trees + 1,), of the tests of trees that are tables, others have none; tests : uint32, the bin in
        the lowest 8 bits, then the bin column; test k sets bit k of the outcome if the document's bin is above it
    table_ptr : int64 (n_trees + 1,); table : float64, the value for each outcome
    """

    node_ptr: Any
    depth: Any
    nodes: Any
    leaf_value: Any
    words: Any
    word_value: Any
    child_shift: Any
    child_mask: Any
    test_ptr: Any
    tests: Any
    table_ptr: Any
    table: Any


class DenseArrays(NamedTuple):
    """A dense layer. weights : float64 (n_out, n_in); bias : float64 (n_out,); activation : int, see `rules`"""

    weights: Any
    bias: Any
    activation: int


class SumArrays(NamedTuple):
    """The sum of all inputs, divided by their number if `is_mean`, plus `bias`."""

    is_mean: bool
    bias: float


class TreeLayout(NamedTuple):
    """Trees as inputs, one per tree. columns : `ColumnArrays`; trees : `TreeArrays`, or a device's form of them"""

    columns: ColumnArrays
    trees: Any


class TreeSum(NamedTuple):
    """The sum of the first `n_trees` trees, divided by `n_trees` if `is_mean`, plus `bias`: one input.

    round_size : trees per round of boosting
    """

    columns: ColumnArrays
    trees: Any
    n_trees: int
    round_size: int
    is_mean: bool
    bias: float
