"""`rankwell search`: the best documents of an index for a query."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankwell.cli.console import print_json, say, show, show_log
from rankwell.cli.figures import make_table
from rankwell.cli.inputs import check_readable
from rankwell.cli.options import DEFAULT_CANDIDATES, JsonOption, QuietOption, StopAfterOption, given_path
from rankwell.cli.output_file import check_output
from rankwell.cli.own_options import OwnOption, QueryVectorsOption, given_own
from rankwell.cli.search_run import RUN_DEPTH, Ranking, Searcher, check_query_or_queries, rerank, write_run
from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.text import Text

    from rankwell.features.absent_candidates import AbsentCandidates
    from rankwell.features.queries import QueryText
    from rankwell.index.query.query import Query
    from rankwell.index.query.tree import Match
    from rankwell.index.reader import Index
    from rankwell.index.search.bm25 import BM25, BM25F
    from rankwell.index.search.facets import Facets
    from rankwell.index.search.selection import SearchResult
    from rankwell.serving.ranking.ranked_search import RankedResult, RankedSearch

# How many words a note lists.
_MOST_NAMED = 8
# How many values of a field are shown.
_MOST_VALUES = 20
# Of BM25, as `rankwell.BM25` has them: help is shown without importing it.
_DEFAULT_K1, _DEFAULT_B = 1.2, 0.75


def search(
    index: Annotated[
        Path, typer.Argument(metavar="INDEX", parser=given_path, help="The index's folder.", show_default=False)
    ],
    query: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[QUERY...]",
            help='Words, "phrases", title:word, +required, -excluded, AND, OR, NOT, ( ), year:[2000 TO 2010], comp*. '
            "Or --queries FILE.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k", metavar="N", min=1, help="How many documents to show: 10, or 1000 in a run.", show_default=False
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like",
            metavar="ID",
            help="Find documents that are like this one, in place of a query.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="Search many queries: lines of id, tab, text, or of JSON, or TREC's topics.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", metavar="FILE", help="With --queries: where to write a TREC run; - is stdout.", show_default=False
        ),
    ] = None,
    rerank_run: Annotated[
        Path | None,
        typer.Option(
            "--rerank",
            metavar="RUN",
            help="With --queries and --ranker: rank the documents of this TREC run, not what BM25 finds.",
            show_default=False,
        ),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option(
            "--tag", metavar="NAME", help="With --run: the run's name in its lines, else rankwell.", show_default=False
        ),
    ] = None,
    prose: Annotated[
        bool, typer.Option("--prose", help="With --queries: quotes, + and - in them have no special meaning.")
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="The query is words and nothing else: it has no operators.")
    ] = False,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="QUERY",
            help="What documents must meet besides, as 'year:>2000 kind:book'; may be repeated.",
            show_default=False,
        ),
    ] = None,
    synonyms: Annotated[
        Path | None,
        typer.Option(
            "--synonyms",
            metavar="FILE",
            help="Lines as 'tv, television' and 'laptop => notebook': words that are found too.",
            show_default=False,
        ),
    ] = None,
    typos: Annotated[
        bool, typer.Option("--typos", help="Find words that are written nearly as the query's, too.")
    ] = False,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", metavar="FIELDS", help="Order by fields, as year:desc,brand, not by scores.", show_default=False
        ),
    ] = None,
    facets: Annotated[
        list[str] | None,
        typer.Option(
            "--facet",
            metavar="FIELD[=EDGES]",
            help="Count the values of a field, or its ranges, as price=0,10,100; may be repeated.",
            show_default=False,
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            "--match",
            metavar="RULE",
            help="Whether documents need any or all of the words, by default any.",
            show_default=False,
        ),
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option("--stream", metavar="NAME", help="Search this stream only, with BM25.", show_default=False),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="NAME=W,...", help="Search these streams with BM25F.", show_default=False),
    ] = None,
    k1: Annotated[
        float | None,
        typer.Option(
            "--k1",
            metavar="NUMBER",
            help=f"BM25: how slowly occurrences saturate: {_DEFAULT_K1} by default.",
            show_default=False,
        ),
    ] = None,
    b: Annotated[
        float | None,
        typer.Option(
            "--b",
            metavar="NUMBER",
            help=f"BM25: how much long documents are penalised: {_DEFAULT_B} by default.",
            show_default=False,
        ),
    ] = None,
    ranker: Annotated[
        Path | None,
        typer.Option(
            "--ranker",
            metavar="FILE",
            help="A ranker file trained on what `rankwell features` writes: it ranks what BM25 finds.",
            show_default=False,
        ),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            "--candidates",
            metavar="N",
            min=1,
            help=f"How many documents of a query BM25 gives to the ranker: {DEFAULT_CANDIDATES} by default.",
            show_default=False,
        ),
    ] = None,
    own: OwnOption = None,
    query_vectors: QueryVectorsOption = None,
    stop_after: StopAfterOption = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="NAME",
            help="Where the ranker runs: cpu, cuda or auto; by default on the cpu.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show the best documents of an index for a query, by BM25 or by a ranker.

    Put a query that contains quotes in single quotes. Put one that begins with a minus after all options and --:
    rankwell search IDX -k 5 -- '-gas "crude oil"'

    Example: rankwell search idx 'oil +prices -gas' -k 5

    Example: rankwell search idx --like d17

    Example: rankwell search idx --queries queries.tsv --run run.txt

    Example: rankwell search idx --queries queries.tsv --ranker model.rank --rerank run.txt --run reranked.txt
    """
    from rankwell.features.absent_candidates import AbsentCandidates
    from rankwell.index.reader import Index
    from rankwell.index.search.facets import written_facets

    show_log(quiet=quiet)
    if like is None:
        check_query_or_queries(query, queries, run, index, ranker, prose=prose)
    else:
        others = {
            "a QUERY": query,
            "--queries": queries,
            "--run": run,
            "--ranker": ranker,
            "--sort": sort,
            "--match": match,
            "--stop-after": stop_after,
            "--synonyms": synonyms,
            "--typos": typos,
            "--plain": plain,
            "--prose": prose,
        }
        _check_like(*(option for option, given in others.items() if given))
    _check_needed(
        ("--run FILE", run, {"--tag": tag}),
        (
            "--ranker FILE",
            ranker,
            {"--candidates": candidates, "--device": device, "--own": own, "--query-vectors": query_vectors},
        ),
    )
    if rerank_run is not None and (queries is None or ranker is None):
        raise ParameterError("--rerank needs --queries FILE and --ranker FILE: it ranks the documents of a run again.")
    if rerank_run is not None and run is not None:
        check_output(run, option="--run", inputs=[rerank_run])
    if queries is not None and (facets or as_json):
        refused = " and ".join(name for name, given in (("--facet", facets), ("--json", as_json)) if given)
        raise ParameterError(f"a run has documents and scores only: leave out {refused}, or give one QUERY.")
    if sort is not None and ranker is not None:
        raise ParameterError("give --sort or --ranker, not both: documents are ordered by fields or by scores.")
    opened = Index.open(index)
    rule = cast("Match", match or "any")
    model = _model(stream, weights, _DEFAULT_K1 if k1 is None else k1, _DEFAULT_B if b is None else b)
    own_features = given_own(own or (), query_vectors or ())
    ranked = None
    if ranker is not None:
        from rankwell.serving.ranking.ranked_search import RankedSearch

        ranked = RankedSearch(
            opened,
            ranker,
            n_candidates=candidates or DEFAULT_CANDIDATES,
            model=model,
            match=rule,
            stop_after=stop_after,
            own=own_features,
            device=device or "cpu",
        )
    if rerank_run is not None and ranked is not None:
        of_search: dict[str, object] = {
            "--candidates": candidates,
            "--match": match,
            "--stream": stream,
            "--weights": weights,
            "--k1": k1,
            "--b": b,
            "--synonyms": synonyms,
            "--stop-after": stop_after,
        }
        if ranked.feature_set.feedback:
            # A relevance model is made of what BM25 finds, in a reranking too.
            of_search = {}
        _check_rerank({"--filter": filters or None, "--device": device, **of_search})
    searcher = _searcher(opened, ranked, model, rule, sort, stop_after)
    wanted = filters[0] if filters and len(filters) == 1 else " ".join(f"+({one})" for one in filters or ()) or None
    parse = _parser(opened, wanted, synonyms, typos=typos)
    if queries is not None and run is not None:
        from rankwell.data.trec_run import TAG

        if wanted is not None:
            opened.parse("", filter=wanted)  # one that cannot be read is not the queries' fault
        absent = AbsentCandidates()
        answer = _answerer(searcher, ranked, parse, rerank_run, absent)
        depth, by_rank = k or RUN_DEPTH, sort is not None
        write_run(answer, queries, run, depth, prose=prose or plain, by_rank=by_rank, tag=tag or TAG, quiet=quiet)
        absent.warn()
        return
    if like is not None:
        alike = opened.more_like(like, k=k or 10, model=model, filter=wanted)
        result, parsed = cast("SearchResult | RankedResult", alike), alike.query
        counted = replace(alike, facets=alike.count_facets(written_facets(facets or ())))
    else:
        parsed = parse(" ".join(query or ()), plain=plain)
        result = searcher(parsed, k or 10)
        counted = opened.search(
            parsed,
            k=1,
            match=rule,
            model=model,
            facets=written_facets(facets or ()),
            stop_after=stop_after,
        )
    if parsed.is_shortened:
        say(f"the query is too long: only its first {len(parsed.terms):,} different words were used.", quiet=quiet)
    rows = _rows(opened, parsed, result)
    if not rows:
        say(_reason(opened, parsed), quiet=quiet)
    if as_json:
        shown = {"n_docs": opened.n_docs, **_counts(counted), "results": rows}
        print_json(shown | ({"facets": _facet_rows(counted.facets)} if facets else {}))
        return
    if counted.stopped_early:
        show(
            f"the best {len(rows)} of the first {counted.n_examined:,} documents by falling "
            f"{opened.schema.static_order}, of {opened.n_docs:,} in the index; better ones may be among the others"
        )
    else:
        show(f"{len(rows)} of {counted.n_matches:,} documents that match, of {opened.n_docs:,} in the index")
    table = make_table("", ["rank", "id", "score", "caption"], left=["id", "caption"])
    for row in rows:
        table.add_row(str(row["rank"]), row["id"], f"{row['score']:.4f}", _highlighted(row))
    show(table)
    for field, counts in _facet_rows(counted.facets).items():
        table = make_table(field, ["value", "documents"], left=["value"])
        for count in counts[:_MOST_VALUES]:
            table.add_row(_value_text(count["value"]), f"{count['n_docs']:,}")
        show(table)
        if len(counts) > _MOST_VALUES:
            say(f"{len(counts) - _MOST_VALUES:,} more values of {field}: --json has all of them.", quiet=quiet)


