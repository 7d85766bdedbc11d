"""The common interface of other libraries' tree evaluators: a model made from our trees, and a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from rankwell.scoring.trees import TreeInputs

Predict = Callable[[np.ndarray], np.ndarray]
# Numbers of threads that each library is tried with: for few documents one is often the fastest.
THREADS = (1, 2)


class TreeRival(Protocol):
    """A module of this folder."""

    NAME: str
    IS_INSTALLED: bool

    def prepare(self, trees: TreeInputs, n_features: int) -> list[Predict]:
        """The library's model of these trees, as calls from float32 rows to their scores: one for each number of
        threads and each form of the model that could be the fastest for some number of documents.
        """


def trees_one_by_one(trees: TreeInputs) -> list[dict[str, np.ndarray]]:
    """Each tree's own arrays, nodes reading features (not columns)."""
    parts = []
    for t in range(len(trees)):
        nodes = slice(trees.node_ptr[t], trees.node_ptr[t + 1])
        parts.append(
            {
                "feature": trees.column_feature[trees.column[nodes]],
                "threshold": trees.threshold[nodes],
                "left": trees.left[nodes],
                "right": trees.right[nodes],
                "leaf": trees.leaf_value[trees.leaf_ptr[t] : trees.leaf_ptr[t + 1]],
            }
        )
    return parts
