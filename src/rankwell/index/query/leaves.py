"""The leaves of a query: words, phrases, prefixes, near words and values of fields, read from its text.

What is counted here limits what a query may cost.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from rankwell.errors import Parameter, QueryError
from rankwell.index.query.near_words import tolerance
from rankwell.index.query.tree import Everything, Exists, Group, Near, Node, Phrase, Prefix, Word
from rankwell.index.query.values import comparison, range_of, value_of

if TYPE_CHECKING:
    from rankwell.index.schema import Schema
    from rankwell.index.text.analysis import Analysis

# Each of these reads a column, or the whole dictionary.
MOST_OF = {"parentheses": 1024, "values of fields": 1024, "prefixes": 32, "words with a tilde": 32}
# The texts of a list are 100 positions apart: a sloppy phrase must not extend from one into the next.
MOST_SLOP = 99
# The time to look for a phrase with slop grows with the square of its words.
MOST_SLOPPY_WORDS = 16

CHUNK = re.compile(r'(?:\\.|[^\s"()\\^~])+|\\$', re.DOTALL)
_PHRASE = re.compile(r'"((?:\\.|[^"\\])*)"?', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_RANGE = re.compile(r'[\[{]\s*("[^"]*"|[^\s"]+)\s+TO\s+("[^"]*"|[^\s"\]}]+)\s*[\]}]')
_COMPARISON = re.compile(r'([<>]=?)\s*("[^"]*"|[^\s"()^~]+)')
_TILDE = re.compile(r'~([^\s"()^]*)')
_ADDRESS_END = re.compile(r'[^\s"()]*')
_WILDCARD = re.compile(r"(?<!\\)(?:\*|(?<=\w)\?(?=\w))")
# A star after a word in a phrase looks like a prefix; one that stands alone, or inside a word, separates words.
_PREFIX_IN_PHRASE = re.compile(r"\w+\*(?!\w)")
_EXPRESSION = re.compile(r"/[^/\s]+/")
_COMPARED_NUMBER = re.compile(r"[<>]=?-?\.?\d")
_RANGE_END = re.compile(r"[\]}]")
_PLAIN = (", or pass ", Parameter("plain", True), " to search for the whole query as plain text")


class Several(NamedTuple):
    """Words that stand as one operand. What they are, the operators beside it say, which may be read later.

    Without an operator they are single words. With one, words without white space between them are a phrase, and the
    common words of parentheses that have no others (`are_common`) are a group.
    """

    words: tuple[Word, ...]
    are_common: bool = False


class LeafReader:
    """Reads leaves from `text`, each from the place `at` on, which it moves.

    what : "query" or "filter", for messages
    is_full : whether there was no room for a clause: the terms of it and of all later ones are left out
    """

    def __init__(self, text: str, analysis: Analysis, schema: Schema | None, most_terms: int, what: str) -> None:
        self.text, self.at, self.what = text, 0, what
        self.analysis, self.schema = analysis, schema
        self.terms: set[bytes] = set()
        self.phrases: set[tuple[tuple[bytes, int], ...]] = set()
        self.n_phrase_words = 0
        self.most_terms, self.is_full = most_terms, False
        self.place, self.depth, self.n_negations = 0, 0, 0
        self.counts: Counter[str] = Counter()

    def fail(self, at: int, problem: str, remedy: str = "Put what is not an operator in quotes") -> NoReturn:
        raise QueryError(
            f"the {self.what} cannot be read, column {at + 1}: {problem} {remedy}",
            *([] if self.what == "filter" else [_PLAIN]),
            ".",
            column=at + 1,
        )

    def count(self, kind: str, start: int) -> None:
        """Count one more of a kind, of which a query has a limited number."""
        self.counts[kind] += 1
        if self.counts[kind] > MOST_OF[kind]:
            self.fail(start, f"there are more than {MOST_OF[kind]:,} {kind}.")

    def value(self, field: str, schema: Schema) -> Node:
        """The value, range or comparison after the name of a field that is not a stream."""
        start = self.at
        self.count("values of fields", start)
        if self.text[start] in "[{" and schema.kind_of(field) != "keyword" and not _RANGE.match(self.text, start):
            self._fail_range(start, field)
        for pattern, make in ((_RANGE, range_of), (_COMPARISON, comparison), (_PHRASE, value_of), (CHUNK, value_of)):
            found = pattern.match(self.text, start)
            if found is not None:
                self.at = found.end()
                try:
                    return make(schema, field, found)
                except ValueError as error:
                    self.fail(start, str(error))
        return self.fail(start, f"field {field!r} needs a value, as in {field}:[1 TO 5].")

    def _fail_range(self, start: int, field: str) -> NoReturn:
        """Say what a range lacks."""
        end = _RANGE_END.search(self.text, start)
        written = self.text[start : None if end is None else end.end()]
        if end is None:
            lacking = "is not closed by ] or }"
        elif not re.search(r"\sTO\s", written):
            lacking = "has no TO between its ends"
        else:
            lacking = "has not two ends of one word each"
        self.fail(start, f"the range {written!r} {lacking}: it is written {field}:[1 TO 5], with * for an open end.")

    def phrase(self, field: str | None) -> Node | None:
        start = self.at
        found = _PHRASE.match(self.text, start)
        assert found is not None
        self.at = found.end()
        prefix = _PREFIX_IN_PHRASE.search(found[1])
        if prefix is not None:
            problem = f"{prefix[0]!r}: a phrase has whole words, and no prefixes."
            self.fail(found.start(1) + prefix.start(), problem, r"Put a backslash before a star that is text")
        slop = self._slop()
        if self.text.startswith("*", self.at):
            self.fail(self.at, "a star after a phrase has no word to complete: prefixes are single words, as in comp*.")
        words = self._words(unescaped(found[1]), field, as_one=True)
        if slop and words is not None and len(words.words) > MOST_SLOPPY_WORDS:
            self.fail(start, f"a phrase with slop has at most {MOST_SLOPPY_WORDS} words, got {len(words.words)}.")
        return None if words is None else _phrase_of(words, slop)

    def _slop(self) -> int:
        found = _TILDE.match(self.text, self.at)
        if found is None:
            return 0
        written = found[1]
        if not (written.isascii() and written.isdigit() and len(written) <= 9) or int(written) > MOST_SLOP:
            got = written or "nothing after its tilde"
            self.fail(self.at, f"the slop of a phrase must be a whole number from 0 to {MOST_SLOP}, got {got}.")
        self.at = found.end()
        return int(written)

    def chunk(self, field: str | None) -> Node | Several | None:
        start = self.at
        found = CHUNK.match(self.text, start)
        if found is None:
            self.at += 1  # ^ or ~ without a word before it
            return None
        self.at = found.end()
        written = found[0]
        if written == "*":
            return Everything() if field is None else Exists(field)
        if "://" in written:
            self.at = _ADDRESS_END.match(self.text, self.at).end()  # type: ignore[union-attr]
            written = self.text[start : self.at]
        else:
            if written.endswith("*") and not _WILDCARD.search(written[:-1]) and not written.endswith("\\*"):
                return self._prefix(start, written, field)
            self._refuse_lookalikes(start, written, field)
        words = self._words(unescaped(written), field, as_one=field is not None)
        near = _TILDE.match(self.text, self.at)
        if near is not None:
            return self._near(start, words, near)
        return one_node(words) if words is not None and (field is not None or len(words.words) == 1) else words

    def _near(self, start: int, words: Several | None, found: re.Match[str]) -> Node | None:
        """``word~``, ``word~1``: a word or one that is written nearly so."""
        self.count("words with a tilde", start)
        self.at = found.end()
        if words is None:
            return None
        if len(words.words) > 1:
            self.fail(start, "a tilde needs one word, as in receive~, or a phrase in quotes.")
        word = words.words[0]
        if found[1] not in ("", "0", "1", "2"):
            self.fail(found.start(), f"the edits after a tilde must be 0, 1 or 2, got {found[1]}.")
        distance = int(found[1]) if found[1] else tolerance(word.term)
        return Near(word.term, distance, word.place, word.field)

    def _refuse_lookalikes(self, start: int, written: str, field: str | None) -> None:
        """Refuse what Lucene has and this language has not."""
        if _WILDCARD.search(written):
            self.fail(start, f"{written!r}: wildcards are supported at the end of a word only, as in comp*.")
        if _EXPRESSION.fullmatch(written):
            self.fail(start, f"{written!r}: regular expressions are not supported.")
        if written[0] in "[{" and _RANGE.match(self.text, start):
            what = "it has none" if field is None else f"{field!r} holds text"
            self.fail(start, f"a range needs a field with numbers or dates, as in year:[2000 TO 2010], but {what}.")
        if field is None and _COMPARED_NUMBER.match(written):
            names = [] if self.schema is None else [n for n in self.schema.statics if n not in self.schema.dates]
            example = f", as in {names[0]}:{written}" if names else ""
            self.fail(start, f"{written!r} does not say what it compares: put a field and a colon before it{example}.")
        if field is not None and written[0] in "<>":
            self.fail(start, f"{written[0]!r} needs a field with numbers or dates, {field!r} holds text.")

    def _prefix(self, start: int, written: str, field: str | None) -> Node | None:
        self.count("prefixes", start)
        words = self.analysis.cut(unescaped(written[:-1]))
        folded = self.analysis.fold(unescaped(written[:-1]))
        if len(words) > 1 or not folded.isalnum():
            self.fail(start, f"{written!r}: a prefix is one word without punctuation, as in comp*.")
        prefix = folded.encode("utf-8", "replace")
        if not self._takes_terms([prefix]):
            return None
        self.place += self.n_negations == 0
        return Prefix(prefix, field)

    def _words(self, text: str, field: str | None, *, as_one: bool) -> Several | None:
        """The words of a text, as many as there is room for; or none of them if they are needed `as_one`."""
        cut = self.analysis.cut(text)
        if as_one and not (self._takes_phrase(cut) and self._takes_terms([term for term, _ in cut])):
            return None
        words = [Word(term, self.place + place, field) for term, place in cut if as_one or self._takes_terms([term])]
        if words and self.n_negations == 0:
            self.place = words[-1].place + 1
        return Several(tuple(words)) if words else None

    def _takes_phrase(self, words: list[tuple[bytes, int]]) -> bool:
        """Whether there is room for a phrase: all different ones together have at most as many words as terms."""
        if len(words) > 1 and tuple(words) not in self.phrases:
            self.phrases.add(tuple(words))
            self.n_phrase_words += len(words)
            self.is_full = self.is_full or self.n_phrase_words > self.most_terms
        return not self.is_full

    def _takes_terms(self, terms: list[bytes]) -> bool:
        """Whether there is room for a clause's terms; after the first for which there is none, there is none."""
        new = {term for term in terms if term not in self.terms}
        self.is_full = self.is_full or len(self.terms) + len(new) > self.most_terms
        if not self.is_full:
            self.terms |= new
        return not self.is_full


def unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def one_node(node: Node | Several | None) -> Node | None:
    """Several words beside an operator: a phrase or a group."""
    if not isinstance(node, Several):
        return node
    if node.are_common:
        return Group(optional=node.words)
    return node.words[0] if len(node.words) == 1 else _phrase_of(node)


def _phrase_of(several: Several, slop: int = 0) -> Phrase:
    first = several.words[0]
    terms = tuple(word.term for word in several.words)
    places = tuple(word.place - first.place for word in several.words)
    return Phrase(terms, places, slop, first.place, first.field, first.boost)
