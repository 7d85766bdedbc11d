"""Every change that an index makes to its folder, one method per operation.

An index is only as safe as the order of its writes, so they all go through this small class: tests replace it by one
that fails, runs out of space or loses what was not forced to disk, at any operation.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

from rankwell.errors import FileFormatError


class StorageFile:
    """A new file that is being written."""

    def __init__(self, path: Path, stream: io.FileIO) -> None:
        self.path = path
        self.stream = stream


class Storage:
    """The operating system's files."""

    def make_folder(self, folder: Path) -> None:
        """Create `folder` and its parents if they do not exist."""
        folder.mkdir(parents=True, exist_ok=True)

    def create(self, path: Path) -> StorageFile:
        """A new, empty file; it is an error if `path` exists: files of an index are written once."""
        return StorageFile(path, open(path, "xb", buffering=0))

    def append(self, file: StorageFile, content: bytes | memoryview) -> None:
        """Append `content` to the file."""
        rest = memoryview(content)
        try:
            while rest.nbytes:
                rest = rest[file.stream.write(rest) or 0 :]
        except OSError as error:
            # The operating system does not name the file in this error.
            raise OSError(error.errno, error.strerror, str(file.path)) from error

    def sync(self, file: StorageFile) -> None:
        """Force the file's content to disk."""
        try:
            os.fsync(file.stream.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(file.path)) from error

    def close(self, file: StorageFile) -> None:
        """Close the file."""
        file.stream.close()

    def rename(self, source: Path, target: Path) -> None:
        """Replace `target` by `source`, atomically."""
        os.replace(source, target)

    def remove(self, path: Path) -> None:
        """Remove the name; processes that have the file open keep it."""
        path.unlink(missing_ok=True)

    def sync_folder(self, folder: Path) -> None:
        """Force the folder's names to disk: files created, renamed and removed in it."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def list_folder(self, folder: Path) -> list[str]:
        """The names in `folder`, sorted."""
        return sorted(os.listdir(folder))


def write_file(storage: Storage, path: Path, content: bytes) -> None:
    """A new file with `content`, forced to disk. Its name is not until `sync_folder`."""
    file = storage.create(path)
    try:
        storage.append(file, content)
        storage.sync(file)
    finally:
        storage.close(file)


def digest_of(content: bytes) -> str:
    """A BLAKE2b digest of 32 bytes, in hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=32).hexdigest()


def read_digested(path: Path, digest: str) -> bytes:
    """The content of `path`, which must have the digest that the manifest records."""
    content = path.read_bytes()
    if digest_of(content) != digest:
        raise FileFormatError(
            f"{path} is not what the manifest describes: it was altered, truncated or replaced. Restore it from a "
            f"copy, or build the index again."
        )
    return content