def _counts(found: SearchResult) -> dict[str, Any]:
    """How many documents match, None if the search stopped early, and then how many were looked at."""
    if found.n_examined is None:
        return {"n_matches": found.n_matches}
    n_matches = None if found.stopped_early else found.n_matches
    return {"n_matches": n_matches, "n_examined": found.n_examined, "stopped_early": found.stopped_early}


def _check_needed(*belonging: tuple[str, object, Mapping[str, object]]) -> None:
    """Refuse options without the one that they belong to: its name and value, and theirs."""
    for needed, value, others in belonging:
        given = [option for option, other in others.items() if other is not None]
        if given and value is None:
            raise ParameterError(
                f"{' and '.join(given)} would have no effect without {needed}: add it, or leave it out."
            )


def _check_like(*others: str) -> None:
    """Refuse what has no meaning for documents that are like another one."""
    if others:
        raise ParameterError(
            f"--like takes the place of a query, and documents are ordered by BM25: leave out {' and '.join(others)}."
        )


def _check_rerank(without_effect: Mapping[str, object]) -> None:
    """Refuse options that say how documents are found, where they are those of a run; by name what was given."""
    given = [option for option, value in without_effect.items() if value is not None]
    if given:
        raise ParameterError(
            f"{' and '.join(given)} would have no effect with --rerank, which scores every document of the run on the "
            f"CPU and searches for none: leave {'it' if len(given) == 1 else 'them'} out."
        )


