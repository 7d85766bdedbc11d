"""Storage that fails: at any operation, on a full disk, or by losing what was not forced to disk."""

from __future__ import annotations

import errno
import random
from pathlib import Path

from rankwell.index.commits.storage import Storage, StorageFile


class Crash(BaseException):
    """The machine stopped here. Not an Exception: nothing may catch it and go on."""


class CountingStorage(Storage):
    """Counts operations that change something. Forcing to disk costs no time here."""

    def __init__(self) -> None:
        self.n_operations = 0
        self.log: list[str] = []

    def step(self, operation: str, path: Path) -> None:
        self.n_operations += 1
        self.log.append(f"{operation} {path.name}")

    def make_folder(self, folder: Path) -> None:
        self.step("make_folder", folder)
        super().make_folder(folder)

    def create(self, path: Path) -> StorageFile:
        self.step("create", path)
        return super().create(path)

    def append(self, file: StorageFile, content: bytes | memoryview) -> None:
        try:
            self.step("append", file.path)
        except BaseException:
            # A write that fails may have written some.
            super().append(file, memoryview(content)[: len(content) // 2])
            raise
        super().append(file, content)

    def sync(self, file: StorageFile) -> None:
        self.step("sync", file.path)

    def rename(self, source: Path, target: Path) -> None:
        self.step("rename", target)
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self.step("remove", path)
        super().remove(path)

    def sync_folder(self, folder: Path) -> None:
        self.step("sync_folder", folder)


class FailingStorage(CountingStorage):
    """Operation number `fails_at` (from 1) fails with an input/output error, once."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.fails_at = fails_at

    def step(self, operation: str, path: Path) -> None:
        super().step(operation, path)
        if self.n_operations == self.fails_at:
            raise OSError(errno.EIO, "Input/output error", str(path))


class FullStorage(CountingStorage):
    """From operation `full_at` on nothing more can be written; removing works, but frees too little."""

    def __init__(self, full_at: int) -> None:
        super().__init__()
        self.full_at = full_at

    def step(self, operation: str, path: Path) -> None:
        super().step(operation, path)
        if self.n_operations >= self.full_at and operation in ("append", "create", "make_folder"):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))


class CrashingStorage(CountingStorage):
    """Everything stops at operation `crashes_at`. `survivors` makes the folder that is found after the restart.

    What was forced to disk is there. Of the rest each change may be there or not, in any combination: names that were
    created, renamed or removed since the folder was last forced, and bytes since the file was.
    """

    def __init__(self, crashes_at: int | None = None) -> None:
        super().__init__()
        self.crashes_at = crashes_at
        self.is_dead = False
        self._content: dict[int, bytearray] = {}
        self._synced: dict[int, int] = {}
        self._names: dict[Path, int] = {}
        self._safe_names: dict[Path, int] = {}
        self._pending: list[tuple[str, Path, int]] = []

    def adopt(self, folder: Path) -> None:
        """Treat the content of `folder` as safe on disk."""
        for path in sorted(folder.iterdir()):
            number = len(self._content)
            self._content[number] = bytearray(path.read_bytes())
            self._synced[number] = len(self._content[number])
            self._names[path] = self._safe_names[path] = number

    def step(self, operation: str, path: Path) -> None:
        if self.is_dead:
            raise Crash
        super().step(operation, path)
        if self.n_operations == self.crashes_at:
            self.is_dead = True
            raise Crash

    def create(self, path: Path) -> StorageFile:
        file = super().create(path)
        number = len(self._content)
        self._content[number], self._synced[number] = bytearray(), 0
        self._names[path] = number
        self._pending.append(("name", path, number))
        return file

    def append(self, file: StorageFile, content: bytes | memoryview) -> None:
        if not self.is_dead:
            self._content[self._names[file.path]] += content
        super().append(file, content)

    def sync(self, file: StorageFile) -> None:
        super().sync(file)
        number = self._names[file.path]
        self._synced[number] = len(self._content[number])

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        number = self._names.pop(source)
        self._names[target] = number
        self._pending.append(("rename", source, number))
        self._pending.append(("name", target, number))

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._names.pop(path, None)
        self._pending.append(("remove", path, -1))

    def sync_folder(self, folder: Path) -> None:
        super().sync_folder(folder)
        self._safe_names = dict(self._names)
        self._pending = []

    def survivors(self, folder: Path, chance: random.Random, *, keeps: float) -> None:
        """Fill the new folder `folder`: each change not forced to disk is there with probability `keeps`."""
        names = dict(self._safe_names)
        rename_kept = False
        for kind, path, number in self._pending:
            if kind == "rename":
                # The old name goes and the new one comes at once, or neither does.
                rename_kept = chance.random() < keeps
                if rename_kept:
                    names.pop(path, None)
            elif kind == "remove":
                if chance.random() < keeps:
                    names.pop(path, None)
            elif self._is_target_of_rename(path, number):
                if rename_kept:
                    names[path] = number
            elif chance.random() < keeps:
                names[path] = number
        folder.mkdir()
        for path, number in names.items():
            (folder / path.name).write_bytes(self._after_crash(number, chance, keeps))

    def _is_target_of_rename(self, path: Path, number: int) -> bool:
        place = self._pending.index(("name", path, number))
        return place > 0 and self._pending[place - 1][0] == "rename"

    def _after_crash(self, number: int, chance: random.Random, keeps: float) -> bytes:
        """What was forced to disk, and of the rest: all, nothing, a part, or blocks of zeros in its place."""
        content, synced = bytes(self._content[number]), self._synced[number]
        if len(content) == synced or chance.random() < keeps:
            return content
        rest = len(content) - synced
        return content[:synced] + chance.choice([b"", bytes(rest), content[synced : synced + rest // 2]])
