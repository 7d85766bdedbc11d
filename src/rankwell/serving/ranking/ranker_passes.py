"""The passes of a ranker over an index, and where their scores can be computed if the index is in shards."""

from __future__ import annotations

from functools import cached_property

from rankwell.features.own_features import OwnFeatures
from rankwell.index.reader import Index
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.scorer import scoring_device
from rankwell.serving.ranking.ranked_search import features_of, first_pass_of
from rankwell.serving.ranking.ranking_pass import RankingPass

FIRST, SECOND, WHOLE = "first", "second", "whole"


class RankerPasses:
    """A ranker's first pass (None if it has none), its second, and one that extracts all of its features."""

    def __init__(
        self,
        index: Index,
        description: RankerDescription,
        *,
        own: OwnFeatures | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.description, self.index = description, index
        self.feature_set = features_of(description)
        self.feature_set.check(index.schema.streams, index.schema.statics)
        self._device, self._n_jobs, self._own = scoring_device(description, device), n_jobs, own
        self.first = first_pass_of(index, description, self.feature_set, self._device, n_jobs, own)
        self.second = RankingPass(
            index, description.second_pass, self.feature_set, own=own, device=self._device, n_jobs=n_jobs
        )

    @cached_property
    def whole(self) -> RankingPass:
        return RankingPass(
            self.index,
            self.description.second_pass,
            self.feature_set,
            all_features=True,
            own=self._own,
            device=self._device,
            n_jobs=self._n_jobs,
        )

    def of(self, stage: str) -> RankingPass:
        """The pass of a stage: FIRST, SECOND or WHOLE."""
        if stage == FIRST and self.first is not None:
            return self.first
        return self.whole if stage == WHOLE else self.second

    def scores_alone(self, stage: str) -> bool:
        """Whether a document's score in a pass does not depend on the query's other documents."""
        return stage != WHOLE and scores_alone(self.of(stage).description)


def scores_alone(description: RankerDescription) -> bool:
    """Whether a document's score does not depend on the other documents of its query."""
    return (
        not description.normaliser.needs_queries
        and description.first_pass is None
        and all(scores_alone(part.description) for part in description.parts)
    )
