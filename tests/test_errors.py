"""Errors: a message in Python's words, and the same in those of a caller with other names for parameters."""

from __future__ import annotations

import pickle

import pytest

from rankwell.errors import DataError, NotFittedError, Parameter, ParameterError, RankwellError


def shouted(parameter: Parameter) -> str | None:
    """Another naming: capitals, but for what is called 'absent'."""
    return None if parameter.name == "absent" else str(parameter).upper()


def test_a_wrong_parameter_begins_the_message():
    error = ParameterError("must be 1 or more, got 0.", parameter="k")
    assert str(error) == "k must be 1 or more, got 0."
    assert error.parameter == "k"
    assert error.in_words_of(shouted) == "K must be 1 or more, got 0."


def test_a_parameter_anywhere_with_a_value():
    error = DataError("line 3 is bad: pass ", Parameter("on_bad_line", "skip"), " to leave it out.")
    assert str(error) == "line 3 is bad: pass on_bad_line='skip' to leave it out."
    assert error.in_words_of(shouted) == "line 3 is bad: pass ON_BAD_LINE='SKIP' to leave it out."
    assert error.parameter is None


def test_a_parameter_that_the_caller_does_not_have():
    assert ParameterError("is wrong.", parameter="absent").in_words_of(shouted) == "absent is wrong."
    error = DataError("rename it", (", or pass ", Parameter("absent")), ".")
    assert str(error) == "rename it, or pass absent."
    assert error.in_words_of(shouted) == "rename it."


def test_text_is_never_taken_for_a_parameter():
    assert DataError("k of {k} is k: k={k}").in_words_of(shouted) == "k of {k} is k: k={k}"


@pytest.mark.parametrize("kind", [DataError, ParameterError, NotFittedError, RankwellError])
def test_it_survives_pickling(kind):
    error = pickle.loads(pickle.dumps(kind("must be 1.", parameter="k")))
    assert type(error) is kind
    assert str(error) == "k must be 1."
    assert error.in_words_of(shouted) == "K must be 1."
