"""Your own features: numbers about a query and a document that come from elsewhere, by name.

    own.click_rate               what a table or a function of yours says; NaN where it says nothing
    own.click_rate(default=0)    the same, and 0 where it says nothing
    cosine.embedding             of a query's vector and a document's (`own_vectors`)

Training and serving read the same sources (`own=` in Python, `--own` on the command line), so that a ranker gets what
it was trained on. The values are looked up on the host and passed with the hits as statics are: no kernel computes
them, so every device has the same values.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rankwell.errors import DataError, ParameterError
from rankwell.features.catalogue import COSINE as COSINE_KIND
from rankwell.features.catalogue import DOT as DOT_KIND
from rankwell.features.catalogue import OWN
from rankwell.features.feature_set import FeatureSet
from rankwell.features.hits import Hits
from rankwell.features.names import Feature, escaped
from rankwell.features.own_functions import call_own, function_name, shortened
from rankwell.features.own_tables import read_own_table
from rankwell.features.own_vectors import (
    ComputedVectors,
    QueryVectors,
    VectorFunction,
    read_query_vectors,
    vector_products,
)
from rankwell.index.query.query import Query
from rankwell.index.reader import Index
from rankwell.kernels.vectors.rules import COSINE, DOT

logger = logging.getLogger(__name__)

# The text of a query and the ids of documents, to a number for each of them.
OwnFunction = Callable[[str, list[str]], Sequence[float] | np.ndarray]
_NAMED_IN_ERRORS = 8
VECTORS = "vectors"


class OwnSource(Protocol):
    """Where values come from. names : of its features, without the first part"""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def keys(self) -> str:
        """By what its values are known, for a message where none was found."""
        ...

    def values(self, index: Index, query: Query, docs: np.ndarray) -> np.ndarray:
        """The values of documents for a query, float32 (n_docs, n_names); NaN where there is none.

        docs : int64 (n_docs,), numbers of documents of the index
        """
        ...


class OwnFeatures:
    """Sources of your own features.

    Parameters
    ----------
    tables : paths of Parquet, Feather or JSON-lines files
        With a column `query` (a text), a column `document` (an id), or both; all other columns are features, named as
        the column is.
    functions : mapping of names to functions
        Each gets a query's text and a list of documents' ids, and returns a number for each document.
    query_vectors : mapping of names to paths or functions
        For vectors that the index has: a file with the columns `query` and `vector`, or a function that returns the
        vector of a query's text, or None.

    Examples
    --------
    >>> import rankwell
    >>> shouting = lambda query, documents: [float(query.isupper())] * len(documents)
    >>> own = rankwell.OwnFeatures(functions={"shouting": shouting})
    >>> own.feature_names
    ['own.shouting']
    """

    def __init__(
        self,
        tables: Iterable[str | os.PathLike[str]] = (),
        functions: Mapping[str, OwnFunction] | None = None,
        query_vectors: Mapping[str, str | os.PathLike[str] | VectorFunction] | None = None,
    ) -> None:
        sources: list[OwnSource] = [read_own_table(path) for path in tables]
        sources += [_FunctionSource(name, function) for name, function in (functions or {}).items()]
        self._sources: dict[str, tuple[OwnSource, int]] = {}
        for source in sources:
            for place, name in enumerate(source.names):
                if name in self._sources:
                    raise ParameterError(f"two sources have the feature {name!r}: rename it in one of them.")
                self._sources[name] = source, place
        self._vectors: dict[str, QueryVectors] = {
            name: ComputedVectors(name, given) if callable(given) else read_query_vectors(given)
            for name, given in (query_vectors or {}).items()
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features that there are values of, without the first part."""
        return tuple(self._sources)

    @property
    def feature_names(self) -> list[str]:
        """The names of all features that can be made of the sources, without settings."""
        own = [f"{OWN}.{escaped(name)}" for name in self._sources]
        return own + [f"{kind}.{escaped(name)}" for name in self._vectors for kind in (DOT_KIND, COSINE_KIND)]

    def check(self, feature_set: FeatureSet) -> None:
        """Raise a DataError that names the features of a set that no source has."""
        lacking = [
            feature.name
            for feature in feature_set.own
            if feature.stream not in (self._sources if feature.kind == OWN else self._vectors)
        ]
        if lacking:
            known = ", ".join(self.names) or "none"
            vectors = ", ".join(self._vectors) or "none"
            raise DataError(
                f"there is no source of {', '.join(lacking[:_NAMED_IN_ERRORS])}: name the file or function that has "
                f"the values (own=OwnFeatures(...), --own, --query-vectors). There are values of: {known}; vectors of "
                f"queries: {vectors}."
            )

    def values(
        self,
        feature_set: FeatureSet,
        index: Index,
        queries: Sequence[Query],
        candidates: Sequence[np.ndarray],
        *,
        device: str = "cpu",
        n_jobs: int | None = None,
        counted: Counter[str] | None = None,
    ) -> np.ndarray:
        """The own features of a set, for every candidate: float32 (n_candidates, n), defaults filled in.

        device, n_jobs : where and on how many threads vectors are multiplied
        counted : gets, by feature, how many more candidates have a value, defaults not counted
        """
        self.check(feature_set)
        rows = []
        for query, docs in zip(queries, candidates, strict=True):
            known: dict[tuple[str, str], np.ndarray] = {}
            own = np.empty((len(docs), len(feature_set.own)), np.float32)
            for column, feature in enumerate(feature_set.own):
                values = self._column(feature, index, query, docs, known, device, n_jobs)
                missing = np.isnan(values)
                own[:, column] = np.where(missing, feature.settings["default"], values)
                if counted is not None:
                    counted[feature.name] += int(np.count_nonzero(~missing))
            rows.append(own)
        return np.concatenate([np.empty((0, len(feature_set.own)), np.float32), *rows])

    def warn_of_absent(self, feature_set: FeatureSet, counted: Counter[str]) -> None:
        """Log the own features of a set that no candidate has a value of; counted : by `values`."""
        for feature in feature_set.own:
            if not counted[feature.name]:
                source = self._sources[feature.stream][0] if feature.kind == OWN else self._vectors[feature.stream]
                logger.warning(
                    "%s: no row has a value (%s). Tables know a query by its words, and a document by its id in the "
                    "index.",
                    feature.name,
                    source.keys,
                )

    def _column(
        self,
        feature: Feature,
        index: Index,
        query: Query,
        docs: np.ndarray,
        known: dict[tuple[str, str], np.ndarray],
        device: str,
        n_jobs: int | None,
    ) -> np.ndarray:
        """The values of one feature; known : tables of several columns that were made for this query"""
        name = feature.stream
        if feature.kind == OWN:
            source, place = self._sources[name]
            key = OWN, source.names[0]
            if key not in known:
                known[key] = source.values(index, query, docs)
            return known[key][:, place]
        key = VECTORS, name
        if key not in known:
            vector = self._vectors[name].of(query)
            known[key] = vector_products(index, name, vector, docs, device=device, n_jobs=n_jobs)
        return known[key][:, COSINE if feature.kind == COSINE_KIND else DOT]


