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
keep their place in a phrase. Common words are indexed, but as plain words they count only if the query, or the
parentheses that they are in, have no other words. What looks like Lucene's syntax and is not supported is an error, and
so is an operator that lacks its word or number, or has another one: ``oil^x``, ``"crude oil"~``, ``comp*~``,
``title: oil``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rankwell.index.query.leaves import CHUNK, LeafReader, Several, one_node, unescaped
from rankwell.index.query.tree import (
    And,
    Everything,
    Group,
    Near,
    Node,
    Not,
    Nothing,
    Or,
    Phrase,
    Prefix,
    Range,
    Word,
    both,
    has_words,
)
from rankwell.index.query.values import excludes_itself

if TYPE_CHECKING:
    from rankwell.index.schema import Schema
    from rankwell.index.text.analysis import Analysis

MOST_DEPTH = 50

_BLANKS = re.compile(r"\s*")
_SIGNS = re.compile(r"[+\-!]+")
_FIELD = re.compile(r'((?:\\.|[^\s"()\\^~:])+):')
_BOOST = re.compile(r'\^([^\s"()]*)')
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_DAY_AND_HOUR = re.compile(r"\d{4}-\d\d-\d\dT\d\d", re.ASCII)
_EXAMPLES = {"stream": "oil", "static": "[1 TO 5]", "date": "2024-05", "keyword": "value"}
_OPERATORS = {"AND": "AND", "&&": "AND", "OR": "OR", "||": "OR", "NOT": "NOT"}


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
    if isinstance(tree, Several):
        # Common words count in a query that has no other ones.
        tree = Group(optional=tree.words)
    if not tree.required and not tree.optional and not is_filter:
        # Only exclusions, or nothing at all.
        return Nothing(), parser.is_full
    return tree, parser.is_full


