"""A ranker over the candidates of a sharded collection: scored where they are, or here if it compares documents."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankwell.index.query.query import Query
from rankwell.scoring.composition import best_rows
from rankwell.serving.ranking.feature_log import FeatureLog
from rankwell.serving.ranking.ranked_search import best_candidates
from rankwell.serving.ranking.ranker_passes import FIRST, SECOND, WHOLE, RankerPasses
from rankwell.serving.shards import messages, replies
from rankwell.serving.shards.candidates import Candidates, Ranked
from rankwell.serving.shards.sharded_feedback import relevance_models
from rankwell.serving.shards.sharded_search import ShardedSearch

# Numbers that are scored sooner than another thread is awake.
_SCORED_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class LoggedAs:
    """Where the features of a query are logged, and under which id."""

    log: FeatureLog
    query_id: str


@dataclass(frozen=True)
class ShardedRanking:
    """A ranker on its way over candidates.

    ranker : the digest of its file
    models : for features that read them; None if they could not be had in time, so that nothing can be ranked
    """

    search: ShardedSearch
    candidates: Candidates
    ranker: str
    passes: RankerPasses
    models: list[messages.Model] | None

    async def rank(self, k: int, logged: LoggedAs | None = None) -> Ranked:
        """The best k candidates: of a cascade, as many as it keeps of all shards get the second pass.

        A pass that no shard answers in time is left out, and so is what follows it: the order is that of the stage
        before. So is that of the candidates that a shard did not rank in time, which come after those that were ranked.
        """
        candidates, passes = self.candidates, self.passes
        before, kept, is_in_time = candidates.score, np.arange(len(candidates)), True
        unranked = np.empty(0, np.int64)
        if passes.first is not None and passes.description.first_pass is not None:
            by_row = await self._first_scores()
            scored = ~np.isnan(by_row)
            is_in_time = bool(scored.any())
            if is_in_time:
                # Candidates without a score, as those of a shard that is missing now, come last; none of them is kept
                # if there are enough others.
                least = by_row[scored].min()
                unranked = np.flatnonzero(~scored)
                before = np.where(scored, by_row, least - 1.0 - np.arange(len(by_row)))
            kept = best_rows(before, np.array([0, len(before)]), passes.description.first_pass.keep)
        scores = np.full(len(kept), np.nan)
        if is_in_time:
            scores = await (self._scores(SECOND, kept, before) if logged is None else self._logged_scores(kept, logged))
        ranked = ~np.isnan(scores)
        rows, values = best_candidates(kept[ranked], scores[ranked], before, k)
        return Ranked(rows, values, kept, int(ranked.sum()), np.union1d(unranked, kept[~ranked]))

    async def features(self, rows: np.ndarray) -> np.ndarray:
        """All features of candidates, float32 (n, n_features); NaN in the rows of shards that did not answer."""
        return (await self._features(WHOLE, rows))[0]

    async def _first_scores(self) -> np.ndarray:
        """The scores of all candidates in the first pass, which may have been run with selection."""
        first = self.candidates.first
        if first is None:
            return await self._scores(FIRST, np.arange(len(self.candidates)))
        if self.passes.scores_alone(FIRST):
            return first
        return await self._scores_here(FIRST, first)

    async def _scores(self, stage: str, rows: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """The scores of candidates in a pass, float64; NaN for those that no shard scored in time.

        before : the scores of all candidates in the stage before, if that is not selection
        """
        if len(rows) == 0:
            return np.empty(0)
        if not self.passes.scores_alone(stage):
            features, is_known, _ = await self._features(stage, rows)
            return await self._scores_of_known(stage, features, is_known)
        scores = np.full(len(rows), np.nan)
        for places, part in await self._pass(stage, rows, before):
            scores[places] = part.of_all(len(places))
        return scores

    async def _logged_scores(self, rows: np.ndarray, logged: LoggedAs) -> np.ndarray:
        """The ranker's scores, and all features in the log, of which the scores are made."""
        if len(rows) == 0:
            return np.empty(0)
        features, is_known, ids = await self._features(WHOLE, rows, ids=True)
        scores = await self._scores_of_known(WHOLE, features, is_known)
        if is_known.any():
            names = [name for name, known in zip(ids, is_known.tolist(), strict=True) if known]
            await _in_thread(partial(logged.log.append, logged.query_id, names, features[is_known]))
        return scores

    async def _scores_of_known(self, stage: str, features: np.ndarray, is_known: np.ndarray) -> np.ndarray:
        if is_known.all():
            return await self._scores_here(stage, features)
        scores = np.full(len(features), np.nan)
        if is_known.any():
            scores[is_known] = await self._scores_here(stage, features[is_known])
        return scores

    async def _scores_here(self, stage: str, features: np.ndarray) -> np.ndarray:
        """The scores of rows of features, computed in this process: a part of ranking, wherever it is done."""
        score = partial(self.passes.of(stage).score_rows, features, [len(features)])
        started = time.perf_counter()
        scores: np.ndarray = score() if features.size <= _SCORED_AT_ONCE else await _in_thread(score)
        self.search.rounds.add_seconds("rank", time.perf_counter() - started)
        return scores

    async def _features(
        self, stage: str, rows: np.ndarray, *, ids: bool = False
    ) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """The features of a pass, of which rows they are known, and the ids of the documents if they are wanted."""
        features = np.full((len(rows), len(self.passes.of(stage).feature_set)), np.nan, np.float32)
        is_known, names = np.zeros(len(rows), bool), [""] * len(rows)
        for places, part in await self._pass(stage, rows, ids=ids):
            features[places], is_known[places] = part.values, True
            for place, name in zip(places.tolist(), part.ids, strict=False):
                names[place] = name
        return features, is_known, names

    async def _pass(
        self, stage: str, rows: np.ndarray, before: np.ndarray | None = None, *, ids: bool = False
    ) -> list[tuple[np.ndarray, replies.ScoredDocuments]]:
        """One pass over rows: for each shard, which of the rows it has, best first, and what it answered.

        before : the scores by which they are the best, of all candidates; by default they are in that order
        """
        if self.models is None:
            return []
        search, candidates = self.search, self.candidates
        order = np.arange(len(rows)) if before is None else np.argsort(-before[rows], kind="stable")
        asked = [shard for shard in search.rounds.present if shard not in search.rounds.late]
        places = {shard: order[candidates.shard[rows[order]] == shard] for shard in asked}
        places = {shard: own for shard, own in places.items() if len(own)}
        alone, n_features = self.passes.scores_alone(stage), len(self.passes.of(stage).feature_set)
        bodies = {}
        for shard, own in places.items():
            docs, scores = candidates.doc[rows[own]].tobytes(), candidates.score[rows[own]].tobytes()
            version = search.collection.version(shard)
            bodies[shard] = messages.Score(version, search.question, self.ranker, stage, docs, scores, self.models, ids)
        checks = {shard: replies.scored(len(own), n_features, alone=alone, ids=ids) for shard, own in places.items()}
        answered = await search.rounds.ask("first" if stage == FIRST else "second", bodies, checks, self.ranker)
        search.rounds.devices |= {answer.device for answer in answered.values()}
        return [(places[shard], answer) for shard, answer in answered.items()]


async def ranking_of(
    search: ShardedSearch, query: Query, candidates: Candidates, ranker: str, passes: RankerPasses
) -> ShardedRanking:
    """A ranker's way over candidates, with the relevance models that it reads."""
    models = await relevance_models(search, query, candidates, passes)
    return ShardedRanking(search, candidates, ranker, passes, models)


async def _in_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, work)
