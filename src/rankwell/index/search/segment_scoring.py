"""A segment prepared to be scored by a model."""

from __future__ import annotations

import numpy as np

from rankwell.index.search.bm25 import ModelColumns
from rankwell.index.segments.posting_arrays import posting_arrays, segment_column
from rankwell.index.segments.segment import Segment
from rankwell.index.statistics import Statistics


class SegmentScoring:
    """A segment's arrays, and what the model keeps for it: norms of documents, bounds of blocks."""

    def __init__(self, segment: Segment, statistics: Statistics, model: ModelColumns) -> None:
        from rankwell.kernels.selection.parts import ScoringArrays, length_norms

        self.segment, self.model = segment, model
        self.arrays = posting_arrays(segment)
        self._averages = [statistics.average_length(column) for column in model.columns]
        norms = np.zeros((len(model.columns), segment.n_docs))
        for row, (column, b, average) in enumerate(zip(model.columns, model.b, self._averages, strict=True)):
            own = segment_column(segment, column)
            if own is not None:
                length_norms(
                    segment["documents.lengths"], own, segment.lists_per_term, bool(model.weights), model.k1, b,
                    average, norms[row],
                )  # fmt: skip
        self.scoring = ScoringArrays(norms, np.zeros(len(self.arrays.last_doc)), np.zeros(len(self.arrays.doc_freq)))

    def lists_of(self, term: bytes, field: int | None) -> tuple[tuple[tuple[int, int], ...], int]:
        """A term's lists in one column (by number), or in those that words without a field are looked for in: pairs
        (list, row of the norms), checked and bounded. And a list that has all their documents, -1 if there is none.
        """
        segment, model = self.segment, self.model
        number = segment.term_number(term)
        if number < 0:
            return (), -1
        first = number * segment.lists_per_term
        rows = range(model.n_read) if field is None else (model.columns.index(field),)
        lists = tuple((found, row) for row in rows if (found := self._checked(first, row, model.columns[row])) >= 0)
        if len(lists) <= 1:
            return lists, lists[0][0] if lists else -1
        whole = first + segment.lists_per_term - 1
        segment.verify_list(whole, positions=False)
        return lists, whole

    def _checked(self, first: int, row: int, column: int) -> int:
        from rankwell.kernels.selection.parts import bound_list

        own = segment_column(self.segment, column)
        if own is None:
            return -1
        number = first + own
        self.segment.verify_list(number, positions=False)
        if self.arrays.doc_freq[number] == 0:
            return -1
        if self.scoring.list_bounds[number] == 0.0:
            bound_list(
                self.arrays, number, bool(self.model.weights), self.model.k1, self.model.b[row], self._averages[row],
                self.scoring.norms[row], self.scoring.block_bounds, self.scoring.list_bounds,
            )  # fmt: skip
        return number
