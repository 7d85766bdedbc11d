"""A program that a test runs with NUMBA_BOUNDSCHECK=1: is every index really checked, and do these kernels pass?"""

import numpy as np
from tests.scoring.random_rankers import describe, forest

from rankwell.data.dataset import RankingDataset
from rankwell.kernels.cpu.compilation import kernel
from rankwell.scoring.layers import Dense
from rankwell.scoring.reference_scores import reference_scores
from rankwell.scoring.scorer import score_description
from rankwell.scoring.tree_builder import Tree, TreeBuilder


@kernel
def element(values, place):
    """Reads beyond an array if it is asked to."""
    return values[place]


def is_checked():
    """Whether a kernel that reads one element too far is stopped; it is cached with and without checks."""
    try:
        element(np.zeros(8)[:3], 3)
    except IndexError:
        return True
    return False


def check_single_leaves():
    """Trees that are single leaves test no column: there are no bins to compare with."""
    leaves, mixed = TreeBuilder(), TreeBuilder()
    for value in (1.0, 2.5):
        leaves.add(Tree([], [], [], [], [], [value]))
        mixed.add(Tree([], [], [], [], [], [value]))
    mixed.add(Tree([mixed.column(1)], [0.5], [True], [-1], [-2], [1.0, 2.0]))
    generator = np.random.default_rng(0)
    for trees in (leaves.build(), mixed.build(), TreeBuilder().build()):
        for n_docs in (1, 12, 13, 65):
            rows = generator.normal(size=(n_docs, 3)).astype(np.float32)
            one_by_one = describe(3, [trees], [Dense(np.ones((1, len(trees))), np.zeros(1))])
            for description in (forest(trees, 3, 0.5), one_by_one):
                scores = score_description(description, RankingDataset(rows, None, group=[n_docs]))
                np.testing.assert_allclose(scores, reference_scores(description, rows))


if __name__ == "__main__":
    print("checked" if is_checked() else "not checked")
    check_single_leaves()
