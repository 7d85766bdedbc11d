"""The collection: the library's documentation as documents, queries with judgments, and the files that hold them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rankwell.demo.definitions import Definition
from rankwell.demo.known_items import KnownItem, draw_known_items
from rankwell.demo.library import Library
from rankwell.demo.mentions import NameTable, mentions
from rankwell.demo.sentences import sentences, words

# A word starts where a capital follows a small letter, and at the last of several capitals before a small letter.
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Mentions kept as a document's anchor text; all of them are counted.
_MOST_ANCHORS = 40


@dataclass(frozen=True)
class Collection:
    """Documents, and queries judged on them.

    Attributes
    ----------
    documents : list of dict
        `id`; the streams `title`, `url`, `body`, `anchor`; the statics `docstring_words`, `mentions`, `uses`, `depth`,
        `parameters`.
    known_items : list of KnownItem
        In the order drawn; query number i is `known_items[i]`.
    """

    documents: list[dict[str, Any]]
    known_items: list[KnownItem]


def make_collection(library: Library, n_queries: int, seed: int) -> Collection:
    """Draw the queries, take their sentences out, and make a document of every definition."""
    known_items = draw_known_items(library.definitions, n_queries, seed)
    taken_out = {known.item for known in known_items}
    texts = {
        definition.name: sentences(definition.docstring)[definition.name in taken_out :]
        for definition in library.definitions
    }
    anchors = _anchors(library.definitions, texts)
    documents = [
        _document(definition, texts[definition.name], anchors[definition.name], library.uses[definition.name])
        for definition in library.definitions
    ]
    return Collection(documents, known_items)


def _anchors(definitions: Sequence[Definition], texts: dict[str, list[str]]) -> dict[str, list[str]]:
    """The words around each definition's name in the remaining sentences."""
    table = NameTable(definitions)
    anchors: dict[str, list[str]] = defaultdict(list)
    for definition in definitions:
        for sentence in texts[definition.name]:
            for name, around in mentions(sentence, definition, table):
                anchors[name].append(around)
    return anchors


def _document(definition: Definition, text: list[str], anchors: list[str], uses: int) -> dict[str, Any]:
    return {
        "id": definition.name,
        "title": _title(definition),
        "url": definition.name.replace(".", "/"),
        "body": "\n".join([*_call(definition), *text]),
        "anchor": "\n".join(anchors[:_MOST_ANCHORS]),
        "docstring_words": len(words(" ".join(text))),
        "mentions": len(anchors),
        "uses": uses,
        "depth": definition.name.count("."),
        "parameters": definition.n_parameters,
    }


def _call(definition: Definition) -> list[str]:
    """Its call: `open(name, mode='r')`; empty if that is not known."""
    return [f"{definition.name.rpartition('.')[2]}{definition.signature}"] if definition.signature else []


def _title(definition: Definition) -> str:
    """The name inside its module, with the words that its capitals separate: `ZipFile.open (Zip File)`."""
    parted = [_WORD_START.sub(" ", part) for part in re.split(r"[._]", definition.local_name)]
    several = [part for part in parted if " " in part]
    return f"{definition.local_name} ({' '.join(several)})" if several else definition.local_name
