"""The ids of a segment's documents, and their hashes, by which a document is found."""

from __future__ import annotations

import numpy as np

from rankwell.errors import ParameterError
from rankwell.kernels.words.term_table import hash_strings


def wanted_id(document_id: str | int | np.integer) -> bytes:
    """A requested id as an index stores it: an integer becomes its digits, as in documents."""
    if isinstance(document_id, np.integer) or type(document_id) is int:
        document_id = str(document_id)
    if not isinstance(document_id, str):
        raise ParameterError(
            f"an id is a text or an integer, got {document_id!r} of type {type(document_id).__name__}. Pass it as the "
            f"documents have it."
        )
    # No id contains half of a surrogate pair; it must not be an error here.
    return document_id.encode("utf-8", "surrogatepass")


def hash_id(document_id: bytes) -> int:
    """The stable 64-bit hash of an id that ``documents.id_hashes`` holds."""
    hashes = hash_ids(np.frombuffer(document_id, dtype=np.uint8), np.array([0, len(document_id)], dtype=np.int64))
    return int(hashes[0])


def hash_ids(text: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The hashes of the ids text[offsets[i] : offsets[i + 1]], uint64."""
    hashes = np.empty(len(offsets) - 1, dtype=np.uint64)
    # Kernels are compiled separately for writable and read-only arrays: one of them is enough.
    hash_strings(text.copy(), offsets.astype(np.int64), hashes)
    return hashes


def encode_ids(ids: list[bytes]) -> dict[str, np.ndarray]:
    """The arrays of the documents' ids; documents of equal hash are in their order."""
    text = np.frombuffer(b"".join(ids), dtype=np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(one) for one in ids], dtype=np.int64))).astype(np.int64)
    hashes = hash_ids(text, offsets)
    order = np.argsort(hashes, kind="stable")
    return {
        "documents.ids.text": text,
        "documents.ids.offsets": offsets,
        "documents.id_hashes": hashes[order],
        "documents.id_order": order.astype(np.int32),
    }
