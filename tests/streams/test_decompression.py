"""Compressed files: whole, in several parts, truncated, damaged, and not what their name says."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pyarrow
import pytest

from rankwell.data.files import read
from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream

CONTENT = b"".join(b"%d qid:%d 1:%d 2:0.%06d # doc\n" % (row % 3, row // 9, row, row * 7919) for row in range(3000))


def compress_zst(content: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": compress_zst}
suffixes = pytest.mark.parametrize("suffix", COMPRESS)


@suffixes
@pytest.mark.parametrize("name", ["data.txt{}", "data.txt"])
def test_a_compressed_file_is_read_whatever_its_name(tmp_path: Path, suffix: str, name: str) -> None:
    path = tmp_path / name.format(suffix)
    path.write_bytes(COMPRESS[suffix](CONTENT))
    data = read(path)
    assert data.n_docs == 3000
    assert data.features[2999, 0] == 2999


@suffixes
def test_several_parts_follow_each_other(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.txt{suffix}"
    # The parts meet in the middle of a line.
    path.write_bytes(COMPRESS[suffix](CONTENT[:1000]) + COMPRESS[suffix](CONTENT[1000:]))
    assert read(path).n_docs == 3000


@suffixes
@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_a_truncated_file_is_an_error_that_names_it(tmp_path: Path, suffix: str, share: float) -> None:
    path = tmp_path / f"data.txt{suffix}"
    whole = COMPRESS[suffix](CONTENT)
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(DataError, match=rf"data\.txt\{suffix}"):
        read(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.txt{suffix}"
    whole = bytearray(COMPRESS[suffix](CONTENT))
    for place in range(20, len(whole), max(1, len(whole) // 40)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=rf"data\.txt\{suffix}"):
            read(path)


def test_a_damaged_zst_file_never_escapes_as_another_error(tmp_path: Path) -> None:
    # Its checksum is optional, so damage may go unnoticed by the format.
    path = tmp_path / "data.txt.zst"
    whole = compress_zst(CONTENT)
    n_errors = 0
    for place in range(0, len(whole), max(1, len(whole) // 200)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            read(path)
        except DataError:
            n_errors += 1
    assert n_errors > 20


@suffixes
def test_a_name_that_promises_too_much_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.txt{suffix}"
    path.write_bytes(CONTENT)
    with pytest.raises(DataError, match=rf"is named \{suffix} but starts with b'0 qi'"):
        read(path)


def test_what_is_peeked_stays_to_be_read(tmp_path: Path) -> None:
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(b"abcdef"))
    with ByteStream(str(path)) as stream:
        assert stream.peek(3) == b"abc"
        assert stream.peek(2) == b"ab"
        assert stream.peek(100) == b"abcdef"
        buffer = bytearray(4)
        assert stream.readinto(memoryview(buffer)) == 4
        assert bytes(buffer) == b"abcd"
        assert stream.read() == b"ef"
        assert stream.readinto(memoryview(buffer)) == 0
