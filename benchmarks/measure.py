"""What cannot be measured inside the benchmark's own process: the peak memory of one call.

The call runs in its own child process, because a process's peak never decreases and the parent already holds
data. `python -m benchmarks.measure` is that child.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def peak_memory(function_path: str, *args: Any, prepare: Sequence[Any] = (), whole: bool = False) -> int:
    """The most memory one call held, in bytes of resident memory above what the process held before the call.

    Parameters
    ----------
    function_path : str
        ``"package.module:function"``, importable from the repository's root.
    *args
        Its arguments; they are passed as JSON.
    prepare : sequence, optional
        A call to make before the counting starts: a function path and its arguments, as above. Use it to compile
        kernels on a small input, or the compiler's memory is counted too.
    whole : bool
        Count what the process held before the call as well.
    """
    calls = {"call": [function_path, *args], "prepare": list(prepare), "whole": [whole]}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry or "." for entry in sys.path)}
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.measure"],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if child.returncode != 0:
        raise RuntimeError(f"{function_path} failed in its child process (code {child.returncode}):\n{child.stderr}")
    # The function may print as well: the figure is the last line.
    return int(child.stdout.splitlines()[-1])


def measure_here(calls: dict[str, list[Any]]) -> int:
    """The child's side: make the calls in this process and return the growth of the peak, in bytes."""
    if calls["prepare"]:
        _resolve(calls["prepare"][0])(*calls["prepare"][1:])
    function = _resolve(calls["call"][0])
    if _CLEAR_REFS.exists():
        _CLEAR_REFS.write_text("5")  # sets the peak (VmHWM) back to what is resident now
    before = _resident("VmRSS")
    result = function(*calls["call"][1:])
    peak = _resident("VmHWM")
    del result  # held until here, so that nothing is freed before the peak is read
    return peak if calls["whole"][0] else max(0, peak - before)


def _resolve(function_path: str) -> Callable[..., Any]:
    module, _, name = function_path.partition(":")
    if not name:
        raise ValueError(f"a function path is 'package.module:function', got {function_path!r}.")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _resident(field: str) -> int:
    """VmRSS (now) or VmHWM (peak) of this process, in bytes.

    Not `getrusage`: its peak survives exec, so a child would start with the peak of its parent.
    """
    found = re.search(rf"^{field}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{_STATUS} has no {field}: peak memory is measured on Linux only.")
    return int(found[1]) * 1024


if __name__ == "__main__":
    print(measure_here(json.load(sys.stdin)))
