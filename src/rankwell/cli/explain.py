"""`rankwell explain`: what a score consists of."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.cli.console import print_json, show, show_log
from rankwell.cli.figures import jsonable, make_table
from rankwell.cli.inputs import Reading, load_ranker, read_data, widened_for
from rankwell.cli.options import JsonOption, LabelOption, QidOption, QuietOption
from rankwell.cli.own_options import OwnOption, QueryVectorsOption, given_own
from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset
    from rankwell.scoring.explanation import Explanation, InputPart


def explain_scores(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A ranker file.", show_default=False)],
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA|INDEX", help="The documents (- is stdin), or an index.", show_default=False),
    ],
    row: Annotated[int | None, typer.Option("--row", metavar="N", help="The N-th row of the data, from 1.")] = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query", metavar="QID|WORDS", help="All documents of this query, best first; with an index, its words."
        ),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option("--document", metavar="ID", help="With an index: this document, and not the best ones."),
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="With an index: how many of the best.")] = 1,
    candidates: Annotated[
        int | None,
        typer.Option(
            "--candidates",
            metavar="N",
            min=1,
            help="With an index: how many documents of a query BM25 gives to the ranker.",
        ),
    ] = None,
    own: OwnOption = None,
    query_vectors: QueryVectorsOption = None,
    top: Annotated[
        int,
        typer.Option("--top", metavar="N", help="How many inputs and features to show."),
    ] = 10,
    n_rounds: Annotated[
        int | None, typer.Option("--rounds", metavar="N", help="The score after the first N rounds of boosting.")
    ] = None,
    label: LabelOption = "label",
    qid: QidOption = "qid",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show what each input, tree and feature added to a document's score; the parts sum to the score.

    Examples: rankwell explain model.rank test.txt --row 1
    rankwell explain model.rank idx --query 'oil prices' --document d17
    """

    show_log(quiet=quiet)
    if top < 1:
        raise ParameterError(f"--top must be 1 or more, got {top}.")
    if data.is_dir():
        if query is None or row is not None or n_rounds is not None:
            raise ParameterError(f"{data} is an index: give --query WORDS, and --document ID for one of its documents.")
        options = {} if candidates is None else {"n_candidates": candidates}
        own_features = given_own(own or (), query_vectors or ())
        explained = _explain_search(model, data, query, document, k, own=own_features, **options)
    else:
        if (row is None) == (query is None):
            raise ParameterError("give the documents to explain: either --row N or --query QID.")
        if document is not None or candidates is not None or own or query_vectors:
            raise ParameterError(f"--document, --candidates, --own and --query-vectors need an index, {data} is none.")
        explained = _explain_data(
            model, data, read_data(data, Reading(label=label, qid=qid), quiet=quiet), row, query, n_rounds
        )
    if as_json:
        print_json([jsonable({**item.place, **dataclasses.asdict(item.explanation)}) for item in explained])
        return
    for item in explained:
        _show(item, top)


@dataclass(frozen=True)
class _Explained:
    """A document's score in parts; what it is called in tables and in JSON; its features, where they are shown."""

    name: str
    place: dict[str, Any]
    explanation: Explanation
    values: dict[str, float]


def _explain_search(
    model: Path, index: Path, query: str, document: str | None, k: int, **options: Any
) -> list[_Explained]:
    from rankwell.index.reader import Index
    from rankwell.serving.ranking.ranked_search import RankedSearch

    searcher = RankedSearch(Index.open(index), load_ranker(model), **options)
    return [
        _Explained(
            name=f"{item.rank}. {item.id}, by BM25 {item.first_score:.4f}",
            place={
                "rank": item.rank,
                "id": item.id,
                "first_score": item.first_score,
                "ranking_pass": item.ranking_pass,
                "values": item.values,
            },
            explanation=item.explanation,
            values=item.values,
        )
        for item in searcher.explain(query, document=document, k=k)
    ]


