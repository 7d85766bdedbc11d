"""The formats of query files: lines of id, tab and text; JSON lines, as ir_datasets and BEIR write; TREC's topics."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

from rankwell.errors import DataError
from rankwell.streams.json_text import parse_json

QueryRow = tuple[int, str, str]
"""The line of a query, its id, and its text."""

# The names that ids and texts have in JSON, the first that is there.
_IDS = ("query_id", "qid", "_id", "id")
_TEXTS = ("text", "query", "title")
# <top> is TREC's tag since 1992; later tracks write <topic number="...">.
_TOPIC = re.compile(r"<(?P<tag>top|topic)\b(?P<attributes>[^<>]*)>(?P<body>.*?)</(?P=tag)>", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:number\s*:)?\s*(?P<id>[^\s<]+)", re.IGNORECASE)
_NUMBER_ATTRIBUTE = re.compile(r"\bnumber\s*=\s*\"(?P<id>[^\"\s]+)\"", re.IGNORECASE)
_TITLE = re.compile(r"<(?:title|query)>\s*(?:topic\s*:)?(?P<text>[^<]*)", re.IGNORECASE)


def query_rows(content: bytes, name: str) -> Iterator[QueryRow]:
    """The queries of a file, in its order; the format is told from its first character."""
    text = _decoded(content, name)
    return _READERS.get(text.lstrip()[:1], _tab_separated)(text, name)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        line = content.count(b"\n", 0, cause.start) + 1
        raise DataError(f"{name}, line {line} is not UTF-8 ({cause.reason}). Convert the file to UTF-8.") from cause


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, from 1; they end as in bytes, not at every separator that Unicode knows."""
    for number, line in enumerate(StringIO(text, newline=None), start=1):
        if line.strip():
            yield number, line.rstrip("\n")


def _tab_separated(text: str, name: str) -> Iterator[QueryRow]:
    for number, line in _lines(text):
        query_id, tab, words = line.partition("\t")
        if not tab or not query_id.strip():
            got = line.encode()[:60]
            raise DataError(f"{name}, line {number} must be a query's id, a tab and its text, got {got!r}.")
        yield number, query_id.strip(), words.strip()


def _json_lines(text: str, name: str) -> Iterator[QueryRow]:
    for number, line in _lines(text):
        place = f"{name}, line {number}"
        try:
            entry = parse_json(line)
        except ValueError as cause:
            raise DataError(f"{place} is not JSON ({cause}).") from cause
        fields = entry if isinstance(entry, dict) else {}
        query_id, words = _first(fields, _IDS), _first(fields, _TEXTS)
        if not isinstance(query_id, str | int) or not isinstance(words, str) or not str(query_id).strip():
            raise DataError(
                f"{place} must be an object with an id ({', '.join(_IDS)}) and a text ({', '.join(_TEXTS)}), "
                f"got {line[:60]!r}."
            )
        yield number, str(query_id).strip(), " ".join(words.split())


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if name in fields), None)


def _topics(text: str, name: str) -> Iterator[QueryRow]:
    """The number and the title of each topic; descriptions and narratives are for people."""
    for topic in _TOPIC.finditer(text):
        line = text.count("\n", 0, topic.start()) + 1
        number = _NUMBER.search(topic["body"]) or _NUMBER_ATTRIBUTE.search(topic["attributes"])
        title = _TITLE.search(topic["body"])
        if number is None or title is None:
            raise DataError(f"{name}, line {line}: a topic must have a number (<num>) and a title (<title>).")
        # Judgments do not have the zeros that numbers of topics may begin with.
        query_id = number["id"].lstrip("0") if number["id"].isdigit() else number["id"]
        yield line, query_id or "0", " ".join(html.unescape(title["text"]).split())


_READERS: dict[str, Callable[[str, str], Iterator[QueryRow]]] = {"{": _json_lines, "<": _topics}
