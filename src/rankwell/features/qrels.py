"""Relevance judgments in TREC's format: `query iteration document relevance`, one per line.

BEIR's collections have other columns, which their first line names: `query-id corpus-id score`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rankwell.data.dataset import RankingDataset
from rankwell.data.trec_lines import check_ids, fields_of_line, number_in
from rankwell.data.trec_run import document_ids
from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream
from rankwell.streams.whole_files import replace_file

Qrels = Mapping[str, Mapping[str, float]]
"""Relevance by query id and document id."""

_LINE = "query iteration document relevance"
_BEIR_LINE = "query-id corpus-id score"


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """The judgments of a file (plain, .gz, .bz2, .zst, or ``-`` for standard input), in its order.

    Examples
    --------
    >>> import rankwell
    >>> from pathlib import Path
    >>> _ = Path("qrels.txt").write_text("q1 0 d3 2\\nq1 0 d8 0\\n")
    >>> rankwell.read_qrels("qrels.txt")
    {'q1': {'d3': 2.0, 'd8': 0.0}}
    """
    qrels: dict[str, dict[str, float]] = {}
    columns = _LINE
    with ByteStream(os.fspath(path)) as stream:
        for number, line in enumerate(stream.read().splitlines(), start=1):
            place = f"{stream.name}, line {number}"
            if not qrels and is_beir_header(line):
                columns = _BEIR_LINE
                continue
            fields = fields_of_line(line, columns, place)
            if not fields:
                continue
            query_id, document_id, grade = fields[0], fields[-2], fields[-1]
            relevance = number_in(grade, "relevance", place)
            judged = qrels.setdefault(query_id, {})
            if judged.setdefault(document_id, relevance) != relevance:
                raise DataError(
                    f"{place} judges document {document_id!r} of query {query_id!r} as {relevance:g}, an earlier line "
                    f"as {judged[document_id]:g}. Keep one of them."
                )
        if not qrels:
            raise DataError(f"{stream.name} contains no judgment. A line is: {_LINE}.")
    return qrels


def is_beir_header(line: bytes) -> bool:
    """Whether a line names the columns of BEIR's judgments."""
    return line.split() == _BEIR_LINE.encode().split()


def qrels_of(dataset: RankingDataset) -> Qrels:
    """The labels of a data set as judgments; its comments are document ids."""
    names = document_ids(dataset)
    qrels: dict[str, dict[str, float]] = {}
    for query, rows in zip(dataset.query_ids.tolist(), dataset.queries(), strict=True):
        qrels[str(query)] = dict(zip(names[rows], dataset.labels[rows].tolist(), strict=True))
    return qrels


def write_qrels(qrels: Qrels, path: str | os.PathLike[str]) -> None:
    """Write judgments to a file in TREC's format, whole or not at all.

    Examples
    --------
    >>> import rankwell
    >>> rankwell.write_qrels({"q1": {"d3": 2, "d8": 0}}, "qrels.txt")
    >>> rankwell.read_qrels("qrels.txt")
    {'q1': {'d3': 2.0, 'd8': 0.0}}
    """
    replace_file(Path(path), qrels_text(qrels).encode())


def qrels_text(qrels: Qrels) -> str:
    """The lines of a file that `read_qrels` reads."""
    check_ids(name for query, judged in qrels.items() for name in (query, *judged))
    return "".join(
        f"{query_id} 0 {document_id} {relevance:g}\n"
        for query_id, judged in qrels.items()
        for document_id, relevance in judged.items()
    )
