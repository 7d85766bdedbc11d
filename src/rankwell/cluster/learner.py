"""A learner: what one worker does for a ranker. Its subclasses are beside the driver's part of the same ranker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwell.cluster.agreement import WorkersAgreement
from rankwell.cluster.exchange import Exchange
from rankwell.data.dataset import RankingDataset
from rankwell.rankers.base import Ranker
from rankwell.rankers.feature_columns import columns_in_order
from rankwell.rankers.learnable import check_learnable
from rankwell.rankers.registry import ranker_class
from rankwell.rankers.streaming import check_streaming
from rankwell.scoring.normaliser import Normaliser, fit_normaliser


@dataclass(frozen=True)
class LearnerPlan:
    """What every worker of a run is told: plain values and arrays.

    ranker : the ranker's name; parameters : its parameters, those without functions
    feature_names, normaliser, normaliser_arrays : of the model that training continues from, else None
    arrays : what the ranker's own learner needs of that model
    device : "cpu", or "cuda" where each worker has a GPU
    """

    ranker: str
    parameters: dict[str, Any]
    feature_names: list[str] | None = None
    normaliser: str | None = None
    normaliser_arrays: dict[str, np.ndarray] | None = None
    arrays: dict[str, np.ndarray] | None = None
    device: str = "cpu"

    def make_ranker(self) -> Ranker:
        return ranker_class(self.ranker)(**self.parameters)


class Learner(ABC):
    """One worker's part of a training. A subclass keeps what it needs of the data, and defines the methods that the
    driver calls; arguments and results are plain values and arrays.

    Parameters
    ----------
    plan : LearnerPlan
    dataset : RankingDataset
        This worker's queries.
    agreement : WorkersAgreement
    exchange : Exchange
    n_threads : int
    """

    def __init__(
        self,
        plan: LearnerPlan,
        dataset: RankingDataset,
        agreement: WorkersAgreement,
        exchange: Exchange,
        n_threads: int,
    ) -> None:
        self.plan, self.exchange, self.n_threads = plan, exchange, n_threads
        self.ranker = plan.make_ranker()
        if hasattr(self.ranker, "n_jobs"):
            self.ranker.n_jobs = n_threads
        self.n_docs, self.n_queries, self.n_features = dataset.n_docs, dataset.n_queries, dataset.n_features
        self.feature_names = dataset.feature_names
        check_streaming(self.ranker, dataset, ())
        if plan.feature_names is not None:
            dataset = columns_in_order(tuple(plan.feature_names), dataset, "init_model")
        if plan.normaliser is None:
            self.normaliser = fit_normaliser(self.ranker.normalize, dataset, agreement)
        else:
            self.normaliser = Normaliser(plan.normaliser, dict(plan.normaliser_arrays or {}))
        prepared = self.ranker._prepared(dataset, self.normaliser)
        check_learnable(prepared, missing_is_zero=self.ranker.missing_is_zero, agreement=agreement)
        self.keep(prepared, agreement)

    @abstractmethod
    def keep(self, dataset: RankingDataset, agreement: WorkersAgreement) -> None:
        """Keep what training needs of the normalised dataset."""

    def summary(self) -> Mapping[str, Any]:
        """What the driver must know of this worker's data."""
        return {
            "n_docs": self.n_docs,
            "n_queries": self.n_queries,
            "n_features": self.n_features,
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "normaliser": self.normaliser.name,
            "normaliser_arrays": dict(self.normaliser.arrays),
        }
