"""The server process: Uvicorn around the application."""

from __future__ import annotations

import errno
import os
import signal
import socket
from importlib.util import find_spec
from typing import Any

import uvicorn
from starlette.applications import Starlette

from rankwell.errors import ParameterError
from rankwell.serving.http.query_service import QueryService
from rankwell.serving.short_pauses import short_pauses

# How long requests that are being answered may take after SIGTERM.
_DRAINING_SECONDS = 30
# The event loop takes the interpreter lock about three times per request, and each time waits so long for the thread
# that ranks, if that runs Python: with Python's 5 ms, a refusal would take 15. On several cores, where another core is
# to be woken whenever the lock changes hands, shorter waits cost a fifteenth of the capacity.
_SWITCH_SECONDS = 0.0005
_SWITCH_SECONDS_ON_ONE_CORE = 0.0001


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket with an address, so that a port in use is known before anything is loaded; port 0 is any free one.

    shared : whether several processes may listen on the port, which get the connections in turns
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio's own event loop sends at once what it has (TCP_NODELAY): without it, the second
    # part of every answer would wait 40 ms for the client to acknowledge the first.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as cause:
        listening.close()
        is_used = getattr(cause, "errno", None) == errno.EADDRINUSE
        why = "another program uses it" if is_used else getattr(cause, "strerror", None) or str(cause)
        # Without the cause, which the command line would take for one of a file.
        raise ParameterError(
            f"cannot listen on {host} port {port}: {why}. Choose another with --port; 0 is any that is free."
        ) from None
    return listening


def bind_for_processes(host: str, port: int) -> socket.socket:
    """A socket with an address that several processes are to listen on, and that no other program uses."""
    if port:
        # Sockets that share a port are not kept from sharing it with those of another server, and connections would go
        # to either: only one that shares it with nobody tells whether others listen there.
        bind(host, port).close()
    return bind(host, port, shared=True)


def run(app: Starlette, listening: socket.socket, service: QueryService | None = None) -> None:
    """Serve until SIGTERM or SIGINT; requests that have come by then are answered.

    service : the application's, if searches are to be refused early
    """
    config = uvicorn.Config(
        app,
        http=_protocol(service),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAINING_SECONDS,
    )
    server = uvicorn.Server(config)

    def end(number: int, frame: Any) -> None:
        """Before Uvicorn listens to signals; it raises SIGTERM again when it has drained, a success and not a death."""
        server.should_exit = True

    signal.signal(signal.SIGTERM, end)
    is_on_one_core = hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) == 1
    with short_pauses(_SWITCH_SECONDS_ON_ONE_CORE if is_on_one_core else _SWITCH_SECONDS):
        server.run(sockets=[listening])


def _protocol(service: QueryService | None) -> Any:
    """The protocol with a limit of headers and early refusals, where Uvicorn would use the one that it is made of."""
    if find_spec("httptools") is None:
        # The other one has a limit of its own.
        return "auto"
    if service is None:
        from rankwell.serving.http.limited_head import LimitedProtocol

        return LimitedProtocol
    from rankwell.serving.http.early_refusal import EarlyRefusals, refusing_protocol

    return refusing_protocol(EarlyRefusals(service))
