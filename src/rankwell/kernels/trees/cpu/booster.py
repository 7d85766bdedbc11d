"""Trees on the CPU, one after another."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rankwell.kernels.cpu.team import FAILED, STOP, new_team
from rankwell.kernels.disk_arrays import give_back, is_on_disk
from rankwell.kernels.threads import current_threads, kernel_threads, run_parts
from rankwell.kernels.trees.columns import COLUMN, LOWEST, bins_of_codes
from rankwell.kernels.trees.contract import BIN_SET_WORDS, BinTree, TreeProblem
from rankwell.kernels.trees.cpu.column_copies import ColumnCopies
from rankwell.kernels.trees.cpu.drawing import counting_documents
from rankwell.kernels.trees.cpu.gradients import Totals, pack_gradients
from rankwell.kernels.trees.cpu.growth import Plan, grow_tree
from rankwell.kernels.trees.cpu.lambdas import pair_gradient_source
from rankwell.kernels.trees.cpu.levels import grow_levels
from rankwell.kernels.trees.cpu.random_gradients import XendcgGradients, noisy_scores
from rankwell.kernels.trees.cpu.rounds import (
    GRADIENT_EXPONENT,
    HESSIAN_EXPONENT,
    LEAVES,
    RoundGradients,
    grow_rounds,
    new_grown_rounds,
    new_round_gradients,
)
from rankwell.kernels.trees.cpu.splits import Limits
from rankwell.kernels.trees.cpu.tasks import STREAMED
from rankwell.kernels.trees.cpu.workspace import (
    END,
    NODE_CODE,
    NODE_DOCS,
    NODE_FEATURE,
    NODE_GAIN,
    NODE_LEFT,
    NODE_MISSING_LEFT,
    NODE_RIGHT,
    NODE_SET,
    NODE_TOTAL,
    OTHER_END,
    OTHER_START,
    START,
    TOTAL,
    VALUE,
    most_parts,
    new_workspace,
)
from rankwell.kernels.trees.losses import XENDCG, JudgedQueries, RankingLoss
from rankwell.kernels.trees.rules import LOWER_HALF
from rankwell.kernels.trees.sampling import NODE_STREAM, Sampling, stream_seed
from rankwell.kernels.trees.slabs import HALF_WORD, SLAB_MEMORY, WORD, slab_shape

# Fills gradient and Hessian from scores and the number of the round; all but the number float32 (n_docs,).
GradientSource = Callable[[np.ndarray, int, np.ndarray, np.ndarray], None]

# With fewer values, a tree is grown before another thread could help: waking it takes 0.1 ms, handing over a leaf 0.01.
_VALUES_FOR_A_TEAM = 2**20
# Of trees that are grown together.
_ROUNDS_MEMORY = 2**23
# How many are grown together, for each that was grown before.
_ROUNDS_PER_ROUND = 4


class CpuTreeBooster:
    """See `TreeBooster`.

    Parameters
    ----------
    problem : TreeProblem
    scores : float32 (n_docs,)
        Of the training documents before the first tree; changed as trees are grown.
    n_jobs : int, optional
    """

    def __init__(self, problem: TreeProblem, scores: np.ndarray, *, n_jobs: int | None = None) -> None:
        _, self._words_per_slab, n_words = slab_shape(len(problem.columns.sizes))
        self._problem, self._n_jobs, self._scores = problem, n_jobs, scores
        with kernel_threads(n_jobs):
            is_small = problem.n_docs * n_words * WORD < _VALUES_FOR_A_TEAM
            self._n_workers = 1 if is_small else current_threads()
            self._fill_gradients = None
            if problem.loss is not None and problem.queries is not None:
                self._fill_gradients = gradient_source(problem.loss, problem.queries, self._docs_before())
        self._copies = ColumnCopies(problem)
        self._space = new_workspace(problem, scores, self._copies.copies, self._copies.copy_of, self._n_workers)
        self._with_gradients = _ordered_rows(_documents_with_gradients(problem))
        self._everything = _ordered_rows(np.ones(problem.n_docs, bool))
        self._gradient, self._hessian = (np.zeros(problem.n_docs, np.float32) for _ in range(2))
        self._round_gradients: RoundGradients | None = None
        self._n_grown = 0
        self._choose_columns()

    def _docs_before(self) -> int:
        """Documents of other processes that come before these."""
        return 0

    def scores(self) -> np.ndarray:
        """See `TreeBooster`."""
        return self._scores

    def boost(self, number: int) -> BinTree | None:
        """See `TreeBooster`."""
        if self._fill_gradients is None:
            raise ValueError("the problem has no loss: give the gradients, with boost_along.")
        with kernel_threads(self._n_jobs):
            self._fill_gradients(self._scores, number, self._gradient, self._hessian)
        return self._boost(number, self._gradient, self._hessian, self._with_gradients)

    def boost_rounds(self, first: int, n_rounds: int) -> list[BinTree]:
        """See `TreeBooster`."""
        trees: list[BinTree] = []
        if self._is_grown_in_rounds():
            while len(trees) < n_rounds:
                wanted = min(n_rounds - len(trees), self._most_rounds())
                trees += (grown := self._grow_rounds(first + len(trees), wanted))
                if len(grown) < wanted:
                    without_cut = self._without_cut()
                    if without_cut is None:
                        break
                    trees.append(without_cut)
            return trees
        for number in range(first, first + n_rounds):
            tree = self.boost(number)
            if tree is None:
                break
            trees.append(tree)
        return trees

    def _is_grown_in_rounds(self) -> bool:
        """Whether nothing happens between the steps of a round that only Python does."""
        problem = self._problem
        if problem.loss is None or problem.queries is None or problem.settings.is_symmetric:
            return False
        sampling = problem.sampling or Sampling()
        return not problem.loss.is_random and sampling.draws_everything

    def _most_rounds(self) -> int:
        """So many that their trees take some megabytes; fewer at first, since columns are copied between calls."""
        most = _ROUNDS_MEMORY // (self._space.whole.nbytes + self._space.real.nbytes)
        if self._copies.has_room():
            most = min(most, _ROUNDS_PER_ROUND * self._n_grown)
        return max(1, most)

    def _grow_rounds(self, first: int, n_rounds: int) -> list[BinTree]:
        """Trees of several rounds, by one call of every thread."""
        problem = self._problem
        assert problem.loss is not None
        assert problem.queries is not None
        rows, n_counting = self._with_gradients
        if self._round_gradients is None:
            self._round_gradients = new_round_gradients(
                problem.loss, problem.queries, rows, self._gradient, self._hessian, self._n_workers
            )
        given, grown = self._round_gradients, new_grown_rounds(self._space, n_rounds)
        limits, plan, columns = self._limits(), self._plan(first, n_counting), problem.columns
        with kernel_threads(self._n_jobs):
            self._copies.fill()
            n_grown = self._in_team(
                lambda worker, control: grow_rounds(worker, control, self._space, columns, limits, plan, given, grown)
            )
        return self._trees(grown.whole[:n_grown], grown.real[:n_grown], grown.numbers[:n_grown])

    def boost_along(self, number: int, gradient: np.ndarray, hessian: np.ndarray) -> BinTree | None:
        """See `TreeBooster`."""
        return self._boost(number, gradient, hessian, self._everything)

    def _boost(
        self, number: int, gradient: np.ndarray, hessian: np.ndarray, candidates: tuple[np.ndarray, int]
    ) -> BinTree | None:
        """Grow a tree; candidates : `_ordered_rows`, after the first of them gradient and Hessian are 0 for certain"""
        counts, min_docs_leaf = self._sample(number)
        with kernel_threads(self._n_jobs):
            packed = pack_gradients(gradient, hessian, self._space.packed, counts, self._totals())
            if packed is None:
                return self._without_cut()
            rows, n_counting = candidates
            if len(counts):
                is_candidate = np.zeros(len(rows), bool)
                is_candidate[rows[:n_counting]] = True
                rows, n_counting = _ordered_rows(is_candidate & (counts != 0))
            self._space.rows[: len(rows)] = rows
            a, b = packed.gradient_exponent, packed.hessian_exponent
            limits, plan = self._scaled_limits(min_docs_leaf, a, b), self._plan(number, n_counting)
            self._space.limits[:] = limits
            self._copies.fill()
            n_leaves = self._grow(limits, plan._replace(total=packed.total, scale=math.ldexp(1.0, b - a)))
        return self._tree(self._space.whole, self._space.real, n_leaves, a, b) if n_leaves > 1 else self._without_cut()

    def _without_cut(self) -> BinTree | None:
        """What a round gives whose tree has no cut."""
        return BinTree.of_one_leaf(self._totals().n_docs) if self._problem.is_random else None

    def _totals(self) -> Totals:
        return Totals(self._problem.n_docs)

    def _sample(self, number: int) -> tuple[np.ndarray, int]:
        """Draw the tree's features; returns which documents count, and min_docs_leaf for their number."""
        problem, sampling = self._problem, self._problem.sampling
        least, everything = problem.settings.min_docs_leaf, np.zeros(0, np.uint8)
        if sampling is None:
            return everything, least
        if sampling.features < 1.0:
            varying = np.sort(problem.columns.features)
            self._space.allowed[:] = sampling.allowed_features(number, varying, len(self._space.allowed))
            self._choose_columns()
        if not sampling.draws_documents or problem.query_ptr is None:
            return everything, least
        counts = self._counting_documents(sampling, number, problem.query_ptr)
        of_all = self._totals()
        n_counting = max(1, of_all.sums([int(counts.sum())])[0])
        scaled = max(1, (2 * least * of_all.n_docs + n_counting) // (2 * n_counting))
        # With more no leaf can be cut either, and products of more might not fit.
        return counts, min(scaled, of_all.n_docs)

    def _counting_documents(self, sampling: Sampling, number: int, query_ptr: np.ndarray) -> np.ndarray:
        with kernel_threads(self._n_jobs):
            return counting_documents(sampling, number, query_ptr)

    def _choose_columns(self) -> None:
        """Count the columns with features that are allowed, and no others."""
        space, columns = self._space, self._problem.columns
        column = columns.by_feature[columns.features, COLUMN]
        chosen = np.unique(column[space.allowed[columns.features] != 0])
        n_words = len(space.n_counted)
        n_chosen = np.bincount(chosen // WORD, minlength=n_words)
        space.n_counted[:, 0] = np.bincount(chosen[chosen % WORD < HALF_WORD] // WORD, minlength=n_words)
        space.n_counted[:, 1] = n_chosen
        place = np.arange(len(chosen)) - np.repeat(np.cumsum(n_chosen) - n_chosen, n_chosen)
        space.shifts[chosen // WORD, place] = 8 * (chosen % WORD)

    def _limits(self) -> Limits:
        """What cuts must satisfy, not in units."""
        settings, rules = self._problem.settings, self._problem.feature_rules
        return Limits(
            float(settings.l1),
            float(settings.l2),
            float(settings.min_gain),
            settings.min_docs_leaf,
            float(settings.min_hessian_leaf),
            int(rules is not None and rules.is_bounded),
            float(settings.category_smoothing),
            float(settings.category_l2),
            settings.max_category_set,
        )

    def _scaled_limits(self, min_docs_leaf: int, a: int, b: int) -> Limits:
        """The same in units, 2^−a of gradients and 2^−b of Hessians."""
        limits = self._limits()
        return limits._replace(
            l1=_in_units(limits.l1, a),
            l2=_in_units(limits.l2, b),
            min_gain=_in_units(limits.min_gain, 2 * a - b),
            min_docs_leaf=min_docs_leaf,
            min_hessian_leaf=math.ceil(min(_in_units(limits.min_hessian_leaf, b), LOWER_HALF)),
        )

    def _plan(self, number: int, n_counting: int) -> Plan:
        """The plan of tree `number`, without what follows from its gradients."""
        settings, sampling = self._problem.settings, self._problem.sampling or Sampling()
        return Plan(
            n_leaves=settings.n_leaves,
            max_depth=settings.max_depth,
            most_parts=most_parts(self._problem, self._n_workers),
            n_docs=self._problem.n_docs,
            n_counting=n_counting,
            total=0,
            words_per_slab=self._words_per_slab,
            scale=1.0,
            learning_rate=settings.learning_rate,
            node_features=sampling.node_features,
            seed=stream_seed(sampling.seed, NODE_STREAM),
            number=number,
        )

    def _grow(self, limits: Limits, plan: Plan) -> int:
        """Grow a tree; returns its number of leaves."""
        grow = grow_levels if self._problem.settings.is_symmetric else grow_tree
        columns = self._problem.columns
        return self._in_team(lambda worker, control: grow(worker, control, self._space, columns, limits, plan))

    def _in_team(self, work: Callable[[int, np.ndarray], int]) -> int:
        """Call `work` with the number of each worker and the team's control; returns what the leader's call does."""
        control = new_team().control
        control[STREAMED] = self._slab_memory()
        self._space.begun[:] = 0
        self._space.owners[:] = 0
        results = [0] * self._n_workers

        def take_part(worker: int) -> None:
            try:
                results[worker] = work(worker, control)
            except BaseException:
                control[FAILED] = control[STOP] = 1
                raise

        run_parts(take_part, self._n_workers)
        give_back(self._problem.slabs)
        return results[0]

    def _slab_memory(self) -> int:
        """How much of the slabs may be in memory while a tree grows; 0 if it need not be limited."""
        slabs = self._problem.slabs
        return SLAB_MEMORY if is_on_disk(slabs) and slabs.nbytes > SLAB_MEMORY else 0

    def _tree(self, whole: np.ndarray, real: np.ndarray, n_leaves: int, a: int, b: int) -> BinTree:
        """The tree of these fields of a `Workspace`, in units of 2^−a and 2^−b."""
        return self._trees(whole[None], real[None], np.array([[n_leaves, a, b]]))[0]

    def _trees(self, whole: np.ndarray, real: np.ndarray, numbers: np.ndarray) -> list[BinTree]:
        """The same of several trees, as `GrownRounds` has them; numpy takes hardly longer for all than for one."""
        if len(numbers) == 0:
            return []
        most = int(numbers[:, LEAVES].max())
        a, b = numbers[:, GRADIENT_EXPONENT, None], numbers[:, HESSIAN_EXPONENT, None]
        nodes, leaves = whole[:, :, : most - 1], whole[:, :, :most]
        features = nodes[:, NODE_FEATURE].astype(np.int32)
        lowest = self._problem.columns.by_feature[features, LOWEST]
        has_set = nodes[:, NODE_CODE] < 0
        of_nodes = {
            "feature": features,
            "cut": np.where(has_set, -1, nodes[:, NODE_CODE] + lowest).astype(np.int32),
            "left": nodes[:, NODE_LEFT].astype(np.int32),
            "right": nodes[:, NODE_RIGHT].astype(np.int32),
            "missing_left": nodes[:, NODE_MISSING_LEFT].astype(np.uint8),
            "gain": np.ldexp(real[:, NODE_GAIN, : most - 1], b - 2 * a),
            "node_docs": nodes[:, NODE_DOCS].copy(),
            "node_hessian": np.ldexp((nodes[:, NODE_TOTAL] & LOWER_HALF).astype(np.float64), -b),
        }
        others = leaves[:, OTHER_END] - leaves[:, OTHER_START]
        of_leaves = {
            "leaf_docs": leaves[:, END] - leaves[:, START] + others,
            "leaf_hessian": np.ldexp((leaves[:, TOTAL] & LOWER_HALF).astype(np.float64), -b),
            "leaf_value": real[:, VALUE, :most].astype(np.float32),
        }
        trees = []
        for k, n_leaves in enumerate(numbers[:, LEAVES].tolist()):
            n_nodes = n_leaves - 1
            sets = {}
            if has_set[k, :n_nodes].any():
                sets["left_bins"] = _left_bins(nodes[k, :, :n_nodes], has_set[k, :n_nodes], lowest[k, :n_nodes])
            own = {name: values[k, :n_nodes] for name, values in of_nodes.items()}
            own |= {name: values[k, :n_leaves] for name, values in of_leaves.items()}
            trees.append(BinTree(**own, **sets))
            self._copies.count(trees[-1].feature, trees[-1].node_docs)
        self._n_grown += len(trees)
        return trees


def _in_units(value: float, exponent: int) -> float:
    """value·2^exponent, infinite if it is too large, as in compiled code."""
    with np.errstate(over="ignore"):
        return float(np.ldexp(value, exponent))


def _ordered_rows(counts: np.ndarray) -> tuple[np.ndarray, int]:
    """The documents that count, then the others, uint32 (n_docs,); and how many count."""
    counting = np.flatnonzero(counts)
    return np.concatenate([counting, np.flatnonzero(~counts)]).astype(np.uint32), len(counting)


def _documents_with_gradients(problem: TreeProblem) -> np.ndarray:
    """False for the documents of queries without pairs, and for those without weight; bool (n_docs,)."""
    if problem.queries is None:
        return np.ones(problem.n_docs, bool)
    has_gradient = np.repeat(problem.queries.inverse > 0.0, np.diff(problem.queries.query_ptr))
    return has_gradient & (problem.queries.weight != 0.0) if len(problem.queries.weight) else has_gradient


def _left_bins(nodes: np.ndarray, has_set: np.ndarray, lowest: np.ndarray) -> np.ndarray:
    """The sets of bins on the left, uint64 (n_nodes, 4), from sets of codes; empty for nodes without one."""
    codes = np.ascontiguousarray(nodes[NODE_SET : NODE_SET + BIN_SET_WORDS].T).view(np.uint64)
    return np.where(has_set[:, None], bins_of_codes(codes, lowest), np.uint64(0))


def gradient_source(loss: RankingLoss, queries: JudgedQueries, before: int = 0) -> GradientSource:
    """What fills the gradients of a loss; `before` are documents of other processes that come before these."""
    if loss.kind == XENDCG:
        return XendcgGradients(loss, queries, before).fill
    fill_pairs = pair_gradient_source(loss, queries)

    def fill(scores: np.ndarray, number: int, gradient: np.ndarray, hessian: np.ndarray) -> None:
        fill_pairs(noisy_scores(scores, loss, number, before) if loss.noise > 0 else scores, gradient, hessian)

    return fill
