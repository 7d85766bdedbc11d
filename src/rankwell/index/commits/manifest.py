"""The manifest: which files make up the index. Replacing it is a commit.

One line (format, version, digest of the rest), then JSON. It is written to a temporary file, forced to disk and
renamed, so that a reader finds the old one or the new one; every file it names was forced to disk before.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rankwell.errors import DataError, FileFormatError, ParameterError
from rankwell.index.commits.deletions import Deletions
from rankwell.index.commits.storage import Storage, digest_of, write_file
from rankwell.streams.json_text import parse_json

FORMAT = "rankwell-index"
# Versions 1 and 2, of releases before 0.2, have postings of whole bytes; they are not read any more.
VERSION = 3
MANIFEST_NAME = "manifest"
TEMPORARY_NAME = "manifest.new"

_SEGMENT_NAME = re.compile(r"segment-[0-9]{8,}", re.ASCII)
_DELETIONS_NAME = re.compile(r"segment-[0-9]{8,}\.live-[0-9]+", re.ASCII)
_HEADER = re.compile(rb"rankwell-index ([1-9][0-9]{0,8}) ([0-9a-f]{64})")


@dataclass(frozen=True)
class SegmentEntry:
    """A segment as the manifest names it.

    name : its files are called NAME.table, NAME.arrays, ...
    n_docs : documents, deleted ones included
    digest : of its table
    deletions : the file of the deleted documents, or None
    """

    name: str
    n_docs: int
    digest: str
    deletions: Deletions | None = None


@dataclass(frozen=True)
class Manifest:
    """One generation of an index.

    generation : counts commits, from 1
    next_segment : the number of the next segment; names are never used again
    schema, analysis : as their classes record themselves
    segments : in the order their documents were added
    """

    generation: int
    next_segment: int
    schema: dict[str, Any]
    analysis: dict[str, Any]
    segments: tuple[SegmentEntry, ...]

    @cached_property
    def digest(self) -> str:
        """Of everything in it: manifests of the same content have the same."""
        return digest_of(json.dumps(asdict(self), sort_keys=True).encode())

    def files_named(self) -> set[str]:
        """The names of files of deletions; a segment's own files are known by its name."""
        return {entry.deletions.file for entry in self.segments if entry.deletions is not None}


def write_manifest(storage: Storage, folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a new generation and replace the old one. Not durable before `sync_folder`."""
    body = json.dumps(asdict(manifest), indent=1, allow_nan=False).encode()
    write_file(storage, folder / TEMPORARY_NAME, f"{FORMAT} {VERSION} {digest_of(body)}\n".encode() + body)
    storage.rename(folder / TEMPORARY_NAME, folder / MANIFEST_NAME)


def index_folder(path: str | os.PathLike[str]) -> Path:
    """The folder of an index. An empty path, which would be the current folder, is refused."""
    if os.fspath(path) == "":
        raise ParameterError("the path of an index is empty. Give its folder, or '.' for the current one.")
    return Path(path)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the index in `folder`, checked."""
    path = folder / MANIFEST_NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(_no_index(folder)) from None
    except NotADirectoryError:
        raise DataError(f"{folder} is a file; an index is a folder. Give the folder that --out named.") from None
    header, _, body = content.partition(b"\n")
    matched = _HEADER.fullmatch(header)
    if matched is None:
        raise FileFormatError(f"{path} is not an index manifest, or it was altered. {_REMEDY}")
    version = int(matched[1])
    if version != VERSION:
        raise FileFormatError(
            f"{folder} is an index of format version {version}, this release reads version {VERSION}. Build it again "
            f"with this release (rankwell index build ... --overwrite), or open it with the release that wrote it."
        )
    if digest_of(body) != matched[2].decode():
        raise FileFormatError(
            f"{path} was altered or truncated after it was written: its digest does not match. {_REMEDY}"
        )
    return _parse(path, body)


_REMEDY = "Restore the folder from a copy, or build the index again."


def _no_index(folder: Path) -> str:
    if (folder / "shards.json").exists():
        return (
            f"{folder} is a folder of shards, which is built as a whole. Build it again with its other documents "
            "(rankwell index build --shards N --overwrite), or change its shards one by one."
        )
    if not folder.exists():
        return f"there is no index {folder}: no such folder. Check the path, or build it with rankwell index build."
    return (
        f"{folder} is not an index: it has no file {MANIFEST_NAME!r}. Check the path; a build that stopped before "
        f"it was finished does not leave one: build it again."
    )


def _parse(path: Path, body: bytes) -> Manifest:
    try:
        fields = parse_json(body)
        segments = tuple(
            SegmentEntry(**(entry | {"deletions": Deletions(**entry["deletions"]) if entry["deletions"] else None}))
            for entry in fields.pop("segments")
        )
        manifest = Manifest(segments=segments, **fields)
        _check(manifest)
        return manifest
    except (AttributeError, LookupError, TypeError, ValueError) as cause:
        raise FileFormatError(f"{path} is unreadable ({cause!r}). {_REMEDY}") from cause


def _check(manifest: Manifest) -> None:
    """Refuse numbers that are none, and names that would lead to files outside the index."""
    counts = [manifest.generation, manifest.next_segment, *(entry.n_docs for entry in manifest.segments)]
    if not all(type(count) is int and 0 <= count < 2**62 for count in counts):
        raise ValueError("a count is not a whole number")
    for entry in manifest.segments:
        if not _SEGMENT_NAME.fullmatch(entry.name):
            raise ValueError(f"a segment is named {entry.name!r}")
        if int(entry.name.rpartition("-")[2]) >= manifest.next_segment:
            raise ValueError(f"{entry.name} would be written again")
        if entry.deletions is not None and not _DELETIONS_NAME.fullmatch(entry.deletions.file):
            raise ValueError(f"a file of deletions is named {entry.deletions.file!r}")
    named = [manifest.schema["streams"], manifest.schema["statics"]]
    named += [manifest.schema.get(kind, []) for kind in ("keywords", "dates")]
    if not all(isinstance(names, list) for names in named):
        raise TypeError("the schema does not list the names of fields")
    if not isinstance(manifest.schema.get("forward", []), list) and manifest.schema["forward"] != "all":
        raise TypeError("the schema does not list the streams of the forward index")
    if not isinstance(manifest.schema.get("static_order", ""), str):
        raise TypeError("the schema does not name the static order")
