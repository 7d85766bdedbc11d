"""Pages that link to each other: read once for their links, before they are read as documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rankwell.corpus.document import Document, Place
from rankwell.corpus.link_graph import ANCHOR, LinkGraph, PageFacts
from rankwell.corpus.options import CorpusOptions
from rankwell.corpus.page_links import PageLinks, html_links, markdown_links
from rankwell.corpus.site import given_site
from rankwell.corpus.text_files import html_encoding, read_text
from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream

LINKS_OF: Mapping[str, Callable[[str], PageLinks]] = {"html": html_links, "markdown": markdown_links}
"""How the links of a page are found, by its format."""


def facts_of_links(pages: Sequence[tuple[str, str, str]], options: CorpusOptions) -> dict[str, PageFacts]:
    """What links say of each page, by its id; empty if no page links to another.

    pages : path, id and format (of `LINKS_OF`) of each
    """
    if len(pages) < 2:
        return {}
    graph = LinkGraph((name for _, name, _ in pages), [given_site(address) for address in options.site])
    for path, name, kind in pages:
        with ByteStream(path) as stream:
            encoding = html_encoding(stream) if kind == "html" else "utf-8"
            try:
                text = read_text(stream, Place(stream.name), options, encoding)
            except DataError:
                continue  # reported when it is read as a document
        graph.add(name, LINKS_OF[kind](text))
    return graph.facts()


def add_links(document: Document, facts: PageFacts) -> None:
    """Add to a page what links say of it."""
    if facts.anchors:
        document.texts[ANCHOR] = list(facts.anchors)
    document.numbers.update(facts.numbers)
