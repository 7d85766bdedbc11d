"""HTML as text: the title, and the words a reader sees."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

from rankwell.corpus.options import WIDE_ENCODINGS, text_encoding

UNSEEN = frozenset(("script", "style", "template", "noscript", "svg"))
# Tags that occur inside a line or a word; all others separate words.
INLINE = frozenset(
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i"),
        *("ins", "kbd", "label", "mark", "q", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup"),
        *("time", "tt", "u", "var", "wbr"),
    )
)
CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s{0,4}=\s{0,4}[\"']?\s{0,4}([A-Za-z0-9_.:-]+)", re.IGNORECASE)
UNFINISHED = re.compile(r"<[A-Za-z/!?]")


class PageError(ValueError):
    """A page that cannot be read."""


def declared_encoding(head: bytes) -> str | None:
    """The encoding that the first bytes of a page name, if Python knows it."""
    found = CHARSET.search(head)
    if found is None:
        return None
    encoding = text_encoding(found[1].decode("ascii"))
    # The page's bytes cannot be in one of these, or its name could not have been read: browsers assume UTF-8, too.
    return "utf-8" if encoding is not None and encoding.startswith(WIDE_ENCODINGS) else encoding


def split_page(text: str) -> tuple[str, str]:
    """Title and text of a page; elements that are not closed end with the page."""
    page = _Page()
    text = _with_short_declarations(text)
    # A tag after the last > has no end: on a page of such tags the parser would search for it again and again.
    unfinished = UNFINISHED.search(text, text.rfind(">") + 1)
    try:
        page.feed(text if unfinished is None else text[: unfinished.start()])
        page.close()
    except AssertionError as cause:
        raise PageError(f"the page is not HTML ({cause})") from cause
    return "".join(page.title).strip(), "".join(page.text).strip()


def _with_short_declarations(text: str) -> str:
    """A page in which marked sections (<![CDATA[) and comments without an end extend to the next > only.

    For sections browsers do the same. Python's parser searches the whole page for their ends, and if there is none, it
    does so for each.
    """
    closed = text.rfind("-->") + 1
    return text[:closed].replace("<![", "<! ") + text[closed:].replace("<![", "<! ").replace("<!--", "<! --")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.text: list[str] = []
        self._unseen: list[str] = []
        self._n_unseen: Counter[str] = Counter()
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # A title contains no tags: any other tag ends one that was not closed.
        self._in_title = tag == "title" and not self.title and not self._unseen
        if tag in UNSEEN:
            self._unseen.append(tag)
            self._n_unseen[tag] += 1
        if tag not in INLINE:
            self.text.append("\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in INLINE:
            self.text.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        if self._n_unseen[tag]:
            # Elements inside it that were not closed end with it.
            closed = ""
            while closed != tag:
                closed = self._unseen.pop()
                self._n_unseen[closed] -= 1
        if tag not in INLINE:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._unseen:
            self.text.append(data)
