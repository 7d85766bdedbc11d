"""Parts of kernels: compiled with the kernels that call them, without counting references where nothing is made."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numba import types
from numba.core.compiler import Flags

from rankwell.kernels.cpu.compilation import inner_kernel, kernel
from rankwell.kernels.cpu.compiler import PartLibrary


@inner_kernel
def _positive(x):
    if x < 0:
        raise ValueError("negative")
    return x


@inner_kernel(forceinline=True)
def _plus_one(x):
    return _positive(x) + 1


@kernel
def _plus_two(x):
    return _plus_one(_plus_one(x))


def test_a_kernel_has_the_machine_code_of_its_parts():
    assert _plus_two(3) == 5
    # The kernel may have come from the cache, which has no parts.
    _plus_one.compile((types.int64,))
    for part in (_positive, _plus_one):
        (result,) = part.overloads.values()
        assert isinstance(result.library, PartLibrary)
        with pytest.raises(ValueError, match="object caching not enabled"):
            result.library._get_compiled_object()


def test_an_error_in_a_part_reaches_python():
    with pytest.raises(ValueError, match="negative"):
        _plus_two(-1)


def test_a_part_of_an_inlined_part_is_not_inlined_by_force():
    _plus_one.compile((types.int64,))
    for part, is_inlined in ((_plus_one, True), (_positive, False)):
        (result,) = part.overloads.values()
        assert ("alwaysinline" in result.library.get_llvm_str()) == is_inlined, part


def test_options_are_compared_with_their_defaults():
    plain, same, other = Flags(), Flags(), Flags()
    same.no_compile = False
    other.no_compile = True
    assert plain == same
    assert hash(plain) == hash(same)
    assert plain != other
    assert plain != "no options"
    assert {plain: 1}.get(other) is None


def _longest(rows, lengths):
    """The sum of the longest view: one that is taken in a branch, which Numba cannot free from counting."""
    kept = rows[0, : lengths[0]]
    for row in range(len(rows)):
        view = rows[row, : lengths[row]]
        if len(view) > len(kept):
            kept = view
    total = 0.0
    for value in kept:
        total += value
    return total


_counting, _uncounted = kernel(_longest), kernel(_longest, allocates=False)


def _n_counting_calls(function):
    """Calls that count references, in the function's own code as opposed to its entry point for Python."""
    code = function.inspect_llvm((types.float64[:, ::1], types.int64[::1]))
    (own,) = [part for part in code.split("define ")[1:] if "@_ZN" in part[:60] and "cpython" not in part[:60]]
    return own.count("@NRT_incref") + own.count("@NRT_decref")


def test_views_are_not_counted_if_nothing_is_allocated(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKWELL_CACHE_DIR", str(tmp_path))  # only what is compiled here can be inspected
    rows, lengths = np.random.default_rng(0).normal(size=(50, 4)), np.arange(50) % 4
    before = [sys.getrefcount(array) for array in (rows, lengths)]
    assert _uncounted(rows, lengths) == _counting(rows, lengths) == _longest(rows, lengths)
    assert [sys.getrefcount(array) for array in (rows, lengths)] == before
    assert _n_counting_calls(_counting) > 0
    assert _n_counting_calls(_uncounted) == 0