NOTHING = OwnFeatures()
"""No own features."""


def with_own(
    hits: Hits,
    feature_set: FeatureSet,
    index: Index,
    queries: Sequence[Query],
    candidates: Sequence[np.ndarray],
    own: OwnFeatures | None,
    *,
    device: str = "cpu",
    n_jobs: int | None = None,
    counted: Counter[str] | None = None,
) -> Hits:
    """The hits, and the values of the set's own features as further statics; the same hits if it has none.

    hits : of `queries` in `candidates`; counted : as of `OwnFeatures.values`
    """
    if not feature_set.own:
        return hits
    values = (own or NOTHING).values(
        feature_set, index, queries, candidates, device=device, n_jobs=n_jobs, counted=counted
    )
    names = tuple(feature.name for feature in feature_set.own)
    statics = np.concatenate((hits.statics.reshape(hits.n_candidates, len(hits.static_names)), values), axis=1)
    return replace(hits, static_names=(*hits.static_names, *names), statics=statics.reshape(-1))


@dataclass(frozen=True)
class _FunctionSource:
    name: str
    function: OwnFunction

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def keys(self) -> str:
        return f"its function {function_name(self.function)} returned no number"

    def values(self, index: Index, query: Query, docs: np.ndarray) -> np.ndarray:
        ids = [index.id_of(doc) for doc in docs.tolist()]
        returned = call_own(self.name, self.function, query, ids)
        try:
            given = np.asarray(returned, np.float64)
        except (TypeError, ValueError) as cause:
            raise DataError(
                f"the function of {self.name!r} must return a number for each of {len(ids)} documents, got "
                f"{shortened(returned)} for the query {query.text!r}."
            ) from cause
        if given.shape != (len(ids),):
            raise DataError(
                f"the function of {self.name!r} must return a number for each of {len(ids)} documents, got an array of "
                f"shape {given.shape}."
            )
        with np.errstate(over="ignore"):
            return given.astype(np.float32)[:, None]
