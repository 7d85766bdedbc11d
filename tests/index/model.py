"""What an index should hold, and what it does hold, as plain dictionaries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from rankwell.index.reader import Index
from rankwell.index.segments.segment import ARRAYS
from rankwell.index.text.analysis import Analysis
from rankwell.kernels.postings.reference import decode_list

# An id -> (the fields as they were given, the words of each stream by their places, the numbers).
Content = dict[str, tuple[dict[str, Any], dict[str, dict[int, bytes]], dict[str, float]]]


def expected_content(documents: Iterable[Mapping[str, Any]], analysis: Analysis | None = None) -> Content:
    """What an index of these documents holds."""
    analysis = analysis or Analysis()
    content: Content = {}
    for fields in documents:
        texts = {name: value for name, value in fields.items() if name != "id" and isinstance(value, str)}
        words = {name: {place: term for term, place in analysis.cut(text)} for name, text in texts.items()}
        numbers = {name: float(value) for name, value in fields.items() if isinstance(value, int | float)}
        content[fields["id"]] = (dict(fields), {name: cut for name, cut in words.items() if cut}, numbers)
    return content


def content_of(index: Index) -> Content:
    """What an index holds, by brute force: every posting of every list, put back in its document's place."""
    content: Content = {}
    for number, segment in enumerate(index.segments):
        words: list[dict[str, dict[int, bytes]]] = [{} for _ in range(segment.n_docs)]
        arrays = {name: segment[name] for name in ARRAYS}
        for list_number in range(segment.n_terms * segment.lists_per_term):
            term_number, column = divmod(list_number, segment.lists_per_term)
            if column < segment.n_streams:
                for doc, frequency, places in decode_list(arrays, list_number, has_positions=True):
                    assert len(places) == frequency
                    stream = words[doc].setdefault(index.schema.streams[column], {})
                    stream.update({place: segment.term(term_number) for place in places})
        statics = segment["documents.statics"].reshape(segment.n_docs, segment.n_statics)
        live = index.live[number]
        for doc in range(segment.n_docs):
            if live is None or live[doc]:
                document_id = index.id_of(int(index.bases[number]) + doc)
                names = index.schema.statics[: segment.n_statics]
                numbers = {name: float(x) for name, x in zip(names, statics[doc], strict=True) if x == x}
                assert document_id not in content
                content[document_id] = (index.stored(int(index.bases[number]) + doc), words[doc], numbers)
    return content


def expected_ranking(content: Content, words: list[str], k1: float = 1.2, b: float = 0.75) -> list[tuple[str, float]]:
    """(id, BM25 score over the whole document) of every document with one of `words`, best first, then in order."""
    bags = {
        key: [term for stream in words_of.values() for term in stream.values()]
        for key, (_, words_of, _) in content.items()
    }
    average = sum(map(len, bags.values())) / len(bags) if bags else 1.0
    scores: dict[str, float] = {}
    for word in dict.fromkeys(words):
        having = [key for key, bag in bags.items() if word.encode() in bag]
        idf = math.log(1 + (len(bags) - len(having) + 0.5) / (len(having) + 0.5))
        for key in having:
            f = bags[key].count(word.encode())
            norm = k1 * (1 - b + b * len(bags[key]) / average)
            scores[key] = scores.get(key, 0.0) + words.count(word) * idf * f * (k1 + 1) / (f + norm)
    order = {key: place for place, key in enumerate(content)}
    return sorted(scores.items(), key=lambda item: (-round(item[1], 9), order[item[0]]))
