"""Several processes that answer on one port: each accepts connections of its own, which the system shares out.

One Python process runs on little more than one core, however many its kernels use. The processes share what of an index
is mapped, and nothing else: each has its own cache and its own metrics.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType

from rankwell.errors import DataError
from rankwell.kernels.threads import available_cores

_log = logging.getLogger("rankwell.serving")

READY = "ready"
"""What a process prints when it answers."""

# A process that ends at once is started again after a while, which grows.
_LEAST_WAIT, _MOST_WAIT = 0.5, 30.0
_STEADY_SECONDS = 10.0
_WATCH_SECONDS = 0.1


class ServerProcesses:
    """Runs the same command several times, and again when one of the processes ends.

    Parameters
    ----------
    command : of one process, which prints `READY` and ends when its stdin does (`end_with_stdin`)
    n_processes : how many
    cores : of each process, where it runs; empty: anywhere
    """

    def __init__(self, command: Sequence[str], n_processes: int, cores: Sequence[int] = ()) -> None:
        self._command, self._cores = list(command), list(cores)
        self._processes: list[subprocess.Popen[str]] = []
        self._started = [0.0] * n_processes
        self._waits = [_LEAST_WAIT] * n_processes
        # Not a threading.Event: a signal's handler that sets it waits for ever if it comes while the lock is held.
        self._is_ending = False
        self.n_restarts = 0

    def run(self, on_ready: Callable[[], None]) -> None:
        """Serve until SIGTERM or SIGINT; then every process answers what has come to it.

        Raises DataError if a process ends before it answers for the first time.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note_end)
        try:
            for place in range(len(self._started)):
                self._processes.append(self._start(place))
            for process in self._processes:
                assert process.stdout is not None
                if process.stdout.readline().strip() != READY:
                    raise DataError("a process of the server could not start; what it says is above.")
            on_ready()
            while not self._is_ending:
                self._replace_ended()
                time.sleep(_WATCH_SECONDS)
        finally:
            self._end()

    def _note_end(self, number: int, frame: FrameType | None) -> None:
        self._is_ending = True

    def _start(self, place: int) -> subprocess.Popen[str]:
        self._started[place] = time.monotonic()
        started = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._cores:
            # Before it has threads, which then stay there too. The core may be gone: then it runs anywhere.
            with contextlib.suppress(OSError):
                os.sched_setaffinity(started.pid, {self._cores[place]})
        return started

    def _replace_ended(self) -> None:
        for place, process in enumerate(self._processes):
            ran = time.monotonic() - self._started[place]
            if ran > _STEADY_SECONDS:
                self._waits[place] = _LEAST_WAIT
            if process.poll() is not None and ran > self._waits[place]:
                _log.warning("a process of the server ended (%s) and is started again", process.returncode)
                _close(process)
                self._waits[place] = min(2 * self._waits[place], _MOST_WAIT)
                self._processes[place] = self._start(place)
                self.n_restarts += 1

    def _end(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in self._processes:
            process.wait()
            _close(process)


def cores_of(n_processes: int, n_threads: int) -> list[int]:
    """The core of each process where processes of one thread fill the machine; empty if they do not, or cannot be kept.

    The event loop and the thread that ranks take turns by the interpreter lock. On one core a turn is a switch, on two
    a core must be woken for it; and the threads that rank of two processes never wait for the same core.
    """
    if n_threads > 1 or not hasattr(os, "sched_setaffinity"):
        return []
    cores = sorted(os.sched_getaffinity(0))
    return cores if n_processes == len(cores) == available_cores() else []


def end_with_stdin() -> None:
    """End this process as SIGTERM does when stdin ends: a parent that was killed cannot tell its children to."""

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(sys.stdin.fileno(), 1):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="rankwell-parent", daemon=True).start()


def _close(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
