"""The models that select documents: BM25 over one stream or the whole document, BM25F over streams.

    BM25    score = Σ_t q_t · idf_t · f·(k1 + 1) / (f + k1·(1 − b + b·length/average))
    BM25F   score = Σ_t q_t · idf_t · x·(k1 + 1) / (x + k1),
            x = Σ_s weight_s · f_s / (1 − b_s + b_s·length_s/average_s)

q is how often the query has the term, f how often the document (or its stream) has it, and idf = ln(1 + (N − n + ½) /
(n + ½)) with n of the N live documents having the term: in the stream that BM25 reads, in the whole document otherwise.
BM25F sums the streams before it saturates; over a single stream of weight 1 it is BM25.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rankwell.errors import ParameterError
from rankwell.index.schema import Schema
from rankwell.parameters import is_number

WHOLE = -1
DEFAULT_B = 0.75


class ModelColumns(NamedTuple):
    """A model in the numbers of an index.

    k1 : float
    columns : numbers of the streams that are read; (WHOLE,) for the whole document
    b : one for each column
    weights : one for each column; () for BM25
    n_read : how many of the columns words without a field are looked for in; the others are for those with a field
    counted : the column whose document frequencies count, for words without a field
    """

    k1: float
    columns: tuple[int, ...]
    b: tuple[float, ...]
    weights: tuple[float, ...]
    n_read: int
    counted: int

    @property
    def read(self) -> tuple[int, ...]:
        """The columns in which words without a field are looked for."""
        return self.columns[: self.n_read]

    def summing(self, fields: Collection[int]) -> ModelColumns:
        """The same model with these columns too, and scores that are summed over lists before they saturate.

        BM25 in this form gives the same scores up to rounding.
        """
        more = tuple(sorted(set(fields) - set(self.columns)))
        return self._replace(
            columns=self.columns + more,
            b=self.b + (DEFAULT_B if self.weights else self.b[0],) * len(more),
            weights=(self.weights or (1.0,)) + (1.0,) * len(more),
        )


@dataclass(frozen=True)
class BM25:
    """BM25 over the whole document, or over one stream.

    Parameters
    ----------
    k1 : float, 0 or more
        How slowly occurrences saturate; 0 counts them as present or absent.
    b : float, 0 to 1
        How much long documents are penalised.
    stream : str or None
        None is the whole document: all streams as one text.
    """

    k1: float = 1.2
    b: float = 0.75
    stream: str | None = None

    def __post_init__(self) -> None:
        _check_k1(self.k1)
        _check_b(self.b, "b")

    def columns(self, schema: Schema) -> ModelColumns:
        column = WHOLE if self.stream is None else _stream_number(self.stream, schema)
        return ModelColumns(float(self.k1), (column,), (float(self.b),), (), 1, column)


@dataclass(frozen=True)
class BM25F:
    """BM25F over streams.

    Parameters
    ----------
    weights : mapping of stream to float above 0
        Streams that are not named are not read. None: every stream, with weight 1.
    k1 : float, 0 or more
    b : float, or mapping of stream to float, 0 to 1
        Streams that a mapping does not name have 0.75.
    """

    weights: Mapping[str, float] | None = None
    k1: float = 1.2
    b: float | Mapping[str, float] = 0.75

    def __post_init__(self) -> None:
        _check_k1(self.k1)
        if self.weights is not None and not isinstance(self.weights, Mapping):
            raise ParameterError(f"must be a mapping of streams to numbers, got {self.weights!r}.", parameter="weights")
        for stream, weight in (self.weights or {}).items():
            _check_between(f"the weight of stream {stream!r}", weight, "1e-9", "1e9")
        if self.weights is not None and not self.weights:
            raise ParameterError(
                "must name at least one stream, got none. Leave it out to read every stream.", parameter="weights"
            )
        if isinstance(self.b, Mapping):
            for stream, b in self.b.items():
                _check_b(b, f"b of stream {stream!r}")
        else:
            _check_b(self.b, "b")

    def columns(self, schema: Schema) -> ModelColumns:
        weights = dict.fromkeys(schema.streams, 1.0) if self.weights is None else self.weights
        by_stream = self.b if isinstance(self.b, Mapping) else dict.fromkeys(weights, self.b)
        for stream in by_stream:
            _stream_number(stream, schema)
        # In the order of the schema, so that equal models sum in the same order.
        streams = sorted(weights, key=lambda stream: _stream_number(stream, schema))
        return ModelColumns(
            float(self.k1),
            tuple(_stream_number(stream, schema) for stream in streams),
            tuple(float(by_stream.get(stream, DEFAULT_B)) for stream in streams),
            tuple(float(weights[stream]) for stream in streams),
            len(streams),
            WHOLE,
        )


def idf(n_docs: int, doc_freq: int) -> float:
    """ln(1 + (N − n + ½)/(n + ½)): above 0 for every term."""
    return math.log(1.0 + (n_docs - doc_freq + 0.5) / (doc_freq + 0.5))


def _check_k1(k1: float) -> None:
    _check_between("k1", k1, "0", "1e6")


def _check_b(b: float, name: str) -> None:
    _check_between(name, b, "0", "1")


def _check_between(name: str, value: float, least: str, most: str) -> None:
    """Refuse a value outside the limits, which are texts so that the message shows them as written here."""
    if not is_number(value) or not float(least) <= value <= float(most):
        raise ParameterError(f"must be between {least} and {most}, got {value!r}.", parameter=name)


def _stream_number(stream: str, schema: Schema) -> int:
    if stream not in schema.streams:
        known = ", ".join(map(repr, schema.streams)) or "none"
        raise ParameterError(f"the index has no stream {stream!r}. Its streams are: {known}.")
    return schema.streams.index(stream)
