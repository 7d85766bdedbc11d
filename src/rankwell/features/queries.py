"""Files of queries: each has an id and a text."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from rankwell.errors import DataError
from rankwell.features.query_formats import query_rows
from rankwell.index.query.query import without_operators
from rankwell.streams.decompression import ByteStream


@dataclass(frozen=True)
class QueryText:
    """A query as it was asked; line : of its file, None if it was not read from one."""

    id: str
    text: str
    line: int | None = field(default=None, compare=False)


def read_queries(path: str | os.PathLike[str], *, operators: bool = True) -> list[QueryText]:
    """The queries of a file (plain, .gz, .bz2, .zst, or ``-`` for standard input), in its order.

    A line is an id, a tab and a text, or a JSON object (`query_id` or `_id`, and `text`), as ir_datasets and BEIR
    write; or the file is one of TREC's topics, of which numbers and titles are read.

    Parameters
    ----------
    operators : bool
        Whether the texts are of the query language, as a user's queries. Topics of test collections are prose: there
        quotes, signs and the like have no special meaning, and are left out.
    """
    line_of_id: dict[str, int] = {}
    queries = []
    with ByteStream(os.fspath(path)) as stream:
        for number, query_id, text in query_rows(stream.read(), stream.name):
            if query_id in line_of_id:
                raise DataError(
                    f"{stream.name}, line {number} repeats the id {query_id!r} of line {line_of_id[query_id]}. Give "
                    "each query its own id."
                )
            line_of_id[query_id] = number
            queries.append(QueryText(query_id, (text if operators else without_operators(text)).strip(), number))
        if not queries:
            raise DataError(f"{stream.name} contains no query. A line is a query's id, a tab and its text.")
    return queries
