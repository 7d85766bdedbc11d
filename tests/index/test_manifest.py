from __future__ import annotations

from pathlib import Path

import pytest

from rankwell import DataError, FileFormatError
from rankwell.index.commits.deletions import Deletions
from rankwell.index.commits.manifest import Manifest, SegmentEntry, read_manifest, write_manifest
from rankwell.index.commits.storage import Storage, digest_of

MANIFEST = Manifest(
    generation=7,
    next_segment=12,
    schema={"streams": ["title"], "statics": []},
    analysis={"words": "unicode-1"},
    segments=(
        SegmentEntry("segment-00000003", 100, "ab" * 32, Deletions("segment-00000003.live-7", "cd" * 32, 4)),
        SegmentEntry("segment-00000011", 5, "ef" * 32),
    ),
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_manifest(Storage(), tmp_path, MANIFEST)
    assert read_manifest(tmp_path) == MANIFEST
    assert [file.name for file in tmp_path.iterdir()] == ["manifest"]
    assert MANIFEST.files_named() == {"segment-00000003.live-7"}


@pytest.mark.parametrize("version", [1, 2, 4, 10])
def test_another_version_says_so(tmp_path: Path, version: int) -> None:
    body = b'{"anything": "at all"}'
    (tmp_path / "manifest").write_bytes(f"rankwell-index {version} {digest_of(body)}\n".encode() + body)
    with pytest.raises(FileFormatError, match=f"version {version}, this release reads version 3. Build it again"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"generation": 1}', b"not JSON", b'{"segments": 3}', b"\xff"])
def test_content_that_is_not_a_manifest(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "manifest").write_bytes(f"rankwell-index 3 {digest_of(body)}\n".encode() + body)
    with pytest.raises(FileFormatError, match="manifest is unreadable"):
        read_manifest(tmp_path)


def test_no_index(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        read_manifest(tmp_path / "nothing")
    with pytest.raises(DataError, match="it has no file 'manifest'"):
        read_manifest(tmp_path)
    (tmp_path / "file").write_text("text")
    with pytest.raises(DataError, match="is a file; an index is a folder"):
        read_manifest(tmp_path / "file")
