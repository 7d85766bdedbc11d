"""Expressions: what they are worth by hand, and an error with its column for what is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwell.errors import ParameterError
from rankwell.kernels.scoring.reference import run_program
from rankwell.kernels.scoring.rules import LARGEST_STACK
from rankwell.scoring.expression import LONGEST_TEXT, parse_expression

NAMES = ("a", "b", "BM25 (title)", "body.tf")


def value(text, row=(2.0, 3.0, 5.0, 7.0)):
    program = parse_expression(text, NAMES)
    return run_program(program.operation, program.operand, program.constants, np.array(row))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("a - b - 1", 2 - 3 - 1),
        ("12 / b / a", 2),
        ("-a^2", -4),
        ("2^3^2", 512),
        ("2^-1", 0.5),
        ("--a", 2),
        ('"BM25 (title)" + body.tf', 12),
        ("min(a, b, 1.5) + max(a, b)", 1.5 + 3),
        ("if(a < b, 10, 20)", 10),
        ("if(a == b, 10, 20)", 20),
        ("(a < b) + (a <= 2) + (a != b)", 3),
        ("log(exp(a)) + sqrt(9) + abs(0 - 4) + log1p(0)", 2 + 3 + 4 + 0),
        ("pow(a, 10)", 1024),
        (".5 + 1.e1 + 2E-1", 0.5 + 10 + 0.2),
        ("missing(a)", 0),
    ],
)
def test_values(text, expected):
    assert value(text) == pytest.approx(expected, rel=1e-15)


def test_missing_values():
    missing = (np.nan, 3.0, 5.0, 7.0)
    assert np.isnan(value("a + b", missing))
    assert value("a < b", missing) == 0
    assert value("missing(a)", missing) == 1
    assert value("if(a, 1, 2)", missing) == 2
    assert np.isnan(value("min(a, b)", missing))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", r"column 1: expected a number, a feature or a function, got the end"),
        ("a +", r"column 4: expected a number"),
        ("a b", r"column 3: expected an operator, got 'b'"),
        ("a + c", r"column 5: there is no feature of this name, got 'c'"),
        ("a < b < 3", r"column 7: a comparison of a comparison needs parentheses"),
        ("min(a)", r"column 1: it takes 2 or more arguments, not 1"),
        ("log(a, b)", r"column 1: it takes 1 arguments, not 2"),
        ("eval(a)", r"column 1: the functions are min, max"),
        ("(a + b", r"column 7: expected '\)', got the end"),
        ("a + $", r"column 5: this character has no meaning here, got '\$'"),
        ('a + "b', r"column 5: the quote is not closed"),
        ("1e999", r"column 1: this number is too large"),
        ("a.__class__", r"column 1: there is no feature"),
        ("a = b", r"column 3: this character has no meaning"),
    ],
)
def test_errors_name_the_column(text, complaint):
    with pytest.raises(ParameterError, match=complaint):
        parse_expression(text, NAMES)


def test_limits():
    with pytest.raises(ParameterError, match="40 deep"):
        parse_expression("(" * 41 + "a" + ")" * 41, NAMES)
    with pytest.raises(ParameterError, match="40 deep"):
        parse_expression("a^" * 60 + "a", NAMES)
    assert parse_expression("-" * 5000 + "a", NAMES).stack_size == 1
    with pytest.raises(ParameterError, match=f"may have at most {LONGEST_TEXT} characters"):
        parse_expression("a+" * LONGEST_TEXT + "a", NAMES)
    deep = "+(".join(["a"] * (LARGEST_STACK + 1)) + ")" * LARGEST_STACK
    with pytest.raises(ParameterError, match="33 unfinished numbers"):
        parse_expression(deep, NAMES)


@given(st.text(alphabet='ab ()+-*/^<>=!,."012eminlogf', max_size=40))
def test_any_text_is_an_expression_or_a_clear_error(text):
    complaint = ""
    try:
        program = parse_expression(text, NAMES)
    except ParameterError as error:
        complaint = str(error)
    if complaint:
        assert "column" in complaint
    else:
        assert isinstance(run_program(program.operation, program.operand, program.constants, np.ones(4)), float)
