"""Files of an index that its manifest does not name: what a stopped writer left, and what a commit has replaced.

Only a writer removes them, under its lock and after the manifest without them is safe on disk. A reader that
has just read an older manifest may find a file gone; it then reads the manifest again.
"""

from __future__ import annotations

import re
from pathlib import Path

from rankwell.index.commits.lock import LOCK_NAME
from rankwell.index.commits.manifest import MANIFEST_NAME, TEMPORARY_NAME, Manifest
from rankwell.index.commits.storage import Storage

_SEGMENT_FILE = re.compile(r"(segment-([0-9]{8,}))\.(.+)")
_DELETIONS = re.compile(r"live-[0-9]+")


def segment_name(number: int) -> str:
    """The name of segment `number`."""
    return f"segment-{number:08d}"


def deletions_name(segment: str, generation: int) -> str:
    """The file of a segment's deletions, as of a generation."""
    return f"{segment}.live-{generation}"


def places_name(segment: str) -> str:
    """The file with the origins of a segment's documents, until the segment is committed."""
    return f"{segment}.places"


def foreign_names(names: list[str]) -> list[str]:
    """The names in a folder that do not belong to an index."""
    own = (LOCK_NAME, MANIFEST_NAME, TEMPORARY_NAME)
    return [name for name in names if name not in own and not _SEGMENT_FILE.fullmatch(name)]


def unused_number(names: list[str]) -> int:
    """A number above those of all segments in the folder."""
    return 1 + max((int(found[2]) for name in names if (found := _SEGMENT_FILE.fullmatch(name))), default=0)


def unnamed_files(names: list[str], manifest: Manifest | None) -> list[str]:
    """The files of an index among `names` that the manifest does not name."""
    segments = set() if manifest is None else {entry.name for entry in manifest.segments}
    deletions = set() if manifest is None else manifest.files_named()
    return [name for name in names if name == TEMPORARY_NAME or _is_unnamed(name, segments, deletions)]


def _is_unnamed(name: str, segments: set[str], deletions: set[str]) -> bool:
    found = _SEGMENT_FILE.fullmatch(name)
    if found is None:
        return False
    segment, _, part = found.groups()
    if segment not in segments or part == "places":
        return True
    return _DELETIONS.fullmatch(part) is not None and name not in deletions


def remove_unnamed(storage: Storage, folder: Path, manifest: Manifest | None) -> None:
    """Remove them."""
    for name in unnamed_files(storage.list_folder(folder), manifest):
        storage.remove(folder / name)
