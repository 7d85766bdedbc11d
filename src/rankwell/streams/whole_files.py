"""Files that are replaced whole: a reader finds the old content or the new, never a mix."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from rankwell.errors import DataError


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` beside `path`, force it to disk and rename it: `path` holds the old or the new, never a mix."""
    if path.is_dir():
        raise DataError(f"{path} is a folder. Give the name of a file in it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
