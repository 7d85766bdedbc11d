"""Compiled functions as values: how a kernel is handed the loss it calls.

A pair of the same function in a tuple is what Numba takes for a function value (one alone would be compiled into the
caller). Numba warns that this is young; the tests hold it to what is used here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core.errors import NumbaExperimentalFeatureWarning


@contextmanager
def allow_function_values() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        yield
