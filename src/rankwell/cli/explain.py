"""`rankwell explain`: how a score came about."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.cli.console import print_json, show, show_log
from rankwell.cli.figures import jsonable, make_table
from rankwell.cli.inputs import Reading, load_ranker, read_data
from rankwell.cli.options import JsonOption, LabelOption, QidOption, QuietOption
from rankwell.errors import ParameterError

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset
    from rankwell.scoring.explanation import Explanation, InputPart


def explain_scores(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A ranker file.", show_default=False)],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The documents; - is stdin.", show_default=False)],
    row: Annotated[int | None, typer.Option("--row", metavar="N", help="The N-th row of the data, from 1.")] = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="QID", help="All documents of this query, best first.")
    ] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", help="How many inputs and features to show.")] = 10,
    n_rounds: Annotated[
        int | None, typer.Option("--rounds", metavar="N", help="The score after the first N rounds of boosting.")
    ] = None,
    label: LabelOption = "label",
    qid: QidOption = "qid",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show what each input, tree and feature added to a document's score; the parts sum to the score.

    Example: rankwell explain model.rank test.txt --row 1
    """

    show_log(quiet=quiet)
    if (row is None) == (query is None):
        raise ParameterError("say which documents: --row N, or --query QID (one of them).")
    if top < 1:
        raise ParameterError(f"--top must be 1 or more, got {top}.")
    ranker = load_ranker(model)
    dataset = read_data(data, Reading(label=label, qid=qid), quiet=quiet).widened(ranker.n_features_in_)
    ranker.predict(dataset)  # refuses data that does not fit the ranker
    explained = _explain(ranker.description_, dataset, _rows(dataset, row, query), n_rounds)
    if as_json:
        print_json([{"row": number, **jsonable(dataclasses.asdict(item))} for number, item in explained])
        return
    for number, item in explained:
        _show(number, item, top)


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


def _explain(
    description: Any, dataset: RankingDataset, rows: list[int], n_rounds: int | None
) -> list[tuple[int, Explanation]]:
    import numpy as np
    from scipy import sparse

    from rankwell.scoring.explanation import explain_score

    features = description.normaliser.apply(dataset)
    order = np.arange(dataset.n_docs) if dataset.doc_idx is None else dataset.doc_idx
    explained = []
    for row in rows:
        values = features[row].toarray()[0] if sparse.issparse(features) else features[row]
        explained.append((int(order[row]) + 1, explain_score(description, values, n_rounds=n_rounds)))
    return sorted(explained, key=lambda item: -item[1].score)


def _show(number: int, explanation: Explanation, top: int) -> None:
    show(f"row {number}: score {explanation.score:.6g}")
    inputs = make_table("by input", ["input", "kind", "value", "adds"], left=["input", "kind"])
    for part in sorted(explanation.inputs, key=lambda part: -abs(part.contribution))[:top]:
        inputs.add_row(_name(part), part.kind, f"{part.value:.6g}", f"{part.contribution:+.6g}")
    rest = sorted((part.contribution for part in explanation.inputs), key=abs, reverse=True)[top:]
    if rest:
        inputs.add_row(f"{len(rest)} others", "", "", f"{sum(rest):+.6g}")
    inputs.add_row("inputs of zero", "", "", f"{explanation.base:+.6g}")
    inputs.add_row("score", "", "", f"{explanation.score:+.6g}")
    show(inputs)
    features = make_table("by feature", ["feature", "adds"], left=["feature"])
    by_size = sorted(explanation.features.items(), key=lambda item: -abs(item[1]))
    for name, share in by_size[:top]:
        features.add_row(name, f"{share:+.6g}")
    if by_size[top:]:
        features.add_row(f"{len(by_size) - top} others", f"{sum(share for _, share in by_size[top:]):+.6g}")
    features.add_row("no feature", f"{explanation.feature_base:+.6g}")
    features.add_row("score", f"{explanation.score:+.6g}")
    show(features)


def _name(part: InputPart) -> str:
    if not part.path:
        return part.name
    return f"{part.name}: " + ", ".join(f"{step.feature} {step.test}" for step in part.path)
