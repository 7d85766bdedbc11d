"""Text cut into words, one character at a time: slow, obvious, and the definition of what is right."""

from __future__ import annotations

from rankwell.kernels.words.character_kinds import ALONE, LETTER, MARK, kind_of


def find_words(text: str) -> list[str]:
    """The words of a text in order, as they are written; `character_kinds` has the rule."""
    words: list[str] = []
    before = ""  # what the next mark would belong to: "", "letter" or "alone"
    for character in text:
        kind = kind_of(character)
        if kind == LETTER and before == "letter":
            words[-1] += character
        elif kind in (LETTER, ALONE):
            words.append(character)
        elif kind == MARK and before:
            words[-1] += character
        if kind != MARK:
            before = {LETTER: "letter", ALONE: "alone"}.get(kind, "")
    return words
