"""The vectors of documents, as rows of 32-bit words: see `rankwell.kernels.vectors.rules`."""

from __future__ import annotations

import math

import numpy as np

from rankwell.corpus.document import Document
from rankwell.errors import DataError
from rankwell.index.schema import Schema
from rankwell.kernels.vectors.rules import VectorPlace

_LARGEST = 127


def vector_row(document: Document, schema: Schema) -> np.ndarray:
    """A document's row: int32 (vector_words,); DataError if a vector is not as the schema says."""
    for name in document.vectors:
        if name not in schema.vectors:
            raise DataError(
                f"{document.place}, field {name!r}: a list of numbers is a vector, which an index must be built for: "
                f"Schema(vectors={{{name!r}: {len(document.vectors[name])}}}), or --vectors {name}="
                f"{len(document.vectors[name])}. Or leave the field out."
            )
    row = np.empty(schema.vector_words, np.int32)
    for name, place in schema.vector_places.items():
        row[place.start : place.start + place.n_words] = _words(document, name, place)
    return row


def _words(document: Document, name: str, place: VectorPlace) -> np.ndarray:
    words = np.zeros(place.n_words, np.int32)
    given = document.vectors.get(name)
    if given is None:
        words[:1].view(np.float32)[0] = math.nan
        return words
    try:
        with np.errstate(over="ignore"):
            numbers = np.asarray(given, np.float64).astype(np.float32)
    except OverflowError:
        # An integer that float64 does not have.
        numbers = np.full(len(given), np.inf, np.float32)
    if len(numbers) != place.dimension or not np.isfinite(numbers).all():
        what = f"{len(numbers)} numbers" if len(numbers) != place.dimension else "one that is too large or not a number"
        raise DataError(
            f"{document.place}, field {name!r}: a vector must have {place.dimension} finite numbers, got {what}."
        )
    if place.is_int8:
        scale = np.float32(np.abs(numbers).max(initial=0.0)) / np.float32(_LARGEST)
        words[:1].view(np.float32)[0] = scale
        if scale > 0.0:
            words[1:].view(np.int8)[: place.dimension] = np.rint(numbers / scale).clip(-_LARGEST, _LARGEST)
    else:
        words.view(np.float32)[:] = numbers
    return words
