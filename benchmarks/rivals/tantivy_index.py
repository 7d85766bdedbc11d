"""tantivy: an index of texts with positions, every field stored."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NAME = "tantivy"
IS_INSTALLED = find_spec("tantivy") is not None
HEAP_BYTES = 128 * 2**20


def build_index(corpus: str, folder: str, streams: Sequence[str], n_threads: int, *, stemmed: bool = True) -> Any:
    """Index lines of JSON with the fields ``id`` and `streams`; returns the index after the commit.

    Lines are added as they are (`add_json`, the fastest way): its own threads parse them.
    """
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    for stream in streams:
        tokenizer = "en_stem" if stemmed else "default"
        builder.add_text_field(stream, stored=True, tokenizer_name=tokenizer, index_option="position")
    Path(folder).mkdir(parents=True, exist_ok=True)
    index = tantivy.Index(builder.build(), path=folder)
    writer = index.writer(HEAP_BYTES, n_threads)
    with open(corpus, encoding="utf-8") as lines:
        for line in lines:
            writer.add_json(line)
    writer.commit()
    # Merges in the background are part of the work.
    writer.wait_merging_threads()
    index.reload()
    return index


def document_frequencies(index: Any, stream: str, terms: Sequence[str]) -> list[int]:
    """The number of documents with each term in that stream."""
    searcher = index.searcher()
    return [searcher.doc_freq(stream, term) for term in terms]
