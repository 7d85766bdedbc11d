"""Free-form expressions over features: our own parser, to a program for a stack machine. No code is ever executed.

    expression := sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
    sum        := product {("+" | "-") product}
    product    := sign {("*" | "/") sign}
    sign       := ["-" | "+"] sign | power
    power      := atom ["^" sign]                            2^-3 and 2^3^2 = 2^9 work, -2^2 is -(2^2)
    atom       := number | feature | function "(" expression {"," expression} ")" | "(" expression ")"

A feature is written by its name; a name that is not a plain word is quoted: "BM25 (title)". Numbers are float64 and
follow IEEE 754: 1/0 is infinite, log(-1) is NaN. A comparison is 1 or 0, and 0 with a missing value (!= is 1).
`if(c, a, b)` is a where c is neither 0 nor missing. min and max of a missing value are missing; `missing(x)` is 1 where
x is missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankwell.errors import ParameterError
from rankwell.kernels.scoring.rules import LARGEST_STACK, Operation

LONGEST_TEXT = 10_000
DEEPEST_NESTING = 40

_COMPARISONS = {
    "<": Operation.LESS,
    "<=": Operation.LESS_EQUAL,
    ">": Operation.GREATER,
    ">=": Operation.GREATER_EQUAL,
    "==": Operation.EQUAL,
    "!=": Operation.NOT_EQUAL,
}
# name: instruction, how many arguments; min and max take more, two at a time.
FUNCTIONS = {
    "min": (Operation.MINIMUM, 2),
    "max": (Operation.MAXIMUM, 2),
    "abs": (Operation.ABSOLUTE, 1),
    "log": (Operation.LOG, 1),
    "log1p": (Operation.LOG1P, 1),
    "exp": (Operation.EXP, 1),
    "sqrt": (Operation.SQRT, 1),
    "pow": (Operation.POWER, 2),
    "if": (Operation.IF, 3),
    "missing": (Operation.MISSING, 1),
}
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<word>[^\W\d]\w*(?:\.\w+)*)
    |"(?P<quoted>[^"]*)"
    |(?P<sign><=|>=|==|!=|[-+*/^()<>,]))""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Expression:
    """A parsed expression: instructions in postfix order.

    operation : int32 (n,), an `Operation` each; operand : int32 (n,), a constant's or feature's number
    constants : float64 (n_constants,); stack_size : the most numbers on the stack at a time
    """

    text: str
    operation: np.ndarray
    operand: np.ndarray
    constants: np.ndarray
    stack_size: int


def parse_expression(text: str, feature_names: Sequence[str]) -> Expression:
    """The program of `text` over the features of these names.

    Raises
    ------
    ParameterError
        If the text is not an expression; it names the column (from 1).
    """
    return parse_expressions([text], feature_names)[0]


def parse_expressions(texts: Sequence[str], feature_names: Sequence[str]) -> list[Expression]:
    """The programs of several texts over the same features."""
    feature_number = {name: number for number, name in enumerate(feature_names)}
    return [_parse(text, feature_number) for text in texts]


def _parse(text: str, feature_number: Mapping[str, int]) -> Expression:
    if len(text) > LONGEST_TEXT:
        raise ParameterError(f"an expression may have at most {LONGEST_TEXT} characters, this one has {len(text)}.")
    return _Parser(text, feature_number).parse()


def names_in(text: str) -> list[str]:
    """The names of features that `text` mentions, each once, in order; the text need not be right otherwise."""
    tokens = _Parser(text, {}).tokens
    following = [*tokens[1:], tokens[-1]]
    names = (
        token.text
        for token, after in zip(tokens, following, strict=True)
        if token.kind == "quoted" or (token.kind == "word" and (after.kind, after.text) != ("sign", "("))
    )
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    column: int


class _Parser:
    def __init__(self, text: str, feature_number: Mapping[str, int]) -> None:
        self._text = text
        self._feature_number = feature_number
        self.tokens = list(self._split())
        self._place = 0
        self._nesting = 0
        self._program: list[tuple[Operation, int]] = []
        self._constants: list[float] = []

    def parse(self) -> Expression:
        self._comparison()
        if self._peek().kind != "end":
            raise self._error(self._peek(), "expected an operator")
        return Expression(
            self._text,
            np.array([operation for operation, _ in self._program], dtype=np.int32),
            np.array([operand for _, operand in self._program], dtype=np.int32),
            np.array(self._constants, dtype=np.float64),
            self._stack_size(),
        )

    def _split(self) -> Sequence[_Token]:
        tokens, place = [], 0
        end = len(self._text.rstrip())
        while place < end:
            match = _TOKEN.match(self._text, place)
            if match is None:
                place += len(self._text[place:]) - len(self._text[place:].lstrip())
                wrong = _Token("wrong", self._text[place], place + 1)
                remedy = "the quote is not closed" if wrong.text == '"' else "this character has no meaning here"
                raise self._error(wrong, remedy)
            kind = str(match.lastgroup)
            start = match.start(kind) - (kind == "quoted")
            tokens.append(_Token(kind, match.group(kind), start + 1))
            place = match.end()
        tokens.append(_Token("end", "", end + 1))
        return tokens

    def _peek(self) -> _Token:
        return self.tokens[self._place]

    def _take(self) -> _Token:
        token = self.tokens[self._place]
        self._place += token.kind != "end"
        return token

    def _at(self, *signs: str) -> bool:
        return self._peek().kind == "sign" and self._peek().text in signs

    def _expect(self, sign: str) -> None:
        if not self._at(sign):
            raise self._error(self._peek(), f"expected {sign!r}")
        self._take()

    def _emit(self, operation: Operation, operand: int = 0) -> None:
        self._program.append((operation, operand))

    def _comparison(self) -> None:
        self._sum()
        if self._at(*_COMPARISONS):
            operation = _COMPARISONS[self._take().text]
            self._sum()
            self._emit(operation)
            if self._at(*_COMPARISONS):
                raise self._error(self._peek(), "a comparison of a comparison needs parentheses")

    def _sum(self) -> None:
        self._product()
        while self._at("+", "-"):
            operation = Operation.ADD if self._take().text == "+" else Operation.SUBTRACT
            self._product()
            self._emit(operation)

    def _product(self) -> None:
        self._sign()
        while self._at("*", "/"):
            operation = Operation.MULTIPLY if self._take().text == "*" else Operation.DIVIDE
            self._sign()
            self._emit(operation)

    def _sign(self) -> None:
        negative = False
        while self._at("-", "+"):
            negative ^= self._take().text == "-"
        self._atom()
        if self._at("^"):
            self._take()
            self._deeper(self._sign)
            self._emit(Operation.POWER)
        if negative:
            self._emit(Operation.NEGATE)

    def _atom(self) -> None:
        token = self._take()
        if token.kind == "number":
            self._number(token)
        elif token.kind == "word" and self._at("("):
            self._call(token)
        elif token.kind in ("word", "quoted"):
            self._feature(token)
        elif token.kind == "sign" and token.text == "(":
            self._deeper(self._comparison)
            self._expect(")")
        else:
            raise self._error(token, "expected a number, a feature or a function")

    def _number(self, token: _Token) -> None:
        value = float(token.text)
        if not math.isfinite(value):
            raise self._error(token, "this number is too large")
        self._constants.append(value)
        self._emit(Operation.CONSTANT, len(self._constants) - 1)

    def _feature(self, token: _Token) -> None:
        if token.text not in self._feature_number:
            raise self._error(token, "there is no feature of this name")
        self._emit(Operation.FEATURE, self._feature_number[token.text])

    def _call(self, token: _Token) -> None:
        if token.text not in FUNCTIONS:
            raise self._error(token, f"the functions are {', '.join(FUNCTIONS)}")
        operation, wanted = FUNCTIONS[token.text]
        takes_more = token.text in ("min", "max")
        self._expect("(")
        given = 0
        while given == 0 or self._at(","):
            if given:
                self._take()
            self._deeper(self._comparison)
            given += 1
            if takes_more and given > 1:
                self._emit(operation)
        self._expect(")")
        if given < wanted or (given > wanted and not takes_more):
            more = " or more" if takes_more else ""
            raise self._error(token, f"it takes {wanted}{more} arguments, not {given}")
        if not takes_more:
            self._emit(operation)

    def _deeper(self, part: Callable[[], None]) -> None:
        self._nesting += 1
        if self._nesting > DEEPEST_NESTING:
            raise self._error(self._peek(), f"parentheses may be nested {DEEPEST_NESTING} deep")
        part()
        self._nesting -= 1

    def _stack_size(self) -> int:
        size = largest = 0
        arguments = {Operation.IF: 3} | dict(FUNCTIONS.values())
        for operation, _ in self._program:
            if operation <= Operation.FEATURE:
                size += 1
            elif operation != Operation.NEGATE:
                size -= arguments.get(operation, 2) - 1
            largest = max(largest, size)
        if largest > LARGEST_STACK:
            raise ParameterError(
                f"the expression {self._text[:60]!r} holds {largest} unfinished numbers at a time, at most "
                f"{LARGEST_STACK} are allowed. Reorder its parts, or split it into several inputs."
            )
        return largest

    def _error(self, token: _Token, remedy: str) -> ParameterError:
        got = "the end" if token.kind == "end" else repr(token.text)
        start = max(0, token.column - 31)
        around = self._text[start : token.column + 30]
        return ParameterError(f"expression {around!r}, column {token.column}: {remedy}, got {got}.")
