"""Sentences of documentation: where the first one ends, and which words of it carry meaning."""

from __future__ import annotations

import re

from rankwell.index.text.stop_words import ENGLISH

# A full stop ends a sentence where a capital, an opening bracket or the end follows, unless it ends an abbreviation.
_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)[.!?][\"')\]]*(?=\s+[A-Z(\"'`*]|\s*\Z)")
_PARAGRAPH = re.compile(r"\n\s*\n")
_WORD = re.compile(r"[^\W_]+")

# Words without meaning for a search: queries do not contain them.
_EMPTY = frozenset(ENGLISH) | {
    *(
        "about",
        "after",
        "all",
        "also",
        "any",
        "been",
        "before",
        "being",
        "between",
        "both",
        "can",
        "could",
        "do",
        "does",
    ),
    *(
        "each",
        "from",
        "given",
        "had",
        "has",
        "have",
        "how",
        "its",
        "itself",
        "just",
        "like",
        "may",
        "more",
        "most",
        "must",
    ),
    *(
        "only",
        "other",
        "over",
        "same",
        "self",
        "should",
        "so",
        "some",
        "than",
        "them",
        "those",
        "through",
        "under",
        "until",
    ),
    *("up", "use", "used", "uses", "using", "very", "we", "were", "what", "when", "where", "whether", "which", "while"),
    *("who", "whose", "why", "would", "you", "your"),
}


def sentences(text: str) -> list[str]:
    """The sentences of a docstring in order, each on one line; a paragraph always ends one."""
    found = []
    for paragraph in _PARAGRAPH.split(text):
        line = " ".join(paragraph.split())
        start = 0
        for end in _END.finditer(line):
            found.append(line[start : end.end()].strip())
            start = end.end()
        found.append(line[start:].strip())
    return [sentence for sentence in found if sentence]


def words(text: str) -> list[str]:
    """Runs of letters and digits, in lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def meaningful_words(text: str) -> list[str]:
    """Distinct words in order of their first place, without digits, single letters and words without meaning."""
    kept = (word for word in words(text) if len(word) > 1 and word not in _EMPTY and not any(map(str.isdigit, word)))
    return list(dict.fromkeys(kept))
