"""What tools found out about a design, kept in the cache folder: a placement takes minutes and always ends the same."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import Any

from rankwell.kernels.cpu.kernel_cache import cache_folder


class KeptResult:
    """The result of a tool for given texts: the design, its options, the tools' versions."""

    def __init__(self, *texts: str) -> None:
        folder = cache_folder()
        digest = hashlib.blake2b("\0".join(texts).encode(), digest_size=16).hexdigest()
        self._path = folder and folder / "hardware" / f"result-{digest}.json"

    def read(self) -> dict[str, Any] | None:
        """What was kept, or None."""
        if self._path is None:
            return None
        try:
            found = json.loads(self._path.read_text())
        except (OSError, ValueError):  # not there, or damaged: found out again
            return None
        return found if isinstance(found, dict) else None

    def write(self, result: dict[str, Any]) -> dict[str, Any]:
        """Keep a result if the folder can be written, and return it."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                new = self._path.with_suffix(f".{os.getpid()}")
                new.write_text(json.dumps(result))
                os.replace(new, self._path)  # another process may write the same
        return result
