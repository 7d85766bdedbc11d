"""A run: the best documents of many queries, in TREC's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from rankwell.cli.console import say
from rankwell.cli.inputs import check_readable
from rankwell.cli.naming import in_words_of_options
from rankwell.cli.output_file import check_output, write_output
from rankwell.cli.progress import progress_bar
from rankwell.errors import DataError, Parameter, ParameterError, QueryError

if TYPE_CHECKING:
    import numpy as np

    from rankwell.features.absent_candidates import AbsentCandidates
    from rankwell.features.queries import QueryText
    from rankwell.index.query.query import Query
    from rankwell.index.search.selection import SearchResult
    from rankwell.serving.ranking.ranked_search import RankedResult, RankedSearch

# Documents of each query, as in TREC's tracks.
RUN_DEPTH = 1000
# How many queries that cannot be read are named.
_MOST_NAMED = 10


class Ranking(Protocol):
    """The documents of a query, best first, and their scores."""

    @property
    def ids(self) -> Sequence[str]: ...
    @property
    def scores(self) -> np.ndarray: ...


Searcher: TypeAlias = "Callable[[Query, int], SearchResult | RankedResult]"


def check_query_or_queries(
    query: Sequence[str] | None,
    queries: Path | None,
    run: Path | None,
    index: Path,
    ranker: Path | None,
    *,
    prose: bool,
) -> None:
    """Refuse a command line with a query and a file of queries, or with neither; check the files."""
    if queries is None:
        if query is None or run is not None or prose:
            given = "--run" if run is not None else "--prose" if prose else "no QUERY"
            raise ParameterError(f"give a QUERY, or --queries FILE and --run FILE, got {given} without --queries.")
        return
    if query:
        raise ParameterError("give a QUERY or --queries, not both.")
    if run is None:
        raise ParameterError("--queries needs --run FILE, where the run is written; - is stdout.")
    check_readable(queries)
    check_output(run, option="--run", inputs=[queries, index, ranker])


def write_run(
    searcher: Callable[[QueryText, int], Ranking],
    queries: Path,
    run: Path,
    k: int,
    *,
    prose: bool,
    by_rank: bool,
    tag: str,
    quiet: bool,
) -> None:
    """Search every query of a file and write the run; queries that cannot be read are named, and an error at the end.

    by_rank : whether documents are not in the order of their scores: those of the run then count down to 1, because
        programs that read runs order documents by scores
    """
    from rankwell.data.trec_lines import check_tag
    from rankwell.data.trec_run import format_run
    from rankwell.features.queries import read_queries

    check_tag(tag)
    asked = read_queries(queries, operators=not prose)
    lines = []
    n_found = n_empty = n_unreadable = 0
    with progress_bar(f"searching {len(asked):,} queries", quiet=quiet) as bar:
        for done, query in enumerate(asked, start=1):
            try:
                result = searcher(query, k)
            except QueryError as cause:
                n_unreadable += 1
                if n_unreadable <= _MOST_NAMED:
                    problem = DataError(f"line {query.line}, query {query.id!r}: ", *cause.pieces)
                    say(f"warning: {queries}, {in_words_of_options(problem)}")
                continue
            n_found += len(result.ids)
            n_empty += not len(result.ids)
            scores = range(len(result.ids), 0, -1) if by_rank else result.scores.tolist()
            lines.append(format_run(query.id, result.ids, scores, tag=tag))
            bar.show(done=done, total=len(asked))
    if lines:
        write_output(run, "".join(lines).encode())
    if n_empty:
        say(f"note: nothing was found for {n_empty:,} of {len(asked):,} queries", quiet=quiet)
    if by_rank:
        say("note: scores in the run count down to 1, because documents are not ordered by scores", quiet=quiet)
    if lines and str(run) != "-":
        say(f"{n_found:,} documents of {len(lines):,} queries written to {run}", quiet=quiet)
    if n_unreadable:
        raise DataError(
            f"{n_unreadable:,} of {len(asked):,} queries cannot be read and are not in the run. Correct them",
            (", or read the queries as prose (", Parameter("operators", False), ")"),
            ".",
        )


class RerankedDocuments(NamedTuple):
    """Documents of a run in another order."""

    ids: Sequence[str]
    scores: np.ndarray


def rerank(
    ranked: RankedSearch, query: Query, query_id: str, scores: Mapping[str, float], k: int, absent: AbsentCandidates
) -> RerankedDocuments:
    """The documents of one query's run, the best k by the ranker; those that the index lacks are left out."""
    import numpy as np

    best_first = sorted(scores, key=lambda document: -scores[document])
    known = [ranked.index.id_of(doc) for doc in absent.numbers(ranked.index, query_id, best_first).tolist()]
    if not known:
        return RerankedDocuments((), np.empty(0))
    found = ranked.score(ranked.features(query, known))
    # Equal scores stay in the order of the run.
    order = np.argsort(-found, kind="stable")[:k]
    return RerankedDocuments([known[place] for place in order.tolist()], found[order])
