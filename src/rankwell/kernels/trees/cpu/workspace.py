"""The arrays that a tree is grown in. They are few, each a table of several fields: arguments take long to compile."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.trees.columns import COLUMN_VALUES
from rankwell.kernels.trees.contract import TreeProblem
from rankwell.kernels.trees.cpu.vector_code import GAIN_LANES
from rankwell.kernels.trees.slabs import MOST_WORDS, WORD, slab_shape

BLOCK = 2048
# So that a document's words, one in each row of the scratch area, are not all in one set of the cache.
STRIDE = BLOCK + 8
WORD_VALUES = WORD * COLUMN_VALUES

# Fields of `Workspace.whole`. Of leaves: their places in `rows`, packed sums, depth, the node above and the place of
# their histograms; of their best cut: feature, code, where missing values go, packed sums of its left side.
START, END, TOTAL, DEPTH, NODE, SLOT, FEATURE, CODE, MISSING_LEFT, LEFT_TOTAL = range(10)
# Of nodes: their cut, children, packed sums and number of documents.
NODE_FEATURE, NODE_CODE, NODE_MISSING_LEFT, NODE_LEFT, NODE_RIGHT, NODE_TOTAL, NODE_DOCS = range(10, 17)
# Fields of `Workspace.real`: gain of a leaf's best cut, value of a leaf, gain of a node.
GAIN, VALUE, NODE_GAIN = range(3)
# Fields of `Workspace.found`, the best cut of a word's columns.
FOUND_FEATURE, FOUND_CODE, FOUND_MISSING_LEFT, FOUND_LEFT = range(4)
# Places in a worker's row of `Workspace.sums`: after a block's packed values, sums up to each code, the same without
# missing values, and sums of codes.
RUNNING, SHIFTED, MARGINAL = (BLOCK + k * (COLUMN_VALUES + GAIN_LANES) for k in range(3))
_SUMS = BLOCK + 3 * (COLUMN_VALUES + GAIN_LANES)
# Places in `Workspace.sides` after the 256 that say which values of a column go left: by part, how many went left.
N_LEFT = COLUMN_VALUES


class Workspace(NamedTuple):
    """Arrays of a tree in growth.

    words : uint64 (n_slabs, n_docs · 8), the slabs
    packed : int64 (n_docs,), gradients and Hessians; scores : float32 (n_docs,)
    rows, right : uint32 (n_docs,), the documents by leaf, and scratch
    pool : int64 (n_leaves + n_parts, n_words, 2048), histograms of leaves, then of parts of the documents
    whole : int64 (17, n_leaves), real : float64 (3, n_leaves), leaves and nodes
    found : int64 (n_words, 2, 4), found_gain : float64 (n_words, 2), cuts of the two leaves searched
    scratch : uint64 (n_workers, 8 · STRIDE), sums : int64 (n_workers, ...), gains : float64 (n_workers, 264), by worker
    sides : int64 (256 + n_parts,); allowed : uint8 (n_features,), 1 for features that may be cut
    """

    words: np.ndarray
    packed: np.ndarray
    scores: np.ndarray
    rows: np.ndarray
    right: np.ndarray
    pool: np.ndarray
    whole: np.ndarray
    real: np.ndarray
    found: np.ndarray
    found_gain: np.ndarray
    scratch: np.ndarray
    sums: np.ndarray
    gains: np.ndarray
    sides: np.ndarray
    allowed: np.ndarray


def new_workspace(problem: TreeProblem, scores: np.ndarray, n_workers: int) -> Workspace:
    n_slabs, _, n_words = slab_shape(len(problem.columns.sizes))
    n_docs, n_leaves = problem.n_docs, problem.settings.n_leaves
    # Two tasks or more for each worker, whether slabs are many or few.
    n_parts = 0 if n_workers == 1 else max(2, -(-2 * n_workers // n_slabs))
    return Workspace(
        words=problem.slabs.reshape(n_slabs, -1).view(np.uint64),
        packed=np.zeros(n_docs, np.int64),
        scores=scores,
        rows=np.zeros(n_docs, np.uint32),
        right=np.zeros(n_docs, np.uint32),
        pool=np.zeros((n_leaves + n_parts, n_words, WORD_VALUES), np.int64),
        whole=np.zeros((NODE_DOCS + 1, n_leaves), np.int64),
        real=np.zeros((NODE_GAIN + 1, n_leaves)),
        found=np.zeros((n_words, 2, FOUND_LEFT + 1), np.int64),
        found_gain=np.zeros((n_words, 2)),
        scratch=np.zeros((n_workers, MOST_WORDS * STRIDE), np.uint64),
        sums=np.zeros((n_workers, _SUMS), np.int64),
        gains=np.zeros((n_workers, COLUMN_VALUES + GAIN_LANES)),
        sides=np.zeros(N_LEFT + max(1, 2 * n_workers), np.int64),
        allowed=np.ones(len(problem.columns.by_feature), np.uint8),
    )
