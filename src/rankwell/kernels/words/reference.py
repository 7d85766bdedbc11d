"""Text cut into words, one character at a time: slow, obvious, and the definition of what is right."""

from __future__ import annotations

from itertools import pairwise

from rankwell.kernels.words.character_kinds import ALONE, LETTER, MARK, PAIRED, RULE, SEPARATOR, kind_of


def find_words(text: str, rule: str = RULE) -> list[str]:
    """The words of a text in order, as they are written; `character_kinds` has the rules."""
    runs: list[tuple[int, list[str]]] = []  # characters that belong together, each with its marks, and their kind
    before = SEPARATOR
    for character in text:
        kind = kind_of(character, rule)
        if kind == MARK:
            if before != SEPARATOR:
                runs[-1][1][-1] += character
            continue
        if kind in (LETTER, PAIRED) and kind == before:
            runs[-1][1].append(character)
        elif kind in (LETTER, PAIRED, ALONE):
            runs.append((kind, [character]))
        before = kind
    return [word for kind, characters in runs for word in _words_of_run(kind, characters)]


def _words_of_run(kind: int, characters: list[str]) -> list[str]:
    if kind == PAIRED and len(characters) > 1:
        return [first + second for first, second in pairwise(characters)]
    return ["".join(characters)]


def edit_distance(one: str, other: str) -> int:
    """The distance of two words, slowly: the definition."""
    rows = [list(range(len(other) + 1))]
    for i, character in enumerate(one, start=1):
        row = [i]
        for j, wanted in enumerate(other, start=1):
            distance = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (character != wanted))
            if i > 1 and j > 1 and character == other[j - 2] and one[i - 2] == wanted:
                distance = min(distance, rows[i - 2][j - 2] + 1)
            row.append(distance)
        rows.append(row)
    return rows[-1][-1]
