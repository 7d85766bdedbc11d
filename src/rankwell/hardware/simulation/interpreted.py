"""Simulation by Amaranth itself: slow, but it needs no compiler."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import numpy as np

from rankwell.hardware.ports import StreamPort, ports_of
from rankwell.hardware.simulation.simulation import Beats, ProtocolError

_PERIOD, _WAIT = 1e-6, 1e-12
_Job = Callable[[Any], Coroutine[Any, Any, None]]


class InterpretedSimulation:
    """A design in Amaranth's simulator; see `Simulation`."""

    simulator = "amaranth"

    def __init__(self, design: Any) -> None:
        from amaranth.hdl import Module, ResetInserter, Signal, Value
        from amaranth.sim import Simulator

        self.ports = ports_of(design)
        self._signals = {
            "__".join(map(str, path)): Value.cast(value) for path, _, value in design.signature.flatten(design)
        }
        self._reset = Signal()
        module = Module()
        module.submodules.design = ResetInserter(self._reset)(design)
        self._simulator = Simulator(module)
        self._simulator.add_clock(_PERIOD)
        self._simulator.add_testbench(self._work)
        self._job: _Job | None = None

    async def _work(self, context: Any) -> None:
        """Runs jobs; no cycle passes between two of them, as the clock is a million times slower than this waits."""
        while True:
            while self._job is None:
                await context.delay(_WAIT)
            await self._job(context)
            self._job = None

    def _do(self, job: _Job) -> None:
        self._job = job
        while self._job is not None:
            self._simulator.advance()

    def reset(self) -> None:
        async def job(context: Any) -> None:
            context.set(self._reset, 1)
            await context.tick()
            context.set(self._reset, 0)

        self._do(job)

    def set(self, name: str, value: int) -> None:
        async def job(context: Any) -> None:
            context.set(self._signals[name], value)

        self._do(job)

    def run(
        self,
        inputs: Mapping[str, Beats],
        outputs: Mapping[str, int],
        *,
        stalls: np.ndarray | None = None,
        most_cycles: int,
        check: bool = False,
        may_stop: bool = False,
    ) -> tuple[int, dict[str, np.ndarray]]:
        given = [_Given(stream, inputs.get(stream.name)) for stream in self.ports.inputs]
        taken = [_Taken(stream, outputs.get(stream.name, 0)) for stream in self.ports.outputs]
        streams: list[_Given | _Taken] = [*given, *taken]
        held = [0] if stalls is None else [int(word) for word in stalls]
        cycles = 0

        async def job(context: Any) -> None:
            nonlocal cycles
            while any(stream.left for stream in streams) and cycles < most_cycles:
                for number, stream in enumerate(streams):
                    stream.drive(context, self._signals, bool(held[cycles % len(held)] >> number & 1))
                for stream in streams:
                    stream.judge(context, self._signals)
                await context.tick()
                cycles += 1
            for stream in streams:
                stream.rest(context, self._signals)

        self._do(job)
        if not may_stop and any(stream.left for stream in streams):
            raise ProtocolError(f"the design did not finish in {most_cycles:,} cycles")
        return cycles, {stream.port.name: stream.rows for stream in taken}


class _Given:
    """An input stream: once offered, a beat is offered until it is taken."""

    def __init__(self, port: StreamPort, beats: Beats | None) -> None:
        self.port, self._beats = port, beats
        self._done, self._offered = 0, False

    @property
    def left(self) -> int:
        return 0 if self._beats is None else self._beats.count - self._done

    def drive(self, context: Any, signals: Mapping[str, Any], held: bool) -> None:
        self._offered = self.left > 0 and (self._offered or not held)
        context.set(signals[self.port.valid.name], self._offered)
        if self._offered and self._beats is not None:
            row = self._beats.rows[self._done % len(self._beats.rows)]
            context.set(signals[self.port.payload.name], int.from_bytes(row.tobytes(), "little"))

    def judge(self, context: Any, signals: Mapping[str, Any]) -> None:
        if self._offered and context.get(signals[self.port.ready.name]):
            self._offered = False
            self._done += 1

    def rest(self, context: Any, signals: Mapping[str, Any]) -> None:
        context.set(signals[self.port.valid.name], 0)


class _Taken:
    """An output stream: what it shows must not change before it is taken."""

    def __init__(self, port: StreamPort, n_beats: int) -> None:
        self.port, self.left = port, n_beats
        self.rows = np.zeros((n_beats, port.row_bytes), dtype=np.uint8)
        self._accepts = False
        self._shown: int | None = None

    def drive(self, context: Any, signals: Mapping[str, Any], held: bool) -> None:
        self._accepts = self.left > 0 and not held
        context.set(signals[self.port.ready.name], self._accepts)

    def judge(self, context: Any, signals: Mapping[str, Any]) -> None:
        value = context.get(signals[self.port.payload.name])
        if not context.get(signals[self.port.valid.name]):
            if self._shown is not None:
                raise ProtocolError("an output's valid fell before its beat was taken")
            return
        if self._shown not in (None, value):
            raise ProtocolError("an output's payload changed before its beat was taken")
        self._shown = None if self._accepts else value
        if self._accepts:
            row = value.to_bytes(self.port.row_bytes, "little")
            self.rows[len(self.rows) - self.left] = np.frombuffer(row, dtype=np.uint8)
            self.left -= 1

    def rest(self, context: Any, signals: Mapping[str, Any]) -> None:
        context.set(signals[self.port.ready.name], 0)
