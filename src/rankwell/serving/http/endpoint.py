"""From a request of HTTP to an answer: what came is checked, errors get their status, all is counted and logged."""

from __future__ import annotations

import hmac
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rankwell.errors import Parameter, ParameterError, RankwellError
from rankwell.serving.batching import OverloadError
from rankwell.serving.http.messages import ErrorAnswer
from rankwell.serving.http.openapi import Call
from rankwell.serving.http.query_service import QueryService
from rankwell.serving.unknown_document import UnknownDocumentError
from rankwell.streams.appended_file import WriteError

MOST_BYTES = 1 << 20
"""The largest body."""

# Parameters of the library that are called otherwise in the calls.
_NAMES = {"facets": "facet"}
# What calls call the documents that they are about.
_DOCUMENTS = ("id", "document", "documents")
# As in "Expected `int`, got `str`".
_GOT_TYPE = re.compile(r", got `[^`]*`")
_log = logging.getLogger("rankwell.serving")

# What a call does with its parameters, its body and the request.
Work = Callable[[Any, Any, Request], Awaitable[Any]]


class RequestError(Exception):
    """An answer that is an error."""

    def __init__(
        self, status: int, error: str, parameter: str | None = None, *, retry_after: float | None = None
    ) -> None:
        self.status, self.error, self.parameter, self.retry_after = status, error, parameter, retry_after
        super().__init__(error)


def make_endpoint(
    call: Call, work: Work, service: QueryService, token: str | None
) -> Callable[[Request], Awaitable[Response]]:
    """A call as Starlette wants it: reads what came, answers or says what is wrong, counts and logs."""
    encoder = msgspec.json.Encoder()

    async def endpoint(request: Request) -> Response:
        started, is_refused = time.perf_counter(), False
        try:
            if call.needs_token:
                _check_token(request, token)
            asked = None if call.parameters is None else _converted(_given(request, call.parameters), call.parameters)
            body = None if call.body is None else await _body(request, call.body)
            answer = await work(asked, body, request)
            if isinstance(answer, Response):
                response = answer
            elif answer is None:
                response = Response(status_code=204)
            else:
                response = Response(encoder.encode(answer), media_type="application/json")
        except Exception as error:
            # Not every 503 is one: that no shard answers is what /readyz is asked for.
            is_refused = isinstance(error, OverloadError)
            response = _error_response(_request_error(error, call))
        seconds = time.perf_counter() - started
        service.metrics.add_request(call.path, response.status_code, seconds, is_refused=is_refused)
        _log_request(call, request, response, seconds)
        return response

    return endpoint


def _log_request(call: Call, request: Request, response: Response, seconds: float) -> None:
    if _log.isEnabledFor(logging.INFO):
        facts = {"method": call.method, "path": call.path, "status": response.status_code}
        facts |= {"ms": round(1000 * seconds, 3), "bytes": len(response.body)}
        if _log.isEnabledFor(logging.DEBUG):
            facts["query_string"] = request.url.query
        _log.info("request", extra=facts)


def _check_token(request: Request, token: str | None) -> None:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if token is None or scheme.lower() != "bearer" or not hmac.compare_digest(given.encode(), token.encode()):
        raise RequestError(401, "this call needs the header Authorization: Bearer TOKEN with the server's token.")


async def _body(request: Request, kind: type) -> Any:
    # A page of another site cannot send this type without being asked for permission first.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, "the body must be JSON, with the header Content-Type: application/json.")
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_BYTES:
            raise RequestError(413, f"a body may have at most {MOST_BYTES:,} bytes. Send less at once.")
    try:
        decoded = msgspec.json.decode(bytes(content))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise RequestError(400, f"the body is not JSON: {cause}.") from cause
    return _converted(decoded, kind, strict=True)


def _given(request: Request, kind: type) -> dict[str, Any]:
    return parameters_of(request.scope["query_string"].decode("latin-1"), kind)


def parameters_of(query_string: str, kind: type) -> dict[str, Any]:
    """The parameters of a query string: lists where the struct has a list, others once. Raises RequestError."""
    given: dict[str, Any] = {}
    lists = _lists_of(kind)
    # Bytes that are not UTF-8 become surrogates, which no UTF-8 has.
    for name, value in parse_qsl(query_string, keep_blank_values=True, errors="surrogateescape"):
        _check_utf8(name, value)
        if name in lists:
            given.setdefault(name, []).append(value)
        elif name in given:
            text = f"{name} was given more than once, got {given[name]!r:.60} and {value!r:.60}. Give it once."
            raise RequestError(422, text, name)
        else:
            given[name] = value
    return given


