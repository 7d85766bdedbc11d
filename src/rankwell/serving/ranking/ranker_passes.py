"""The passes of a ranker over an index, and where their scores can be computed if the index is in shards."""

from __future__ import annotations

from functools import cached_property

from rankwell.features.own_features import OwnFeatures
from rankwell.index.reader import Index
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.scorer import scoring_device
from rankwell.serving.ranking.pass_in_time import PassInTime
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
        self._in_time: dict[str, PassInTime] = {}
        # What selection knows is looked up of all candidates of a query at once, sooner than a block could be scored.
        self.known_first = PassInTime(scores_alone=False)

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

    def in_time(self, stage: str) -> PassInTime:
        """What runs the pass of a stage until a deadline."""
        if stage not in self._in_time:
            self._in_time[stage] = PassInTime(scores_alone=self.scores_alone(stage))
        return self._in_time[stage]

    def scores_alone(self, stage: str) -> bool:
        """Whether a document's score in a pass does not depend on the query's other documents."""
        return stage != WHOLE and self.of(stage).scores_alone
