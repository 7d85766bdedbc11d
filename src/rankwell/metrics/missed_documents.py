"""Judged documents that a ranking does not have: they are missed, not absent.

A data file has the documents that a first pass found, a run those that a system returned. Judged documents beyond them
belong to the ideal ranking and to the number of relevant documents, as trec_eval counts; in the ranking itself they are
never found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rankwell.errors import DataError
from rankwell.metrics.conventions import Convention
from rankwell.metrics.judged_queries import JudgedQueries

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset

Grades = Mapping[str, Mapping[str, float]]
"""Grades, or scores, by query id and document id."""


def with_missed(dataset: RankingDataset, scores: np.ndarray, qrels: Grades) -> tuple[JudgedQueries, np.ndarray, int]:
    """The data's queries and scores, with the judged documents that the data lacks as missed ones.

    Parameters
    ----------
    dataset : RankingDataset
        Its comments are document ids, as `rankwell features` writes them.
    scores : float64 array (n_docs,)
        In the user's order.
    qrels : the judgments that the data was made with; queries that the data lacks do not count

    Returns
    -------
    queries, their scores in the order of their rows, and how many documents were added
    """
    queries = JudgedQueries.from_dataset(dataset)
    if dataset.comments is None:
        raise DataError(
            "the data has no document ids, so it cannot be seen which judged documents are missing. Ids are comments: "
            "`rankwell features` writes them."
        )
    names = list(dataset.comments)
    missed = []
    for query, rows in zip(dataset.query_ids.tolist(), dataset.queries(), strict=True):
        found = set(names[rows])
        missed.append([grade for name, grade in qrels.get(str(query), {}).items() if name not in found])
    extended, own = _extended(queries, queries.to_own_order(scores), missed)
    return extended, own, sum(map(len, missed))


def queries_of_run(qrels: Grades, run: Grades, convention: Convention) -> tuple[JudgedQueries, np.ndarray]:
    """Every judged query with the documents that a run found, and their scores; documents without a judgment have 0.

    A query that the run lacks has found nothing. Equal scores are ranked in the run's order, or, where the convention
    reverses the order of rows, by document id from the last to the first, as trec_eval does.
    """
    labels: list[float] = []
    scores: list[float] = []
    sizes: list[int] = []
    missed: list[list[float]] = []
    for query, grades in qrels.items():
        found = run.get(query, {})
        names: Iterable[str] = sorted(found) if convention.ties == "reverse file order" else found
        labels += [grades.get(name, 0.0) for name in names]
        scores += [found[name] for name in names]
        sizes.append(len(found))
        missed.append([grade for name, grade in grades.items() if name not in found])
    queries = replace(JudgedQueries.from_arrays(np.array(labels), group=sizes), query_ids=np.array(list(qrels)))
    return _extended(queries, np.array(scores), missed)


def _extended(
    queries: JudgedQueries, scores: np.ndarray, missed: Sequence[Sequence[float]]
) -> tuple[JudgedQueries, np.ndarray]:
    """The missed documents of each query after its rows, ranked last."""
    labels, extended, is_missed = [], [], []
    for (start, end), grades in zip(pairwise(queries.query_ptr.tolist()), missed, strict=True):
        labels += [queries.labels[start:end], np.asarray(grades, np.float64)]
        extended += [scores[start:end], np.full(len(grades), -np.inf)]
        is_missed += [np.zeros(end - start, bool), np.ones(len(grades), bool)]
    sizes = np.diff(queries.query_ptr) + [len(grades) for grades in missed]
    none = np.empty(0)
    return JudgedQueries(
        np.concatenate([none, *labels]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        queries.query_ids,
        queries.query_weights,
        is_missed=np.concatenate([none.astype(bool), *is_missed]),
    ), np.concatenate([none, *extended])
