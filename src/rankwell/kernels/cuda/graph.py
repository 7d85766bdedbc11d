"""Launches recorded once and replayed: the host then makes one launch instead of one for every kernel.

A recording contains addresses and sizes, so it is valid for calls of one size only. `size_class` rounds sizes up, so
that few recordings are needed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

_MOST_GRAPHS = 64
_SMALLEST_STEP = 32


def size_class(size: int) -> int:
    """`size` rounded up by at most an eighth, and to whole warps: 32, 64, ... 512, 576, ... 1024, 1152, ..."""
    step = max(_SMALLEST_STEP, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


class LaunchGraphs:
    """CUDA graphs by key, on their own stream, which waits for the default stream, as the default one waits for it.

    The first call of a key runs as it is (kernels compile, buffers grow), the second is recorded, and from then on the
    recording runs. One thread at a time.
    """

    def __init__(self) -> None:
        import cupy

        self.stream = cupy.cuda.Stream()
        self._graphs: OrderedDict[Hashable, Any] = OrderedDict()

    def run(self, key: Hashable, launch: Callable[[], None]) -> None:
        """Run what `launch` launches on the current stream; it must launch the same for the same key."""
        with self.stream:
            if key not in self._graphs:
                launch()
                self._graphs[key] = None
                if len(self._graphs) > _MOST_GRAPHS:
                    self._graphs.popitem(last=False)
                return
            self._graphs.move_to_end(key)
            if self._graphs[key] is None:
                self.stream.begin_capture()
                try:
                    launch()
                finally:
                    graph = self.stream.end_capture()
                self._graphs[key] = graph
            self._graphs[key].launch(self.stream)

    def clear(self) -> None:
        """Drop every recording: an address in them is no longer valid."""
        self._graphs.clear()
