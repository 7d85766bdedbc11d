"""Search: the best documents of an index for a query."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rankwell.errors import ParameterError
from rankwell.index.query.query import Query
from rankwell.index.query.tree import Match, both
from rankwell.index.search.bm25 import BM25, BM25F
from rankwell.index.search.facets import FacetKeys, Facets, count_facets, facet_keys
from rankwell.index.search.query_search import QuerySearch
from rankwell.index.search.sorting import SortKey, SortValue, first_documents, sort_keys
from rankwell.index.search.static_order import Examined, ordering_static
from rankwell.kernels.threads import kernel_threads, run_ranges
from rankwell.parameters import check_whole_number

if TYPE_CHECKING:
    from rankwell.index.reader import Index
    from rankwell.index.text.synonyms import Synonyms

Filter = str | Mapping[str, Any]
# Fields, or fields with the edges of their ranges.
AskedFacets = Iterable[str] | Mapping[str, Sequence[Any] | None]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The documents found, best first; equal scores by document number.

    docs : int64 (n,), document numbers; scores : float64 (n,); query : as it was parsed
    facets : the counts of each field that was asked for, of all documents that match
    n_examined : if the search might stop early, how many documents it looked at, from the first in the static order on,
        whether they match or not: these are the best of them. None: of all documents
    stopped_early : whether there are other documents
    sort_values : for each document the values that it is sorted by; empty if it is sorted by scores
    left_out : the number of a document that is not to be found, though it may match
    """

    docs: np.ndarray
    scores: np.ndarray
    query: Query
    _search: QuerySearch = field(repr=False)
    facets: Facets = field(default_factory=dict)
    n_examined: int | None = None
    stopped_early: bool = False
    sort_values: Sequence[tuple[SortValue, ...]] = ()
    left_out: int | None = None

    def __len__(self) -> int:
        return len(self.docs)

    @property
    def index(self) -> Index:
        return self._search.index

    @cached_property
    def ids(self) -> list[str]:
        """The user's ids of the documents."""
        return [self.index.id_of(doc) for doc in self.docs.tolist()]

    @cached_property
    def n_matches(self) -> int:
        """How many documents match; a search skips most of them, so they are counted when this is first used."""
        n_left_out = int(self.left_out is not None and self._search.is_match(self.left_out))
        return self._search.count() - n_left_out

    def count_facets(self, facets: AskedFacets) -> Facets:
        """Counts over all documents that match; facets : as of `search`."""
        index, left_out = self.index, self.left_out
        matches = self._search.matches if left_out is None else self._search.matches_without(left_out)
        return count_facets(index, matches, facet_keys(facets, index.schema))


_DEFAULT_MODEL = BM25()
# Queries that are worth a thread: they take some tenths of a millisecond.
_LEAST_QUERIES = 8


def search(
    index: Index,
    query: str | Query,
    *,
    k: int = 10,
    model: BM25 | BM25F | None = None,
    match: Match = "any",
    plain: bool = False,
    filter: Filter | None = None,
    synonyms: Synonyms | None = None,
    typos: bool = False,
    sort: str | Sequence[str] | None = None,
    facets: AskedFacets = (),
    prune: bool = True,
    stop_after: int | None = None,
) -> SearchResult:
    """The best k documents of an index for a query.

    Parameters
    ----------
    query : str or Query
        A text is of the query language (`rankwell.index.query.parser`), unless it is `plain`.
    k : int
        How many documents at most.
    model : BM25 or BM25F
        By default BM25 over the whole document with k1 = 1.2 and b = 0.75.
    match : "any" or "all"
        Whether a document must have one of the words or all of them.
    plain : bool
        Whether the text is words and nothing else: nothing in it has a special meaning, and nothing is an error.
    filter : str or mapping, optional
        What documents must meet besides; it does not count in the score. A text of the query language
        (``"year:>2000 kind:(book OR film)"``), or values by field: one, several of which one is enough, or a pair
        (low, high) of a number or date, None for an open end (``{"year": (2001, None), "kind": ["book", "film"]}``).
    synonyms : Synonyms, optional
        Words that count as the same, for a query that is a text.
    typos : bool
        Whether words of a text that are written nearly as the query's count too: one edit for words of 3 to 5
        characters, two for longer ones.
    sort : str or sequence of str, optional
        Order by fields instead of scores: ``"year"``, ``"year:desc"``, or several, in a text separated by commas.
        Documents without a value come last.
    facets : fields, or a mapping of fields to edges of ranges, optional
        What is counted over all documents that match: each value, or each range from one edge to below the next.
    prune : bool
        Skip documents that cannot be among the best k, where that is quicker (`rankwell.index.search.pruning`). Without
        it the result is the same, to the last bit, but slower.
    stop_after : int, optional
        Look only at the first documents in the static order of the index (`Schema.static_order`): at so many that about
        this many match, by how many documents have the words, and at more if fewer than k are found. Quicker, and
        others are lost; the result says how many documents were examined.
    """
    wanted = _checked_k(k, index)
    keys, counted = checked_settings(index, sort, facets, stop_after)
    parsed = _parsed(index, query, plain, filter, synonyms, typos)
    asked = _search_of(index, parsed, model, match)
    if stop_after is not None:
        return _examined(asked, asked.best_of_first(wanted, stop_after))
    values: list[tuple[SortValue, ...]] = []
    if keys:
        docs, values = first_documents(index, asked.matches, keys, wanted)
        scores = asked.scores_of(docs)
    else:
        docs, scores = asked.best(wanted, prune)
    found = count_facets(index, asked.matches, counted) if counted else {}
    return SearchResult(docs, scores, parsed, asked, found, sort_values=values)


