"""Rankwell in PyTerrier's pipelines: search an index, rank results again, score features.

    retrieve = rankwell.pyterrier.Retriever(index)
    rerank = rankwell.pyterrier.Reranker(index, "model.rank")
    pt.Experiment([retrieve, retrieve % 100 >> rerank], topics, qrels, ["map", "ndcg_cut_10"])

A transformer is a function of data frames with PyTerrier's columns (qid, query, docno, score, rank from 0). PyTerrier
need not be installed to call one; if it is, they are its transformers, and can be combined by its operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankwell.errors import DataError, ParameterError
from rankwell.index.query.query import without_operators

if TYPE_CHECKING:
    import pandas as pd

    from rankwell.features.own_features import OwnFeatures
    from rankwell.index.reader import Index
    from rankwell.index.search.bm25 import BM25, BM25F
    from rankwell.rankers.base import Ranker

try:
    from pyterrier import Transformer
except ImportError:

    class Transformer:  # type: ignore[no-redef]
        """What PyTerrier's class does without its operators."""

        def __call__(self, frame: pd.DataFrame) -> pd.DataFrame:
            return self.transform(frame)  # type: ignore[attr-defined]


__all__ = ["FeatureScorer", "Reranker", "Retriever"]

_OF_RESULTS = ("docid", "docno", "score", "rank")


class Retriever(Transformer):
    """Queries to results: a row for each document that is found.

    Parameters
    ----------
    index : Index
    ranker : Ranker, RankerDescription or path, optional
        Ranks what BM25 finds.
    k : int
        Documents for each query.
    n_candidates : int
        How many documents BM25 gives to the ranker.
    model : BM25 or BM25F, optional
        By default BM25 over the whole document.
    own : OwnFeatures, optional
        Where the values of the ranker's own features come from, as in training.
    operators : bool
        Whether queries are of Rankwell's query language. Topics are prose: quotes and signs have no special meaning.
    """

    def __init__(
        self,
        index: Index,
        *,
        ranker: object = None,
        k: int = 1000,
        n_candidates: int = 100,
        model: BM25 | BM25F | None = None,
        own: OwnFeatures | None = None,
        operators: bool = False,
    ) -> None:
        from rankwell.serving.ranking.ranked_search import RankedSearch

        if k < 1:
            raise ParameterError(f"must be at least 1, got {k}.", parameter="k")
        self._index, self._k, self._model, self._operators = index, k, model, operators
        self._ranked = None
        if ranker is not None:
            self._ranked = RankedSearch(index, ranker, n_candidates=n_candidates, model=model, own=own)

    def transform(self, topics: pd.DataFrame) -> pd.DataFrame:
        """topics : columns qid and query. Returns their columns, and docno, score and rank."""
        _check_columns(topics, "qid", "query")
        queries = topics.drop(columns=[name for name in _OF_RESULTS if name in topics]).drop_duplicates("qid")
        found = [self._search(text) for text in queries["query"]]
        sizes = [len(result.ids) for result in found]
        rows = queries.loc[queries.index.repeat(sizes)].reset_index(drop=True)
        return rows.assign(
            docno=[name for result in found for name in result.ids],
            score=np.concatenate([np.empty(0), *(result.scores for result in found)]),
            rank=np.concatenate([np.empty(0, np.int64), *map(np.arange, sizes)]),
        )

    def _search(self, text: str) -> Any:
        asked = text if self._operators else without_operators(text)
        if self._ranked is not None:
            return self._ranked.search(asked, self._k)
        return self._index.search(asked, k=self._k, model=self._model)


class Reranker(Transformer):
    """Results to the same documents, scored by a ranker with features of the index.

    Parameters
    ----------
    index : Index
    ranker : Ranker, RankerDescription or path
    own, operators
        As for `Retriever`.
    """

    def __init__(
        self, index: Index, ranker: object, *, own: OwnFeatures | None = None, operators: bool = False
    ) -> None:
        from rankwell.serving.ranking.ranked_search import RankedSearch

        self._ranked, self._operators = RankedSearch(index, ranker, own=own), operators

    def transform(self, results: pd.DataFrame) -> pd.DataFrame:
        """results : columns qid, query and docno. Returns their columns with new scores and ranks, best first."""
        _check_columns(results, "qid", "query", "docno")

        def score(own: pd.DataFrame) -> np.ndarray:
            text = own["query"].iloc[0]
            asked = text if self._operators else without_operators(text)
            return self._ranked.score(self._ranked.features(asked, own["docno"].tolist()))

        return _scored(results, score)


class FeatureScorer(Transformer):
    """Results with features (a column `features` of one array a row, as PyTerrier's `**` makes) to scores by a ranker.

    Parameters
    ----------
    ranker : a fitted Ranker
    """

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker

    def transform(self, results: pd.DataFrame) -> pd.DataFrame:
        """results : columns qid and features. Returns their columns with new scores and ranks, best first."""
        _check_columns(results, "qid", "features")
        return _scored(results, lambda own: self._ranker.predict(np.stack(own["features"].tolist()), group=[len(own)]))


def _scored(results: pd.DataFrame, score: Any) -> pd.DataFrame:
    """The rows with the scores of each query's documents, best first; equal scores keep their order."""
    scores = np.empty(len(results))
    rank = np.empty(len(results), np.int64)
    order = []
    for places in results.groupby("qid", sort=False).indices.values():
        own = np.asarray(score(results.iloc[places]), dtype=np.float64)
        best_first = np.argsort(-own, kind="stable")
        scores[places], rank[places[best_first]] = own, np.arange(len(places))
        order.append(places[best_first])
    scored = results.assign(score=scores, rank=rank)
    return scored.iloc[np.concatenate([np.empty(0, np.int64), *order])].reset_index(drop=True)


def _check_columns(frame: pd.DataFrame, *names: str) -> None:
    lacking = [name for name in names if name not in frame]
    if lacking:
        raise DataError(f"the frame must have the columns {', '.join(names)}; it lacks {', '.join(lacking)}.")
