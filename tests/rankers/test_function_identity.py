"""What tells functions apart."""

from __future__ import annotations

import functools
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from rankwell.errors import ParameterError
from rankwell.rankers.function_identity import function_identity

STEEPNESS = 1.0


def identity(function) -> str:
    return function_identity(function, "loss")


def scaled(factor):
    def loss(labels, scores, query_ptr):
        return factor * (scores - labels), np.ones(len(labels))

    return loss


def steep(labels, scores, query_ptr):
    return STEEPNESS * (scores - labels), np.ones(len(labels))


def calling(labels, scores, query_ptr):
    return steep(labels, scores, query_ptr)


class Power:
    def __init__(self, exponent):
        self.exponent = exponent

    def __call__(self, labels, scores, query_ptr):
        return (scores - labels) ** self.exponent, np.ones(len(labels))

    def loss(self, labels, scores, query_ptr):
        return self(labels, scores, query_ptr)


def test_the_same_function_has_the_same_identity():
    assert identity(scaled(2.0)) == identity(scaled(2.0))
    assert identity(scaled(np.arange(3))) == identity(scaled(np.arange(3)))
    assert identity(Power(2)) == identity(Power(2))
    assert identity(Power(2).loss) == identity(Power(2).loss)


def test_other_functions_have_others(monkeypatch):
    lambdas = [lambda labels, scores, ptr: (scores, labels), lambda labels, scores, ptr: (labels, scores)]
    constants = [lambda labels, scores, ptr: (scores, 2), lambda labels, scores, ptr: (scores, 3)]
    defaults = [lambda labels, scores, ptr, c=2: (scores, c), lambda labels, scores, ptr, c=3: (scores, c)]
    methods = [Power(2), Power(3), Power(2).loss, Power(3).loss]
    partial = [functools.partial(steep, query_ptr=None), functools.partial(steep, query_ptr=0)]
    inside = [scaled(2.0), scaled(3.0), scaled(np.arange(2)), scaled(np.arange(3))]
    everything = [*lambdas, *constants, *defaults, *methods, *partial, *inside, steep, calling]
    found = {identity(function) for function in everything}
    assert len(found) == len(everything)
    monkeypatch.setitem(globals(), "STEEPNESS", 2.0)
    assert identity(steep) not in found
    assert identity(calling) not in found


def test_it_is_the_same_in_another_process(tmp_path):
    (tmp_path / "own.py").write_text(
        textwrap.dedent(
            """
            import numpy as np
            def helper(x, kinds=frozenset({"a", "b", "c"})):
                return helper(x - 1) if x > 0 else {"a", "b"}
            loss = lambda labels, scores, ptr: (helper(scores), np.ones(3))
            """
        )
    )
    program = (
        "import own; from rankwell.rankers.function_identity import function_identity as f; print(f(own.loss, 'l'))"
    )
    found = {
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 64


def test_what_cannot_be_told_is_refused():
    with pytest.raises(ParameterError, match=r"loss is <function .* Use a function .* or leave out checkpoint\."):
        identity(scaled(threading.Lock()))

    def without_a_value():
        later = 1

        def loss(labels, scores, query_ptr):
            return later  # noqa: F821

        del later
        return loss

    with pytest.raises(ParameterError, match=r"\(Cell is empty\)"):
        identity(without_a_value())
