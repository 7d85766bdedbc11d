"""One pass of ranked search: candidates in, scores out. It extracts what its ranker reads, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.features.extraction import extract
from rankwell.features.feature_set import FeatureSet
from rankwell.features.feedback import ModelSettings, RelevanceModel, with_feedback
from rankwell.features.hit_reading import collect_hits
from rankwell.features.hits import Hits
from rankwell.features.own_features import OwnFeatures, with_own
from rankwell.features.selected import is_selected, selected_features
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.search.selection import SearchResult
from rankwell.kernels.threads import kernel_threads
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.feature_use import over_features, read_features
from rankwell.scoring.scorer import kept_scorer, score_description

if TYPE_CHECKING:
    from rankwell.features.cuda_extraction import CudaFeatureExtractor


class RankingPass:
    """A ranker over the features of an index.

    Parameters
    ----------
    description : RankerDescription
        Without a first pass of its own.
    feature_set : FeatureSet
        Has the ranker's features; their names may differ from those of the description.
    places : for each of the ranker's features, which of the set's it is; by default they are in the same order
    all_features : bool
        Extract the whole feature set (for a log), and not only what the ranker reads.
    own : OwnFeatures, optional
        Where the values of own features come from.
    """

    def __init__(
        self,
        index: Index,
        description: RankerDescription,
        feature_set: FeatureSet,
        *,
        places: Sequence[int] | None = None,
        all_features: bool = False,
        own: OwnFeatures | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.index, self.device, self._n_jobs, self._own = index, device, n_jobs, own
        places = range(description.n_features) if places is None else places
        extracted_as = dict(zip(description.feature_names, (feature_set.names[p] for p in places), strict=True))
        if not all_features:
            # A ranker of constants still gets a column.
            description = over_features(description, read_features(description) or description.feature_names[:1])
            feature_set = feature_set.containing(extracted_as[name] for name in description.feature_names)
        self.description, self.feature_set = description, feature_set
        columns = [feature_set.names.index(extracted_as[name]) for name in description.feature_names]
        self._columns = None if columns == list(range(len(feature_set))) else columns
        # A device gets whole hits: its copy of them is laid out by their sizes.
        self._reads_places = feature_set.reads_places or device == "cuda"

    @property
    def scores_alone(self) -> bool:
        """Whether a document's score does not depend on the query's other documents."""
        return scores_alone(self.description)

    def hits(
        self,
        queries: Sequence[Query],
        found: Sequence[SearchResult],
        candidates: Sequence[np.ndarray],
        models: Mapping[ModelSettings, Sequence[RelevanceModel]] | None = None,
    ) -> Hits:
        """The hits of `queries` in `candidates`; found : what selection found, for features that read it, unless
        their relevance models are given
        """
        hits = collect_hits(self.index, queries, candidates, places=self._reads_places, n_jobs=self._n_jobs)
        feature_set, n_jobs = self.feature_set, self._n_jobs
        hits = with_feedback(hits, feature_set, self.index, found, candidates, models=models, n_jobs=n_jobs)
        return with_own(
            hits, feature_set, self.index, queries, candidates, self._own, device=self.device, n_jobs=n_jobs
        )

    def score(self, hits: Hits) -> np.ndarray:
        """The scores of candidates, float64 (n_candidates,); on a device, the features stay there."""
        if self.device == "cuda" and not self.description.parts and self._columns is None:
            with kernel_threads(self._n_jobs):
                return self._cuda.score(hits, kept_scorer(self.description, "cuda"), by_position=True)
        return self.score_rows(self.rows(hits), np.diff(hits.query_ptr))

    def rows(self, hits: Hits) -> np.ndarray:
        """The features of candidates, float32 (n_candidates, n_features)."""
        return extract(hits, self.feature_set, device=self.device, n_jobs=self._n_jobs)

    def score_selected(
        self,
        queries: Sequence[Query],
        found: Sequence[SearchResult],
        candidates: Sequence[np.ndarray],
        model: BM25 | BM25F | None,
    ) -> np.ndarray:
        """The scores of all documents that were found by `model`: without reading hits where that is possible."""
        if not self.knows(queries, model):
            return self.score(self.hits(queries, found, candidates))
        rows = selected_features(self.index, self.feature_set, found, candidates)
        return self.score_rows(rows, [len(docs) for docs in candidates])

    def knows(self, queries: Sequence[Query], model: BM25 | BM25F | None) -> bool:
        """Whether all features are known after a selection by `model`."""
        # Fields, boosts and the like change what a query's words score.
        return all(query.tree is None for query in queries) and is_selected(self.feature_set, model)

    def score_rows(self, rows: np.ndarray, sizes: Sequence[int] | np.ndarray) -> np.ndarray:
        """The scores of rows of extracted features; sizes : how many rows each query has"""
        rows = rows if self._columns is None else np.ascontiguousarray(rows[:, self._columns])
        dataset = RankingDataset(rows, group=sizes)
        return score_description(self.description, dataset, n_jobs=self._n_jobs, device=self.device)

    @cached_property
    def _cuda(self) -> CudaFeatureExtractor:
        from rankwell.features.cuda_extraction import CudaFeatureExtractor

        return CudaFeatureExtractor(self.feature_set)


def scores_alone(description: RankerDescription) -> bool:
    """Whether a document's score does not depend on the other documents of its query."""
    return (
        not description.normaliser.needs_queries
        and description.first_pass is None
        and all(scores_alone(part.description) for part in description.parts)
    )
