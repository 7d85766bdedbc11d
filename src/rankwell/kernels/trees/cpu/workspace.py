"""The arrays that a tree is grown in. They are few, each a table of several fields: arguments take long to compile."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwell.kernels.cpu.cache_lines import LINE_BYTES, zeros_in_lines
from rankwell.kernels.disk_arrays import BLOCK_BYTES, is_on_disk
from rankwell.kernels.trees.columns import COLUMN_VALUES
from rankwell.kernels.trees.contract import BIN_SET_WORDS, TreeProblem
from rankwell.kernels.trees.cpu.vector_code import GAIN_LANES
from rankwell.kernels.trees.feature_rules import FeatureRules
from rankwell.kernels.trees.slabs import HALF_WORD, SLAB_BYTES, WORD, count_half_words, slab_shape

BLOCK = 2048
# How many documents ahead their lines are fetched into the first-level cache.
NEAR = 16
# Tasks of counting for each worker: the last of them may keep one worker while others wait.
_TASKS_PER_WORKER = 32
# Likewise of parting, whose second thread is slower: what goes left is written backwards.
_RANGES_PER_WORKER = 4
HALF_VALUES = HALF_WORD * COLUMN_VALUES

# Fields of `Workspace.whole`. Of leaves: their places in `rows`, of the documents that count and of the others; packed
# sums, depth, the node above and the place of their histograms.
START, END, OTHER_START, OTHER_END, TOTAL, DEPTH, NODE, SLOT = range(8)
# Of their best cut: feature, code (−1 if it has a set of codes on the left), where missing values go, packed sums of
# its left side, the set.
FEATURE, CODE, MISSING_LEFT, LEFT_TOTAL, SET = range(8, 13)
# Of nodes: their cut, children, packed sums and number of documents, the set of codes on the left.
NODE_FEATURE, NODE_CODE, NODE_MISSING_LEFT, NODE_LEFT, NODE_RIGHT, NODE_TOTAL, NODE_DOCS, NODE_SET = range(16, 24)
_WHOLE = NODE_SET + BIN_SET_WORDS
# Fields of `Workspace.real`: gain of a leaf's best cut; value of a leaf, bounds of its step, and its l2; gain of a
# node.
GAIN, VALUE, LOW, HIGH, L2, NODE_GAIN = range(6)
# Fields of `Workspace.found`, the best cut of the columns of half a word.
FOUND_FEATURE, FOUND_CODE, FOUND_MISSING_LEFT, FOUND_LEFT, FOUND_SET = range(5)
_FOUND = FOUND_SET + BIN_SET_WORDS
# Places in a worker's row of `Workspace.sums`: after a block's packed values, sums up to each code, the same without
# missing values, and sums of codes.
RUNNING, SHIFTED, MARGINAL = (BLOCK + k * (COLUMN_VALUES + GAIN_LANES) for k in range(3))
_SUMS = BLOCK + 3 * (COLUMN_VALUES + GAIN_LANES)
# The place in a worker's row of `Workspace.gains` of sums over leaves.
LEVEL_GAINS = COLUMN_VALUES + GAIN_LANES
# Places in `Workspace.sides` after the 256 that say which values of a column go left: by part, how many went left;
# first of the documents that count, then of the others.
N_LEFT = COLUMN_VALUES
N_LIMITS = 9
# Numbers of a cache line: what different threads write is in different lines.
_IN_LINE = LINE_BYTES // 8


class Workspace(NamedTuple):
    """Arrays of a tree in growth.

    words : uint64 (n_slabs, n_docs · 8), lines : uint8 (n_slabs, n_docs · 64), both the slabs
    copies : uint8 (n_copies, n_docs), copy_of : int64 (n_columns,), of columns, see `ColumnCopies`
    packed : int64 (n_docs,), gradients and Hessians; scores : float32 (n_docs,)
    rows : uint32 (n_docs + NEAR,), the documents that count by leaf, the others by leaf; right : uint32 (n_docs,), of a
        leaf that is being parted, those that go right, and of its later parts the others as well
    pool : int64 (n_leaves + n_workers, n_words, 2048), histograms of leaves, then of workers, unless all is one part
    begun : int64 (n_workers, n_slabs or more), the last count in which a worker had a part of a slab that another one
        had begun
    owners : int64 (n_slabs,), which worker began each slab, and in which count: count · n_workers + worker
    whole : int64 (28, n_leaves), real : float64 (6, n_leaves), leaves and nodes
    live : uint64 (n_leaves, n_words of groups), the groups that all features on a leaf's path are in
    found : int64 (n_halves, 2, 9), found_gain : float64 (n_halves, 8), cuts of the two leaves searched, by half words
    to_beat : float64, beaten : int64 (n_workers, 8), by worker the best gain found so far for either, and its feature
    sums : int64 (n_workers, ...), gains : float64 (n_workers, 528), by worker
    sides : int64 (256 + 2 · n_ranges,); allowed : uint8 (n_features,), 1 for features that may be cut
    n_counted : int64 (n_words, 2), shifts : uint64 (n_words, 8), the columns of each word that are counted: how many
        of its first half, and of all of it; and where their bits begin
    direction, n_categories, groups : of `FeatureRules`
    limits : float64 (9,), what cuts of the present tree must satisfy (`splits.Limits`)
    """

    words: np.ndarray
    lines: np.ndarray
    copies: np.ndarray
    copy_of: np.ndarray
    packed: np.ndarray
    scores: np.ndarray
    rows: np.ndarray
    right: np.ndarray
    pool: np.ndarray
    begun: np.ndarray
    owners: np.ndarray
    whole: np.ndarray
    real: np.ndarray
    live: np.ndarray
    found: np.ndarray
    found_gain: np.ndarray
    to_beat: np.ndarray
    beaten: np.ndarray
    sums: np.ndarray
    gains: np.ndarray
    sides: np.ndarray
    allowed: np.ndarray
    n_counted: np.ndarray
    shifts: np.ndarray
    direction: np.ndarray
    n_categories: np.ndarray
    groups: np.ndarray
    limits: np.ndarray


def most_parts(problem: TreeProblem, n_workers: int) -> int:
    """The most parts that a leaf's documents are counted in: several tasks for each worker, if slabs are few."""
    n_slabs, _, _ = slab_shape(len(problem.columns.sizes))
    n_parts = 1 if n_workers == 1 else -(-_TASKS_PER_WORKER * n_workers // n_slabs)
    return max(n_parts, _blocks_on_disk(problem))


def _blocks_on_disk(problem: TreeProblem) -> int:
    """Parts whose lines, of one slab, are a few blocks of the disk; 1 in memory."""
    return -(-problem.n_docs * SLAB_BYTES // (4 * BLOCK_BYTES)) if is_on_disk(problem.slabs) else 1


def new_workspace(
    problem: TreeProblem, scores: np.ndarray, copies: np.ndarray, copy_of: np.ndarray, n_workers: int
) -> Workspace:
    n_columns = len(problem.columns.sizes)
    (n_slabs, _, n_words), n_halves = slab_shape(n_columns), count_half_words(n_columns)
    n_docs, n_leaves, n_features = problem.n_docs, problem.settings.n_leaves, len(problem.columns.by_feature)
    feature_rules = problem.feature_rules or FeatureRules.none(n_features)
    n_ranges = max(_RANGES_PER_WORKER * n_workers, _blocks_on_disk(problem))
    n_counting = n_workers if most_parts(problem, n_workers) > 1 else 0
    return Workspace(
        words=problem.slabs.reshape(n_slabs, -1).view(np.uint64),
        lines=problem.slabs.reshape(n_slabs, -1),
        copies=copies,
        copy_of=copy_of,
        packed=zeros_in_lines((n_docs,), np.int64),
        scores=scores,
        rows=zeros_in_lines((n_docs + NEAR,), np.uint32),
        right=zeros_in_lines((n_docs,), np.uint32),
        pool=zeros_in_lines((n_leaves + n_counting, n_words, 2 * HALF_VALUES), np.int64),
        begun=zeros_in_lines((n_workers, -(-n_slabs // _IN_LINE) * _IN_LINE), np.int64),
        owners=np.zeros(n_slabs, np.int64),
        whole=np.zeros((_WHOLE, n_leaves), np.int64),
        real=np.zeros((NODE_GAIN + 1, n_leaves)),
        live=np.zeros((n_leaves, feature_rules.groups.shape[1]), np.uint64),
        found=np.zeros((n_halves, 2, _FOUND), np.int64),
        found_gain=zeros_in_lines((n_halves, _IN_LINE), np.float64),
        to_beat=zeros_in_lines((n_workers, _IN_LINE), np.float64),
        beaten=zeros_in_lines((n_workers, _IN_LINE), np.int64),
        sums=zeros_in_lines((n_workers, _SUMS), np.int64),
        gains=zeros_in_lines((n_workers, 2 * LEVEL_GAINS), np.float64),
        sides=np.zeros(N_LEFT + 2 * n_ranges, np.int64),
        allowed=np.ones(n_features, np.uint8),
        n_counted=np.zeros((n_words, 2), np.int64),
        shifts=np.zeros((n_words, WORD), np.uint64),
        direction=feature_rules.direction,
        n_categories=feature_rules.n_categories,
        groups=feature_rules.groups,
        limits=np.zeros(N_LIMITS),
    )
