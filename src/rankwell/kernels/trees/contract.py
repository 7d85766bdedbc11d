"""The input and output of boosted trees on a device.

Vocabulary. A *cut* divides the documents of a leaf by one feature: left where its bin is at most the cut's bin, right
where it is higher; the cut also says where missing values (bin 0) go. A cut by a categorical feature has a set of bins
on the left. `rules` defines every number that decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from rankwell.kernels.device import ON_DISK, Implementation, Refusal, Subject, at_most
from rankwell.kernels.device_report import DeviceReport
from rankwell.kernels.disk_arrays import is_on_disk
from rankwell.kernels.trees.columns import Columns
from rankwell.kernels.trees.feature_rules import FeatureRules
from rankwell.kernels.trees.losses import JudgedQueries, RankingLoss
from rankwell.kernels.trees.sampling import Sampling

MOST_LEAVES = 2**14
MOST_DOCS = 2**30
# On a CUDA device, a block's shared memory holds what is known of all leaves.
MOST_CUDA_LEAVES = 1024


@dataclass(frozen=True)
class TreeSettings:
    """How a tree grows.

    n_leaves : leaves at most, 2 or more
    max_depth : cuts at most between the root and a leaf; 0 for any number
    min_docs_leaf, min_hessian_leaf : of each side of a cut (see `rules.least_hessian`)
    l1, l2 : penalties on leaf values
    min_gain : a cut must gain more
    learning_rate : the share of a leaf's best value that it gets
    is_symmetric : all leaves of a level have the same cut; `max_depth` is then 1 or more, and `n_leaves` 2^max_depth
    category_smoothing, category_l2, max_category_set : of cuts by categories
    """

    n_leaves: int
    max_depth: int = 0
    min_docs_leaf: int = 1
    min_hessian_leaf: float = 0.0
    l1: float = 0.0
    l2: float = 0.0
    min_gain: float = 0.0
    learning_rate: float = 0.1
    is_symmetric: bool = False
    category_smoothing: float = 10.0
    category_l2: float = 10.0
    max_category_set: int = 32


# Of the bins of a byte, a bit each.
BIN_SET_WORDS = 4


@dataclass(frozen=True)
class BinTree:
    """A tree over bins; it has one leaf more than nodes. A child c >= 0 is node c, c < 0 is leaf −1 − c.

    A tree that is only a leaf has no nodes, and the value 0.

    feature, cut, left, right : int32 (n_nodes,); left where bin <= cut; a cut of −1 has a set of bins instead
    missing_left : uint8 (n_nodes,)
    gain : float64 (n_nodes,), in the loss's own units
    node_docs, node_hessian : int64 and float64 (n_nodes,), the documents of a node and their Σh
    leaf_docs, leaf_hessian : int64 and float64 (n_leaves,)
    leaf_value : float32 (n_leaves,)
    left_bins : uint64 (n_nodes, 4), the bins on the left of a cut by categories, a bit each; empty if no node has one
    """

    feature: np.ndarray
    cut: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    gain: np.ndarray
    node_docs: np.ndarray
    node_hessian: np.ndarray
    leaf_docs: np.ndarray
    leaf_hessian: np.ndarray
    leaf_value: np.ndarray
    left_bins: np.ndarray = field(default_factory=lambda: np.zeros((0, BIN_SET_WORDS), np.uint64))

    @property
    def n_leaves(self) -> int:
        return len(self.leaf_value)

    @classmethod
    def of_one_leaf(cls, n_docs: int) -> Self:
        """The tree of a round whose random parts give no cut: it changes no score of its `n_docs` documents."""
        return cls(
            **{name: np.zeros(0, np.int32) for name in ("feature", "cut", "left", "right")},
            missing_left=np.zeros(0, np.uint8),
            gain=np.zeros(0),
            node_docs=np.zeros(0, np.int64),
            node_hessian=np.zeros(0),
            leaf_docs=np.array([n_docs]),
            leaf_hessian=np.zeros(1),
            leaf_value=np.zeros(1, np.float32),
        )


@dataclass(frozen=True)
class TreeProblem:
    """What trees are grown on.

    slabs : uint8 (n_slabs, n_docs, 64), the columns of each document: see `slabs`
    columns : Columns
    settings : TreeSettings
    loss, queries : RankingLoss and JudgedQueries, or None if every tree is given its gradients
    query_ptr, sampling : int64 (n_queries + 1,) and what trees are grown on; None for everything
    feature_rules : FeatureRules, or None if there are none
    """

    slabs: np.ndarray
    columns: Columns
    settings: TreeSettings
    loss: RankingLoss | None = None
    queries: JudgedQueries | None = None
    query_ptr: np.ndarray | None = None
    sampling: Sampling | None = None
    feature_rules: FeatureRules | None = None

    @property
    def n_docs(self) -> int:
        return int(self.slabs.shape[1])

    @property
    def is_random(self) -> bool:
        """Whether a tree depends on its number: then a tree with a cut may come after one without."""
        is_drawn = self.sampling is not None and self.sampling.is_random
        return is_drawn or (self.loss is not None and self.loss.is_random)


class TreeBooster(Protocol):
    """Grows trees on one device, and keeps the scores of the training documents there."""

    def boost(self, number: int) -> BinTree | None:
        """Grow tree `number`, which lowers the problem's loss, and add its values to the scores.

        The number, counted from 0 over the whole model, only determines random numbers.

        If no cut is allowed or gains anything, it is a tree of one leaf where the problem is random, and None where it
        is not: no later tree would have a cut either.
        """
        ...

    def boost_rounds(self, first: int, n_rounds: int) -> list[BinTree]:
        """Grow the trees numbered `first` and so on, as `boost` does: fewer than `n_rounds` once it returns None."""
        ...

    def boost_along(self, number: int, gradient: np.ndarray, hessian: np.ndarray) -> BinTree | None:
        """Grow tree `number` for these, float32 (n_docs,), Hessians not negative, instead of the problem's loss."""
        ...

    def scores(self) -> np.ndarray:
        """The scores of the training documents, float32 (n_docs,); not to be changed."""
        ...


def _lacks(problem: TreeProblem, **_: Any) -> Refusal | None:
    return ON_DISK if is_on_disk(problem.slabs) else None


def _cuda_limits(problem: TreeProblem, report: DeviceReport, **_: Any) -> Refusal | None:
    return at_most(problem.settings.n_leaves, MOST_CUDA_LEAVES, "leaves")


BOOSTED_TREES = Subject(
    "train LambdaMART",
    {
        "cpu": Implementation("rankwell.kernels.trees.cpu.booster:CpuTreeBooster", options=("n_jobs",)),
        "cuda": Implementation(
            "rankwell.kernels.trees.cuda.booster:CudaTreeBooster",
            lacks=_lacks,
            capability=80,
            limits=_cuda_limits,
            memory="rankwell.kernels.trees.cuda.booster:device_bytes",
        ),
    },
)