def _check_utf8(name: str, value: str) -> None:
    try:
        (name + value).encode()
    except UnicodeEncodeError as cause:
        sent = [repr(one.encode(errors="surrogateescape"))[1:] for one in (name, value)]
        is_name = cause.start < len(name)
        text = f"{sent[0] if is_name else name} is not UTF-8, got {sent[not is_name]:.60}. Encode it as UTF-8."
        raise RequestError(422, text, None if is_name else name) from cause


@cache
def _lists_of(kind: type) -> frozenset[str]:
    """The fields of a struct that are lists."""
    fields = msgspec.structs.fields(kind)
    return frozenset(field.name for field in fields if field.default_factory is list)


@cache
def _choices_of(kind: type, name: str) -> str:
    """The values that a field of a struct may have; empty if they are not a few."""
    info = msgspec.inspect.type_info(kind)
    fields = info.fields if isinstance(info, msgspec.inspect.StructType) else ()
    own = next((field.type for field in fields if field.encode_name == name), None)
    inner = own.type if isinstance(own, msgspec.inspect.Metadata) else own
    return ", ".join(map(str, inner.values)) if isinstance(inner, msgspec.inspect.LiteralType) else ""


def _converted(given: Any, kind: type, *, strict: bool = False) -> Any:
    try:
        return msgspec.convert(given, kind, strict=strict)
    except msgspec.ValidationError as cause:
        text, _, place = str(cause).partition(" - at `$")
        name = place.strip(".`").partition("[")[0] or None
        if name is None and " field `" in text:
            # A field that is missing or unknown is named in the text, as other things are in other texts.
            name = text.rsplit("`", 2)[-2]
        got = ""
        if isinstance(given, dict) and name in given:
            # What came is said once, as it came and not by its type.
            text, got = _GOT_TYPE.sub("", text), f", got {given[name]!r:.60}"
            choices = _choices_of(kind, name)
            text = f"must be one of {choices}" if text.startswith("Invalid enum value") and choices else text
        where = f"{name}: " if place and name is not None else ""
        raise RequestError(422, f"{where}{text}{got}. /openapi.json says what is allowed.", name) from cause


def _fields_of(call: Call) -> tuple[str, ...]:
    """The parameters of a call: of its query string or of its body."""
    kinds = (kind for kind in (call.parameters, call.body) if kind is not None)
    return tuple(field.name for kind in kinds for field in msgspec.structs.fields(kind))


def _name_in(given: Sequence[str], parameter: Parameter) -> str | None:
    """What a parameter of the library is called in a call that has these; None if it has none for it."""
    name = _NAMES.get(parameter.name, parameter.name)
    if name not in given or parameter.value is None:
        return name if name in given else None
    return f"{name}={msgspec.json.encode(parameter.value).decode()}"


def _error_response(wrong: RequestError) -> Response:
    content = msgspec.json.encode(ErrorAnswer(wrong.error, wrong.parameter))
    headers = {} if wrong.retry_after is None else {"Retry-After": str(math.ceil(wrong.retry_after))}
    if wrong.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(content, wrong.status, headers, media_type="application/json")


def _request_error(error: Exception, call: Call) -> RequestError:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, OverloadError):
        return RequestError(503, str(error), retry_after=error.retry_after)
    if isinstance(error, ParameterError):
        given = _fields_of(call)
        # A mistake in the query's text has no name of its own.
        of_text = next((name for name in ("q", "query") if name in given), None)
        parameter = of_text if error.parameter is None else _NAMES.get(error.parameter, error.parameter)
        return RequestError(422, error.in_words_of(partial(_name_in, given)), parameter)
    if isinstance(error, WriteError):
        _log.error("what a request brought is not kept: %s", error)
        return RequestError(507, str(error))
    if isinstance(error, UnknownDocumentError):
        return RequestError(404, str(error), next((name for name in _DOCUMENTS if name in _fields_of(call)), None))
    if isinstance(error, RankwellError):
        return RequestError(422, str(error))
    _log.error("a request failed", exc_info=error)
    return RequestError(500, "the server failed; its log says why.")
