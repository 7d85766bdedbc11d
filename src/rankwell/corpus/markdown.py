"""Markdown as text: a title, and the body without what only a program reads."""

from __future__ import annotations

import re

FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:(.+)$", re.MULTILINE)
HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+)$", re.MULTILINE)
UNDERLINED = re.compile(r"^(?![ \t]*$)(.+)\n {0,3}=+[ \t]*$", re.MULTILINE)
LINK_TARGET = re.compile(r"\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")
LINK_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:[ \t]*\S+.*$", re.MULTILINE)


def split_markdown(text: str) -> tuple[str, str]:
    """Title (of the front matter, or the first heading; empty if there is neither) and body.

    The targets of links are left out. All other marks separate words anyway.
    """
    text = text.replace("\r\n", "\n")
    title = ""
    front = FRONT_MATTER.match(text)
    if front is not None:
        text = text[front.end() :]
        named = FRONT_TITLE.search(front[1])
        title = named[1].strip().strip("\"'") if named else ""
    body = LINK_DEFINITION.sub("", LINK_TARGET.sub("] ", text))
    if not title:
        found = [match for match in (HEADING.search(body), UNDERLINED.search(body)) if match is not None]
        if found:
            first = min(found, key=lambda match: match.start())
            title = _without_closing_marks(first[1].strip())
            body = body[: first.start()] + body[first.end() :]
    return title, body


def _without_closing_marks(heading: str) -> str:
    """`A title ##` is `A title`, but `C#` stays."""
    text = heading.rstrip("#")
    return heading if text and not text[-1].isspace() else text.rstrip()
