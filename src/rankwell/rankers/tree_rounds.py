"""LambdaMART's rounds as steps of a training run: a tree each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rankwell.errors import ParameterError
from rankwell.kernels.threads import kernel_threads, run_ranges
from rankwell.kernels.trees.contract import BinTree, TreeBooster
from rankwell.rankers.grown_trees import BinValues, GrownTree, GrownTrees
from rankwell.rankers.training_run import Steps, StepSource

# Of fewer validation documents, several rounds are scored and measured at once.
_FEW_DOCS = 2**15
# A range of fewer takes less time than waking a thread.
_DOCS_OF_A_RANGE = 2**11
_LARGEST_SCORE = float(np.finfo(np.float32).max)
_TRAINING_SCORES, _VALIDATION_SCORES = "training scores", "validation scores"


class TreeRounds(StepSource):
    """Rounds on some device.

    Parameters
    ----------
    make_boosters : callable
        Creates the device's runs, one for each seed, from the training documents' scores, float32 (n_seeds, n_docs).
    bin_values : BinValues
        What bins mean.
    earlier : GrownTrees
        The model that training continues from.
    scores, validation_scores : float32 (n_seeds, n_docs) and float64 (n_docs,)
        Of the training and validation documents by the earlier model; changed as trees are grown.
    validation_bins : uint8 (n_features, n_docs or more), optional
    own_loss : callable, optional
        Gradient and Hessian at some scores, instead of the booster's loss.

    Attributes
    ----------
    trees : GrownTrees
        The earlier model's, and those grown.
    """

    figures = ("gain", "leaves")

    def __init__(
        self,
        make_boosters: Callable[[np.ndarray], list[TreeBooster]],
        bin_values: BinValues,
        earlier: GrownTrees,
        scores: np.ndarray,
        validation_scores: np.ndarray,
        validation_bins: np.ndarray | None,
        own_loss: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self._make_boosters, self._bin_values, self._n_jobs = make_boosters, bin_values, n_jobs
        self._boosters: list[TreeBooster] = []
        self._scores, self._validation_scores, self._validation_bins = scores, validation_scores, validation_bins
        self._own_loss = own_loss
        self._n_earlier = len(earlier)
        self.trees = earlier
        # By seed, what no training score is above, nor below its negative.
        self._farthest = [_largest_size(of_seed) for of_seed in scores]
        self._unmeasured: list[list[BinTree]] = []

    def run(self, n_steps: int) -> Steps:
        if not self._boosters:
            self._boosters = self._make_boosters(self._scores)
        number, share = len(self.trees) // len(self._boosters), 1.0 / len(self._boosters)
        grown = [self._grow(seed, number, n_steps) for seed in range(len(self._boosters))]
        # A round has a tree of each booster: all of them end together, or none does.
        self._unmeasured = [list(trees) for trees in zip(*grown, strict=True)]
        for trees in self._unmeasured:
            self.trees.trees += [GrownTree.from_bins(tree, self._bin_values, share) for tree in trees]
        figures = [
            {
                "gain": sum(float(tree.gain.sum()) for tree in trees) / len(trees),
                "leaves": sum(tree.n_leaves for tree in trees) / len(trees),
            }
            for trees in self._unmeasured
        ]
        return Steps(figures, finished=len(figures) < n_steps)

    def _grow(self, seed: int, first: int, n_rounds: int) -> list[BinTree]:
        """The trees numbered `first` and so on of a seed; fewer than `n_rounds` if there are no more."""
        booster = self._boosters[seed]
        if self._own_loss is None:
            trees = booster.boost_rounds(first, n_rounds)
            for number, tree in enumerate(trees, start=first):
                self._check_values(seed, number, tree)
            return trees
        trees = []
        for number in range(first, first + n_rounds):
            grown = booster.boost_along(number, *self._own_loss(booster.scores()))
            if grown is None:
                break
            self._check_values(seed, number, grown)
            trees.append(grown)
        return trees

    def _check_values(self, seed: int, number: int, tree: BinTree) -> None:
        """Refuse leaves by which scores may leave single precision; gradients would have no meaning."""
        self._farthest[seed] += _largest_size(tree.leaf_value)
        # A NaN is not below anything.
        if not self._farthest[seed] < _LARGEST_SCORE:
            raise ParameterError(
                f"is too large for this data: by the leaves of round {number + 1}, scores may leave single precision. "
                "Use a smaller one, or a larger l2 if the loss's Hessian is near 0.",
                parameter="learning_rate",
            )

    def validation_scores(self) -> np.ndarray:
        from rankwell.kernels.trees.cpu.tree_values import add_tree

        assert self._validation_bins is not None
        grown = self._unmeasured.pop(0)
        with kernel_threads(self._n_jobs):
            for tree in grown:
                add_tree(self._validation_bins, tree, 1.0 / len(grown), self._validation_scores)
        return self._validation_scores

    def scores_of_steps(self) -> Sequence[np.ndarray]:
        bins, n_seeds = self._validation_bins, len(self._boosters)
        if bins is None or len(self._validation_scores) >= _FEW_DOCS:
            return super().scores_of_steps()
        from rankwell.kernels.trees.cpu.tree_values import TreeValues

        rounds = [[TreeValues(tree, 1.0 / n_seeds) for tree in grown] for grown in self._unmeasured]
        scores, self._unmeasured = np.empty((len(rounds), len(self._validation_scores))), []

        def add(start: int, end: int) -> None:
            for number, trees in enumerate(rounds):
                for values in trees:
                    values.add(bins, self._validation_scores, start, end)
                scores[number, start:end] = self._validation_scores[start:end]

        with kernel_threads(self._n_jobs):
            run_ranges(add, len(self._validation_scores), 1, least_items=_DOCS_OF_A_RANGE)
        return list(scores)

    def first(self, n_rounds: int) -> GrownTrees:
        """The earlier model's trees and the first `n_rounds` of this run."""
        return self.trees.first(self._n_earlier + n_rounds * len(self._scores))

    def arrays(self) -> dict[str, np.ndarray]:
        scores = [booster.scores() for booster in self._boosters]
        return {
            **self.trees.to_arrays(),
            _TRAINING_SCORES: np.stack(scores) if scores else self._scores,
            _VALIDATION_SCORES: self._validation_scores,
        }

    def restore(self, arrays: Mapping[str, np.ndarray], n_steps: int) -> None:
        self.trees = GrownTrees.from_arrays(arrays)
        self._scores, self._validation_scores = arrays[_TRAINING_SCORES].copy(), arrays[_VALIDATION_SCORES].copy()
        self._farthest = [_largest_size(of_seed) for of_seed in self._scores]


def _largest_size(values: np.ndarray) -> float:
    return float(np.abs(values).max(initial=0.0))
