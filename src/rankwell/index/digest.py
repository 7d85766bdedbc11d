"""Digests of small files: a manifest, a segment's table, a list of deletions."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rankwell.errors import FileFormatError


def digest_of(content: bytes) -> str:
    """A BLAKE2b digest of 32 bytes, in hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=32).hexdigest()


def read_digested(path: Path, digest: str) -> bytes:
    """The content of `path`, which must have the digest that the manifest has for it."""
    content = path.read_bytes()
    if digest_of(content) != digest:
        raise FileFormatError(
            f"{path} is not what the manifest describes: it was altered, cut or exchanged. Restore the file from a "
            f"copy, or build the index again."
        )
    return content
