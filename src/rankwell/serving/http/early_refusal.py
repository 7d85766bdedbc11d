"""Early refusal: a search that cannot be answered in time gets its 503 before anything is made of the request.

Under overload most requests are refused, and all that is done for them is taken from the ranking of others. So a search
that came whole is read and refused at once if the queue has no place for it, without a task, a scope and the layers of
the application. Whatever else comes, or is not certain, goes the usual way, which gives the same answer.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable

import msgspec

from rankwell.errors import RankwellError
from rankwell.serving.http.endpoint import RequestError, parameters_of
from rankwell.serving.http.limited_head import LimitedProtocol
from rankwell.serving.http.messages import ErrorAnswer, SearchParameters
from rankwell.serving.http.query_service import QueryService

_SEARCH = b"GET /search?"
_END = b"\r\n\r\n"
# Headers by which a request has a body, or wants more than an answer on a connection that stays.
_UNUSUAL = (b"\r\nconnection:", b"\r\ncontent-length:", b"\r\ntransfer-encoding:", b"\r\nexpect:")
_log = logging.getLogger("rankwell.serving")


class EarlyRefusals:
    """Decides by the bytes of a request whether it is refused."""

    def __init__(self, service: QueryService) -> None:
        self._service = service

    def response(self, data: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
        """The refusal of a request, None if it is not refused here; headers : those that every response has"""
        if not data.startswith(_SEARCH) or not self._service.is_overloaded or _log.isEnabledFor(logging.INFO):
            return None
        started = time.perf_counter()
        asked = _search_of(data)
        refusal = None if asked is None else self._service.refusal(asked)
        if refusal is None:
            return None
        body = msgspec.json.encode(ErrorAnswer(str(refusal)))
        head = b"HTTP/1.1 503 Service Unavailable\r\n" + b"".join(b"%b: %b\r\n" % pair for pair in headers)
        head += b"retry-after: %d\r\ncontent-length: %d\r\n" % (math.ceil(refusal.retry_after), len(body))
        self._service.metrics.add_request("/search", 503, time.perf_counter() - started, is_refused=True)
        return head + b"content-type: application/json\r\n\r\n" + body


def _search_of(data: bytes) -> SearchParameters | None:
    """What a request asks for, if these bytes are all of it and nothing else, and right."""
    if data.find(_END) != len(data) - len(_END):
        return None
    target, _, rest = data[len(_SEARCH) :].partition(b" ")
    lower = rest.lower()
    if not rest.startswith(b"HTTP/1.1\r\n") or any(name in lower for name in _UNUSUAL):
        return None
    try:
        given = parameters_of(target.decode("ascii"), SearchParameters)
        return msgspec.convert(given, SearchParameters, strict=False)
    except (UnicodeDecodeError, ValueError, msgspec.ValidationError, RankwellError, RequestError):
        return None


def refusing_protocol(refusals: EarlyRefusals) -> type[LimitedProtocol]:
    """The protocol with early refusals."""

    class RefusingProtocol(LimitedProtocol):
        _is_reading = False

        def data_received(self, data: bytes) -> None:
            is_free = not self._is_reading and (self.cycle is None or self.cycle.response_complete)
            refusal = refusals.response(data, self.server_state.default_headers) if is_free else None
            if refusal is None:
                super().data_received(data)
                return
            self.transport.write(refusal)
            # Counts the request, and starts the time again after which a connection without requests is closed.
            self.on_response_complete()

        def on_message_begin(self) -> None:
            self._is_reading = True
            super().on_message_begin()

        def on_message_complete(self) -> None:
            self._is_reading = False
            super().on_message_complete()

    return RefusingProtocol
