"""The use log: which results were shown for a query, in which order, and which of them were clicked.

A log is a text file of JSON, one event per line:

    {"shown": "8f1d0c52", "query": "q17", "documents": ["d4", "d9", "d2"]}
    {"clicked": "8f1d0c52", "document": "d9"}

The number after "shown" names one showing of results (an impression); clicks refer to it. Events are appended by one
write under a lock, so several processes may share a log; an incomplete last line, left by a crash, is cut off by the
next writer and ignored by readers, who say so. One that is whole and only lacks its end counts.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from rankwell.data.trec_lines import check_ids
from rankwell.errors import DataError, FileFormatError, Parameter, ParameterError
from rankwell.streams.appended_file import AppendedFile
from rankwell.streams.decompression import ByteStream

logger = logging.getLogger("rankwell")


@dataclass(frozen=True)
class Impression:
    """Results shown once: the query's id, the documents' ids from the first place on, and the clicked ones."""

    query_id: str
    document_ids: tuple[str, ...]
    clicked: frozenset[str]


class UseLog:
    """A log to append to; created if there is none.

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "use.jsonl")
    >>> with UseLog(path) as log:
    ...     shown = log.add_shown("q17", ["d4", "d9", "d2"])
    ...     log.add_click(shown, "d9")
    >>> [sorted(impression.clicked) for impression in read_impressions(path)]
    [['d9']]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file = AppendedFile(path)
        with self._file.locked():
            _end_last_line(self._file)

    def add_shown(self, query_id: str, document_ids: Sequence[str]) -> str:
        """Log results as they were shown, best first; returns the impression's name, which clicks refer to."""
        if len(set(document_ids)) != len(document_ids):
            raise ParameterError("must not contain a document twice.", parameter="document_ids")
        name = secrets.token_hex(8)
        self._append({"shown": name, "query": query_id, "documents": list(document_ids)})
        return name

    def add_click(self, shown: str, document_id: str) -> None:
        """Log a click on a document of an impression; a second one on the same document does not count again."""
        self._append({"clicked": shown, "document": document_id})

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, event: dict[str, Any]) -> None:
        with self._file.locked():
            self._file.write_line(json.dumps(event, ensure_ascii=False).encode())


def read_impressions(
    path: str | os.PathLike[str], *, on_bad_line: str = "error", for_judgments: bool = False
) -> Iterator[Impression]:
    """The impressions of a log (plain, .gz, .bz2, .zst), in its order.

    Parameters
    ----------
    on_bad_line : {"error", "skip"}
        What to do with a line that is not an event, or a click on what was not shown: refuse the log, or leave the line
        out and log a warning that counts them.
    for_judgments : bool
        Whether ids must be such as a file of judgments can hold, without blanks; a line with others is bad.

    Raises
    ------
    FileFormatError
        With the line, if it is bad.
    """
    if on_bad_line not in ("error", "skip"):
        raise ParameterError(f"must be 'error' or 'skip', got {on_bad_line!r}.", parameter="on_bad_line")
    events = _Events(for_judgments=for_judgments)
    n_bad, first_bad = 0, ""
    for place, line in _lines(os.fspath(path)):
        try:
            events.add(line)
        except _BadLineError as bad:
            if on_bad_line == "error":
                raise FileFormatError(
                    f"{place} {bad} Correct the line, or pass ",
                    Parameter("on_bad_line", "skip"),
                    " to leave such lines out.",
                ) from bad
            n_bad, first_bad = n_bad + 1, first_bad or f"{place} {bad}"
    if n_bad:
        logger.warning("%d bad lines were left out; the first is %s", n_bad, first_bad)
    for name, (query_id, documents) in events.shown.items():
        yield Impression(query_id, documents, frozenset(events.clicked.get(name, ())))


class _BadLineError(Exception):
    """What is wrong with a line, to be said after its place."""


class _Events:
    """The events of a log while they are read.

    shown : by the names of impressions, the query's id and the documents'; clicked : the documents
    """

    def __init__(self, *, for_judgments: bool) -> None:
        self.shown: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.clicked: dict[str, set[str]] = {}
        self._for_judgments = for_judgments

    def add(self, line: bytes) -> None:
        event = _event(line)
        if "shown" in event:
            name = _text(event, "shown")
            if name in self.shown:
                raise _BadLineError(f"shows the impression {name!r}, which was logged before.")
            query_id, documents = _text(event, "query"), _documents(event)
            if self._for_judgments:
                _check_ids(query_id, documents)
            self.shown[name] = query_id, documents
        elif "clicked" in event:
            name, document = _text(event, "clicked"), _text(event, "document")
            if name not in self.shown or document not in self.shown[name][1]:
                raise _BadLineError(f"is a click on {document!r}, which was not shown in {name!r} before.")
            self.clicked.setdefault(name, set()).add(document)
        else:
            raise _BadLineError('is neither {"shown": ...} nor {"clicked": ...}.')


def _lines(path: str) -> Iterator[tuple[str, bytes]]:
    """Each line's place, for messages, and content."""
    with ByteStream(path) as stream:
        content = stream.read()
        lines = content.split(b"\n")
        # What follows the last line's end: nothing, an event without its end, or what a crash left of one.
        last = lines.pop()
        if _is_event(last):
            lines.append(last)
        elif last:
            number = len(lines) + 1
            logger.warning("%s, line %d is incomplete, and is ignored: %.60r", stream.name, number, last)
        for number, line in enumerate(lines, start=1):
            yield f"{stream.name}, line {number}", line


def _event(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as cause:
        raise _BadLineError(f"is not JSON: {line[:60]!r}.") from cause
    if not isinstance(event, dict):
        raise _BadLineError(f"must be a JSON object, got {line[:60]!r}.")
    return event


def _text(event: dict[str, Any], key: str) -> str:
    value = event.get(key)
    if not isinstance(value, str):
        raise _BadLineError(f"has {value!r:.60} as {key!r}, which must be a string.")
    return value


def _documents(event: dict[str, Any]) -> tuple[str, ...]:
    documents = event.get("documents")
    if not isinstance(documents, list) or not all(isinstance(document, str) for document in documents):
        raise _BadLineError(f"has {documents!r:.60} as 'documents', which must be a list of ids.")
    if len(set(documents)) != len(documents):
        raise _BadLineError("has a document twice in 'documents'.")
    return tuple(documents)


def _check_ids(query_id: str, documents: tuple[str, ...]) -> None:
    """Refuse ids that a file of judgments cannot hold, and say which kind of id it is."""
    for kind, names in (("query", (query_id,)), ("document", documents)):
        try:
            check_ids(names)
        except DataError as cause:
            raise _BadLineError(f"has a {kind} that no judgment can name: {cause}") from cause


def _is_event(line: bytes) -> bool:
    """Whether it is a whole JSON object: what is left of one never is."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _end_last_line(file: AppendedFile) -> None:
    """End a last line that lacks nothing else; cut off one that is incomplete."""
    end = _end_of_last_line(file)
    last = os.pread(file.descriptor, file.size - end, end)
    if _is_event(last):
        file.write(b"\n")
    elif last:
        logger.warning("%s: its last line is incomplete, and is cut off: %.60r", file.path, last)
        file.cut(end)


def _end_of_last_line(file: AppendedFile) -> int:
    """The size of the file without what follows its last line's end."""
    end, step = file.size, 1 << 16
    while end > 0:
        start = max(0, end - step)
        place = os.pread(file.descriptor, end - start, start).rfind(b"\n")
        if place >= 0:
            return start + place + 1
        end = start
    return 0
