"""Frames: messages between processes, over a connection that stays open. Four bytes of length, then MessagePack.

A small request and its reply over loopback take about a third of the processor time of HTTP/1.1 (see
docs/guide/serving.md), and many can be under way at once on one connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec

from rankwell.errors import RankwellError

MOST_BYTES = 1 << 28
"""The largest frame: a ranker file."""

MOST_BYTES_UNKNOWN = 4096
"""The largest frame of someone who has not said the token."""

_HEAD = 4

_encoder = msgspec.msgpack.Encoder()


class FrameError(RankwellError):
    """What came is not a frame, or not a message."""


def encoded(message: Any) -> bytes:
    """A message as a frame."""
    body = _encoder.encode(message)
    return len(body).to_bytes(_HEAD, "big") + body


class FrameReceiver(asyncio.Protocol):
    """Cuts what comes over a connection into frames: no task waits for them, which takes half the time of a stream.

    on_frame : called with the body of each frame; what it raises as FrameError ends the connection
    on_end : called once with the reason when the connection has ended; None if the other side closed it
    """

    def __init__(self, on_frame: Callable[[bytes], None], on_end: Callable[[Exception | None], None]) -> None:
        self._on_frame, self._on_end = on_frame, on_end
        self._received = bytearray()
        self._error: Exception | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not asserted: uvloop's transports are of classes of their own.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        start = 0
        try:
            while len(received) - start >= _HEAD:
                length = int.from_bytes(received[start : start + _HEAD], "big")
                if length > MOST_BYTES:
                    raise FrameError(f"a frame has {length:,} bytes, {MOST_BYTES:,} are allowed.")
                end = start + _HEAD + length
                if len(received) < end:
                    break
                self._on_frame(bytes(received[start + _HEAD : end]))
                start = end
        except FrameError as error:
            self._error = error
            if self._transport is not None:
                self._transport.abort()
        del received[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end(self._error or exc)


async def read_frame(reader: asyncio.StreamReader, most: int = MOST_BYTES) -> bytes | None:
    """The body of the next frame; None if the connection was closed between two frames."""
    try:
        head = await reader.readexactly(_HEAD)
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
