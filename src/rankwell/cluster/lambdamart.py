"""LambdaMART on a cluster: histograms of leaves are summed over workers, gradients stay where the queries are.

The trees are those of one machine with the same bins, byte for byte (`rankwell.kernels.trees.cpu.shared_growth`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.cluster_run import ClusterRun
from rankwell.cluster.companions import WorkerCompanions
from rankwell.cluster.learner import Learner
from rankwell.cluster.worker_group import WorkerGroup
from rankwell.data.binning import Binner
from rankwell.data.dataset import RankingDataset
from rankwell.errors import ParameterError
from rankwell.kernels.disk_arrays import give_back
from rankwell.kernels.trees.columns import Columns
from rankwell.kernels.trees.contract import BinTree, TreeBooster, TreeProblem
from rankwell.kernels.trees.cpu.shared_booster import SharedTreeBooster
from rankwell.kernels.trees.slabs import WORD, slab_shape
from rankwell.rankers.base import TrainedModel, TrainingTask
from rankwell.rankers.grown_trees import GrownTrees
from rankwell.rankers.lambdamart import AUTOMATIC_LOSS, CANDIDATE_LOSSES, LambdaMART
from rankwell.rankers.own_loss import OwnLoss
from rankwell.rankers.tree_bins import TreeBins
from rankwell.rankers.tree_rounds import TreeRounds


class LambdaMARTLearner(Learner):
    """A worker's bins, gains and scores; of the features themselves nothing is kept."""

    def keep(self, dataset: RankingDataset, agreement: WorkersAgreement) -> None:
        ranker = self.ranker
        assert isinstance(ranker, LambdaMART)
        self._companions = WorkerCompanions(self.exchange, dataset.n_docs, dataset.n_queries, agreement)
        self._binner = Binner(ranker.n_bins, ranker.binning, random_state=ranker.random_state)
        self._binner.fit(dataset, n_jobs=self.n_threads, agreement=agreement)
        bins = TreeBins(self._binner, dataset, (), n_jobs=self.n_threads)
        names = self.feature_names or tuple(f"f{number + 1}" for number in range(self.n_features))
        rules = ranker._feature_choices(names).for_bins(bins)
        self._problems: dict[str, list[TreeProblem]] = {
            loss: ranker.problems(loss, dataset, self._companions.n_docs, bins, rules, agreement)
            for loss in losses_of(ranker)
        }
        self._boosters: list[SharedTreeBooster] = []

    def summary(self) -> Mapping[str, Any]:
        return {
            **super().summary(),
            "thresholds": self._binner.threshold_table if self.exchange.number == 0 else None,
        }

    def begin(self, loss: str, scores: np.ndarray | None, trees: Sequence[Sequence[Mapping[str, np.ndarray]]]) -> None:
        """Be in the state after the trees of each seed, from the scores of all workers' documents before them."""
        problems = self._problems[loss]
        first, n_docs = self._companions.first_doc, self.n_docs
        own = np.zeros((len(problems), n_docs), np.float32)
        if scores is not None:
            own[:] = scores[:, first : first + n_docs]
        for of_seed, problem, grown in zip(own, problems, trees, strict=True):
            for tree in grown:
                of_seed += leaf_values(BinTree(**tree), problem.slabs, problem.columns)
                give_back(problem.slabs)
        self._boosters = [
            SharedTreeBooster(self._companions, problem, of_seed, n_jobs=self.n_threads)
            for problem, of_seed in zip(problems, own, strict=True)
        ]

    def boost(self, seed: int, first: int, n_rounds: int) -> list[dict[str, np.ndarray]]:
        """Grow trees of one seed, in step with all workers; the first worker returns them, which are those of all."""
        trees = self._boosters[seed].boost_rounds(first, n_rounds)
        if self.exchange.number > 0:
            return []
        return [{field.name: getattr(tree, field.name) for field in fields(tree)} for tree in trees]

    def scores(self, seed: int) -> np.ndarray:
        return self._boosters[seed].scores()


