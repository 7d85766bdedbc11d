"""Short pauses: what the interpreter of a server does so that none of its threads waits long for the others.

Two things stop the thread that answers connections. The interpreter lock: it waits until the thread that ranks gives it
up. And garbage collection, which holds the lock: one of 100,000 objects, which suits a command, takes 10 to 40 ms, and
so does one of all objects that a server has after a while. So collections are small and frequent, what was loaded at
the start is not looked at again, and all objects are only looked at every few minutes of full load.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# New objects for a collection; collections until objects that survived one are looked at again; and until all are.
# A thousand objects take about 0.3 ms.
_COLLECTIONS = (2_000, 5, 1_000)


@contextmanager
def short_pauses(switch_seconds: float) -> Iterator[None]:
    """Inside the block; to be entered when all is loaded.

    switch_seconds : how long a thread waits for the interpreter lock before it asks for it
    """
    switch, thresholds = sys.getswitchinterval(), gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)
    sys.setswitchinterval(switch_seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(switch)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
