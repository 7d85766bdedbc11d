"""Why a search result is where it is: the score of a document that was found, in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.features.feature_set import FeatureSet
from rankwell.index.query.query import Query
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.explanation import Explanation, explain_rows, placed_below
from rankwell.serving.unknown_document import UnknownDocumentError, unknown_document

if TYPE_CHECKING:
    from rankwell.serving.ranking.feature_log import FeatureLog
    from rankwell.serving.ranking.ranked_search import RankedResult, RankedSearch


PassName = Literal["first", "second"]
FIRST: PassName = "first"
SECOND: PassName = "second"


@dataclass(frozen=True, eq=False)
class ExplainedDocument:
    """One document of a ranked search.

    rank : its place in the results, from 1; first_score : its score in selection
    explanation : the ranker's score in parts; values : the features as they were extracted, by name
    ranking_pass : of a ranker with two passes, FIRST if the document was not among those that the first pass keeps for
        the second: the first pass's score is explained, by which it is placed below them (`Explanation.offset`);
        None of other rankers
    """

    rank: int
    id: str
    first_score: float
    explanation: Explanation
    values: dict[str, float]
    ranking_pass: PassName | None = None


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
    if document is not None and str(document) not in result.ids:
        if searcher.index.find(document) < 0:
            raise unknown_document(document)
        raise not_ranked(str(document), result.n_candidates)
    # Documents that the first pass did not keep are below all others.
    ranked = [name for name in wanted if name in row_of]
    explained = explain_ranked(searcher.description, seen.feature_set, seen.rows, [row_of[name] for name in ranked])
    below = [name for name in wanted if name not in row_of]
    if below:
        every = searcher.features(query, result.ids)
        rows = [result.ids.index(name) for name in below]
        explained += explain_first_pass(searcher.description, every, rows, result.scores[rows].tolist())
    return [_placed(result, name, *parts) for name, parts in zip([*ranked, *below], explained, strict=True)]


class Explained(NamedTuple):
    """Fields as of `ExplainedDocument`."""

    explanation: Explanation
    values: dict[str, float]
    ranking_pass: PassName | None


def explain_ranked(
    description: RankerDescription, feature_set: FeatureSet, features: np.ndarray, rows: Sequence[int]
) -> list[Explained]:
    """Rows of `features`, those of all documents of a query that the ranker scored."""
    explanations = explain_rows(description.second_pass, RankingDataset(features, group=[len(features)]), rows)
    ranking_pass: PassName | None = None if description.first_pass is None else SECOND
    return [
        Explained(explanation, dict(zip(feature_set.names, features[row].tolist(), strict=True)), ranking_pass)
        for row, explanation in zip(rows, explanations, strict=True)
    ]


def explain_first_pass(
    description: RankerDescription, features: np.ndarray, rows: Sequence[int], scores: Sequence[float]
) -> list[Explained]:
    """Rows of `features`, those of all candidates of a query, by the first pass of a ranker.

    scores : by which these rows are placed below the documents that were kept
    """
    assert description.first_pass is not None
    part = description.parts[description.first_pass.part]
    read = np.ascontiguousarray(features[:, list(part.features)])
    explanations = explain_rows(part.description, RankingDataset(read, group=[len(read)]), rows)
    names = part.description.feature_names
    return [
        Explained(placed_below(explanation, score), dict(zip(names, read[row].tolist(), strict=True)), FIRST)
        for row, explanation, score in zip(rows, explanations, scores, strict=True)
    ]


def not_ranked(document: str, n_candidates: int) -> UnknownDocumentError:
    return UnknownDocumentError(
        f"document {document!r} is not among the {n_candidates} documents that were ranked for this query: it does not "
        f"match, or {n_candidates} candidates are too few."
    )


def _placed(result: RankedResult, name: str, *parts: Any) -> ExplainedDocument:
    place = result.ids.index(name)
    return ExplainedDocument(place + 1, name, float(result.first_scores[place]), *parts)
