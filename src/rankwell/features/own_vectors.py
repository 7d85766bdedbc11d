"""Products of vectors: a query's vector, which is given, and those of documents, which the index has.

    dot.embedding, cosine.embedding     of the query's vector and the document's; NaN where one is missing
    cosine.embedding(default=0)         0 where one is missing

A query's vector comes from a table with the columns `query` and `vector`, or from a function of its text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from rankwell.errors import DataError
from rankwell.features.own_functions import call_own, function_name, shortened
from rankwell.features.own_tables import query_key, read_columns, read_texts
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.kernels.device import load
from rankwell.kernels.vectors.contract import VECTOR_PRODUCTS
from rankwell.kernels.vectors.rules import N_PRODUCTS, VectorPlace

_QUERY, _VECTOR = "query", "vector"

VectorFunction = Callable[[str], Sequence[float] | np.ndarray | None]


class QueryVectors(Protocol):
    """Where the vectors of queries come from."""

    @property
    def keys(self) -> str:
        """By what vectors are known, for a message where no product was found."""
        ...

    def of(self, query: Query) -> np.ndarray | None:
        """The vector of a query, float32 (dimension,); None if there is none."""
        ...


class GivenVectors:
    """The vectors of queries by their words. vectors : by `query_key`; place : what messages call the table"""

    def __init__(self, vectors: dict[str, np.ndarray], place: str) -> None:
        self._vectors = vectors
        first = next(iter(vectors), None)
        self.keys = f"{place} has no rows" if first is None else f"the first query of {place} is {first!r}"

    def of(self, query: Query) -> np.ndarray | None:
        return self._vectors.get(query_key(query.text))


class ComputedVectors:
    """The vectors that a function makes of queries' texts."""

    def __init__(self, name: str, function: VectorFunction) -> None:
        self._name, self._function = name, function
        self.keys = f"vectors of queries are made by {function_name(function)}"

    def of(self, query: Query) -> np.ndarray | None:
        given = call_own(self._name, self._function, query)
        try:
            return None if given is None else np.ascontiguousarray(given, np.float32)
        except (TypeError, ValueError) as cause:
            raise DataError(
                f"the function of {self._name!r} must return a list of numbers, or None, got {shortened(given)} for "
                f"the query {query.text!r}."
            ) from cause


def read_query_vectors(path: str | os.PathLike[str]) -> GivenVectors:
    """Read the vectors of queries from a Parquet, Feather or JSON-lines file with the columns `query` and `vector`."""
    place, columns = os.fspath(path), read_columns(path)
    if not {_QUERY, _VECTOR} <= columns.keys():
        raise DataError(
            f"{place} must have the columns {_QUERY!r} (a text) and {_VECTOR!r} (a list of numbers); it has "
            f"{', '.join(columns) or 'none'}."
        )
    vectors: dict[str, np.ndarray] = {}
    texts = read_texts(columns[_QUERY], _QUERY, place)
    for row, (text, given) in enumerate(zip(texts, columns[_VECTOR], strict=True), start=1):
        try:
            vector = np.array(given, np.float64).astype(np.float32)
        except (TypeError, ValueError) as cause:
            raise DataError(f"{place}, row {row}: {_VECTOR!r} must be a list of numbers.") from cause
        if vector.ndim != 1 or not np.isfinite(vector).all():
            raise DataError(f"{place}, row {row}: {_VECTOR!r} must be a list of finite numbers.")
        if vectors.setdefault(query_key(text), vector) is not vector:
            raise DataError(f"{place}, row {row} is of the query {text!r}, as a row before is: give each one row.")
    return GivenVectors(vectors, place)


def vector_products(
    index: Index, name: str, vector: np.ndarray | None, docs: np.ndarray, *, device: str, n_jobs: int | None
) -> np.ndarray:
    """Dot products and cosines of documents and a query, float32 (n_docs, 2); NaN where a vector is missing.

    name : of the vector in the index's schema; docs : int64 (n_docs,)
    """
    values = np.full((len(docs), N_PRODUCTS), np.nan, np.float32)
    place = index.schema.vector_places.get(name)
    if place is None:
        known = ", ".join(index.schema.vectors) or "none"
        raise DataError(
            f"the index has no vectors {name!r}; it has: {known}. Build it with them (vectors=, --vectors)."
        )
    if vector is None:
        return values
    _check(name, vector, place)
    segment_of = np.searchsorted(index.bases, docs, side="right") - 1
    for number in np.unique(segment_of).tolist():
        rows = np.flatnonzero(segment_of == number)
        local = np.ascontiguousarray(docs[rows] - int(index.bases[number]))
        problem = _Problem(len(local))
        values[rows] = load(
            VECTOR_PRODUCTS, device, problem, index.segments[number].vectors, local, place, vector, n_jobs=n_jobs
        )
    return values


def _check(name: str, vector: np.ndarray, place: VectorPlace) -> None:
    if vector.shape != (place.dimension,):
        raise DataError(
            f"the query's vector {name!r} must have {place.dimension} numbers, as those of the index, got an array of "
            f"shape {vector.shape}."
        )


class _Problem:
    def __init__(self, n_candidates: int) -> None:
        self.n_candidates = n_candidates
