"""Lists of words that say little about the subject of a text."""

from __future__ import annotations

# The 33 words that Lucene's EnglishAnalyzer leaves out.
ENGLISH = (
    *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
    *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
    *("will", "with"),
)

STOP_WORDS = {"english": ENGLISH}
