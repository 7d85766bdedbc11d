"""Candidates of a sharded collection: what the shards found, in the order that one index would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rankwell.index.search.facets import FacetKeys, Facets, joined_facets
from rankwell.index.search.sorting import SortKey, comparable

if TYPE_CHECKING:
    from rankwell.serving.shards.replies import SelectedDocuments


@dataclass(frozen=True)
class Selection:
    """What is to be selected.

    k : how many documents; stop_after : as of `rankwell.index.search.selection.search`
    sort, facets : checked; fields : the facets as they were asked for
    without : a document that is not to be found, by shard and number
    """

    k: int
    sort: Sequence[SortKey] = ()
    facets: FacetKeys = field(default_factory=dict)
    fields: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    stop_after: int | None = None
    without: tuple[int, int] | None = None


@dataclass(frozen=True)
class Candidates:
    """What selection found, best first.

    shard, doc : int64 (n,), where each document is; score : float64 (n,)
    n_matches : None if it stopped before all were known; n_examined : of how many documents it then is the best
    first : scores or features of a first pass, if all shards have run it
    """

    shard: np.ndarray
    doc: np.ndarray
    score: np.ndarray
    n_matches: int | None
    first: np.ndarray | None = None
    facets: Facets = field(default_factory=dict)
    n_examined: int | None = None

    def __len__(self) -> int:
        return len(self.doc)


@dataclass(frozen=True)
class Ranked:
    """Candidates in the order of a ranker.

    rows : the best candidates, best first; scores : theirs
    kept : the rows that were to be ranked, ascending; n_ranked : how many of them were
    unranked : the rows that a pass was to score and did not
    """

    rows: np.ndarray
    scores: np.ndarray
    kept: np.ndarray
    n_ranked: int
    unranked: np.ndarray


def joined_candidates(found: Mapping[int, SelectedDocuments], asked: Selection) -> Candidates:
    """The best k of what shards found; equal ones are in the order of shards and documents."""
    parts = [(shard, found[shard]) for shard in sorted(found)]
    shard = np.repeat([one for one, _ in parts], [len(own.docs) for _, own in parts]).astype(np.int64)
    none = np.empty(0, np.int64)
    doc = np.concatenate([none, *(own.docs for _, own in parts)])
    score = np.concatenate([none.astype(np.float64), *(own.scores for _, own in parts)])
    # Shards ascend, and so do equal documents within them.
    if asked.sort:
        values = [comparable(one, asked.sort) for _, own in parts for one in own.sort_values]
        order = np.array(sorted(range(len(values)), key=values.__getitem__), np.int64)[: asked.k]
    else:
        order = np.argsort(-score, kind="stable")[: asked.k]
    counts = [own.n_matches for _, own in parts]
    n_matches = None if None in counts else sum(count or 0 for count in counts)
    firsts = [own.first for _, own in parts if own.first is not None]
    ran = np.concatenate(firsts)[order] if firsts and len(firsts) == len(parts) else None
    facets = joined_facets((own.facets for _, own in parts), asked.facets)
    return Candidates(shard[order], doc[order], score[order], n_matches, ran, facets)
