"""What is shown of documents: titles, addresses, captions, stored fields.

To read the stored fields of a document and to cut its text into words takes longer than to make a caption of them, and
some documents are found again and again: what was made of those that were shown last is kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.index.search.caption import Caption, CaptionTexts, WantedTerms
from rankwell.index.search.indexed_text import DocumentWords
from rankwell.serving.answer import CaptionPart, Result

# Fields whose text is a result's title or address, the first that a document has.
_TITLES = ("title", "name", "headline")
_ADDRESSES = ("url", "link")
# What is kept of an index, and what a document takes: its text several times, and its terms.
_MOST_BYTES = 64 << 20
_TEXT_COST, _TERM_COST = 5, 200


class _Shown:
    """What is shown of a document, whatever the query is."""

    def __init__(self, index: Index, doc: int) -> None:
        # Not the index: it is the key under which this is kept for as long as the index lives.
        self._analysis, self._words = index.analysis, DocumentWords(index, doc)
        self.id, self.fields = index.id_of(doc), index.stored(doc)
        self.title, self.url = _first_text(self.fields, _TITLES), _address(self.fields)
        body = {name: value for name, value in self.fields.items() if name not in (*_TITLES, *_ADDRESSES)}
        self.body = CaptionTexts(body, index.analysis, self._words)

    @property
    def n_bytes(self) -> int:
        characters = sum(len(value) for value in self.fields.values() if isinstance(value, str))
        return 1024 + _TEXT_COST * characters + _TERM_COST * self.body.n_terms

    def caption(self, wanted: WantedTerms) -> Caption:
        caption = self.body.caption(wanted)
        return caption if caption.text else CaptionTexts(self.fields, self._analysis, self._words).caption(wanted)


class ShownDocuments:
    """The documents of an index that were shown last. Several threads may use it."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self._documents: OrderedDict[int, tuple[_Shown, int]] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, index: Index) -> ShownDocuments:
        known = _shown.get(index)
        return _shown.setdefault(index, cls()) if known is None else known

    def forget(self) -> None:
        """Keep nothing of any document."""
        with self._lock:
            self._documents.clear()
            self.n_bytes = 0

    def document(self, index: Index, doc: int) -> _Shown:
        with self._lock:
            known = self._documents.get(doc)
            if known is not None:
                self._documents.move_to_end(doc)
                return known[0]
        made = _Shown(index, doc)
        n_bytes = made.n_bytes
        with self._lock:
            if doc not in self._documents and n_bytes <= _MOST_BYTES:
                self._documents[doc] = made, n_bytes
                self.n_bytes += n_bytes
            while self.n_bytes > _MOST_BYTES:
                self.n_bytes -= self._documents.popitem(last=False)[1][1]
        return made


_shown: WeakKeyDictionary[Index, ShownDocuments] = WeakKeyDictionary()


def shown_results(
    index: Index, query: Query, docs: Sequence[int], scores: Sequence[float], first_scores: Sequence[float], first: int
) -> list[Result]:
    """Documents as results, from the place `first` on."""
    documents, wanted = ShownDocuments.of(index), WantedTerms(query)
    results = []
    for place, (doc, score, first_score) in enumerate(zip(docs, scores, first_scores, strict=True), start=first):
        shown = documents.document(index, doc)
        caption = _parts(shown.caption(wanted))
        results.append(Result(place, shown.id, score, first_score, shown.title, shown.url, caption, shown.fields))
    return results


def _parts(caption: Caption) -> tuple[CaptionPart, ...]:
    """A caption in pieces; joined, they are the caption."""
    text, end, parts = caption.text, 0, []
    for start, stop in caption.hits:
        if start > end:
            parts.append(CaptionPart(text[end:start], False))
        if stop > start:
            parts.append(CaptionPart(text[start:stop], True))
        end = stop
    if len(text) > end:
        parts.append(CaptionPart(text[end:], False))
    return tuple(parts)


def _address(fields: Mapping[str, Any]) -> str | None:
    """An address of the web: others, such as `javascript:`, must not become links."""
    address = _first_text(fields, _ADDRESSES)
    return address if address is not None and address.startswith(("http://", "https://")) else None


def _first_text(fields: Mapping[str, Any], names: Sequence[str]) -> str | None:
    texts = (fields.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str) and text), None)
