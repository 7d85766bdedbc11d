"""The server process: Uvicorn around the application."""

from __future__ import annotations

import signal
import socket
import sys

import uvicorn
from starlette.applications import Starlette

from rankwell.errors import ParameterError

# How long requests that are being answered may take after SIGTERM.
_DRAINING_SECONDS = 30
# Python's 5 ms would let the ranking thread delay every refusal and every cache hit by that much.
_SWITCH_SECONDS = 0.0005


def bind(host: str, port: int) -> socket.socket:
    """A socket with an address, so that a port in use is known before anything is loaded; port 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as cause:
        listening.close()
        raise ParameterError(
            f"cannot listen on {host} port {port}: {getattr(cause, 'strerror', None) or cause}. Choose another with "
            f"--port; 0 is any that is free."
        ) from cause
    return listening


def run(app: Starlette, listening: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT; requests that have come by then are answered."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAINING_SECONDS,
    )
    # Uvicorn raises the signal again when it has drained: then SIGTERM is a success, and not a death.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        sys.setswitchinterval(before)
