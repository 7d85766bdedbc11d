"""The format of a file is told by its name, without .gz, .bz2 or .zst.

Lines of JSON (.jsonl, .ndjson), a JSON array or such lines (.json), columns separated by tabs (.tsv, .tab) or commas
(.csv), TREC's documents (.trec, .trectext, .trecweb), or one document (.txt, .text, .md, .markdown, .html, .htm,
.xhtml).
"""

from __future__ import annotations

from pathlib import Path

from rankwell.streams.decompression import CODECS

FORMAT_OF_SUFFIX = {
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    ".json": "json",
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    ".csv": "csv",
    **dict.fromkeys((".trec", ".trectext", ".trecweb"), "trec"),
    **dict.fromkeys((".txt", ".text"), "text"),
    **dict.fromkeys((".md", ".markdown"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
}
PAGES = ("text", "markdown", "html")
"""Formats of files that are one document each."""


def format_of(path: str) -> str | None:
    """What a file of that name holds: one of these formats, or None."""
    plain = Path(path)
    if plain.suffix.lower() in CODECS:
        plain = plain.with_suffix("")
    return FORMAT_OF_SUFFIX.get(plain.suffix.lower())
