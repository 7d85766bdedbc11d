"""`check`: every byte of an index against its checksum, then whether its arrays are consistent."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rankwell.errors import RankwellError
from rankwell.index.commits.deletions import read_deletions
from rankwell.index.commits.manifest import Manifest, SegmentEntry, index_folder, read_manifest
from rankwell.index.commits.remains import unnamed_files
from rankwell.index.commits.storage import Storage
from rankwell.index.commits.working_segment import common_documents
from rankwell.index.search.static_order import falling_order
from rankwell.index.segments.checking import segment_problems
from rankwell.index.segments.files import SegmentFiles
from rankwell.index.segments.segment import Segment
from rankwell.index.shards import shard_folders


@dataclass
class CheckReport:
    """What a check has found.

    problems : a line for each fault; empty if the index is sound
    remains : files that do not belong to any generation (a writer is working, or was stopped); they are harmless
    generation : of the index, 0 where its manifest is unreadable
    n_segments, n_bytes : how much was checked
    """

    problems: list[str] = field(default_factory=list)
    remains: list[str] = field(default_factory=list)
    generation: int = 0
    n_segments: int = 0
    n_bytes: int = 0

    @property
    def is_sound(self) -> bool:
        return not self.problems


def check_index(path: str | os.PathLike[str], *, progress: Callable[[int, int], None] | None = None) -> CheckReport:
    """Verify everything: every page of every file, every order, count and hash, ids unique among live documents.

    If a writer commits meanwhile and removes files, the newer generation is checked instead.

    Parameters
    ----------
    progress : called with the bytes that were checked, and those of all segments
    """
    folder = index_folder(path)
    shards = shard_folders(folder)
    if shards is not None:
        return _joined([check_index(shard, progress=progress) for shard in shards])
    while True:
        try:
            manifest = read_manifest(folder)
        except RankwellError as error:
            return CheckReport(problems=[str(error)])
        report = _check_generation(folder, manifest, _Progress(_n_bytes(folder, manifest), progress))
        if report.is_sound or _is_current(folder, manifest):
            return report


def _joined(reports: list[CheckReport]) -> CheckReport:
    """The report of a folder of shards."""
    return CheckReport(
        [problem for report in reports for problem in report.problems],
        [name for report in reports for name in report.remains],
        sum(report.generation for report in reports),
        sum(report.n_segments for report in reports),
        sum(report.n_bytes for report in reports),
    )


def _is_current(folder: Path, manifest: Manifest) -> bool:
    try:
        return read_manifest(folder) == manifest
    except RankwellError:
        return False


@dataclass
class _Progress:
    """Counts the bytes that were read, and reports them."""

    total: int
    report: Callable[[int, int], None] | None
    done: int = 0

    def add(self, n_bytes: int) -> None:
        self.done += n_bytes
        if self.report is not None:
            self.report(min(self.done, self.total), self.total)


def _n_bytes(folder: Path, manifest: Manifest) -> int:
    """The bytes of the segments' files that exist, whatever is in them."""
    return sum(file.stat().st_size for entry in manifest.segments for file in folder.glob(f"{entry.name}.*"))


def _check_generation(folder: Path, manifest: Manifest, progress: _Progress) -> CheckReport:
    report = CheckReport(generation=manifest.generation)
    report.remains = unnamed_files(Storage().list_folder(folder), manifest)
    sound: list[tuple[Segment, np.ndarray | None]] = []
    for entry in manifest.segments:
        report.n_segments += 1
        try:
            files = SegmentFiles(folder, entry.name, entry.digest)
            live = None if entry.deletions is None else read_deletions(folder, entry.deletions, entry.n_docs)
        except FileNotFoundError as error:
            report.problems.append(f"{error.filename} is missing, but the manifest names it.")
            continue
        except OSError as error:
            report.problems.append(f"{error.filename} cannot be read: {error.strerror}.")
            continue
        except RankwellError as error:
            report.problems.append(str(error))
            continue
        report.n_bytes += files.n_bytes
        problems = _damaged_pages(files, progress) or _segment_problems(files.segment(), entry, manifest)
        report.problems += problems
        if not problems:
            sound.append((files.segment(), live))
    report.problems += _ids_twice(sound)
    return report


def _damaged_pages(files: SegmentFiles, progress: _Progress) -> list[str]:
    problems = []
    for file in files.files.values():
        problems += [
            f"{file.path} was altered after it was written: page {page:,} of {file.n_pages:,} does not match its "
            "checksum."
            for page in file.damaged_pages(progress.add)
        ]
    return problems


def _segment_problems(segment: Segment, entry: SegmentEntry, manifest: Manifest) -> list[str]:
    problems = segment_problems(segment)
    if segment.n_docs != entry.n_docs:
        problems.append(f"{entry.name}: it has {segment.n_docs:,} documents, the manifest says {entry.n_docs:,}.")
    counts = {"streams": segment.n_streams, "statics": segment.n_statics, "keywords": segment.n_keywords}
    for kind, count in counts.items():
        named = len(manifest.schema.get(kind, ()))
        if count > named:
            problems.append(f"{entry.name}: it has {count} {kind}, the schema {named}.")
    static = manifest.schema.get("static_order")
    if (
        not problems
        and static is not None
        and falling_order(segment, manifest.schema["statics"].index(static)) is not None
    ):
        problems.append(f"{entry.name}: its documents are not in the order of {static!r}, which the schema names.")
    return problems


def _ids_twice(segments: list[tuple[Segment, np.ndarray | None]]) -> list[str]:
    """Ids that are live in two segments."""
    problems = []
    for number, (newer, newer_live) in enumerate(segments):
        for older, older_live in segments[:number]:
            for old_doc, new_doc in common_documents(older, newer):
                if _is_live(older_live, old_doc) and _is_live(newer_live, new_doc):
                    problems.append(f"{newer.name} and {older.name} both have a document {newer.id_of(new_doc)!r}.")
    return problems


def _is_live(live: np.ndarray | None, doc: int) -> bool:
    return live is None or bool(live[doc])
