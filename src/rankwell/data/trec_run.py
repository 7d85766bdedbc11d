"""TREC's run files: `query Q0 document rank score tag`, one line for each document that a system found."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rankwell.data.trec_lines import check_ids, check_tag, fields_of_line, number_in
from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream
from rankwell.streams.whole_files import replace_file

if TYPE_CHECKING:
    from rankwell.data.dataset import RankingDataset

TrecRun = Mapping[str, Mapping[str, float]]
"""Scores by query id and document id, documents in the order of the file."""

TAG = "rankwell"
_LINE = "query Q0 document rank score tag"


def read_run(path: str | os.PathLike[str]) -> TrecRun:
    """The run in a file (plain, .gz, .bz2, .zst, or ``-`` for standard input); as in trec_eval, ranks are not read.

    Examples
    --------
    >>> import rankwell
    >>> from pathlib import Path
    >>> _ = Path("run.txt").write_text("q1 Q0 d3 1 1.5 bm25\\nq1 Q0 d8 2 0.5 bm25\\n")
    >>> rankwell.read_run("run.txt")
    {'q1': {'d3': 1.5, 'd8': 0.5}}
    """
    run: dict[str, dict[str, float]] = {}
    with ByteStream(os.fspath(path)) as stream:
        for number, line in enumerate(stream.read().splitlines(), start=1):
            place = f"{stream.name}, line {number}"
            fields = fields_of_line(line, _LINE, place)
            if not fields:
                continue
            query_id, _, document_id, _, text, _ = fields
            found = run.setdefault(query_id, {})
            if document_id in found:
                raise DataError(f"{place} has document {document_id!r} of query {query_id!r} again. Keep one of them.")
            found[document_id] = number_in(text, "score", place)
        if not run:
            raise DataError(f"{stream.name} contains no result. A line is: {_LINE}.")
    return run


def write_run(run: TrecRun, path: str | os.PathLike[str], *, tag: str = TAG) -> None:
    """Write a run to a file, each query's documents from the highest score down, whole or not at all.

    Examples
    --------
    >>> import rankwell
    >>> rankwell.write_run({"q1": {"d8": 0.5, "d3": 1.5}}, "run.txt")
    >>> rankwell.read_run("run.txt")
    {'q1': {'d3': 1.5, 'd8': 0.5}}
    """
    check_tag(tag)
    lines = []
    for query_id, scores in run.items():
        best_first = sorted(scores, key=lambda document: -scores[document])
        lines.append(format_run(query_id, best_first, (scores[document] for document in best_first), tag=tag))
    replace_file(Path(path), "".join(lines).encode())


def format_run(query_id: str, document_ids: Sequence[str], scores: Iterable[float], *, tag: str = TAG) -> str:
    """The lines of one query, best document first."""
    check_ids((query_id, *document_ids))
    return "".join(
        f"{query_id} Q0 {document_id} {rank} {score!r} {tag}\n"
        for rank, (document_id, score) in enumerate(zip(document_ids, map(float, scores), strict=True), start=1)
    )


def document_ids(dataset: RankingDataset) -> list[str]:
    """The document of each row, which `rankwell features` writes as its comment, in the dataset's order."""
    names = [] if dataset.comments is None else list(dataset.comments)
    nameless = next((row for row, name in enumerate(names) if not name), None if names else 0)
    if nameless is not None:
        raise DataError(
            f"TREC's files name documents, and row {nameless + 1} has no id. Ids are comments (# id in text, a column "
            "comment elsewhere): `rankwell features` writes them."
        )
    return names


def run_of(dataset: RankingDataset, scores: np.ndarray, *, tag: str = TAG) -> str:
    """The ranking of a data set by scores (in the user's order) as the text of a run; equal scores in row order."""
    names = document_ids(dataset)
    own = scores if dataset.doc_idx is None else scores[dataset.doc_idx]
    parts = []
    for query, rows in zip(dataset.query_ids.tolist(), dataset.queries(), strict=True):
        order = np.argsort(-own[rows], kind="stable")
        parts.append(
            format_run(str(query), [names[rows.start + place] for place in order.tolist()], own[rows][order], tag=tag)
        )
    return "".join(parts)


def is_run_line(line: bytes) -> bool:
    """Whether a line could be one of a run."""
    fields = line.split()
    if len(fields) != len(_LINE.split()):
        return False
    try:
        return math.isfinite(float(fields[4])) and int(fields[3]) >= 0
    except ValueError:
        return False
