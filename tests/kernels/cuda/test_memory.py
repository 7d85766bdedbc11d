"""What happens when a CUDA device's memory is not enough: an error of ours, with the sizes."""

import sys
import types

import pytest

from rankwell import DeviceError
from rankwell.kernels.cuda.memory import free_bytes
from rankwell.kernels.device import memory_errors
from rankwell.kernels.device_report import report_device


@pytest.fixture
def pretended_cupy(monkeypatch):
    """As much of CuPy as speaks of memory."""

    class OutOfMemoryError(MemoryError):
        pass

    runtime = types.SimpleNamespace(memGetInfo=lambda: (1000, 5000))
    memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    pool = types.SimpleNamespace(free_bytes=lambda: 24)
    cupy = types.ModuleType("cupy")
    cupy.cuda = types.SimpleNamespace(runtime=runtime, memory=memory)
    cupy.get_default_memory_pool = lambda: pool
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return cupy


def test_what_the_pool_keeps_is_free(pretended_cupy):
    assert free_bytes() == 1024


def test_running_out_of_memory_is_a_device_error_with_the_sizes(pretended_cupy):
    expected = r"cannot train RankSVM: Out of memory allocating 4,096 bytes\. 1024 bytes are free\. Use device='cpu'"
    with pytest.raises(DeviceError, match=expected), memory_errors("cuda", "train RankSVM"):
        raise pretended_cupy.cuda.memory.OutOfMemoryError("Out of memory allocating 4,096 bytes.")


@pytest.mark.gpu
@pytest.mark.skipif(not report_device("cuda").usable, reason=report_device("cuda").description)
def test_an_array_larger_than_the_device():
    import cupy

    with pytest.raises(DeviceError, match=r"cannot count: .* bytes are free"), memory_errors("cuda", "count"):
        cupy.empty(2**45)
