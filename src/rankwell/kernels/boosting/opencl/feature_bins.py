"""Bins of a training run on an OpenCL device: arrays that stay there, and blocks that pass through in every round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rankwell.kernels.boosting.bin_placement import BinPlacement
from rankwell.kernels.opencl.page_locked import page_locked_copy


class FeatureBins:
    """Bins by feature.

    Parameters
    ----------
    queue : pyopencl.CommandQueue
        In order; the kernels that read bins are queued here.
    bins : uint8 (n_features, stride)
        Not referred to afterwards: what does not stay on the device is copied.
    placement : BinPlacement

    Attributes
    ----------
    resident : list of (range, pyopencl.Buffer)
        The features of each array that stays on the device, and their bins.
    column : pyopencl.Buffer or None
        A place for the bins of one feature, which kernels read where not all bins are in one array.
    """

    def __init__(self, queue: Any, bins: np.ndarray, placement: BinPlacement) -> None:
        import pyopencl

        self._opencl: Any = pyopencl
        self._queue = queue
        flags = pyopencl.mem_flags
        kept = flags.READ_ONLY | flags.COPY_HOST_PTR
        self.resident = [
            (features, pyopencl.Buffer(queue.context, kept, hostbuf=_rows(bins, features)))
            for features in placement.resident
        ]
        self.column: Any = None
        if placement.streamed or len(placement.resident) > 1:
            self.column = pyopencl.Buffer(queue.context, flags.READ_WRITE, bins.shape[1])
        self._blocks = [(features, page_locked_copy(queue, _rows(bins, features))) for features in placement.streamed]
        self._used: list[list[Any]] = [[], []]
        self._sent: list[Any] = []
        if self._blocks:
            # Transfers have a queue of their own, so that they run at the same time as kernels.
            self._transfers = pyopencl.CommandQueue(queue.context)
            longest = self._blocks[0][1].nbytes
            self._staged = [pyopencl.Buffer(queue.context, flags.READ_ONLY, longest) for _ in range(2)]

    @property
    def streams(self) -> bool:
        """Whether some features pass through the device in every round."""
        return bool(self._blocks)

    def arrays(self) -> Iterator[tuple[range, Any]]:
        """Every feature, array by array: kernels that are queued before the next step may read this one's.

        A block is sent while kernels read the one before.
        """
        yield from self.resident
        # PyOpenCL waits for a transfer when its event is freed: those of the round before have ended.
        self._sent = []
        for number, (features, block) in enumerate(self._blocks):
            side = number % 2
            sent = self._opencl.enqueue_copy(
                self._transfers, self._staged[side], block, is_blocking=False, wait_for=self._used[side]
            )
            self._transfers.flush()
            self._sent.append(sent)
            self._opencl.enqueue_barrier(self._queue, wait_for=[sent])
            yield features, self._staged[side]
            self._used[side] = [self._opencl.enqueue_marker(self._queue)]
            # A queue may wait for another's event only once that has been submitted.
            self._queue.flush()

    def send_column(self, feature: int) -> None:
        """Copy a feature that is not resident to `column`."""
        for features, block in self._blocks:
            if feature in features:
                self._opencl.enqueue_copy(self._queue, self.column, block[feature - features.start])

    def read_column(self, feature: int, column: np.ndarray) -> None:
        """Copy a feature to the host's array `column`, uint8 (stride,)."""
        for features, array in self.resident:
            if feature in features:
                offset = (feature - features.start) * column.nbytes
                self._opencl.enqueue_copy(self._queue, column, array, src_offset=offset)
        for features, block in self._blocks:
            if feature in features:
                column[:] = block[feature - features.start]


def _rows(bins: np.ndarray, features: range) -> np.ndarray:
    return np.ascontiguousarray(bins[features.start : features.stop])
