"""A limit of request lines and headers: Uvicorn keeps them in memory, however long, until all of them have come."""

from __future__ import annotations

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rankwell.serving.http.messages import ErrorAnswer

MOST_HEAD_BYTES = 64 << 10
"""The longest request line and headers together; the longest query, percent-encoded, takes 24,000 bytes."""


class _HeadTooLongError(Exception):
    """Ends the parsing of a request."""


class LimitedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, which answers a head that is too long with 431, and closes the connection.

    What the parser has told of is counted exactly. A header is told of when all of it has come, so that the bytes that
    came since the parser told of anything are counted besides.
    """

    _n_head = 0
    _n_untold = 0

    def data_received(self, data: bytes) -> None:
        self._n_untold += len(data)
        super().data_received(data)
        if self._n_untold > MOST_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("")

    def on_message_begin(self) -> None:
        self._n_head = self._n_untold = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._n_untold = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._n_untold = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._n_untold = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Also called by Uvicorn when parsing has ended with an error."""
        if self._n_head <= MOST_HEAD_BYTES and self._n_untold <= MOST_HEAD_BYTES:
            super().send_400_response(msg)
            return
        text = f"a request line and headers may have at most {MOST_HEAD_BYTES:,} bytes. Send less, or use a body."
        body = msgspec.json.encode(ErrorAnswer(text))
        head = b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
        head += b"".join(b"%b: %b\r\n" % pair for pair in self.server_state.default_headers)
        head += b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(head + body)
        self.transport.close()

    def _count(self, n_bytes: int) -> None:
        self._n_untold = 0
        self._n_head += n_bytes
        if self._n_head > MOST_HEAD_BYTES:
            raise _HeadTooLongError
