"""Documents to a segment's arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from rankwell.errors import DataError
from rankwell.index.analysis import Analysis
from rankwell.index.document import Document, Place
from rankwell.index.schema import Schema
from rankwell.kernels.reference.postings import build_postings, lists_per_term

MEMORY_BYTES = 256 * 2**20


class Sink(Protocol):
    """Where a segment's arrays go: a file each on disk, or memory."""

    def append(self, name: str, values: np.ndarray) -> None:
        """Add values to the end of an array; arrays may be filled in any interleaving."""

    def finish(self, meta: dict[str, Any]) -> None:
        """Called once, after the last append."""


class SegmentBuilder:
    """Collects documents and writes them as one segment.

    Parameters
    ----------
    schema : Schema
        Grows by the fields that documents bring.
    analysis : Analysis
    memory_bytes : int
        About how much memory the builder may take; `is_full` says when it is used up.
    """

    def __init__(self, schema: Schema, analysis: Analysis, memory_bytes: int = MEMORY_BYTES) -> None:
        self.schema = schema
        self.analysis = analysis
        self.memory_bytes = memory_bytes
        self._documents: list[Document] = []
        self._places: dict[str, Place] = {}
        self._n_bytes = 0

    @property
    def n_docs(self) -> int:
        return len(self._documents)

    @property
    def is_full(self) -> bool:
        return 4 * self._n_bytes > self.memory_bytes

    def add(self, documents: Iterable[Document]) -> None:
        """Take in documents; they get the next document numbers in their order."""
        for document in documents:
            first = self._places.setdefault(document.id, document.place)
            if first is not document.place:
                raise DataError(
                    f"{document.place}: id {document.id!r} is there already, at {first}. Ids must be unique: leave one "
                    f"of the two out, or give it another id."
                )
            for name in document.texts:
                self.schema.stream_number(name, document.place)
            for name in document.numbers:
                self.schema.static_number(name, document.place)
            self._documents.append(document)
            self._n_bytes += sum(map(len, document.texts.values()))

    def write(self, sink: Sink) -> dict[str, Any]:
        """Write the segment's arrays and return its meta data."""
        streams, statics = self.schema.streams, self.schema.statics
        words = [[self.analysis.cut(document.texts.get(name, "")) for name in streams] for document in self._documents]
        arrays = build_postings(words, len(streams))
        arrays |= encode_ids([document.id.encode("utf-8") for document in self._documents])
        values = [document.numbers.get(name, np.nan) for document in self._documents for name in statics]
        arrays["documents.statics"] = np.array(values, dtype="<f8")
        arrays |= encode_stored([document.stored for document in self._documents])
        for name, array in arrays.items():
            sink.append(name, array)
        lengths = arrays["documents.lengths"].reshape(self.n_docs, lists_per_term(len(streams)))
        meta = {
            "n_docs": self.n_docs,
            "n_terms": len(arrays["terms.offsets"]) - 1,
            "n_streams": len(streams),
            "n_statics": len(statics),
            "tokens": lengths.sum(axis=0, dtype=np.int64).tolist(),
        }
        sink.finish(meta)
        return meta


def hash_id(document_id: bytes) -> int:
    """A 64-bit hash of an id: FNV-1a, then the last step of MurmurHash3, which spreads it over all bits."""
    mask = 2**64 - 1
    value = 0xCBF29CE484222325
    for byte in document_id:
        value = (value ^ byte) * 0x100000001B3 & mask
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & mask
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & mask
    return value ^ value >> 33


def encode_ids(ids: list[bytes]) -> dict[str, np.ndarray]:
    """The arrays of the documents' ids."""
    hashes = np.array([hash_id(document_id) for document_id in ids], dtype="<u8")
    order = np.argsort(hashes, kind="stable")
    return {
        "documents.ids.text": np.frombuffer(b"".join(ids), dtype="<u1"),
        "documents.ids.offsets": np.concatenate(([0], np.cumsum([len(one) for one in ids]))).astype("<i8"),
        "documents.id_hashes": hashes[order],
        "documents.id_order": order.astype("<i4"),
    }


def encode_stored(stored: list[bytes]) -> dict[str, np.ndarray]:
    """The arrays of the stored fields: blocks of documents' JSON lines."""
    import pyarrow

    codec = pyarrow.Codec("zstd", compression_level=1)
    data, offsets, first_docs, doc = [], [0], [0], 0
    while doc < len(stored):
        block: list[bytes] = []
        while doc < len(stored) and sum(map(len, block)) < STORED_BLOCK_BYTES:
            block.append(stored[doc])
            doc += 1
        text = b"".join(line + b"\n" for line in block)
        data.append(len(text).to_bytes(4, "little") + codec.compress(text, asbytes=True))
        offsets.append(offsets[-1] + len(data[-1]))
        first_docs.append(doc)
    return {
        "stored.data": np.frombuffer(b"".join(data), dtype="<u1"),
        "stored.offsets": np.array(offsets, dtype="<i8"),
        "stored.first_doc": np.array(first_docs, dtype="<i4"),
    }


STORED_BLOCK_BYTES = 16 * 1024


def decode_stored(block: np.ndarray) -> list[bytes]:
    """The JSON lines of one block of ``stored.data``."""
    import pyarrow

    data = block.tobytes()
    text: bytes = pyarrow.Codec("zstd").decompress(data[4:], int.from_bytes(data[:4], "little"), asbytes=True)
    return text.split(b"\n")[:-1]
