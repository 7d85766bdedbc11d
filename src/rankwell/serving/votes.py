"""Votes of users as judgments: a file of TREC qrels, and the queries' texts in a file beside it.

A vote up is grade 1, a vote down grade 0. Votes are appended as they come; if one is changed or taken back, the file is
replaced whole, since judgments that contradict each other cannot be read.
"""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

from rankwell.errors import DataError, ParameterError
from rankwell.features.qrels import qrels_text, read_qrels
from rankwell.features.queries import read_queries
from rankwell.streams.appended_file import AppendedFile, WriteError
from rankwell.streams.whole_files import replace_file


def query_id_of(text: str) -> str:
    """The id of a query: the same for the same words, and in every log and file."""
    return "q" + hashlib.blake2b(_one_line(text).encode(), digest_size=6).hexdigest()


class QueryNames:
    """A file of queries, lines of id, tab and text, that grows by those that are new."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        AppendedFile(path).close()  # an error now, not at the first query
        try:
            known = read_queries(self.path) if self.path.stat().st_size else []
        except DataError as cause:
            raise DataError(
                f"{cause} Its log keeps the texts of queries there: move it away, or give the log another name."
            ) from cause
        self._known = {query.id for query in known}
        self._lock = threading.Lock()

    def add(self, text: str) -> str:
        """The id of a query, which is in the file from now on."""
        name = query_id_of(text)
        with self._lock:
            if name not in self._known:
                _append(self.path, f"{name}\t{_one_line(text)}")
                self._known.add(name)
        return name


class Votes:
    """The votes in the file `path`; the texts of their queries are in `queries`."""

    def __init__(self, path: str | os.PathLike[str], queries: QueryNames) -> None:
        self.path = Path(path)
        AppendedFile(path).close()
        self._queries = queries
        read = read_qrels(self.path) if self.path.stat().st_size else {}
        self._grades = {query: dict(judged) for query, judged in read.items()}
        self._lock = threading.Lock()

    def add(self, query: str, document: str, vote: int) -> None:
        """A vote: 1, -1, or 0 to take it back; the last one of a query and a document counts."""
        if not document or len(document.split()) != 1 or document != document.strip():
            raise ParameterError(
                f"must be an id without blanks, which TREC's format cannot hold, got {document!r}.",
                parameter="document",
            )
        if not _one_line(query):
            raise ParameterError(f"must have a word, got {query!r:.60}.", parameter="query")
        name = self._queries.add(query)
        with self._lock:
            judged = self._grades.get(name, {})
            before, now = judged.get(document), float(vote > 0) if vote else None
            if before == now:
                return
            own = {one: grade for one, grade in judged.items() if one != document}
            if now is not None:
                own[document] = now
            grades = {**self._grades, name: own}
            if now is not None and before is None:
                _append(self.path, qrels_text({name: {document: now}}).rstrip("\n"))
            else:
                _replace(self.path, qrels_text(grades))
            # Only what is in the file is known: a vote that was not written can be given again.
            self._grades = grades


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _replace(path: Path, text: str) -> None:
    try:
        replace_file(path, text.encode())
    except OSError as cause:
        raise WriteError(f"cannot write {path}: {cause.strerror}. Free some space or log elsewhere.") from cause


def _append(path: Path, line: str) -> None:
    file = AppendedFile(path)
    try:
        with file.locked():
            file.write_line(line.encode())
    finally:
        file.close()
