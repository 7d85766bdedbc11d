"""Known-item queries: someone remembers what a thing does, and looks for the thing.

A query is drawn from the first sentence of an item's documentation, the one that says what it does; that sentence is
then taken out of the collection, so that the item must be found by the rest: its name, its place, its other sentences,
and the sentences of others that mention it. Items whose first sentence also occurs elsewhere in the library, or whose
documentation is only that sentence, do not give queries: such a query would be ambiguous, or nothing would be left to
find.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rankwell.demo.definitions import Definition
from rankwell.demo.sentences import meaningful_words, sentences

ITSELF, RELATED = 2, 1

# Words of a first sentence, of a query, and of what must be left.
_SENTENCE_WORDS = range(4, 26)
_FEWEST, _MOST = 4, 6
_WORDS_LEFT = 4
_CODE = re.compile(r"\w\(|->|>>>|::|=")


@dataclass(frozen=True)
class KnownItem:
    """One query and what it looks for.

    Attributes
    ----------
    query : str
    item : str
        The name of the definition that the query was made from.
    sentence : str
        The sentence it was made from, which the collection must not hold.
    grades : dict of str to int
        2 for the item, 1 for the class or module that holds it and for its own members.
    """

    query: str
    item: str
    sentence: str
    grades: dict[str, int]


def draw_known_items(definitions: Sequence[Definition], n_queries: int, seed: int) -> list[KnownItem]:
    """Draw `n_queries` items (or all that qualify, if those are fewer) and make a query of each."""
    generator = random.Random(seed)
    fit = fit_definitions(definitions)
    chosen = generator.sample(fit, min(n_queries, len(fit)))
    related = _related(definitions)
    return [_make_query(definition, related[definition.name], generator) for definition in chosen]


def fit_definitions(definitions: Sequence[Definition]) -> list[Definition]:
    """The definitions a query can be made from, in their order."""
    parted = [sentences(definition.docstring) for definition in definitions]
    holders: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for number, parts in enumerate(parted):
        for place, sentence in enumerate(parts):
            for word in meaningful_words(sentence):
                holders[word].add((number, place))
    found = []
    for number, parts in enumerate(parted):
        first = meaningful_words(parts[0])
        if len(first) not in _SENTENCE_WORDS or _CODE.search(parts[0]):
            continue
        said_elsewhere = len(set.intersection(*(holders[word] for word in first))) > 1
        if not said_elsewhere and len(meaningful_words(" ".join(parts[1:]))) >= _WORDS_LEFT:
            found.append(definitions[number])
    return found


def _make_query(definition: Definition, related: set[str], generator: random.Random) -> KnownItem:
    sentence = sentences(definition.docstring)[0]
    candidates = meaningful_words(sentence)
    n_words = generator.randint(_FEWEST, min(_MOST, len(candidates)))
    places = sorted(generator.sample(range(len(candidates)), n_words))
    grades = {definition.name: ITSELF} | dict.fromkeys(sorted(related), RELATED)
    return KnownItem(" ".join(candidates[place] for place in places), definition.name, sentence, grades)


def _related(definitions: Sequence[Definition]) -> dict[str, set[str]]:
    """For each definition the one that holds it, and the ones that it holds."""
    related: dict[str, set[str]] = {definition.name: set() for definition in definitions}
    for definition in definitions:
        if definition.parent in related:
            related[definition.name].add(definition.parent)
            related[definition.parent].add(definition.name)
    return related
