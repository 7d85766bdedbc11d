"""The names of features in LETOR / SVMlight text: a comment in the first line, which other readers ignore.

# features: ["bm25.title", "bm25.body"]
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from rankwell.errors import DataError
from rankwell.streams.decompression import ByteStream
from rankwell.streams.json_text import parse_json

HEADER = b"# features: ["
_LONGEST = 2**24
_FIRST_LOOK = 2**12


def header_line(feature_names: Sequence[str]) -> bytes:
    """The line that names the features."""
    return HEADER[:-1] + json.dumps(list(feature_names)).encode() + b"\n"


def peek_feature_names(stream: ByteStream) -> tuple[str, ...] | None:
    """The names in the stream's first line, None if there are none; nothing is consumed from the stream."""
    if not stream.peek(len(HEADER)).startswith(HEADER):
        return None
    looked = _FIRST_LOOK
    head = stream.peek(looked)
    while b"\n" not in head and len(head) == looked and looked < _LONGEST:
        looked *= 4
        head = stream.peek(looked)
    text = head.partition(b"\n")[0][len(HEADER) - 1 :]
    try:
        names = parse_json(text)
    except ValueError as cause:
        raise _bad_names(stream) from cause
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names) or not names:
        raise _bad_names(stream)
    return tuple(names)


def _bad_names(stream: ByteStream) -> DataError:
    return DataError(
        f"{stream.name}, line 1: the names of the features must be a JSON list of different texts. Correct or remove "
        "the line."
    )