def search_many(
    index: Index,
    queries: Sequence[Query],
    *,
    k: int,
    model: BM25 | BM25F | None = None,
    match: Match = "any",
    stop_after: Sequence[int | None] | None = None,
    n_jobs: int | None = None,
) -> list[SearchResult]:
    """The same as `search` of one query after another; stop_after : of each query

    Queries of words are all prepared first, and then searched on `n_jobs` threads (None: every core), which need the
    interpreter lock for little of that.
    """
    wanted, stops = _checked_k(k, index), stop_after or [None] * len(queries)
    found: list[SearchResult | None] = [None] * len(queries)
    prepared: list[tuple[int, QuerySearch, Callable[[], tuple[np.ndarray, np.ndarray]]]] = []
    for number, (query, stop) in enumerate(zip(queries, stops, strict=True)):
        if query.tree is None and stop is None:
            asked = _search_of(index, query, model, match)
            prepared.append((number, asked, asked.prepare(wanted, prune=True)))
        else:
            found[number] = search(index, query, k=k, model=model, match=match, stop_after=stop)

    def select(first: int, last: int) -> None:
        for number, asked, best in prepared[first:last]:
            found[number] = SearchResult(*best(), asked.query, asked)

    with kernel_threads(n_jobs):
        run_ranges(select, len(prepared), ranges_per_thread=2, least_items=_LEAST_QUERIES)
    return [one for one in found if one is not None]


def search_first(index: Index, query: Query, n_first: int, *, k: int) -> SearchResult:
    """The best k of the first `n_first` documents in the static order of the index, by BM25."""
    asked = _search_of(index, query, None, "any")
    return _examined(asked, asked.best_among(_checked_k(k, index), n_first))


def n_first_of(index: Index, query: Query, stop_after: int, n_numbers: int) -> int:
    """How many of `n_numbers` documents in the static order a search by BM25 looks at, to begin with."""
    return _search_of(index, query, None, "any").n_first(stop_after, n_numbers)


def _examined(asked: QuerySearch, found: Examined) -> SearchResult:
    return SearchResult(
        found.docs, found.scores, asked.query, asked, n_examined=found.n_examined, stopped_early=found.stopped
    )


def checked_settings(
    index: Index, sort: str | Sequence[str] | None, facets: AskedFacets, stop_after: int | None
) -> tuple[tuple[SortKey, ...], FacetKeys]:
    """What a search sorts by and counts; ParameterError for what it cannot do."""
    keys = () if sort is None else sort_keys(sort, index.schema)
    counted = facet_keys(facets, index.schema)
    if stop_after is not None:
        check_whole_number("stop_after", stop_after, least=1)
        ordering_static(index)
        if keys or counted:
            raise ParameterError(
                "stops before all documents that match are known, which sort and facets need: leave one of them out.",
                parameter="stop_after",
            )
    return keys, counted


def count(
    index: Index,
    query: str | Query,
    *,
    model: BM25 | BM25F | None = None,
    match: Match = "any",
    plain: bool = False,
    filter: Filter | None = None,
) -> int:
    """How many live documents match a query; parameters as those of `search`."""
    return _search_of(index, _parsed(index, query, plain, filter, None, False), model, match).count()


def _search_of(index: Index, query: Query, model: BM25 | BM25F | None, match: Match) -> QuerySearch:
    if match not in ("any", "all"):
        raise ParameterError(f"must be 'any' or 'all', got {match!r}.", parameter="match")
    if model is not None and not isinstance(model, BM25 | BM25F):
        raise ParameterError(f"must be a BM25 or a BM25F, got {model!r}.", parameter="model")
    return QuerySearch(index, query, (model or _DEFAULT_MODEL).columns(index.schema), match)


def _parsed(
    index: Index, query: str | Query, plain: bool, filter: Filter | None, synonyms: Synonyms | None, typos: bool
) -> Query:
    if not isinstance(query, Query):
        return index.parse(query, plain=plain, filter=filter, synonyms=synonyms, typos=typos)
    if filter is None:
        return query
    more = index.parse("", filter=filter).filter
    return replace(query, filter=more if query.filter is None or more is None else both(query.filter, more))


def _checked_k(k: int, index: Index) -> int:
    """`k`, checked, and not more than there are documents."""
    check_whole_number("k", k, least=1)
    return min(operator.index(k), max(index.n_docs, 1))
