"""The hits of phrases: further terms of their queries, after the words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankwell.features.hits import Hits, cell_bases
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.search.phrase_lists import NO_OCCURRENCES, PhraseList, PhraseTerms, phrase_lists
from rankwell.index.statistics import Statistics


def with_phrases(hits: Hits, index: Index, queries: Sequence[Query], candidates: Sequence[np.ndarray]) -> Hits:
    """The hits of words, with those of the queries' phrases as the last terms of each query.

    hits : of the words of `queries` in `candidates`
    """
    statistics = Statistics.of(index)
    frequencies, doc_freq, occurrences = [], [], []
    widths, positions = [np.zeros(1, np.int64)], [np.empty(0, np.int32)]
    n_columns = hits.n_streams + 1
    for number, (query, docs) in enumerate(zip(queries, candidates, strict=True)):
        terms = slice(*hits.term_ptr[number : number + 2])
        counted = [statistics.phrase(phrase) for phrase in query.phrases]
        frequencies += [hits.query_frequency[terms], np.array(query.phrase_frequencies, np.int32)]
        by_column = slice(terms.start * n_columns, terms.stop * n_columns)
        doc_freq += [hits.doc_freq[by_column], *(one.doc_freq for one in counted)]
        occurrences += [hits.occurrences[by_column], *(one.occurrences for one in counted)]
        for own_widths, own_positions in _rows(hits, number, index, query.phrases, np.asarray(docs, np.int64)):
            widths.append(own_widths)
            positions.append(own_positions)
    sizes = [len(query.terms) + len(query.phrases) for query in queries]
    term_ptr = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    return replace(
        hits,
        term_ptr=term_ptr,
        query_frequency=np.concatenate(frequencies),
        doc_freq=np.concatenate(doc_freq),
        occurrences=np.concatenate(occurrences),
        cell_base=cell_bases(hits.query_ptr, term_ptr, hits.n_streams),
        cell_ptr=np.cumsum(np.concatenate(widths)),
        positions=np.concatenate(positions) if hits.has_places else hits.positions,
    )


def _rows(
    hits: Hits, number: int, index: Index, phrases: Sequence[PhraseTerms], docs: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each candidate of a query the widths of its cells, and their hits: of words, then of phrases."""
    rows = []
    n_cells = int(hits.term_ptr[number + 1] - hits.term_ptr[number]) * hits.n_streams
    segments = np.searchsorted(index.bases, docs, side="right") - 1
    for row, (doc, segment) in enumerate(zip(docs.tolist(), segments.tolist(), strict=True)):
        first = int(hits.cell_base[number]) + row * n_cells
        cells = hits.cell_ptr[first : first + n_cells + 1]
        starts = [one.starts_in(doc - int(index.bases[segment])) for one in _lists(hits, index, segment, phrases)]
        widths = np.concatenate((np.diff(cells), [len(own) for own in starts])).astype(np.int64)
        own = hits.positions[cells[0] : cells[-1]] if hits.has_places else hits.positions
        rows.append((widths, np.concatenate((own, *starts))))
    return rows


def _lists(hits: Hits, index: Index, number: int, phrases: Sequence[PhraseTerms]) -> list[PhraseList]:
    """The lists of phrases in all streams of the index, in the order of their cells."""
    segment = index.segments[number]
    absent = [NO_OCCURRENCES] * (hits.n_streams - segment.n_streams)
    return [one for phrase in phrases for one in (*phrase_lists(segment, phrase), *absent)]
