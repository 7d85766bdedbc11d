"""Files of queries: one per line, its id, a tab, its text."""

from __future__ import annotations

import os
from dataclasses import dataclass

from rankwell.errors import DataError
from rankwell.index.query.query import without_operators
from rankwell.streams.decompression import ByteStream


@dataclass(frozen=True)
class QueryText:
    """A query as it was asked."""

    id: str
    text: str


def read_queries(path: str | os.PathLike[str], *, operators: bool = True) -> list[QueryText]:
    """The queries of a TSV file (plain, .gz, .bz2, .zst, or ``-`` for standard input), in its order.

    Parameters
    ----------
    operators : bool
        Whether the texts are of the query language, as a user's queries. Topics of test collections are prose: there
        quotes, signs and the like have no special meaning, and are left out.
    """
    line_of_id: dict[str, int] = {}
    queries = []
    with ByteStream(os.fspath(path)) as stream:
        for number, line in enumerate(stream.read().splitlines(), start=1):
            if not line.strip():
                continue
            place = f"{stream.name}, line {number}"
            try:
                query_id, tab, text = line.decode("utf-8-sig" if number == 1 else "utf-8").partition("\t")
            except UnicodeDecodeError as cause:
                raise DataError(f"{place} is not UTF-8 ({cause.reason}). Convert the file to UTF-8.") from cause
            query_id = query_id.strip()
            if not tab or not query_id:
                raise DataError(f"{place} must be a query's id, a tab and its text, got {line[:60]!r}.")
            if query_id in line_of_id:
                raise DataError(
                    f"{place} repeats the id {query_id!r} of line {line_of_id[query_id]}. Give each query its own id."
                )
            line_of_id[query_id] = number
            queries.append(QueryText(query_id, (text if operators else without_operators(text)).strip()))
        if not queries:
            raise DataError(f"{stream.name} contains no query. A line is a query's id, a tab and its text.")
    return queries
