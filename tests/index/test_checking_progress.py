"""The progress of a check, in bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rankwell.index.checking import check_index
from rankwell.index.commits.checked_file import PAGE_BYTES
from rankwell.index.writer import IndexWriter


def test_it_counts_bytes_page_by_page(tmp_path: Path) -> None:
    words = np.random.default_rng(0).integers(0, 10**9, size=(2, 100, 200)).astype(str)
    with IndexWriter(tmp_path / "index") as writer:
        for part, texts in enumerate(words):
            writer.add({"id": f"{part}.{n}", "body": " ".join(text)} for n, text in enumerate(texts))
            writer.commit()
    seen: list[tuple[int, int]] = []
    report = check_index(tmp_path / "index", progress=lambda done, total: seen.append((done, total)))
    assert report.is_sound
    assert len(seen) >= report.n_bytes // PAGE_BYTES > report.n_segments
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == report.n_bytes
    (total,) = {total for _, total in seen}
    assert report.n_bytes <= total < 1.1 * report.n_bytes
