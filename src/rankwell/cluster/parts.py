"""The parts of training data: files, and shares of files, divided among workers.

Workers read their parts themselves. A worker has whole queries, in the order of the files, so that the queries of all
workers, one after another, are those of the files one after another: one process that reads all of them has the same
queries in the same order.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rankwell.data.files import SUFFIXES
from rankwell.data.side_file import has_side_file
from rankwell.errors import DataError, ParameterError
from rankwell.streams.decompression import CODECS, LONGEST_SIGNATURE, named_errors

_HEAD_BYTES = 2**16
# How far from an equal share a worker's documents may be, so that no file is cut: shares of plain text are read without
# reading the rest of the file, of other files they are not.
_SLACK_OF_TEXT, _SLACK = 0.02, 0.1


@dataclass(frozen=True)
class Part:
    """The queries of a file that begin in a share of it, from `first` to `last`; 0 to 1 is the whole file."""

    path: str
    first: float = 0.0
    last: float = 1.0

    @property
    def is_whole(self) -> bool:
        return self.first == 0.0 and self.last == 1.0


PartsLike = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def find_files(parts: PartsLike) -> list[str]:
    """The files that paths, patterns and folders name: in the order given, those of a pattern or folder by name."""
    given = [parts] if isinstance(parts, str | os.PathLike) else list(parts)
    if not given:
        raise ParameterError("must name at least one file, pattern or folder.", parameter="parts")
    files = [file for name in given for file in _files_of(os.fspath(name))]
    again = next((file for number, file in enumerate(files) if file in files[:number]), None)
    if again is not None:
        raise DataError(f"{again} is given twice: its queries would count twice. Give every file once.")
    return files


def _files_of(name: str) -> list[str]:
    if os.path.isdir(name):
        found = sorted(
            str(path)
            for path in Path(name).rglob("*")
            if path.is_file() and not path.name.startswith(("_", ".")) and _is_data(path.name)
        )
        if not found:
            raise DataError(f"the folder {name} has no data files: their names end in {', '.join(SUFFIXES)}.")
        return found
    if glob.has_magic(name) and not os.path.exists(name):
        found = sorted(glob.glob(name, recursive=True))
        if not found:
            raise DataError(f"no file matches {name}. Check the pattern, and quote it so that the shell leaves it.")
        return [file for match in found for file in (_files_of(match) if os.path.isdir(match) else [match])]
    with named_errors(name):
        os.stat(name)
    return [name]


def _is_data(name: str) -> bool:
    stem, suffix = os.path.splitext(name.lower())
    return (os.path.splitext(stem)[1] if suffix in CODECS else suffix) in SUFFIXES


def is_plain_text(path: str) -> bool:
    """Whether a file is LETOR text, not compressed and with query ids of its own: a share of it can be read alone."""
    if SUFFIXES.get(os.path.splitext(path.lower())[1]) != "letor" or has_side_file(path):
        return False
    with named_errors(path), open(path, "rb") as file:
        head = file.read(LONGEST_SIGNATURE)
    return not any(head.startswith(signature) for _, signature in CODECS.values())


def divide(files: Sequence[str], n_workers: int) -> list[list[Part]]:
    """The parts of each worker: about equally many documents each, in the order of the files."""
    documents = [estimated_documents(file) for file in files]
    borders = _borders(files, documents, n_workers)
    divided = []
    for begin, end in pairwise(borders):
        parts = []
        for number, file in enumerate(files):
            first = begin[1] if number == begin[0] else 0.0
            last = end[1] if number == end[0] else 1.0
            if begin[0] <= number <= end[0] and first < last:
                parts.append(Part(file, first, last))
        divided.append(parts)
    return divided


def _borders(files: Sequence[str], documents: Sequence[float], n_workers: int) -> list[tuple[int, float]]:
    """Where each worker's parts begin, and the end: a file and a share of it."""
    share = sum(documents) / n_workers
    borders, before, number = [(0, 0.0)], 0.0, 0
    for worker in range(1, n_workers):
        wanted = worker * share
        while number < len(files) - 1 and before + documents[number] <= wanted:
            before += documents[number]
            number += 1
        slack = (_SLACK_OF_TEXT if is_plain_text(files[number]) else _SLACK) * share
        border = number, (wanted - before) / max(documents[number], 1e-9)
        if wanted - before <= slack:
            border = number, 0.0
        elif before + documents[number] - wanted <= slack and number + 1 < len(files):
            border = number + 1, 0.0
        borders.append(max(border, borders[-1]))
    return [*borders, (len(files) - 1, 1.0)]


def estimated_documents(path: str) -> float:
    """About how many documents a file has, without reading it: only used to divide files among workers."""
    with named_errors(path):
        suffix = os.path.splitext(path.lower())[1]
        if suffix == ".parquet":
            import pyarrow.parquet

            return float(pyarrow.parquet.read_metadata(path).num_rows)
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
        lines = max(1, head.count(b"\n"))
        return os.path.getsize(path) * lines / max(1, len(head))
