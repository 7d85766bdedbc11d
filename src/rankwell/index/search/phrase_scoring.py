"""What phrases add to the scores of documents that have them.

A phrase is a term of its query like any other, beside its words: BM25 counts it with its own document frequency, and
with its frequency in the streams that the model reads. Only documents that have a phrase change their score: they are
scored on their own, and compete with the best of the others, which the posting lists of the words find. A phrase that
is a synonym counts without its words, so a document may have nothing that scores but the phrase.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankwell.index.query.plan import ScoredPhrase
from rankwell.index.search.allowed_documents import Allowed, all_but, only_these
from rankwell.index.search.bm25 import WHOLE
from rankwell.index.search.phrase_lists import phrase_lists
from rankwell.index.search.selector import Asked, Selector

if TYPE_CHECKING:
    from rankwell.index.reader import Index


class PhraseScoring:
    """The phrases of a query, in the model of a selector."""

    def __init__(self, index: Index, selector: Selector, phrases: Sequence[ScoredPhrase]) -> None:
        self._index, self._selector = index, selector
        weighted = ((self._weight(phrase), phrase) for phrase in phrases)
        # As words are summed: by falling weight, then by their bytes.
        self._phrases = sorted(
            ((weight, phrase) for weight, phrase in weighted if weight > 0.0),
            key=lambda pair: (-pair[0], pair[1].phrase, pair[1].field or ""),
        )

    def select(
        self,
        asked: Sequence[Asked],
        allowed: Sequence[Allowed],
        k: int,
        prune: bool,
        reach: Sequence[int] | None,
        *,
        needs_word: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best k of the allowed documents by words and phrases: as `Selector.select` by words.

        needs_word : whether some word is required, so that a phrase alone does not make a document match
        """
        having = self._documents(allowed, reach)
        sizes = [segment.n_docs for segment in self._index.segments]
        without = [all_but(one, docs, size) for one, docs, size in zip(allowed, having, sizes, strict=True)]
        docs, scores = self._selector.select(asked, without, k, prune, reach)
        n_having = sum(map(len, having))
        if n_having:
            only = [only_these(own, size) for own, size in zip(having, sizes, strict=True)]
            reach = [size if len(own) else 0 for own, size in zip(having, sizes, strict=True)]
            found, values = self._selector.select(asked, only, n_having, True, reach)
            if not needs_word:
                found, values = self._with_others(found, values, having)
            docs, scores = np.concatenate((docs, found)), np.concatenate((scores, values + self.shares(found)))
        order = np.lexsort((docs, -scores))[:k]
        return docs[order], scores[order]

    def _with_others(
        self, found: np.ndarray, values: np.ndarray, having: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Documents with a phrase, and the scores of their words: 0 for those that have none."""
        bases = self._index.bases.tolist()
        every = np.concatenate([own + base for own, base in zip(having, bases, strict=False)])
        others = every[~np.isin(every, found)]
        return np.concatenate((found, others)), np.concatenate((values, np.zeros(len(others))))

    def shares(self, docs: np.ndarray) -> np.ndarray:
        """What the phrases add to the scores of documents of the index: float64 (n,)."""
        shares = np.zeros(len(docs))
        segments = np.searchsorted(self._index.bases, docs, side="right") - 1
        for number in np.unique(segments).tolist():
            rows = np.flatnonzero(segments == number)
            own = docs[rows] - int(self._index.bases[number])
            total = np.zeros(len(rows))
            for weight, phrase in self._phrases:
                total += weight * self._parts(number, own, phrase)
            shares[rows] = total
        return shares

    def _weight(self, phrase: ScoredPhrase) -> float:
        model = self._selector.model
        column = model.counted if phrase.field is None else self._column(phrase.field)
        doc_freq = int(self._selector.statistics.phrase(phrase.phrase).doc_freq[column])
        return phrase.factor * self._selector.weight(doc_freq) if doc_freq else 0.0

    def _column(self, field: str) -> int:
        return self._index.schema.streams.index(field)

    def _rows(self, phrase: ScoredPhrase) -> list[int]:
        """The rows of the model's columns in which a phrase is looked for."""
        model = self._selector.model
        return list(range(model.n_read)) if phrase.field is None else [model.columns.index(self._column(phrase.field))]

    def _parts(self, number: int, docs: np.ndarray, phrase: ScoredPhrase) -> np.ndarray:
        """The saturated frequencies of a phrase in documents of a segment: float64 (n,)."""
        segment = self._index.segments[number]
        lists, rows = phrase_lists(segment, phrase.phrase), self._rows(phrase)
        counts = np.zeros((len(rows), len(docs)))
        for place, row in enumerate(rows):
            column = self._selector.model.columns[row]
            for own in lists if column == WHOLE else lists[column : column + 1]:
                counts[place] += own.counts_in(docs)
        return self._selector.saturated(number, docs, rows, counts)

    def _documents(self, allowed: Sequence[Allowed], reach: Sequence[int] | None) -> list[np.ndarray]:
        """For each segment the allowed documents that have a phrase where it counts, int32, ascending."""
        found = []
        for number, segment in enumerate(self._index.segments):
            marks = np.zeros(segment.n_docs, bool)
            for _, phrase in self._phrases:
                columns = [self._selector.model.columns[row] for row in self._rows(phrase)]
                for stream, own in enumerate(phrase_lists(segment, phrase.phrase)):
                    if WHOLE in columns or stream in columns:
                        marks[own.docs] = True
            if len(allowed[number].marks):
                marks &= allowed[number].marks != 0
            if reach is not None:
                marks[reach[number] :] = False
            found.append(np.flatnonzero(marks).astype(np.int32))
        return found