class _Parser(LeafReader):
    def clauses(self, field: str | None) -> Group | Several:
        """Clauses up to the end or a closing parenthesis; several words if they are common ones and nothing else."""
        required: list[Node] = []
        optional: list[Node] = []
        excluded: list[Node] = []
        common: list[Word] = []
        while not self._is_at_end():
            sign, node = self._clause(field)
            if not sign and isinstance(node, Word | Several):
                for word in (node,) if isinstance(node, Word) else node.words:
                    (common if self._is_common(word) else optional).append(word)
            elif node is not None and not isinstance(node, Several):
                needed = isinstance(node, Phrase) or not (has_words(node) or isinstance(node, Everything))
                (excluded if sign == "-" else required if sign == "+" or needed else optional).append(node)
        group = Group(tuple(required), tuple(optional), tuple(excluded))
        if not common or has_words(group):
            return group
        if group == Group():
            return Several(tuple(common), are_common=True)
        # Beside exclusions and filters they count: "the -oil" is not "-oil".
        return replace(group, optional=(*group.optional, *common))

    def _is_common(self, word: Word) -> bool:
        return word.term in self.analysis.common_terms and not word.field and word.boost == 1.0

    def _is_at_end(self) -> bool:
        self.at = _BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at == len(self.text) or self.text[self.at] == ")"

    def _clause(self, field: str | None) -> tuple[str, Node | Several | None]:
        """The next clause and its sign, which is empty if operators join it."""
        first = self._conjunction(field)
        alternatives = [first]
        while self._takes("OR"):
            alternatives.append(self._conjunction(field, "OR"))
        if len(alternatives) == 1:
            return first
        parts = [part for sign, node in alternatives if (part := _operand(sign, node)) is not None]
        return "", Or(tuple(parts)) if len(parts) > 1 else (parts[0] if parts else None)

    def _conjunction(self, field: str | None, after: str = "") -> tuple[str, Node | Several | None]:
        first = self._signed(field, after)
        operands = [first]
        while self._takes("AND"):
            operands.append(self._signed(field, "AND"))
        if len(operands) == 1:
            return first
        parts = [part for sign, node in operands if (part := _operand(sign, node)) is not None]
        return "", And(tuple(parts)) if len(parts) > 1 else (parts[0] if parts else None)

    def _signed(self, field: str | None, after: str) -> tuple[str, Node | Several | None]:
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
            if self.at == len(self.text) or self.text[self.at].isspace() or self.text[self.at] == ")":
                return "", None
        self.n_negations += sign == "-"
        node = self._boosted(field)
        self.n_negations -= sign == "-"
        return sign, one_node(node) if sign and isinstance(node, Several) else node

    def _is_clause_start(self) -> bool:
        return self.at == 0 or self.text[self.at - 1].isspace() or self.text[self.at - 1] == "("

    def _operator(self) -> str | None:
        """The operator at the current place, which is not passed."""
        return _OPERATORS.get(self.text[self.at : self._word_end()]) if self._is_clause_start() else None

    def _word_end(self) -> int:
        found = CHUNK.match(self.text, self.at)
        return self.at if found is None else found.end()

    def _takes(self, operator: str) -> bool:
        """Whether this operator is next; if so it is passed."""
        if self._is_at_end() or self._operator() != operator:
            return False
        self.at = self._word_end()
        return True

    def _boosted(self, field: str | None) -> Node | Several | None:
        start = self.at
        node = self._operand(field)
        if self.text[start] in "^~":
            return node  # without a word before it, as in ~5: it separates words
        if self.text.startswith("~", self.at):
            self.fail(self.at, 'a tilde needs one whole word, as in receive~, or a phrase, as in "crude oil"~3.')
        found = _BOOST.match(self.text, self.at)
        if found is None:
            return node
        if not _NUMBER.fullmatch(found[1]):
            self.fail(self.at, f"a boost is written ^ and a number, as in oil^2 or oil^0.5, got {found[0]!r}.")
        self.at = found.end()
        boost = float(found[1])
        if not 1e-6 <= boost <= 1e6:
            self.fail(found.start(), f"a boost must be between 0.000001 and 1000000, got {found[1]}.")
        boosted = None if node is None else _times(node, boost)
        if boosted is None and node is not None:
            self.fail(found.start(), "a boost needs words: ranges, keywords and * do not count in the score.")
        return boosted

    def _operand(self, field: str | None) -> Node | Several | None:
        if self.text[self.at] == "(":
            return self._parenthesis(field)
        name = self._passed_field(field)
        if name is None:
            return self._leaf(field)
        start = self.at
        if start == len(self.text) or self.text[start].isspace() or self.text[start] == ")":
            kind = None if self.schema is None else self.schema.kind_of(name)
            self.fail(
                start,
                f"field {name!r} has nothing after its colon: what it must have follows without a blank, as in "
                f"{name}:{_EXAMPLES[kind or 'stream']}.",
            )
        if self.text[start] == "(":
            return self._parenthesis(name)
        found = _FIELD.match(self.text, start)
        if found is not None and self.schema is not None and self.schema.kind_of(unescaped(found[1])) is not None:
            self.fail(start, f"field {name!r} is followed by another field, {unescaped(found[1])!r}: give one of them.")
        return self._leaf(name)

    def _passed_field(self, field: str | None) -> str | None:
        """The name of a field at the current place, which is passed with its colon; None if there is none."""
        found = _FIELD.match(self.text, self.at)
        if found is None or not self._is_field(unescaped(found[1]), found.end(), field):
            return None
        self.at = found.end()
        return unescaped(found[1])

    def _leaf(self, field: str | None) -> Node | Several | None:
        """What follows the name of a field, or stands without one."""
        if field is not None and self.schema is not None and self.schema.kind_of(field) != "stream":
            return self.value(field, self.schema)
        return self.phrase(field) if self.text[self.at] == '"' else self.chunk(field)

    def _parenthesis(self, field: str | None) -> Node | Several | None:
        start = self.at
        self.count("parentheses", start)
        self.depth += 1
        if self.depth > MOST_DEPTH:
            self.fail(start, f"parentheses are nested more than {MOST_DEPTH} deep.")
        self.at += 1
        group = self.clauses(field)
        if self.at == len(self.text):
            self.fail(start, "'(' is not closed.")
        self.at += 1
        self.depth -= 1
        if field is not None and isinstance(group, Group):
            self._refuse_contradictions(start, field, group)
        return None if group == Group() else group

    def _refuse_contradictions(self, start: int, field: str, group: Group) -> None:
        """Refuse values of which a document would need several, as ``year:(2010 2012)``: it has one number or date."""
        needed = both(*group.required)
        ranges = [part for part in (needed.parts if isinstance(needed, And) else (needed,)) if isinstance(part, Range)]
        own = [part for part in ranges if part.field == field]
        if own and excludes_itself(*own):
            self.fail(
                start,
                f"no document meets {field}:{self.text[start : self.at]}: it has one value of {field!r}, and all of "
                "these are required. Write OR between alternatives.",
            )

    def _is_field(self, name: str, after: int, field: str | None) -> bool:
        """Whether a name before a colon is a field. One that is not is an error, unless it is a time or an address.

        field : the one whose values are being read, None if there is none
        """
        if self.schema is not None and self.schema.kind_of(name) is not None:
            return True
        if name.isdigit() or self.text.startswith("//", after) or not re.search(r"\w", name):
            return False
        if after == len(self.text) or self.text[after].isspace():
            return False  # as in prose
        is_date = field is not None and self.schema is not None and self.schema.kind_of(field) == "date"
        if is_date and _DAY_AND_HOUR.search(name):
            return False
        known = ", ".join(self.schema.fields()) if self.schema is not None else ""
        return self.fail(self.at, f"there is no field {name!r}{f'; the fields are {known}' if known else ''}.")


def _operand(sign: str, node: Node | Several | None) -> Node | None:
    """An operand of AND or OR; a plus has no meaning there."""
    one = one_node(node)
    return Not(one) if sign == "-" and one is not None else one


def _times(node: Node | Several, boost: float) -> Node | Several | None:
    """A node whose words count `boost` times as much; None if it has none."""
    if isinstance(node, Several):
        return node._replace(words=tuple(replace(word, boost=word.boost * boost) for word in node.words))
    if isinstance(node, Word | Phrase | Prefix | Near):
        return replace(node, boost=node.boost * boost)
    if isinstance(node, And | Or):
        return type(node)(tuple(_times(part, boost) or part for part in node.parts))  # type: ignore[misc]
    if isinstance(node, Group):
        required, optional = (
            tuple(_times(part, boost) or part for part in parts) for parts in (node.required, node.optional)
        )
        return Group(required, optional, node.excluded)  # type: ignore[arg-type]
    return None
