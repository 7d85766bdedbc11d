"""Mentions: which sentences of the documentation name another definition.

They are its anchor text, as the text of links is a page's. A mention is a name as code would write it: with a dot in it
(``os.path.join``), called (``walk()``), in quotes or back-quotes, with an underscore or a capital inside
(``is_zipfile``, ``ZipFile``). A plain word such as *open* is not a mention. A name is resolved in its context: a
member of the same class, then of the same module, then the full name, then a built-in one; a name that only code would
write may also be the only name of the library with that ending.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from rankwell.demo.definitions import Definition

# Three groups: a quote before the name, the name, and a quote or an opening bracket after it.
_NAME = re.compile(r"([`'\"]?)(?<![\w.])([A-Za-z]\w*(?:\.[A-Za-z]\w*)*)(\(|[`'\"]?)")
_WRITTEN_AS_CODE = re.compile(r"\w[._]\w|[a-z][A-Z]|[A-Z]{2,}[a-z]")
# Words of a sentence kept on either side of the name.
_BESIDE = 8


class NameTable:
    """Resolves names in their context.

    Parameters
    ----------
    definitions : iterable of Definition
    """

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._names = {definition.name for definition in definitions}
        by_ending: dict[str, set[str]] = defaultdict(set)
        for name in self._names:
            parts = name.split(".")
            for start in range(1, len(parts)):
                by_ending[".".join(parts[start:])].add(name)
        self._only = {ending: next(iter(names)) for ending, names in by_ending.items() if len(names) == 1}

    def resolve(self, written: str, place: Definition) -> str | None:
        """The definition that `written` names inside `place`'s documentation; None if none or several match."""
        scope = place.name
        while scope:
            if f"{scope}.{written}" in self._names:
                return f"{scope}.{written}"
            scope = scope.rpartition(".")[0]
        if written in self._names:
            return written
        if f"builtins.{written}" in self._names:
            return f"builtins.{written}"
        return self._only.get(written) if _WRITTEN_AS_CODE.search(written) else None


def mentions(sentence: str, place: Definition, table: NameTable) -> list[tuple[str, str]]:
    """What a sentence of `place`'s documentation mentions: pairs of a definition's name and the words around it."""
    found: dict[str, str] = {}
    for match in _NAME.finditer(sentence):
        before, written, after = match.groups()
        quoted = bool(before) and before == after
        if not (quoted or after == "(" or _WRITTEN_AS_CODE.search(written)):
            continue
        name = table.resolve(written, place)
        if name is not None and name != place.name and name not in found:
            found[name] = _words_around(sentence, match.start(2), match.end(2))
    return list(found.items())


def _words_around(sentence: str, start: int, end: int) -> str:
    """The name and at most `_BESIDE` words on either side."""
    before, after = sentence[:start].split()[-_BESIDE:], sentence[end:].split()[:_BESIDE]
    return " ".join([*before, sentence[start:end], *after])
