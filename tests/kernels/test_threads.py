"""The number of threads holds for one block and is restored."""

import numba
import pytest

from rankwell import ParameterError
from rankwell.kernels.threads import available_cores, kernel_threads


def test_threads_are_set_and_restored_even_after_an_error():
    before = numba.get_num_threads()
    with kernel_threads(1) as number:
        assert number == numba.get_num_threads() == 1
    assert numba.get_num_threads() == before
    with pytest.raises(RuntimeError, match="on purpose"), kernel_threads(1):
        raise RuntimeError("on purpose")
    assert numba.get_num_threads() == before


@pytest.mark.parametrize("n_jobs", [None, -1, 10_000])
def test_every_core_and_no_more(n_jobs):
    with kernel_threads(n_jobs) as number:
        assert number == numba.config.NUMBA_NUM_THREADS


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_nonsense_is_refused(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs must be"), kernel_threads(n_jobs):
        pass


def test_available_cores():
    assert available_cores() >= 1
