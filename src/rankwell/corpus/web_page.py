"""HTML as text: the title, and the words a reader sees."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

from rankwell.corpus.options import WIDE_ENCODINGS, text_encoding

UNSEEN = frozenset(("script", "style", "template", "noscript", "svg"))
# Tags that stand inside a line, or inside a word; all others part words.
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
    """The encoding that the first bytes of a page name, where it is one that Python knows."""
    found = CHARSET.search(head)
    if found is None:
        return None
    encoding = text_encoding(found[1].decode("ascii"))
    # Its name could not have been read in one of these: browsers, too, take such a page for UTF-8.
    return "utf-8" if encoding is not None and encoding.startswith(WIDE_ENCODINGS) else encoding


def split_page(text: str) -> tuple[str, str]:
    """Title and text of a page; what is not closed ends with the page."""
    page = _Page()
    text = _with_short_declarations(text)
    # A tag behind the last > has no end: a page of such would have the parser look for it again and again.
    unfinished = UNFINISHED.search(text, text.rfind(">") + 1)
    try:
        page.feed(text if unfinished is None else text[: unfinished.start()])
        page.close()
    except AssertionError as cause:
        raise PageError(f"the page is not HTML ({cause})") from cause
    return "".join(page.title).strip(), "".join(page.text).strip()


def _with_short_declarations(text: str) -> str:
    """A page in which marked sections (<![CDATA[) and comments without an end reach to the next > only.

    For sections browsers do the same. Python's parser looks for their ends through the whole page, and where there is
    none it does so for each.
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
        # A title holds no tags: any other one ends it, should it not have been closed.
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
            # What stands inside and was not closed ends with it.
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
