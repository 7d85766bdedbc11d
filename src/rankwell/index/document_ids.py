"""The ids of a segment's documents, and their hashes, by which a document is found."""

from __future__ import annotations

import numpy as np

from rankwell.kernels.cpu.term_table import hash_strings


def hash_id(document_id: bytes) -> int:
    """The stable 64-bit hash of an id that ``documents.id_hashes`` holds."""
    hashes = hash_ids(np.frombuffer(document_id, dtype=np.uint8), np.array([0, len(document_id)], dtype=np.int64))
    return int(hashes[0])


def hash_ids(text: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The hashes of the ids text[offsets[i] : offsets[i + 1]], uint64."""
    hashes = np.empty(len(offsets) - 1, dtype=np.uint64)
    # Kernels are compiled for arrays that may be written to and for those that may not: one is enough.
    hash_strings(text.copy(), offsets.astype(np.int64), hashes)
    return hashes


def encode_ids(ids: list[bytes]) -> dict[str, np.ndarray]:
    """The arrays of the documents' ids; documents of equal hash come in their order."""
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
