"""The feature log: the features of served queries as the ranker read them, for training.

    file    := "RWFLOG1\\n" header record*
    header  := frame of JSON {"features": [names], "fingerprint": digits}
    record  := frame of payload
    frame   := length u32, CRC-32 of the content u32, CRC-32 of the eight bytes before u32, content
    payload := [bytes of the query's id, bytes of the documents' ids, n_docs] u32, query's id, [bytes of each id] u32,
               ids, float32 (n_docs, n_features)

All numbers are little-endian. A record is appended by one write under a lock, so several processes may share a log.
An incomplete last record, left by a crash, is cut off by the next writer and ignored by readers; other damage is an
error.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from rankwell.errors import DataError, FileFormatError
from rankwell.features.feature_set import FeatureSet
from rankwell.streams.appended_file import AppendedFile
from rankwell.streams.json_text import parse_json

_MAGIC = b"RWFLOG1\n"
_PREFIX = struct.Struct("<III")
_SIZES = struct.Struct("<III")


@dataclass(frozen=True, eq=False)
class LoggedQuery:
    """One served query: ids of its documents, and float32 (n_docs, n_features) as the ranker saw them."""

    query_id: str
    document_ids: tuple[str, ...]
    features: np.ndarray


class FeatureLog:
    """A log to append to; created if there is none.

    Parameters
    ----------
    path : str or path
    feature_set : FeatureSet
        The features of the rows; a log has rows of one set.

    Examples
    --------
    >>> import numpy, rankwell
    >>> from rankwell.serving.ranking.feature_log import FeatureLogReader
    >>> with rankwell.FeatureLog("served.log", rankwell.FeatureSet(["bm25.title", "bm25.body"])) as log:
    ...     log.append("q1", ["n1", "n2"], numpy.array([[1.0, 0.5], [0.0, 2.0]], dtype=numpy.float32))
    >>> [(query.query_id, query.document_ids) for query in FeatureLogReader("served.log")]
    [('q1', ('n1', 'n2'))]
    """

    def __init__(self, path: str | os.PathLike[str], feature_set: FeatureSet) -> None:
        self.path = os.fspath(path)
        self.feature_set = feature_set
        self._file = AppendedFile(path)
        try:
            self._prepare()
        except BaseException:
            self._file.close()
            raise

    def append(self, query_id: str, document_ids: Sequence[str], features: np.ndarray) -> None:
        """Add one served query.

        features : float32 array (n_docs, n_features), the rows that were scored
        """
        expected = (len(document_ids), len(self.feature_set))
        if features.dtype != np.float32 or features.shape != expected:
            raise DataError(f"a log takes float32 rows of shape {expected}, got {features.dtype} of {features.shape}.")
        ids = [document_id.encode() for document_id in document_ids]
        name, text = query_id.encode(), b"".join(ids)
        payload = b"".join(
            (
                _SIZES.pack(len(name), len(text), len(ids)),
                name,
                np.array([len(one) for one in ids], "<u4").tobytes(),
                text,
                np.ascontiguousarray(features, "<f4").tobytes(),
            )
        )
        with self._file.locked():
            self._file.write(_framed(payload))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self) -> None:
        """Write the header of a new log; check that of an old one, and cut off an incomplete record."""
        with self._file.locked():
            if self._file.size == 0:
                header = {"features": list(self.feature_set.names), "fingerprint": self.feature_set.fingerprint}
                self._file.write(_MAGIC + _framed(json.dumps(header).encode()))
                return
            with open(self.path, "rb") as file:
                feature_set = _read_header(file, self.path)
                if feature_set.fingerprint != self.feature_set.fingerprint:
                    raise DataError(
                        f"{self.path} has rows of the feature set {feature_set.fingerprint}, not of "
                        f"{self.feature_set.fingerprint}. Start another log."
                    )
                whole = file.tell()
                for _, length in _frames(file, self.path):
                    whole = file.seek(length, os.SEEK_CUR)
            self._file.cut(whole)


class FeatureLogReader:
    """The content of a log: its feature set, and the served queries in the order they were logged."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            with open(self.path, "rb") as file:
                self.feature_set = _read_header(file, self.path)
                self._start = file.tell()
        except OSError as cause:
            raise DataError(f"cannot read {self.path}: {cause.strerror}.") from cause

    def __iter__(self) -> Iterator[LoggedQuery]:
        with open(self.path, "rb") as file:
            file.seek(self._start)
            for number, (checksum, length) in enumerate(_frames(file, self.path), start=1):
                payload = file.read(length)
                if zlib.crc32(payload) != checksum:
                    raise _damaged(self.path, f"record {number} was altered")
                yield self._parse(payload, number)

    def _parse(self, payload: bytes, number: int) -> LoggedQuery:
        try:
            name_bytes, id_bytes, n_docs = _SIZES.unpack_from(payload)
            place = _SIZES.size + name_bytes
            lengths = np.frombuffer(payload, "<u4", n_docs, place)
            ends = place + 4 * n_docs + np.cumsum(lengths, dtype=np.int64)
            ids = [payload[end - length : end].decode() for end, length in zip(ends, lengths, strict=True)]
            start = place + 4 * n_docs + id_bytes
            features = np.frombuffer(payload, "<f4", offset=start).reshape(n_docs, len(self.feature_set))
        except (ValueError, struct.error) as cause:
            raise _damaged(self.path, f"record {number} is not valid") from cause
        name = payload[_SIZES.size : place].decode()
        return LoggedQuery(name, tuple(ids), features.astype(np.float32))


def _framed(content: bytes) -> bytes:
    length, checksum = len(content), zlib.crc32(content)
    return _PREFIX.pack(length, checksum, zlib.crc32(struct.pack("<II", length, checksum))) + content


def _frames(file: BinaryIO, path: str) -> Iterator[tuple[int, int]]:
    """Checksum and length of each whole frame from here on; the file is at its content, which the caller must read."""
    size = os.fstat(file.fileno()).st_size
    while True:
        start = file.tell()
        prefix = file.read(_PREFIX.size)
        if len(prefix) < _PREFIX.size:
            return
        length, checksum, own = _PREFIX.unpack(prefix)
        if zlib.crc32(prefix[:8]) != own:
            raise _damaged(path, f"byte {start} does not begin a record")
        if file.tell() + length > size:
            return
        yield checksum, length


def _read_header(file: BinaryIO, path: str) -> FeatureSet:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise FileFormatError(f"{path} is not a feature log, or it is of another version.")
    checksum, length = next(_frames(file, path), (0, -1))
    content = file.read(length) if length >= 0 else b""
    if length < 0 or zlib.crc32(content) != checksum:
        raise _damaged(path, "its header is incomplete")
    try:
        header = parse_json(content)
        names, fingerprint = header["features"], header["fingerprint"]
    except (LookupError, TypeError, ValueError) as cause:
        raise _damaged(path, "its header is not the one of a log") from cause
    feature_set = FeatureSet(names)
    if feature_set.fingerprint != fingerprint:
        raise FileFormatError(
            f"{path} was logged by a release whose formulas differ: features computed now are not comparable with it."
        )
    return feature_set


def _damaged(path: str, how: str) -> FileFormatError:
    return FileFormatError(
        f"{path} is damaged: {how}. Nothing after it can be trusted; use a copy, or start a new log."
    )
