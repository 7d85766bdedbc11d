"""Kernels with every index checked. `make test-slow` runs all tests of kernels this way; here is what that rests on."""

import os
import subprocess
import sys

from tests.conftest import CHECKOUT


def test_indices_are_checked_if_and_only_if_asked():
    """The cache has both forms of a kernel: neither is taken for the other."""
    for value, said in (("0", "not checked"), ("1", "checked"), ("0", "not checked")):
        environment = {**os.environ, "NUMBA_BOUNDSCHECK": value}
        command = [sys.executable, "-m", "tests.kernels.bounds_checked"]
        run = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, env=environment, check=False)
        assert (run.returncode, run.stdout.strip()) == (0, said), run.stderr[-2000:]
