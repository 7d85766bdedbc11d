"""Score rows by a ranker description.

The score of a document depends on that document alone (and on its query if the normaliser does): it has the same bits
whether it is scored alone, in a batch, or on another number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.data.validation import is_sparse
from rankwell.errors import DataError
from rankwell.kernels.device import device_for, load
from rankwell.kernels.scoring.contract import SCORING, ScoringSizes
from rankwell.kernels.scoring.kinds import LANES
from rankwell.kernels.threads import kernel_threads, run_parts
from rankwell.scoring.composition import score_in_two_passes, with_part_columns
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.plan import Plan, make_plan
from rankwell.scoring.ranker_cache import RankerCache
from rankwell.scoring.trees import TreeInputs

if TYPE_CHECKING:
    from rankwell.scoring.cuda_scorer import CudaRankerScorer

# Rows of a sparse matrix that are made dense at a time, and the most numbers in them: text has very many features.
_SPARSE_ROWS = 4096
_SPARSE_NUMBERS = 2**24
# Each thread takes a part of the work at a time: it takes at least about this time, has at most this many bytes of
# inputs, which stay in the caches, and within these limits there are this many parts per thread. Less work than one
# part stays on the calling thread: waking another thread and starting a part takes about a tenth of that time.
_PART_NANOSECONDS = 1_000_000
_PART_BYTES = 2**20
_PARTS_A_THREAD = 8
# Memory for cached rankers, on each device.
_KEPT_BYTES = 2**30


def score_description(
    description: RankerDescription,
    dataset: RankingDataset,
    *,
    n_jobs: int | None = None,
    n_rounds: int | None = None,
    device: str = "cpu",
) -> np.ndarray:
    """Score every row of `dataset`, in the dataset's order; with `n_rounds`, by the first rounds of boosting only.

    The first call prepares the description, and uploads it to a device; see `kept_scorer`.

    Returns
    -------
    float64 array (n_docs,)
    """
    device = scoring_device(description, device)
    if dataset.is_on_disk:
        scores = np.empty(dataset.n_docs)
        for rows, part in dataset.parts():
            scores[rows] = score_description(description, part, n_jobs=n_jobs, n_rounds=n_rounds, device=device)
        return scores
    if description.first_pass is not None:
        score_pass = partial(score_description, n_jobs=n_jobs, device=device)
        return score_in_two_passes(description, dataset, score_pass, n_rounds=n_rounds)
    features = model_columns(description, dataset, n_jobs=n_jobs, device=device)
    score: Callable[..., np.ndarray] = _KEPT[device].of(description).score
    options = {"n_rounds": n_rounds} | ({"n_jobs": n_jobs} if device == "cpu" else {})
    if not is_sparse(features):
        return score(features, **options)
    scores = np.empty(dataset.n_docs)
    at_a_time = max(1, min(_SPARSE_ROWS, _SPARSE_NUMBERS // max(1, dataset.n_features)))
    for start in range(0, dataset.n_docs, at_a_time):
        scores[start : start + at_a_time] = score(features[start : start + at_a_time].toarray(), **options)
    return scores


def model_columns(
    description: RankerDescription, dataset: RankingDataset, *, n_jobs: int | None = None, device: str = "cpu"
) -> Any:
    """What the inputs of `description` read: normalised features, then the scores of its parts.

    Returns
    -------
    float32 array (n_docs, n_columns), or CSR if the dataset is sparse and nothing had to be computed
    """
    features = description.normaliser.apply(dataset)
    score = partial(score_description, n_jobs=n_jobs, device=device)
    return with_part_columns(description, dataset, features, score)


def scoring_device(description: RankerDescription, device: str) -> str:
    """The kind of device that scores by `description`: the requested one, or the one that "auto" picks."""
    return device_for(SCORING, device, _sizes(description))


def make_scorer(description: RankerDescription, device: str = "cpu") -> RankerScorer | CudaRankerScorer:
    """`description` prepared for scoring on a device: "cpu", "cuda", or "auto"."""
    scorer: RankerScorer | CudaRankerScorer = load(SCORING, device, _sizes(description), description)
    return scorer


def _sizes(description: RankerDescription) -> ScoringSizes:
    sizes = (len(group.column_feature) if isinstance(group, TreeInputs) else len(group) for group in description.inputs)
    return ScoringSizes(max(sizes, default=0))


@overload
def kept_scorer(description: RankerDescription, device: Literal["cuda"]) -> CudaRankerScorer: ...
@overload
def kept_scorer(description: RankerDescription, device: str = "cpu") -> RankerScorer | CudaRankerScorer: ...
def kept_scorer(description: RankerDescription, device: str = "cpu") -> RankerScorer | CudaRankerScorer:
    """The scorer of `description` on a device, made at the first call.

    It is cached while the description is alive, or until scorers used since fill a gibibyte of device memory.
    """
    return _KEPT[scoring_device(description, device)].of(description)


class RankerScorer:
    """A description prepared for scoring on the CPU: flattened once, called often, by any number of threads.

    Rows are normalised features, and after them the scores of the description's parts: see `model_columns`.

    Attributes
    ----------
    nbytes : int
        Memory of the plan's arrays.
    """

    def __init__(self, description: RankerDescription) -> None:
        from rankwell.kernels.scoring.cpu import table

        self._plan = plan = make_plan(description)
        self._kernels = table
        self.n_columns = plan.n_columns
        self.nbytes = plan.nbytes
        self._nanoseconds = 1.0 + sum(table.COSTS[entry.kind](entry.arrays) for entry in plan.entries)
        # The longest and the shortest part, in documents.
        self._most = _whole_blocks(_PART_BYTES / (8 * max(1, plan.n_inputs)))
        self._least = min(self._most, _whole_blocks(_PART_NANOSECONDS / self._nanoseconds))

    def score(self, rows: np.ndarray, *, n_jobs: int | None = None, n_rounds: int | None = None) -> np.ndarray:
        """Scores of rows.

        Parameters
        ----------
        rows : float32 array (n_docs, n_columns), C order
        n_jobs : int, optional
            Threads; None uses every core.
        n_rounds : int, optional
            Use only the first rounds of boosting: the trees' first ``n_rounds`` (times the trees per round).

        Returns
        -------
        float64 array (n_docs,)
        """
        if rows.ndim != 2 or rows.shape[1] != self.n_columns:
            raise DataError(f"rows must have shape (n_docs, {self.n_columns}), got {rows.shape}.")
        plan = self._plan if n_rounds is None else self._plan.first_rounds(n_rounds)
        if len(rows) <= self._least and (n_jobs is None or n_jobs > 0):
            return self._score_part(plan, rows)
        scores = np.empty(len(rows))
        is_small = len(rows) * self._nanoseconds < _PART_NANOSECONDS
        with kernel_threads(1 if is_small and n_jobs is None else n_jobs) as n_threads:
            share = len(rows) if n_threads == 1 else _whole_blocks(len(rows) / (_PARTS_A_THREAD * n_threads))
            step = min(self._most, max(self._least, share))

            def score_part(part: int) -> None:
                documents = slice(part * step, (part + 1) * step)
                scores[documents] = self._score_part(plan, rows[documents])

            run_parts(score_part, -(-len(rows) // step))
        return scores

    def _score_part(self, plan: Plan, rows: np.ndarray) -> np.ndarray:
        """Score rows on the calling thread."""
        if rows.dtype != np.float32 or not rows.flags.carray:
            # Kernels are compiled for aligned, writable memory in C order: copying costs less than more kernels.
            rows = np.require(rows, np.float32, ["C", "A", "W"])
        values = np.empty((-(-len(rows) // LANES), plan.n_inputs, LANES))
        for group in plan.inputs:
            self._kernels.INPUTS[group.kind](rows, group.arrays, group.first, values)
        for layer in plan.layers:
            values = self._kernels.LAYERS[layer.kind](values, layer.arrays)
        return values.ravel()[: len(rows)]


def _whole_blocks(n_docs: float) -> int:
    return max(1, int(n_docs) // LANES) * LANES


_KEPT = {device: RankerCache(_KEPT_BYTES, partial(make_scorer, device=device)) for device in SCORING.devices}