def _explain_data(
    model: Path, path: Path, data: RankingDataset, row: int | None, query: str | None, n_rounds: int | None
) -> list[_Explained]:
    import numpy as np

    from rankwell.rankers.feature_columns import in_order_of
    from rankwell.scoring.explanation import explain_rows

    ranker = load_ranker(model)
    dataset = in_order_of(ranker.description_, widened_for(model, ranker, path, data), str(model))
    order = np.arange(dataset.n_docs) if dataset.doc_idx is None else dataset.doc_idx
    rows = _rows(dataset, row, query)
    parts = explain_rows(ranker.description_, dataset, rows, n_rounds=n_rounds)
    numbers = [int(order[row]) + 1 for row in rows]
    explained = [
        _Explained(f"row {number}", {"row": number}, part, {}) for number, part in zip(numbers, parts, strict=True)
    ]
    return sorted(explained, key=lambda item: -item.explanation.score)


def _rows(dataset: RankingDataset, row: int | None, query: str | None) -> list[int]:
    """Rows of the dataset (its own order)."""
    import numpy as np

    order = np.arange(dataset.n_docs) if dataset.doc_idx is None else dataset.doc_idx
    if row is not None:
        if not 1 <= row <= dataset.n_docs:
            raise ParameterError(f"--row must be between 1 and {dataset.n_docs}, the rows of the data, got {row}.")
        return [int(np.flatnonzero(order == row - 1)[0])]
    found = [number for number, qid in enumerate(dataset.query_ids.tolist()) if str(qid) == query]
    if not found:
        some = ", ".join(str(qid) for qid in dataset.query_ids[:5].tolist())
        raise ParameterError(f"--query {query}: the data has no such query. It begins with {some}.")
    return list(range(int(dataset.query_ptr[found[0]]), int(dataset.query_ptr[found[0] + 1])))


def _show(item: _Explained, top: int) -> None:
    explanation = item.explanation
    is_below = explanation.offset is not None
    not_kept = ", not kept by the first pass, which explains its place below those that were" if is_below else ""
    show(f"{item.name}{not_kept}: score {explanation.score:.6g}")
    inputs = make_table("by input", ["input", "kind", "value", "adds"], left=["input", "kind"])
    for part in sorted(explanation.inputs, key=lambda part: -abs(part.contribution))[:top]:
        inputs.add_row(_name(part), part.kind, f"{part.value:.6g}", f"{part.contribution:+.6g}")
    rest = sorted((part.contribution for part in explanation.inputs), key=abs, reverse=True)[top:]
    if rest:
        inputs.add_row(f"{len(rest)} others", "", "", f"{sum(rest):+.6g}")
    inputs.add_row("inputs of zero", "", "", f"{explanation.base:+.6g}")
    if is_below:
        inputs.add_row("place below those kept", "", "", f"{explanation.offset:+.6g}")
    inputs.add_row("score", "", "", f"{explanation.score:+.6g}")
    show(inputs)
    columns = ["feature", "value", "adds"] if item.values else ["feature", "adds"]
    features = make_table("by feature", columns, left=["feature"])
    by_size = sorted(explanation.features.items(), key=lambda item: -abs(item[1]))
    for name, share in by_size[:top]:
        value = [f"{item.values[name]:.6g}" if name in item.values else "-"] if item.values else []
        features.add_row(name, *value, f"{share:+.6g}")
    blank = [""] if item.values else []
    if by_size[top:]:
        features.add_row(f"{len(by_size) - top} others", *blank, f"{sum(share for _, share in by_size[top:]):+.6g}")
    features.add_row("no feature", *blank, f"{explanation.feature_base:+.6g}")
    if is_below:
        features.add_row("place below those kept", *blank, f"{explanation.offset:+.6g}")
    features.add_row("score", *blank, f"{explanation.score:+.6g}")
    show(features)


def _name(part: InputPart) -> str:
    if not part.path:
        return part.name
    return f"{part.name}: " + ", ".join(f"{step.feature} {step.test}" for step in part.path)
