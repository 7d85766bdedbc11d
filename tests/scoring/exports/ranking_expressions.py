"""Vespa's ranking expressions, as far as exported rank profiles use them, evaluated by the rules of Vespa's reference.

Arithmetic is IEEE 754: a comparison with NaN is false. Functions of the profile are referred to by their names, without
parentheses: Vespa's grammar has no empty list of arguments, and arguments are names and numbers, not expressions.
"""

import math
import operator
import re

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(<=|>=|==|!=|[-+*/^()<>,!\[\]]))")
_COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _divide(a, b):
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def _or_nan(function):
    def call(*arguments):
        try:
            found = function(*arguments)
        except (ValueError, ZeroDivisionError):
            return -math.inf if function is math.log and arguments[0] == 0 else math.nan
        except OverflowError:
            return math.inf
        return found if isinstance(found, float | int) else math.nan

    return call


_BUILT_IN = {
    "isNan": lambda x: float(math.isnan(x)),
    "fabs": abs,
    "floor": _or_nan(math.floor),
    "log": _or_nan(math.log),
    "exp": _or_nan(math.exp),
    "sqrt": _or_nan(math.sqrt),
    "pow": _or_nan(math.pow),
    "min": min,
    "max": max,
    "tanh": math.tanh,
    "relu": lambda x: max(x, 0.0),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
}


class RankProfile:
    """A profile's functions and phases, read from its text."""

    def __init__(self, text):
        body = re.sub(r"#.*", "", text)
        self.name = re.search(r"rank-profile (\w+) inherits default", body)[1]
        entry = r"(function (\w+)\(\)|first-phase|second-phase) \{\s*(?:rerank-count: (\d+)\s*)?"
        expression = r"expression(?:: ([^\n]*)|\s*\{([^{}]*)\})\s*\}"
        self.functions, self.phases, self.rerank_count = {}, {}, None
        for found in re.finditer(entry + expression, body):
            tokens = [token for groups in _TOKEN.findall(found[4] or found[5]) for token in groups if token]
            if found[2]:
                self.functions[found[2]] = tokens
            else:
                self.phases[found[1]] = tokens
                self.rerank_count = int(found[3]) if found[3] else self.rerank_count
        # Nothing but what was read.
        rest = re.sub(entry + expression, "", body)
        assert re.fullmatch(r"\s*rank-profile \w+ inherits default \{\s*\}\s*", rest), rest

    def score(self, rank_features, phase="first-phase"):
        """The score of a document: rank_features by text, as "attribute(f1)"."""
        return _Evaluation(self, rank_features).value(self.phases[phase])


class _Evaluation:
    def __init__(self, profile, rank_features):
        self._profile, self._features = profile, rank_features
        self._tokens, self._place = [], 0

    def value(self, tokens):
        outer, self._tokens, self._place = (self._tokens, self._place), tokens, 0
        found = float(self._comparison())
        assert self._place == len(tokens), tokens[self._place :]
        self._tokens, self._place = outer
        return found

    def _peek(self):
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self):
        token = self._peek()
        self._place += 1
        return token

    def _expect(self, token):
        assert self._take() == token

    def _comparison(self):
        value = self._sum()
        if self._peek() == "in":
            self._take()
            self._expect("[")
            members = []
            while self._peek() != "]":
                members.append(float(self._take()))
                if self._peek() == ",":
                    self._take()
            self._take()
            return float(value in members)
        if self._peek() in _COMPARISONS:
            return float(_COMPARISONS[self._take()](value, self._sum()))
        return value

    def _sum(self):
        value = self._product()
        while self._peek() in ("+", "-"):
            sign = self._take()
            other = self._product()
            value = value + other if sign == "+" else value - other
        return value

    def _product(self):
        value = self._unary()
        while self._peek() in ("*", "/"):
            sign = self._take()
            other = self._unary()
            value = value * other if sign == "*" else _divide(value, other)
        return value

    def _unary(self):
        if self._peek() == "-":
            self._take()
            return -self._unary()
        if self._peek() == "!":
            self._take()
            return float(not self._unary())
        return self._atom()

    def _atom(self):
        token = self._take()
        if token == "(":
            value = self._comparison()
            self._expect(")")
            return value
        if re.match(r"\d", token):
            return float(token)
        if self._peek() != "(":
            return self.value(self._profile.functions[token])
        if token in ("attribute", "bm25"):
            self._take()
            name = self._take()
            self._expect(")")
            return self._features[f"{token}({name})"]
        return self._call(token)

    def _call(self, name):
        self._expect("(")
        values = []
        while self._peek() != ")":
            values.append(self._comparison())
            if self._peek() == ",":
                self._take()
        self._take()
        if name == "if":
            condition, value, otherwise = values
            return value if condition else otherwise
        return _BUILT_IN[name](*values)
