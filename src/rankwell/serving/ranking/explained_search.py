"""Why a search result is where it is: the score of a document that was found, in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import DataError
from rankwell.features.feature_set import FeatureSet
from rankwell.index.query.query import Query
from rankwell.scoring.explanation import Explanation, explain_rows

if TYPE_CHECKING:
    from rankwell.serving.ranking.feature_log import FeatureLog
    from rankwell.serving.ranking.ranked_search import RankedResult, RankedSearch


@dataclass(frozen=True, eq=False)
class ExplainedDocument:
    """One document of a ranked search.

    rank : its place in the results, from 1; first_score : its score in the first pass
    explanation : the ranker's score in parts; values : the features as they were extracted, by name
    """

    rank: int
    id: str
    first_score: float
    explanation: Explanation
    values: dict[str, float]


class _SeenFeatures:
    """A log that keeps the features of one query in memory."""

    def __init__(self, feature_set: FeatureSet) -> None:
        self.feature_set = feature_set
        self.ids: list[str] = []
        self.rows = np.empty((0, len(feature_set)), dtype=np.float32)

    def append(self, query_id: str, document_ids: Sequence[str], features: np.ndarray) -> None:
        self.ids, self.rows = list(document_ids), features


def explain_search(
    searcher: RankedSearch, query: str | Query, *, document: str | int | None = None, k: int = 1
) -> list[ExplainedDocument]:
    """Explain the best `k` documents for a query, or the one called `document`: see `RankedSearch.explain`."""
    from rankwell.serving.ranking.ranked_search import RankedSearch

    seen = _SeenFeatures(searcher.feature_set)
    # The same search again, with a log: what is explained is what the ranker read.
    logged = RankedSearch(
        searcher.index,
        searcher.description,
        n_candidates=searcher.n_candidates,
        model=searcher.model,
        match=searcher.match,
        stop_after=searcher.stop_after,
        feature_set=searcher.feature_set,
        own=searcher.own,
        log=cast("FeatureLog", seen),
    )
    result = logged.search(query, searcher.n_candidates, query_id="explained")
    row_of = {name: row for row, name in enumerate(seen.ids)}
    wanted = result.ids[:k] if document is None else (str(document),)
    if document is not None:
        _check_was_ranked(searcher, str(document), row_of, result)
    rows = [row_of[name] for name in wanted if name in row_of]
    dataset = RankingDataset(seen.rows, group=[len(seen.rows)])
    explained = explain_rows(searcher.description, dataset, rows)
    return [_explained(result, seen, row, explanation) for row, explanation in zip(rows, explained, strict=True)]


def _explained(result: RankedResult, seen: _SeenFeatures, row: int, explanation: Explanation) -> ExplainedDocument:
    place = result.ids.index(seen.ids[row])
    values = dict(zip(seen.feature_set.names, seen.rows[row].tolist(), strict=True))
    return ExplainedDocument(place + 1, seen.ids[row], float(result.first_scores[place]), explanation, values)


def _check_was_ranked(searcher: RankedSearch, document: str, row_of: dict[str, int], result: RankedResult) -> None:
    if document in row_of:
        return
    if searcher.index.find(document) < 0:
        raise DataError(f"there is no document {document!r} in the index.")
    raise DataError(
        f"document {document!r} is not among the {len(row_of)} documents that were ranked for this query: it does not "
        f"match, or {result.n_candidates} candidates are too few."
    )