def _highlighted(row: dict[str, Any]) -> Text:
    """A caption with the words that were found in bold letters."""
    from rich.text import Text

    text = Text(row["caption"])
    for start, stop in row["highlights"]:
        text.stylize("bold", start, stop)
    return text


def _facet_rows(facets: Facets) -> dict[str, list[dict[str, Any]]]:
    return {
        field: [{"value": value, "n_docs": n_docs} for value, n_docs in counts.items()]
        for field, counts in facets.items()
    }


def _value_text(value: Any) -> str:
    return f"{value[0]} to {value[1]}" if isinstance(value, tuple) else str(value)


def _parser(index: Index, filter: str | None, synonyms: Path | None, *, typos: bool) -> Callable[..., Query]:
    """How the queries of this command are parsed."""
    from rankwell.index.text.synonyms import Synonyms

    rules = None if synonyms is None else Synonyms.read(synonyms)
    return partial(index.parse, filter=filter, synonyms=rules, typos=typos)


def _searcher(
    index: Index,
    ranked: RankedSearch | None,
    model: BM25 | BM25F,
    match: Match,
    sort: str | None,
    stop_after: int | None,
) -> Searcher:
    """A function from a query and k to its result: by BM25, by fields, or by a ranker."""
    if ranked is not None:
        return ranked.search
    return lambda query, k: index.search(query, k=k, match=match, model=model, sort=sort, stop_after=stop_after)


