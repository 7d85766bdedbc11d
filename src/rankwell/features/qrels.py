"""Relevance judgments in TREC's format: `query iteration document relevance`, one per line."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rankwell.data.dataset import RankingDataset
from rankwell.data.trec_lines import check_ids, fields_of_line, number_in
from rankwell.data.trec_run import document_ids
from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream

Qrels = Mapping[str, Mapping[str, float]]
"""Relevance by query id and document id."""

_LINE = "query iteration document relevance"


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """The judgments of a file (plain, .gz, .bz2, .zst, or ``-`` for standard input), in its order."""
    qrels: dict[str, dict[str, float]] = {}
    with ByteStream(os.fspath(path)) as stream:
        for number, line in enumerate(stream.read().splitlines(), start=1):
            place = f"{stream.name}, line {number}"
            fields = fields_of_line(line, _LINE, place)
            if not fields:
                continue
            query_id, _, document_id, grade = fields
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


def qrels_of(dataset: RankingDataset) -> Qrels:
    """The labels of a data set as judgments; its comments are document ids."""
    names = document_ids(dataset)
    qrels: dict[str, dict[str, float]] = {}
    for query, rows in zip(dataset.query_ids.tolist(), dataset.queries(), strict=True):
        qrels[str(query)] = dict(zip(names[rows], dataset.labels[rows].tolist(), strict=True))
    return qrels


def qrels_text(qrels: Qrels) -> str:
    """The lines of a file that `read_qrels` reads."""
    check_ids(name for query, judged in qrels.items() for name in (query, *judged))
    return "".join(
        f"{query_id} 0 {document_id} {relevance:g}\n"
        for query_id, judged in qrels.items()
        for document_id, relevance in judged.items()
    )