def leaf_values(tree: BinTree, slabs: np.ndarray, columns: Columns) -> np.ndarray:
    """What a tree adds to the score of each document, float32 (n_docs,)."""
    values = np.zeros(slabs.shape[1], np.float32)
    _, words_per_slab, _ = slab_shape(len(columns.sizes))
    left_over = [(0 if len(tree.feature) else -1, np.arange(slabs.shape[1]))]
    while left_over:
        node, rows = left_over.pop()
        if node < 0:
            values[rows] = tree.leaf_value[-1 - node]
            continue
        column, divisor, n_codes, lowest, _ = columns.by_feature[tree.feature[node]].tolist()
        word = column // WORD
        place = word % words_per_slab * WORD + column % WORD
        bins = slabs[word // words_per_slab, rows, place].astype(np.int64) // divisor % n_codes + lowest
        goes_left = np.where(bins == 0, tree.missing_left[node] != 0, bins <= tree.cut[node])
        left_over += [(int(tree.left[node]), rows[goes_left]), (int(tree.right[node]), rows[~goes_left])]
    return values


class ClusterTreeBooster:
    """The workers as one `TreeBooster`, of one seed."""

    def __init__(self, trees: ClusterTrees, seed: int) -> None:
        self._trees, self._seed = trees, seed

    def boost(self, number: int) -> BinTree | None:
        return next(iter(self.boost_rounds(number, 1)), None)

    def boost_rounds(self, first: int, n_rounds: int) -> list[BinTree]:
        return self._trees.grow(self._seed, first, n_rounds)

    def boost_along(self, number: int, gradient: np.ndarray, hessian: np.ndarray) -> BinTree | None:
        raise TypeError("gradients of one's own are not sent to workers.")

    def scores(self) -> np.ndarray:
        return self._trees.scores(self._seed)


class ClusterTrees:
    """The trees of all seeds that the workers have grown since they began with `scores`, float32 (n_seeds, n_docs)."""

    def __init__(self, group: WorkerGroup, loss: str, scores: np.ndarray) -> None:
        self._group, self._loss = group, loss
        self._scores = scores if scores.any() else None
        self._grown: list[list[dict[str, np.ndarray]]] = [[] for _ in scores]
        group.run(*self._restoration())
        group.restoration = self._restoration

    def _restoration(self) -> tuple[Any, ...]:
        return "begin", self._loss, self._scores, self._grown

    def grow(self, seed: int, first: int, n_rounds: int) -> list[BinTree]:
        """The trees of one seed numbered `first` and so on; fewer than `n_rounds` if there are no more."""
        found = self._group.run("boost", seed, first, n_rounds)[0]
        self._group.report.n_steps += len(found)
        self._grown[seed] += found
        return [BinTree(**tree) for tree in found]

    def scores(self, seed: int) -> np.ndarray:
        """Of all workers' documents, float32 (n_docs,)."""
        return np.concatenate(self._group.run("scores", seed))


def losses_of(ranker: LambdaMART) -> tuple[str, ...]:
    """The losses that a training may use."""
    assert isinstance(ranker.loss, str)
    return CANDIDATE_LOSSES if ranker.loss == AUTOMATIC_LOSS else (ranker.loss,)


def check_lambdamart(ranker: LambdaMART) -> None:
    """Refuse what workers cannot do."""
    if ranker.growth != "leaf":
        raise ParameterError(f"must be 'leaf' on a cluster, got {ranker.growth!r}.", parameter="growth")
    if ranker.categorical_features is not None and len(ranker.categorical_features) > 0:
        raise ParameterError(
            "are not supported on a cluster: encode them as numbers.", parameter="categorical_features"
        )
    if ranker.device not in ("auto", "cpu"):
        raise ParameterError(f"must be 'cpu' or 'auto' on a cluster, got {ranker.device!r}.", parameter="device")


def train_lambdamart(ranker: LambdaMART, task: TrainingTask, run: ClusterRun) -> TrainedModel:
    """The driver's part: trees by the workers, everything else as on one machine."""
    if task.init_model is not None:
        raise ParameterError(
            "cannot be continued on a cluster: leave it out, or train on one machine.", parameter="init_model"
        )
    bins = TreeBins(
        Binner.of_thresholds(run.summaries[0]["thresholds"], ranker.n_bins), task.train, (), n_jobs=ranker.n_jobs
    )

    def train(loss: str | OwnLoss) -> TrainedModel:
        assert isinstance(loss, str)
        rounds = TreeRounds(
            lambda scores: _boosters(run.group, loss, scores),
            bins.values,
            GrownTrees(),
            np.zeros((ranker.n_seeds, run.n_docs), np.float32),
            np.zeros(0 if task.validation is None else task.validation.n_docs),
            None if task.validation is None else bins.columns(task.validation),
            None,
            ranker.n_jobs,
        )
        variant = f".{loss}" if ranker.loss != loss else ""
        checkpoints = run.checkpoints(ranker, task, variant)
        return ranker.train_rounds(task, rounds, run.n_docs, ranker._validation(task), checkpoints)

    return ranker.with_best_loss(task, train)


def _boosters(group: WorkerGroup, loss: str, scores: np.ndarray) -> list[TreeBooster]:
    trees = ClusterTrees(group, loss, scores)
    return [ClusterTreeBooster(trees, seed) for seed in range(len(scores))]
