"""The links of a page: where they lead, and the words a reader clicks on."""

from __future__ import annotations

import re
from html import unescape
from typing import NamedTuple

OPENING = re.compile(r"<a\b[^>]*>", re.IGNORECASE)
CLOSING = re.compile(r"</a\b", re.IGNORECASE)
BASE = re.compile(r"<base\b[^>]*>", re.IGNORECASE)
LINK = re.compile(r"<link\b[^>]*>", re.IGNORECASE)
CANONICAL = re.compile(r"""\brel\s*=\s*(?:"[^"]*\bcanonical\b|'[^']*\bcanonical\b|canonical\b)""", re.IGNORECASE)
HREF = re.compile(r"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
ALTERNATIVE = re.compile(r"""<img\b[^>]*?\balt\s*=\s*(?:"([^"]*)"|'([^']*)')[^>]*>""", re.IGNORECASE)
TAG = re.compile(r"<[^>]*>")
UNSEEN = (("<!--", "-->"), ("<script", "</script"), ("<style", "</style"), ("<template", "</template"))

INLINE_LINK = re.compile(r"(?<!!)\[([^\[\]]*(?:\[[^\[\]]*\])?[^\[\]]*)\]\(\s*<?([^()\s<>]+)>?(?:\s+[\"'(][^\n]*?)?\)")
REFERENCE = re.compile(r"(?<!!)\[([^\[\]]+)\](?:\[([^\[\]]*)\])?(?![(:\[])")
DEFINITION = re.compile(r"^ {0,3}\[([^\]\n]+)\]:[ \t]*<?([^\s<>]+)>?", re.MULTILINE)
FENCE = re.compile(r" {0,3}(```+|~~~+)")
CODE = re.compile(r"(?<!`)(`++)[^`\n]*+\1(?!`)")
PICTURE = re.compile(r"!\[([^\[\]]*)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")


class PageLink(NamedTuple):
    """A link: its address as the page writes it, and its words (empty for a picture without a description)."""

    address: str
    text: str


class PageLinks(NamedTuple):
    """The links of a page in order.

    base : the address that relative ones are relative to; empty: the page itself
    canonical : the address that the page says it has; empty if it says none
    """

    links: list[PageLink]
    base: str = ""
    canonical: str = ""


def html_links(text: str) -> PageLinks:
    """The links of a page in HTML."""
    # Every opening tag has an end then, so that looking for one never takes more than a step.
    text = _without_unseen(text[: text.rfind(">") + 1])
    base = BASE.search(text)
    canonical = next((one for one in LINK.finditer(text) if CANONICAL.search(one[0])), None)
    links = []
    openings = list(OPENING.finditer(text))
    for place, opening in enumerate(openings):
        # An element that is not closed ends where the next one begins.
        end = openings[place + 1].start() if place + 1 < len(openings) else len(text)
        closing = CLOSING.search(text, opening.end(), end)
        address = _attribute(HREF.search(opening[0]))
        if address:
            links.append(PageLink(address, _words(text[opening.end() : closing.start() if closing else end])))
    base_address, own_address = (
        _attribute(None if element is None else HREF.search(element[0])) for element in (base, canonical)
    )
    return PageLinks(links, base_address, own_address)


def markdown_links(text: str) -> PageLinks:
    """The same for Markdown: inline links and references, not pictures and code."""
    text = CODE.sub(" ", _without_fences(text))
    definitions = {_label(name): address for name, address in DEFINITION.findall(text)}
    text = DEFINITION.sub("", PICTURE.sub(r"\1", text))
    links = [(match.start(), PageLink(match[2], " ".join(match[1].split()))) for match in INLINE_LINK.finditer(text)]
    for match in REFERENCE.finditer(text):
        address = definitions.get(_label(match[2] or match[1]))
        if address is not None:
            links.append((match.start(), PageLink(address, " ".join(match[1].split()))))
    return PageLinks([link for _, link in sorted(links)])


def _without_fences(text: str) -> str:
    """Markdown without blocks of code; one that is not closed extends to the end."""
    kept, fence = [], ""
    for line in text.splitlines(keepends=True):
        found = FENCE.match(line)
        if fence:
            if found is not None and found[1].startswith(fence):
                fence = ""
        elif found is not None:
            fence = found[1]
        else:
            kept.append(line)
    return "".join(kept)


def _without_unseen(text: str) -> str:
    """A page without comments and programs; one that is not closed is read as text."""
    for opening, closing in UNSEEN:
        parts, start = [], 0
        lower = text.lower()
        while (found := lower.find(opening, start)) >= 0:
            end = lower.find(closing, found)
            if end < 0:
                break
            parts.append(text[start:found])
            start = end + len(closing)
        text = "".join((*parts, text[start:]))
    return text


def _words(inner: str) -> str:
    """What a reader sees of an element: its text, and the descriptions of its pictures."""
    described = ALTERNATIVE.sub(lambda match: f" {match[1] or match[2] or ''} ", inner)
    return " ".join(unescape(TAG.sub(" ", described)).split())


def _attribute(found: re.Match[str] | None) -> str:
    return "" if found is None else unescape(next(group for group in found.groups() if group is not None)).strip()


def _label(text: str) -> str:
    """References ignore case and blanks."""
    return " ".join(text.split()).casefold()
