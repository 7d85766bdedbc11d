"""Where slabs are: on the device, or on the host and sent to the device when they are needed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rankwell.errors import DeviceError

# Of the device's free memory, what slabs may take.
_MEMORY_SHARE = 0.9
_STAGED = 2


class SlabPlaces:
    """The slabs of all documents, as many of them on the device as fit.

    Parameters
    ----------
    slabs : uint8 (n_slabs, n_docs, 64), on the host
    room : int
        Bytes of device memory that they may take.

    Attributes
    ----------
    n_resident : how many of the first slabs stay on the device
    addresses : cupy uint64 (n_slabs,), where kernels find each slab; those after the resident ones share two places
    """

    def __init__(self, slabs: np.ndarray, room: int) -> None:
        import cupy

        n_slabs, slab_bytes = len(slabs), int(slabs[0].nbytes)
        self._host, self.n_slabs = slabs, n_slabs
        self.n_resident = n_slabs if n_slabs * slab_bytes <= room else room // slab_bytes - _STAGED
        if self.n_resident < 0:
            raise DeviceError(
                f"the device has no room for trees over {slabs.shape[1]} documents: two slabs take "
                f"{_STAGED * slab_bytes} bytes, {room} are free. Use device='cpu', or train on fewer documents."
            )
        self.resident = cupy.empty((self.n_resident, *slabs.shape[1:]), dtype=np.uint8)
        for number in range(self.n_resident):
            self.resident[number].set(slabs[number])
        places = [self.resident[number].data.ptr for number in range(self.n_resident)]
        if self.n_resident < n_slabs:
            self._stage(slabs)
            places += [self._staging[number % _STAGED].data.ptr for number in range(n_slabs - self.n_resident)]
        self.addresses = cupy.asarray(np.array(places, np.uint64))

    def _stage(self, slabs: np.ndarray) -> None:
        import cupy

        self._staging = [cupy.empty(slabs.shape[1:], dtype=np.uint8) for _ in range(_STAGED)]
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._ready, self._used = ([cupy.cuda.Event(disable_timing=True) for _ in range(_STAGED)] for _ in range(2))
        # Pinned, so that copies run at the same time as kernels and at the full speed of the bus.
        runtime = cupy.cuda.runtime
        runtime.hostRegister(slabs.ctypes.data, slabs.nbytes, 0)
        weakref.finalize(self, runtime.hostUnregister, slabs.ctypes.data)

    @property
    def streams(self) -> bool:
        """Whether some slabs are sent to the device again and again."""
        return self.n_resident < self.n_slabs

    def visit(self, wanted: Iterable[int], stream: Any, launch: Callable[[int, int], None]) -> None:
        """Call `launch` with ranges of slabs that are on the device then, all of `wanted` among them."""
        if self.n_resident:
            launch(0, self.n_resident)
        for slab in sorted(slab for slab in wanted if slab >= self.n_resident):
            place = (slab - self.n_resident) % _STAGED
            self._copies.wait_event(self._used[place])
            self._staging[place].set(self._host[slab], stream=self._copies)
            self._ready[place].record(self._copies)
            stream.wait_event(self._ready[place])
            launch(slab, slab + 1)
            self._used[place].record(stream)
