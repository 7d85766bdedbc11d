"""Supervision: the node processes of a server, started with it, started again when they die, ended with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence

from rankwell.errors import DataError
from rankwell.serving.shards.node_link import NodeLink

_log = logging.getLogger("rankwell.serving")

TOKEN_VARIABLE = "RANKWELL_NODE_TOKEN"

# A large index may take long to open; one that cannot be opened makes its process end.
_STARTS_WITHIN = 300.0
_ENDS_WITHIN = 35.0
# The pause before a node is started again doubles each time that it does not live for a while.
_FIRST_PAUSE, _LONGEST_PAUSE, _LIVES = 0.1, 5.0, 10.0
_LOOK_SECONDS = 0.5


class NodeProcess:
    """The process of a node, and the link to it; arguments : of `rankwell node`"""

    def __init__(self, arguments: Sequence[str], link: NodeLink, token: str) -> None:
        self.arguments, self.link, self._token = list(arguments), link, token
        self.process: asyncio.subprocess.Process | None = None
        self.started = 0.0

    async def start(self) -> None:
        """Start the process, and wait until it listens; DataError if it ends instead."""
        self.started = time.monotonic()
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "rankwell", "node", *self.arguments, "--port", "0", "--ends-with-stdin"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, TOKEN_VARIABLE: self._token},
            # Ctrl-C is for the server, which lets its nodes finish.
            start_new_session=True,
        )
        assert self.process.stdout is not None
        line = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STARTS_WITHIN):
                line = await self.process.stdout.readline()
        words = line.decode("utf-8", "replace").split()
        if not words or not words[-1].rpartition(":")[2].isdigit():
            await self.end()
            raise DataError(f"the node of {self.arguments[0]} did not start; it says why above.")
        host, _, port = words[-1].rpartition(":")
        self.link.move(host, int(port))

    async def end(self) -> None:
        """Let the process finish what it does, and end."""
        process = self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
            # One that is stopped would not see the other signal.
            process.send_signal(signal.SIGCONT)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ENDS_WITHIN):
                await process.wait()
        if process.returncode is None:
            self.kill()
            await process.wait()

    def kill(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()


class Supervisor:
    """Keeps node processes alive.

    Parameters
    ----------
    processes : sequence of NodeProcess
    hung : float
        A node that lives but has not answered for so many seconds is killed, and started again.
    """

    def __init__(self, processes: Sequence[NodeProcess], *, hung: float = 30.0) -> None:
        self.processes, self._hung = list(processes), hung
        self.n_restarts = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start all processes at the same time."""
        started = await asyncio.gather(*(one.start() for one in self.processes), return_exceptions=True)
        failed = [error for error in started if isinstance(error, BaseException)]
        if failed:
            await self.stop()
            raise failed[0]
        self._tasks = [asyncio.create_task(self._keep(one)) for one in self.processes]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(one.end() for one in self.processes))

    async def _keep(self, one: NodeProcess) -> None:
        pause = _FIRST_PAUSE
        while True:
            await self._until_it_ends(one)
            lived = time.monotonic() - one.started
            pause = _FIRST_PAUSE if lived > _LIVES else min(2 * pause, _LONGEST_PAUSE)
            _log.error("the node %s ended after %.1f s, and is started again", one.link.name, lived)
            await asyncio.sleep(pause)
            self.n_restarts += 1
            with contextlib.suppress(DataError):
                await one.start()

    async def _until_it_ends(self, one: NodeProcess) -> None:
        """Wait for the end of a process; one that hangs is brought to it."""
        process, answered = one.process, time.monotonic()
        assert process is not None
        while process.returncode is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await process.wait()
            if one.link.is_connected:
                answered = time.monotonic()
            elif time.monotonic() - answered > self._hung:
                _log.error("the node %s has not answered for %.0f s, and is killed", one.link.name, self._hung)
                one.kill()
                await process.wait()
