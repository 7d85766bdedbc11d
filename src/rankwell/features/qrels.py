"""Relevance judgments in TREC's format: `query iteration document relevance`, one per line."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

from rankwell.data.dataset import RankingDataset
from rankwell.data.trec_run import document_ids
from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream

Qrels = Mapping[str, Mapping[str, float]]
"""Relevance by query id and document id."""


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """The judgments of a file (plain, .gz, .bz2, .zst, or ``-`` for standard input), in its order."""
    qrels: dict[str, dict[str, float]] = {}
    with ByteStream(os.fspath(path)) as stream:
        for number, line in enumerate(stream.read().splitlines(), start=1):
            place = f"{stream.name}, line {number}"
            fields = _fields(line, place)
            if not fields:
                continue
            query_id, _, document_id, grade = fields
            relevance = _relevance(grade, place)
            judged = qrels.setdefault(query_id, {})
            if judged.setdefault(document_id, relevance) != relevance:
                raise DataError(
                    f"{place} judges document {document_id!r} of query {query_id!r} as {relevance:g}, an earlier line "
                    f"as {judged[document_id]:g}. Keep one of them."
                )
        if not qrels:
            raise DataError(f"{stream.name} contains no judgment. A line is: query iteration document relevance.")
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
    for name in (name for query, judged in qrels.items() for name in (query, *judged)):
        if not name or name != "".join(name.split()):
            raise DataError(
                f"TREC's format separates fields by blanks: the id {name!r} must not be empty or contain one."
            )
    return "".join(
        f"{query_id} 0 {document_id} {relevance:g}\n"
        for query_id, judged in qrels.items()
        for document_id, relevance in judged.items()
    )


def _fields(line: bytes, place: str) -> list[str]:
    try:
        fields = line.decode("utf-8").split()
    except UnicodeDecodeError as cause:
        raise DataError(f"{place} is not UTF-8 ({cause.reason}). Convert the file to UTF-8.") from cause
    if fields and len(fields) != 4:
        raise DataError(f"{place} must be: query iteration document relevance, got {line[:60]!r}.")
    return fields


def _relevance(grade: str, place: str) -> float:
    try:
        relevance = float(grade)
    except ValueError:
        relevance = math.nan
    if not math.isfinite(relevance):
        raise DataError(f"{place}: the relevance must be a number, got {grade!r}.")
    return relevance
