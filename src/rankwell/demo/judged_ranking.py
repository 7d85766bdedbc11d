"""How good a ranking of candidates is when the judged documents that are not among them count as missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.metrics.conventions import Convention
from rankwell.metrics.evaluation import Evaluation, evaluate


def evaluate_candidates(
    candidates: RankingDataset,
    scores: np.ndarray,
    missed: Mapping[int, Sequence[float]],
    *,
    depth: int,
    metrics: Sequence[str],
    convention: str | Convention,
) -> Evaluation:
    """Evaluate the ranking of each query's candidates, which ends after `depth` places.

    A query's list is filled up with documents of grade 0, and the judged documents that are not among the candidates
    come after them. So they belong to the ideal ranking and to the number of relevant documents, but no metric that
    looks at `depth` places or fewer ever finds them.

    Parameters
    ----------
    candidates : RankingDataset
        At most `depth` rows per query.
    scores : float array (n_docs,)
        In the order of its rows.
    missed : for each query, by its id, the grades of its judged documents that are not among the candidates
        Queries without any candidates are included.
    """
    rows_of = dict(zip(candidates.query_ids.tolist(), candidates.queries(), strict=True))
    labels: list[np.ndarray] = []
    filled: list[np.ndarray] = []
    for query, grades in missed.items():
        rows = rows_of.get(query, slice(0, 0))
        n_empty = depth - (rows.stop - rows.start)
        labels.append(np.concatenate([candidates.labels[rows], np.zeros(n_empty), np.asarray(grades, dtype=float)]))
        filled.append(np.concatenate([scores[rows], np.full(n_empty + len(grades), -np.inf)]))
    sizes = [len(part) for part in labels]
    return evaluate(
        np.concatenate(labels), np.concatenate(filled), metrics=list(metrics), convention=convention, group=sizes
    )
