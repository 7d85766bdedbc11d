"""An index as a reader sees it: one generation, which never changes under it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rankwell.index.analysis import Analysis
    from rankwell.index.schema import Schema
    from rankwell.index.segment import Segment


class Index:
    """A snapshot of an index.

    Documents are numbered through the segments: number = the segment's base + the number in the segment. Deleted
    documents keep their number until a merge drops them.

    Parameters
    ----------
    segments : in the order their documents were added
    live : for each segment uint8 [n_docs], 1 = live; None where nothing is deleted
    schema, analysis : the names of streams and statics, and how text is cut into words
    generation : counts commits
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        live: Sequence[np.ndarray | None],
        schema: Schema,
        analysis: Analysis,
        *,
        generation: int = 0,
    ) -> None:
        self.segments = tuple(segments)
        self.live = tuple(live)
        self.schema = schema
        self.analysis = analysis
        self.generation = generation
        sizes = [segment.n_docs for segment in self.segments]
        self.bases = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        self.n_docs = sum(
            segment.n_docs if alive is None else int(np.count_nonzero(alive))
            for segment, alive in zip(self.segments, self.live, strict=True)
        )

    def id_of(self, doc: int) -> str:
        """The user's id of document `doc`."""
        number = int(np.searchsorted(self.bases, doc, side="right")) - 1
        return self.segments[number].id_of(doc - int(self.bases[number]))