def _answerer(
    searcher: Searcher,
    ranked: RankedSearch | None,
    parse: Callable[..., Query],
    rerank_run: Path | None,
    absent: AbsentCandidates,
) -> Callable[[QueryText, int], Ranking]:
    """A function from a query of a file and k to its documents: what is found, or those of a run."""
    if rerank_run is None or ranked is None:
        return lambda query, k: searcher(parse(query.text), k)
    from rankwell.data.trec_run import read_run

    check_readable(rerank_run)
    given = read_run(rerank_run)
    return lambda query, k: rerank(ranked, parse(query.text), query.id, given.get(query.id, {}), k, absent)


def _reason(index: Index, query: Query) -> str:
    """Why nothing was found."""
    from rankwell.index.query.tree import Nothing
    from rankwell.index.statistics import Statistics

    if query.as_tree() == Nothing():
        return "nothing was found: the query has no words to look for."
    statistics = Statistics.of(index)
    unknown = [term.decode() for term in query.terms if statistics.term(term).doc_freq[-1] == 0]
    if unknown:
        return f"nothing was found: no document has {', '.join(map(repr, unknown[:_MOST_NAMED]))}."
    filtered = " and the filter" if query.filter is not None else ""
    if not query.terms:
        return f"nothing was found: no document matches the query{filtered}."
    return f"nothing was found: each word is in some document, but no document matches the whole query{filtered}."


def _model(stream: str | None, weights: str | None, k1: float, b: float) -> BM25 | BM25F:
    from rankwell.index.search.bm25 import BM25, BM25F

    if weights is None:
        return BM25(k1=k1, b=b, stream=stream)
    if stream is not None:
        raise ParameterError("give --stream or --weights, not both: BM25 reads one stream, BM25F those with a weight.")
    by_stream: dict[str, float] = {}
    for pair in weights.split(","):
        name, equals, number = pair.strip().partition("=")
        try:
            by_stream[name] = float(number) if equals else 1.0
        except ValueError as cause:
            raise ParameterError(f"--weights must be like title=3,body=1, got {pair!r}.") from cause
    return BM25F(by_stream, k1=k1, b=b)


def _rows(index: Index, query: Query, result: SearchResult | RankedResult) -> list[dict[str, Any]]:
    from rankwell.index.search.caption import find_caption

    rows = []
    found = zip(result.docs.tolist(), result.ids, result.scores.tolist(), strict=True)
    for rank, (doc, document_id, score) in enumerate(found, start=1):
        fields = index.stored(doc)
        caption = find_caption(fields, query, index.analysis)
        rows.append(
            {
                "rank": rank,
                "id": document_id,
                "score": score,
                "caption": caption.text,
                "highlights": caption.hits,
                "fields": fields,
            }
        )
    return rows
