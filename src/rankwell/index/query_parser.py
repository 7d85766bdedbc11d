"""The query language: a text to a tree.

    clauses     clause one after another, separated by white space; each is optional unless it has a sign
    clause      operand, or operands joined by AND, OR and NOT: NOT binds first, then AND, then OR
    operand     [+ - ! NOT] [field:] one of the next line, then [^boost]
                word | word* | word~edits | "phrase" | "phrase"~slop | range | ( clauses )
    range       [low TO high], {low TO high}, >low, >=low, <high, <=high; * is an open end

Phrases, and clauses that only filter (ranges, values of keyword fields), are required with and without ``+``; other
clauses only with it. One of the others must match, unless a clause with words is required. A sign is an operator at the
beginning of a clause only; elsewhere it separates words as other punctuation does. Several words without white space
between them (``e-mail``) are a phrase after an operator, several words without one. A quote that is not closed extends
to the end. A backslash takes its meaning from the next character. Stop words are not indexed, so they are ignored, but
keep their place in a phrase. Common words are indexed, but as plain words they count only if the query has no other
words. What looks like Lucene's syntax and is not supported is an error.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from rankwell.errors import Parameter, QueryError
from rankwell.index.near_words import tolerance as _tolerance
from rankwell.index.query_tree import (
    And,
    Everything,
    Exists,
    Group,
    Near,
    Node,
    Not,
    Nothing,
    Or,
    Phrase,
    Prefix,
    Word,
    has_words,
)
from rankwell.index.query_values import comparison, range_of, value_of

if TYPE_CHECKING:
    from rankwell.index.analysis import Analysis
    from rankwell.index.schema import Schema

MOST_DEPTH = 50
# Each of these reads a column, or the whole dictionary: what a query may cost is limited.
MOST_OF = {"parentheses": 1024, "values of fields": 1024, "prefixes": 32, "words with a tilde": 32}
# The texts of a list are 100 positions apart: a sloppy phrase must not extend from one into the next.
MOST_SLOP = 99
# The time to look for a phrase with slop grows with the square of its words.
MOST_SLOPPY_WORDS = 16

_BLANKS = re.compile(r"\s*")
_SIGNS = re.compile(r"[+\-!]+")
_CHUNK = re.compile(r'(?:\\.|[^\s"()\\^~])+|\\$', re.DOTALL)
_PHRASE = re.compile(r'"((?:\\.|[^"\\])*)"?', re.DOTALL)
_FIELD = re.compile(r'((?:\\.|[^\s"()\\^~:])+):(?=\S)')
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_RANGE = re.compile(r'[\[{]\s*("[^"]*"|[^\s"]+)\s+TO\s+("[^"]*"|[^\s"\]}]+)\s*[\]}]')
_COMPARISON = re.compile(r'([<>]=?)\s*("[^"]*"|[^\s"()^~]+)')
_BOOST = re.compile(r"\^([0-9]+(?:\.[0-9]*)?|\.[0-9]+)?")
_SLOP = re.compile(r"~([0-9]+(?:\.[0-9]*)?)?(?![^\W\d_])")
_WILDCARD = re.compile(r"(?<!\\)(?:\*|(?<=\w)\?(?=\w))")
_EXPRESSION = re.compile(r"/[^/\s]+/")
_PLAIN = (", or pass ", Parameter("plain", True), " to search for the whole query as plain text")
_OPERATORS = {"AND": "AND", "&&": "AND", "OR": "OR", "||": "OR", "NOT": "NOT"}


class _Several(NamedTuple):
    """Words without white space between them: a phrase or single words, as the context says."""

    words: tuple[Word, ...]


def parse_tree(
    text: str, analysis: Analysis, schema: Schema | None, most_terms: int, *, is_filter: bool = False
) -> tuple[Node, bool]:
    """The tree of a text, and whether terms above `most_terms` were left out of it.

    is_filter : whether it is a filter, which may consist of exclusions only, and not a query

    Raises QueryError, which names what is wrong and its column.
    """
    parser = _Parser(text, analysis, schema, most_terms, "filter" if is_filter else "query")
    tree = parser.clauses(None)
    if parser.at < len(text):
        parser.fail(parser.at, "')' closes nothing: there is no '(' before it.")
    if not has_words(tree) and parser.common_words:
        # Common words count in a query that has no other ones.
        tree = tree._replace(optional=(*tree.optional, *parser.common_words))
    if not tree.required and not tree.optional and not is_filter:
        # Only exclusions, or nothing at all.
        return Nothing(), parser.is_full
    return tree, parser.is_full


class _Parser:
    def __init__(self, text: str, analysis: Analysis, schema: Schema | None, most_terms: int, what: str) -> None:
        self.text, self.at, self.what = text, 0, what
        self.analysis, self.schema = analysis, schema
        self.terms: set[bytes] = set()
        self.phrases: set[tuple[tuple[bytes, int], ...]] = set()
        self.n_phrase_words = 0
        self.most_terms, self.is_full = most_terms, False
        self.place, self.depth, self.n_negations = 0, 0, 0
        self.common_words: list[Word] = []
        self.counts: Counter[str] = Counter()

    def fail(self, at: int, problem: str) -> NoReturn:
        raise QueryError(
            f"the {self.what} cannot be read, column {at + 1}: {problem} Put what is not an operator in quotes",
            *([] if self.what == "filter" else [_PLAIN]),
            ".",
            column=at + 1,
        )

    def clauses(self, field: str | None) -> Group:
        """Clauses up to the end or a closing parenthesis."""
        required: list[Node] = []
        optional: list[Node] = []
        excluded: list[Node] = []
        while not self._is_at_end():
            sign, node = self._clause(field)
            if not sign and isinstance(node, Word | _Several):
                optional += self._telling(node)
            elif node is not None and not isinstance(node, _Several):
                needed = isinstance(node, Phrase) or not (has_words(node) or isinstance(node, Everything))
                (excluded if sign == "-" else required if sign == "+" or needed else optional).append(node)
        return Group(tuple(required), tuple(optional), tuple(excluded))

    def _telling(self, node: Word | _Several) -> list[Word]:
        """Plain words without common ones, which are put aside."""
        words = (node,) if isinstance(node, Word) else node.words
        telling: list[Word] = []
        for word in words:
            is_common = word.term in self.analysis.common_terms and not word.field and word.boost == 1.0
            (self.common_words if is_common else telling).append(word)
        return telling

    def _is_at_end(self) -> bool:
        self.at = _BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at == len(self.text) or self.text[self.at] == ")"

    def _clause(self, field: str | None) -> tuple[str, Node | _Several | None]:
        """The next clause and its sign, which is empty if operators join it."""
        first = self._conjunction(field)
        alternatives = [first]
        while self._takes("OR"):
            alternatives.append(self._conjunction(field, "OR"))
        if len(alternatives) == 1:
            return first
        parts = [part for sign, node in alternatives if (part := _operand(sign, node)) is not None]
        return "", Or(tuple(parts)) if len(parts) > 1 else (parts[0] if parts else None)

    def _conjunction(self, field: str | None, after: str = "") -> tuple[str, Node | _Several | None]:
        first = self._signed(field, after)
        operands = [first]
        while self._takes("AND"):
            operands.append(self._signed(field, "AND"))
        if len(operands) == 1:
            return first
        parts = [part for sign, node in operands if (part := _operand(sign, node)) is not None]
        return "", And(tuple(parts)) if len(parts) > 1 else (parts[0] if parts else None)

    def _signed(self, field: str | None, after: str) -> tuple[str, Node | _Several | None]:
        """An operand with its sign: "-" also for NOT."""
        start = self.at
        if self._is_at_end():
            self.fail(start, f"{after} has nothing after it.")
        operator = self._operator()
        if operator in ("AND", "OR"):
            self.fail(self.at, f"{operator} has nothing before it.")
        sign = ""
        while operator == "NOT":
            self.at = self._word_end()
            sign = "" if sign == "-" else "-"
            if self._is_at_end():
                self.fail(start, "NOT has nothing after it.")
            operator = self._operator()
        signs = _SIGNS.match(self.text, self.at) if self._is_clause_start() else None
        if signs is not None:
            self.at = signs.end()
            if "-" in signs[0] or "!" in signs[0]:
                sign = "" if sign == "-" else "-"
            elif not sign:
                sign = "+"
            if self.at == len(self.text) or self.text[self.at].isspace():
                return "", None
        self.n_negations += sign == "-"
        node = self._boosted(field)
        self.n_negations -= sign == "-"
        return sign, _one(node) if sign and isinstance(node, _Several) else node

    def _is_clause_start(self) -> bool:
        return self.at == 0 or self.text[self.at - 1].isspace() or self.text[self.at - 1] == "("

    def _operator(self) -> str | None:
        """The operator at the current place, which is not passed."""
        return _OPERATORS.get(self.text[self.at : self._word_end()]) if self._is_clause_start() else None

    def _word_end(self) -> int:
        found = _CHUNK.match(self.text, self.at)
        return self.at if found is None else found.end()

    def _takes(self, operator: str) -> bool:
        """Whether this operator is next; if so it is passed."""
        if self._is_at_end() or self._operator() != operator:
            return False
        self.at = self._word_end()
        return True

    def _boosted(self, field: str | None) -> Node | _Several | None:
        start = self.at
        node = self._operand(field)
        found = _BOOST.match(self.text, self.at) if self.at > start else None
        if found is None:
            return node
        if found[1] is None:
            follows = self.text[found.end() : found.end() + 1]
            if follows and not follows.isspace() and follows != ")":
                return node  # as in a^b: it separates words
            self.fail(self.at, "a boost is written ^ and a number, as in oil^2.")
        self.at = found.end()
        boost = float(found[1])
        if not 1e-6 <= boost <= 1e6:
            self.fail(found.start(), f"a boost must be between 0.000001 and 1000000, got {found[1]}.")
        boosted = None if node is None else _times(node, boost)
        if boosted is None and node is not None:
            self.fail(found.start(), "a boost needs words: ranges, keywords and * do not count in the score.")
        return boosted

    def _operand(self, field: str | None) -> Node | _Several | None:
        here = self.text[self.at]
        if here == "(":
            return self._parenthesis(field)
        found = _FIELD.match(self.text, self.at) if here != '"' else None
        if found is not None:
            name = _unescaped(found[1])
            if self._is_field(name, found.end()):
                self.at = found.end()
                return self._operand(name)
        if field is not None and self.schema is not None and self.schema.kind_of(field) != "stream":
            return self._value(field, self.schema)
        if here == '"':
            return self._phrase(field)
        return self._chunk(field)

    def _count(self, kind: str, start: int) -> None:
        """Count one more of a kind, of which a query has a limited number."""
        self.counts[kind] += 1
        if self.counts[kind] > MOST_OF[kind]:
            self.fail(start, f"there are more than {MOST_OF[kind]:,} {kind}.")

    def _parenthesis(self, field: str | None) -> Node | None:
        start = self.at
        self._count("parentheses", start)
        self.depth += 1
        if self.depth > MOST_DEPTH:
            self.fail(start, f"parentheses are nested more than {MOST_DEPTH} deep.")
        self.at += 1
        group = self.clauses(field)
        if self.at == len(self.text):
            self.fail(start, "'(' is not closed.")
        self.at += 1
        self.depth -= 1
        return None if group == Group() else group

    def _is_field(self, name: str, after: int) -> bool:
        """Whether a name before a colon is a field. One that is not is an error, unless it is a time or an address."""
        if self.schema is not None and self.schema.kind_of(name) is not None:
            return True
        if name.isdigit() or self.text.startswith("//", after) or not re.search(r"\w", name):
            return False
        known = ", ".join(self.schema.fields()) if self.schema is not None else ""
        return self.fail(self.at, f"there is no field {name!r}{f'; the fields are {known}' if known else ''}.")

    def _value(self, field: str, schema: Schema) -> Node:
        """The value, range or comparison after the name of a field that is not a stream."""
        start = self.at
        self._count("values of fields", start)
        for pattern, make in ((_RANGE, range_of), (_COMPARISON, comparison), (_PHRASE, value_of), (_CHUNK, value_of)):
            found = pattern.match(self.text, start)
            if found is not None:
                self.at = found.end()
                try:
                    return make(schema, field, found)
                except ValueError as error:
                    self.fail(start, str(error))
        return self.fail(start, f"field {field!r} needs a value, as in {field}:[1 TO 5].")

    def _phrase(self, field: str | None) -> Node | None:
        start = self.at
        found = _PHRASE.match(self.text, start)
        assert found is not None
        self.at = found.end()
        slop = self._slop(start)
        words = self._words(_unescaped(found[1]), field, as_one=True)
        if slop and words is not None and len(words.words) > MOST_SLOPPY_WORDS:
            self.fail(start, f"a phrase with slop has at most {MOST_SLOPPY_WORDS} words, got {len(words.words)}.")
        return None if words is None else _phrase_of(words, slop)

    def _slop(self, start: int) -> int:
        found = _SLOP.match(self.text, self.at)
        if found is None or found[1] is None:
            return 0
        if not found[1].isdigit() or int(found[1]) > MOST_SLOP:
            self.fail(start, f"the slop of a phrase must be a whole number from 0 to {MOST_SLOP}, got {found[1]}.")
        self.at = found.end()
        return int(found[1])

    def _chunk(self, field: str | None) -> Node | _Several | None:
        start = self.at
        found = _CHUNK.match(self.text, start)
        if found is None:
            self.at += 1  # ^ or ~ without a word before it
            return None
        self.at = found.end()
        written = found[0]
        if written == "*":
            return Everything() if field is None else Exists(field)
        if "://" not in written:
            if written.endswith("*") and not _WILDCARD.search(written[:-1]) and not written.endswith("\\*"):
                return self._prefix(start, written, field)
            self._refuse_lookalikes(start, written, field)
        words = self._words(_unescaped(written), field, as_one=field is not None)
        near = _SLOP.match(self.text, self.at)
        if near is not None:
            return self._near(start, words, near)
        return _one(words) if words is not None and (field is not None or len(words.words) == 1) else words

    def _near(self, start: int, words: _Several | None, found: re.Match[str]) -> Node | None:
        """``word~``, ``word~1``: a word or one that is written nearly so."""
        self._count("words with a tilde", start)
        self.at = found.end()
        if words is None:
            return None
        if len(words.words) > 1:
            self.fail(start, "a tilde needs one word, as in receive~, or a phrase in quotes.")
        word = words.words[0]
        distance = _tolerance(word.term) if found[1] is None else found[1]
        if str(distance) not in ("0", "1", "2"):
            self.fail(found.start(), f"the edits after a tilde must be 0, 1 or 2, got {distance}.")
        return Near(word.term, int(distance), word.place, word.field)

    def _refuse_lookalikes(self, start: int, written: str, field: str | None) -> None:
        """Refuse what Lucene has and this language has not."""
        if _WILDCARD.search(written):
            self.fail(start, f"{written!r}: wildcards are supported at the end of a word only, as in comp*.")
        if _EXPRESSION.fullmatch(written):
            self.fail(start, f"{written!r}: regular expressions are not supported.")
        if written[0] in "[{" and _RANGE.match(self.text, start):
            what = "it has none" if field is None else f"{field!r} holds text"
            self.fail(start, f"a range needs a field with numbers or dates, as in year:[2000 TO 2010], but {what}.")
        if field is not None and written[0] in "<>":
            self.fail(start, f"{written[0]!r} needs a field with numbers or dates, {field!r} holds text.")

    def _prefix(self, start: int, written: str, field: str | None) -> Node | None:
        self._count("prefixes", start)
        words = self.analysis.cut(_unescaped(written[:-1]))
        folded = self.analysis.fold(_unescaped(written[:-1]))
        if len(words) > 1 or not folded.isalnum():
            self.fail(start, f"{written!r}: a prefix is one word without punctuation, as in comp*.")
        prefix = folded.encode("utf-8", "replace")
        if not self._takes_terms([prefix]):
            return None
        self.place += self.n_negations == 0
        return Prefix(prefix, field)

    def _words(self, text: str, field: str | None, *, as_one: bool) -> _Several | None:
        """The words of a text, as many as there is room for; or none of them if they are needed `as_one`."""
        cut = self.analysis.cut(text)
        if as_one and not (self._takes_phrase(cut) and self._takes_terms([term for term, _ in cut])):
            return None
        words = [Word(term, self.place + place, field) for term, place in cut if as_one or self._takes_terms([term])]
        if words and self.n_negations == 0:
            self.place = words[-1].place + 1
        return _Several(tuple(words)) if words else None

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


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _one(node: Node | _Several | None) -> Node | None:
    """Several words as a phrase."""
    if not isinstance(node, _Several):
        return node
    return node.words[0] if len(node.words) == 1 else _phrase_of(node)


def _phrase_of(several: _Several, slop: int = 0) -> Phrase:
    first = several.words[0]
    terms = tuple(word.term for word in several.words)
    places = tuple(word.place - first.place for word in several.words)
    return Phrase(terms, places, slop, first.place, first.field, first.boost)


def _operand(sign: str, node: Node | _Several | None) -> Node | None:
    """An operand of AND or OR; a plus has no meaning there."""
    one = _one(node)
    return Not(one) if sign == "-" and one is not None else one


def _times(node: Node | _Several, boost: float) -> Node | _Several | None:
    """A node whose words count `boost` times as much; None if it has none."""
    if isinstance(node, _Several):
        return _Several(tuple(word._replace(boost=word.boost * boost) for word in node.words))
    if isinstance(node, Word | Phrase | Prefix | Near):
        return node._replace(boost=node.boost * boost)
    if isinstance(node, And | Or):
        return type(node)(tuple(_times(part, boost) or part for part in node.parts))  # type: ignore[misc]
    if isinstance(node, Group):
        required, optional = (
            tuple(_times(part, boost) or part for part in parts) for parts in (node.required, node.optional)
        )
        return Group(required, optional, node.excluded)  # type: ignore[arg-type]
    return None
