"""Frames: messages between processes, over a connection that stays open. Four bytes of length, then MessagePack.

A small request and its reply over loopback take about a third of the processor time of HTTP/1.1 (see
docs/guide/serving.md), and many can be under way at once on one connection.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from rankwell.errors import RankwellError

MOST_BYTES = 1 << 28
"""The largest frame: a ranker file."""

MOST_BYTES_UNKNOWN = 4096
"""The largest frame of someone who has not said the token."""

_encoder = msgspec.msgpack.Encoder()


class FrameError(RankwellError):
    """What came is not a frame, or not a message."""


def encoded(message: Any) -> bytes:
    """A message as a frame."""
    body = _encoder.encode(message)
    return len(body).to_bytes(4, "big") + body


async def read_frame(reader: asyncio.StreamReader, most: int = MOST_BYTES) -> bytes | None:
    """The body of the next frame; None if the connection was closed between two frames."""
    try:
        head = await reader.readexactly(4)
        length = int.from_bytes(head, "big")
        if length > most:
            raise FrameError(f"a frame has {length:,} bytes, {most:,} are allowed.")
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as cause:
        if cause.partial:
            raise FrameError("the connection ended within a frame.") from cause
        return None


def decoded(body: bytes, decoder: msgspec.msgpack.Decoder[Any]) -> Any:
    """A frame's message; FrameError if it is none."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise FrameError(f"a frame is not a message: {cause}.") from cause
