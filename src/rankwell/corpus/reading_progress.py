"""How much of a corpus was read, in bytes of its files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rankwell.corpus.document import Document
from rankwell.streams.decompression import ByteStream


@dataclass
class CorpusProgress:
    """The bytes that were read, and those of all files; total is None if standard input or a pipe is among them."""

    total: int | None = None
    _before: int = field(default=0, repr=False)
    _in_file: int = field(default=0, repr=False)

    @property
    def done(self) -> int:
        return self._before + self._in_file

    def begin(self, paths: Iterable[str]) -> None:
        """These files will be read."""
        sizes = [os.path.getsize(path) if os.path.isfile(path) else None for path in paths]
        self.total = None if None in sizes else sum(size for size in sizes if size is not None)

    def follow(self, stream: ByteStream, batches: Iterable[list[Document]]) -> Iterator[list[Document]]:
        """The same batches, counted: they come from `stream`."""
        for batch in batches:
            # A reader may close the stream before its last batch.
            self._in_file = (stream.size or 0) if stream.closed else stream.bytes_taken()
            yield batch
        self._before += stream.size or 0
        self._in_file = 0
