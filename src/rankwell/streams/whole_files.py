"""Files that are replaced whole: a reader finds the old content or the new, never a mix."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from rankwell.errors import DataError


def why_not_writable(path: Path) -> str:
    """What to say of a path, after its name, that `replace_file` could not write; "" of one that it could."""
    if path.is_dir():
        return "is a folder. Give the name of a file in it."
    folder = path.resolve().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        return f"cannot be written: {folder} is a file, not a folder. Choose another path."
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"cannot be written: {folder} is not writable. Choose another path."
    return ""


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` to a temporary file, force it to disk and rename it: `path` has the old or the new content."""
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
