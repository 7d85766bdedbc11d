"""A writer's view of an index: the last commit, the segments of the next one, and the commit itself."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rankwell.errors import FileFormatError, ParameterError, RankwellError
from rankwell.index.commits.deletions import read_deletions
from rankwell.index.commits.manifest import MANIFEST_NAME, Manifest, SegmentEntry, read_manifest, write_manifest
from rankwell.index.commits.remains import remove_unnamed, segment_name, unused_number
from rankwell.index.commits.storage import Storage
from rankwell.index.commits.working_segment import WorkingSegment
from rankwell.index.reader import open_segment, recorded_settings
from rankwell.index.schema import Schema
from rankwell.index.segments.files import SegmentFilesSink
from rankwell.index.segments.sink import SegmentSink
from rankwell.index.text.analysis import Analysis

# Live documents and all documents of each segment -> the run [start, stop) to merge next, or None.
MergeChoice = Callable[[list[int], list[int]], tuple[int, int] | None]


class WorkingIndex:
    """The next generation of an index in the making. The caller holds the writer's lock.

    Attributes
    ----------
    manifest : the last commit, None before the first
    schema, analysis : of the next commit
    segments : of the next commit, in order
    """

    manifest: Manifest | None
    schema: Schema
    analysis: Analysis
    segments: list[WorkingSegment]

    def __init__(
        self, folder: Path, storage: Storage, schema: Schema, analysis: Analysis | None, *, overwrite: bool
    ) -> None:
        self.folder = folder
        self.storage = storage
        self._given_schema = schema
        self._given_analysis = analysis
        self._overwrite = overwrite
        self.load()

    def load(self) -> None:
        """Return to the last commit, and remove the files that stopped writers have left."""
        self._clean()
        self._begin(None if self._overwrite else self.manifest)

    def _clean(self) -> None:
        """Read the manifest of the last commit, and remove the files that it does not name."""
        names = self.storage.list_folder(self.folder)
        self._next_segment = unused_number(names)
        self.manifest = None
        if MANIFEST_NAME in names:
            try:
                self.manifest = read_manifest(self.folder)
            except FileFormatError:
                if not self._overwrite:
                    raise
        if self.manifest is not None or MANIFEST_NAME not in names:
            # A crash may have happened between the renaming of this manifest and its sync to disk: until it is safe
            # there, the files of the previous one must stay.
            self.storage.sync_folder(self.folder)
            remove_unnamed(self.storage, self.folder, self.manifest)

    def _begin(self, manifest: Manifest | None) -> None:
        """The next generation starts as `manifest`, or empty."""
        if manifest is None:
            self.schema = self._given_schema.copy()
            self.analysis = self._given_analysis or Analysis()
            self.segments = []
            return
        self._next_segment = manifest.next_segment
        self.schema, self.analysis = recorded_settings(self.folder, manifest)
        if self._given_analysis is not None and self._given_analysis != self.analysis:
            raise ParameterError(
                f"{self.folder} was built with {self.analysis!r}, got {self._given_analysis!r}. All documents of an "
                f"index are cut into words the same way: leave analysis out, or build the index again."
            )
        if self._given_schema.forward not in ((), self.schema.forward):
            raise ParameterError(
                f"{self.folder} was built with forward={self.schema.forward!r}, got {self._given_schema.forward!r}. An "
                f"index keeps the forward index that it was built with: leave it out, or build the index again."
            )
        if self._given_schema.static_order not in (None, self.schema.static_order):
            raise ParameterError(
                f"{self.folder} was built with static_order={self.schema.static_order!r}, got "
                f"{self._given_schema.static_order!r}. An index keeps the order that it was built with: leave it out, "
                f"or build the index again."
            )
        if self._given_schema.vectors and self._given_schema.vectors != self.schema.vectors:
            raise ParameterError(
                f"{self.folder} was built with vectors={self.schema.vectors!r}, got {self._given_schema.vectors!r}. An "
                f"index keeps the vectors that it was built with: leave them out, or build the index again."
            )
        for name in self._given_schema.streams:
            self.schema.stream_number(name)
        for name in self._given_schema.statics:
            self.schema.static_number(name)
        self.schema.declare(self._given_schema.keywords, self._given_schema.dates)
        self.segments = [self._open(entry) for entry in manifest.segments]

    def _open(self, entry: SegmentEntry) -> WorkingSegment:
        try:
            live = None if entry.deletions is None else read_deletions(self.folder, entry.deletions, entry.n_docs)
            segment = open_segment(self.folder, entry, self.schema)
        except FileNotFoundError as cause:
            raise FileFormatError(
                f"{cause.filename} is missing: the manifest of {self.folder} names it. Restore the file from a copy, "
                f"or build the index again."
            ) from cause
        # Whoever adds to a damaged index must learn of it now, not when the copies from before are gone.
        for name in segment.names:
            _ = segment[name]
        segment.release()
        return WorkingSegment(entry, segment, live, is_foreign=True)

    @property
    def generation(self) -> int:
        return 0 if self.manifest is None else self.manifest.generation

    def write_segment(self, write: Callable[[SegmentSink], dict[str, Any]]) -> WorkingSegment:
        """A new segment on disk, its arrays made by `write`, in the index's static order if it has one. It is not among
        `segments` yet.
        """
        written = self._write(write)
        order = None
        if self.schema.static_order is not None:
            from rankwell.index.search.static_order import falling_order

            order = falling_order(written.segment, self.schema.statics.index(self.schema.static_order))
        if order is None:
            return written
        from rankwell.index.merging.reordering import reorder_segment

        # The files of the first one belong to no commit: the next one removes them.
        return self._write(partial(reorder_segment, written.segment, order))

    def _write(self, write: Callable[[SegmentSink], dict[str, Any]]) -> WorkingSegment:
        name = segment_name(self._next_segment)
        self._next_segment += 1
        sink = SegmentFilesSink(self.storage, self.folder, name)
        try:
            meta = write(sink)
        except BaseException:
            sink.abandon()
            raise
        entry = SegmentEntry(name, int(meta["n_docs"]), sink.digest)
        return WorkingSegment(entry, open_segment(self.folder, entry, self.schema), None, is_new=True)

    def publish(self) -> None:
        """Commit: the next generation becomes the last one. Does nothing if they do not differ."""
        generation = self.generation + 1
        for one in self.segments:
            one.write_deletions(self.storage, self.folder, generation)
        manifest = Manifest(
            generation=generation,
            next_segment=self._next_segment,
            schema=self.schema.to_json(),
            analysis=self.analysis.to_json(),
            segments=tuple(one.entry for one in self.segments),
        )
        if self.manifest is not None and manifest == replace(
            self.manifest, generation=generation, next_segment=self._next_segment
        ):
            return
        # The names of the new files must be safe on disk before the manifest that lists them.
        self.storage.sync_folder(self.folder)
        write_manifest(self.storage, self.folder, manifest)
        self.storage.sync_folder(self.folder)
        self.manifest = manifest
        self._overwrite = False
        for one in self.segments:
            one.committed()
        # The commit is valid; files that cannot be removed now are harmless and left to the next writer.
        with contextlib.suppress(OSError):
            remove_unnamed(self.storage, self.folder, manifest)

    def merge_while(self, choose: MergeChoice) -> None:
        """Merge one run of segments after the other, each with its own commit, until none is chosen."""
        while (
            run := choose([one.n_live for one in self.segments], [one.entry.n_docs for one in self.segments])
        ) is not None:
            self._merge(*run)
            self.publish()

    def _merge(self, start: int, stop: int) -> None:
        from rankwell.index.merging.segment_merging import merge_segments

        run = self.segments[start:stop]
        for one in run:
            one.check()
        merged = []
        if any(one.n_live for one in run):
            merged.append(
                self.write_segment(
                    lambda sink: merge_segments([one.segment for one in run], [one.live for one in run], sink)
                )
            )
        self.segments[start:stop] = merged

    def abandon(self) -> None:
        """Drop the next generation and remove its files; if that fails, the next writer removes them."""
        self.segments = []
        with contextlib.suppress(OSError, RankwellError):
            self._clean()
