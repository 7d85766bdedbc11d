"""Trees on several CPUs that share no memory, those of one process, byte for byte: see `shared_growth`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankwell.kernels.boosting.contract import Companions
from rankwell.kernels.cpu.team import FAILED, STOP, new_team
from rankwell.kernels.disk_arrays import give_back
from rankwell.kernels.threads import run_parts
from rankwell.kernels.trees.contract import BinTree, TreeProblem
from rankwell.kernels.trees.cpu.booster import CpuTreeBooster
from rankwell.kernels.trees.cpu.gradients import Totals
from rankwell.kernels.trees.cpu.growth import Plan
from rankwell.kernels.trees.cpu.shared_growth import (
    ALL_LEFT,
    BEGIN,
    LEAVES,
    N_STATE,
    OWN_LEFT,
    help_tree,
    lead_tree,
)
from rankwell.kernels.trees.cpu.splits import Limits
from rankwell.kernels.trees.cpu.tasks import COUNT, COUNTING, N_PARTS, PART, SMALL, STREAMED
from rankwell.kernels.trees.sampling import Sampling


class _SharedTotals(Totals):
    """Sums over the documents of all processes."""

    def __init__(self, companions: Companions) -> None:
        super().__init__(companions.n_docs)
        self._companions = companions

    def largest(self, values: list[float]) -> list[float]:
        gathered = [found.tolist() for found in self._companions.gather(np.array(values, dtype=np.float64))]
        return [max(of_all) for of_all in zip(*gathered, strict=True)]

    def sums(self, values: list[int]) -> list[int]:
        return [int(total) for total in self._companions.sum(np.array(values, dtype=np.int64))]


class SharedTreeBooster(CpuTreeBooster):
    """One of several processes, each with some of the queries.

    Parameters
    ----------
    companions : Companions
    problem, scores, n_jobs : see `CpuTreeBooster`; of this process's documents
    """

    def __init__(
        self, companions: Companions, problem: TreeProblem, scores: np.ndarray, *, n_jobs: int | None = None
    ) -> None:
        self._companions = companions
        super().__init__(problem, scores, n_jobs=n_jobs)
        self._docs = np.zeros((2, problem.settings.n_leaves), dtype=np.int64)

    def _docs_before(self) -> int:
        return self._companions.first_doc

    def _totals(self) -> Totals:
        return _SharedTotals(self._companions)

    def _counting_documents(self, sampling: Sampling, number: int, query_ptr: np.ndarray) -> np.ndarray:
        return sampling.counting_documents(number, query_ptr, self._companions.first_query, self._companions.first_doc)

    def _grow(self, limits: Limits, plan: Plan) -> int:
        control, state = new_team().control, np.zeros(N_STATE, dtype=np.int64)
        control[STREAMED] = self._slab_memory()
        self._space.begun[:] = 0
        self._space.owners[:] = 0
        shared = (control, self._space, self._problem.columns)
        own = np.array([plan.n_counting, plan.n_docs - plan.n_counting], dtype=np.int64)
        self._docs[:, 0] = self._companions.sum(own)

        def take_part(worker: int) -> None:
            try:
                if worker > 0:
                    help_tree(worker, *shared, plan)
                    return
                while (stage := lead_tree(state, self._docs, *shared, limits, plan)) != BEGIN:
                    self._exchange(stage, control, state)
                control[STOP] = 1
            except BaseException:
                control[FAILED] = control[STOP] = 1
                raise

        run_parts(take_part, self._n_workers)
        give_back(self._problem.slabs)
        return int(state[LEAVES])

    def _exchange(self, stage: int, control: np.ndarray, state: np.ndarray) -> None:
        if stage == COUNT:
            small = self._space.pool[control[SMALL]]
            own = small if control[N_PARTS] == 1 else self._counted(control)
            small[:] = self._companions.sum(own)
            control[N_PARTS] = 1
        elif stage == PART:
            state[ALL_LEFT : ALL_LEFT + 2] = self._companions.sum(state[OWN_LEFT : OWN_LEFT + 2].copy())

    def _counted(self, control: np.ndarray) -> np.ndarray:
        """The histograms of the leaf that was counted in several parts, as in `merge_parts`."""
        small = self._space.pool[control[SMALL]]
        has_slab = self._space.begun == control[COUNTING]
        n_words = self._space.pool.shape[1]
        has_word = np.repeat(has_slab, self._words_per_slab, axis=1)[:, :n_words, None]
        return small + np.where(has_word, self._space.pool[self._space.whole.shape[1] :], 0).sum(axis=0)

    def _is_grown_in_rounds(self) -> bool:
        return False

    def _tree(self, whole: np.ndarray, real: np.ndarray, n_leaves: int, a: int, b: int) -> BinTree:
        tree = super()._tree(whole, real, n_leaves, a, b)
        return replace(tree, leaf_docs=self._docs[:, :n_leaves].sum(axis=0))
