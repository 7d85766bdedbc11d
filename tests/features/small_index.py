"""Indexes of the made-up documents of `random_hits`: word 7 is written w7, a gap is a stop word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from rankwell.corpus.document import Place, document_of
from rankwell.index.reader import Index
from rankwell.index.schema import Schema
from rankwell.index.segments.builder import SegmentBuilder
from rankwell.index.segments.sink import MemorySink
from rankwell.index.text.analysis import Analysis

ANALYSIS = Analysis(stop_words=("gap",))


def text_of(words: Sequence[int] | np.ndarray) -> str:
    return " ".join(f"w{word}" if word >= 0 else "gap" for word in words)


def index_of(
    documents: Sequence[dict[str, np.ndarray]],
    *,
    streams: Sequence[str],
    statics: dict[str, list[float]] | None = None,
    cuts: Sequence[int] = (),
    deleted: Sequence[int] = (),
    forward: Literal["all"] | Sequence[str] = (),
) -> Index:
    """An index in memory whose segments end before the documents `cuts`; document n has the id dn."""
    schema, segments, live = Schema(streams, statics or {}, forward=forward), [], []
    for start, stop in zip((0, *cuts), (*cuts, len(documents)), strict=True):
        builder = SegmentBuilder(schema, ANALYSIS)
        for number in range(start, stop):
            fields = {stream: text_of(words) for stream, words in documents[number].items()}
            numbers = {
                name: values[number] for name, values in (statics or {}).items() if values[number] == values[number]
            }
            builder.add([document_of({"id": f"d{number}", **fields, **numbers}, Place("test", number))])
        sink = MemorySink()
        builder.write(sink)
        segments.append(sink.segment())
        alive = np.array([number not in deleted for number in range(start, stop)], np.uint8)
        live.append(None if alive.all() else alive)
    return Index(segments, live, schema, ANALYSIS)
