"""The share of a corpus that was read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from rankwell.corpus.reading import read_corpus
from rankwell.corpus.reading_progress import CorpusProgress


def lines(first: int, n: int) -> bytes:
    return "".join(json.dumps({"id": str(first + i), "body": "word " * 200}) + "\n" for i in range(n)).encode()


def test_it_ends_at_the_size_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(0, 3000))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines(3000, 3000)))
    (tmp_path / "note.txt").write_text("one document")
    progress = CorpusProgress()
    seen = []
    for _ in read_corpus(tmp_path, progress=progress):
        seen.append(progress.done)
    assert progress.total == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert len(set(seen)) >= 3
    assert seen == sorted(seen)
    assert 0 < seen[0] < progress.total
    assert progress.done == progress.total


def test_the_end_of_a_pipe_is_not_known(tmp_path: Path) -> None:
    progress = CorpusProgress()
    progress.begin(["-", str(tmp_path)])
    assert progress.total is None
