"""The files of a collection: documents as JSON lines, queries as tab-separated text, judgments as TREC writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rankwell.demo.known_items import KnownItem

DOCUMENTS = "documents.jsonl"


def write_documents(documents: Iterable[dict[str, Any]], folder: Path) -> Path:
    """Write one document per line; returns the file."""
    path = folder / DOCUMENTS
    path.write_text("".join(f"{json.dumps(document, ensure_ascii=False)}\n" for document in documents), "utf-8")
    return path


def part_files(part: str, folder: Path) -> tuple[Path, Path]:
    """The files of a part's queries and of their judgments."""
    return folder / f"{part}.queries.tsv", folder / f"{part}.qrels"


def write_queries(part: str, known_items: Sequence[KnownItem], numbers: Sequence[int], folder: Path) -> None:
    """Write the queries of a part, lines ``id <tab> query``, and their judgments, lines ``id 0 document grade``.

    Parameters
    ----------
    known_items : sequence of KnownItem
    numbers : sequence of int
        Which of them belong to the part; a query's id is its number, counted from 1.
    """
    queries, judgments = part_files(part, folder)
    queries.write_text("".join(f"{number + 1}\t{known_items[number].query}\n" for number in numbers), "utf-8")
    lines = (
        f"{number + 1} 0 {name} {grade}\n" for number in numbers for name, grade in known_items[number].grades.items()
    )
    judgments.write_text("".join(lines), "utf-8")
