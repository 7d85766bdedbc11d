"""The accelerator: arrays with their memory channels, and the choice among them.

Each array has queues for its memory channels, written individually and read together, as in FAR2's MMU, and a queue
for π. An array takes an item when every queue has one and the next array's queue has room for π: so π moves from array
to array, one a cycle, and no wire is longer than from an array to its neighbour.

The largest |r| so far moves up the row of arrays and back down, and each drops the records that are too small for it.
The first record that remains, of all arrays, moves up the row too. Both are registers that run all the time: after
`settle_cycles` without change they are right.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import and_, or_
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.queue import StreamQueue, connect
from rankwell.hardware.rankboost.array import ProcessingArray
from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.record_scan import DROP_CYCLES, record_layout


def potential_layout(configuration: RankBoostConfiguration) -> data.StructLayout:
    """A beat of the stream of π; `last` marks the last document of a pass."""
    return data.StructLayout({"pi": signed(configuration.pi_bits), "last": 1})


def result_layout(configuration: RankBoostConfiguration) -> data.StructLayout:
    """The result of a round: its weak ranker, `found` if any |r| is above the floor, |r| and sign, the largest |r|.

    overflow : repeat the round with floor = best − margin − 1; what is then found is right, whatever overflows
    unbalanced : the π of the round do not sum to 0: the result is not valid
    """
    return data.StructLayout(
        {
            "size": configuration.sum_bits,
            "negative": 1,
            "best": configuration.sum_bits,
            "feature": configuration.feature_bits,
            "bin": configuration.bin_bits,
            "found": 1,
            "overflow": 1,
            "unbalanced": 1,
        }
    )


def settle_cycles(configuration: RankBoostConfiguration) -> int:
    """Cycles from the last array's end to the result."""
    return DROP_CYCLES * (configuration.records + 1) + 6 * configuration.arrays + 4


class RankBoostAccelerator(wiring.Component):
    """The search for a round's weak ranker.

    Members
    -------
    words_0, words_1, ... : streams in
        Memory channels: array a has numbers `channels`·a and on. Together, the beats of an array's channels are the
        bins of one document in the 16 features of a group, 8 bits each, lowest feature lowest. The documents come in
        the same order in every pass, and pass p of array a is for the features of group p·arrays + a.
    potentials : stream in
        π of the documents, once in every pass.
    result : stream out
        One beat a round.
    passes : in
        The number of passes of a round, stable from one result to the next, as are the following.
    margin : in
        Two |r| that differ by no more than this count as equal.
    floor : in
        Only an |r| above it can be chosen: 0, unless a round is repeated.
    """

    def __init__(self, configuration: RankBoostConfiguration) -> None:
        self.configuration = configuration
        channels = configuration.arrays * configuration.channels
        super().__init__(
            {
                **{f"words_{number}": In(stream.Signature(configuration.channel_bits)) for number in range(channels)},
                "potentials": In(stream.Signature(potential_layout(configuration))),
                "result": Out(stream.Signature(result_layout(configuration))),
                "passes": In(configuration.group_bits),
                "margin": In(configuration.sum_bits - 1),
                "floor": In(configuration.sum_bits),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        arrays = [ProcessingArray(self.configuration, number) for number in range(self.configuration.arrays)]
        for array in arrays:
            m.submodules[f"array_{array.number}"] = array
        for name in ("passes", "margin", "floor"):
            self._tell(m, arrays, name)
        self._feed(m, arrays)
        self._share_largest(m, arrays)
        self._give(m, arrays, self._first_record(m, arrays))
        return m

    def _tell(self, m: Module, arrays: list[ProcessingArray], name: str) -> None:
        """A setting to all arrays, from one to the next; they rest for longer than that takes."""
        setting = getattr(self, name)
        for array in arrays:
            setting = delayed(m, setting, 1, f"{name}_{array.number}")
            m.d.comb += getattr(array, name).eq(setting)

    def _feed(self, m: Module, arrays: list[ProcessingArray]) -> None:
        """Queues, and π from array to array."""
        configuration = self.configuration
        n_channels, depth = configuration.channels, configuration.queue_depth
        incoming: Any = self.potentials
        for array in arrays:
            queues = []
            for number in range(n_channels * array.number, n_channels * (array.number + 1)):
                m.submodules[f"words_queue_{number}"] = queue = StreamQueue(
                    configuration.channel_bits, depth, registered=False
                )
                connect(m, getattr(self, f"words_{number}"), queue.incoming)
                queues.append(queue.outgoing)
            potentials = StreamQueue(configuration.pi_bits + 1, depth, registered=False)
            m.submodules[f"potentials_queue_{array.number}"] = potentials
            connect(m, incoming, potentials.incoming)
            item = data.View(potential_layout(configuration), potentials.outgoing.payload)
            passed = stream.Signature(potential_layout(configuration)).create(path=(f"passed_{array.number}",))
            if array is arrays[-1]:
                m.d.comb += passed.ready.eq(1)
            take = Signal(name=f"take_{array.number}")
            together = [potentials.outgoing, *queues]
            m.d.comb += [
                take.eq(Cat(array.ready, passed.ready, *(queue.valid for queue in together)).all()),
                *(queue.ready.eq(take) for queue in together),
                array.valid.eq(take),
                array.word.eq(Cat(queue.payload for queue in queues)),
                array.pi.eq(item.pi),
                array.last.eq(item.last),
                passed.payload.eq(item),
                passed.valid.eq(take),
            ]
            incoming = passed

    def _share_largest(self, m: Module, arrays: list[ProcessingArray]) -> None:
        """The largest |r| of all arrays, and the limit that follows from it in each."""
        bits = self.configuration.sum_bits
        largest = arrays[0].best
        for array in arrays[1:]:
            larger, upwards = Signal(name=f"larger_{array.number}"), Signal(bits, name=f"largest_{array.number}")
            m.d.sync += [larger.eq(largest > array.best), upwards.eq(Mux(larger, largest, array.best))]
            largest = upwards
        self._largest = largest
        for array in reversed(arrays):
            if array is not arrays[-1]:
                downwards = Signal(bits, name=f"largest_back_{array.number}")
                m.d.sync += downwards.eq(largest)
                largest = downwards
            limit = Signal(signed(bits + 1), name=f"limit_{array.number}")
            m.d.sync += limit.eq(largest - array.margin)
            m.d.comb += array.limit.eq(limit)

    def _first_record(self, m: Module, arrays: list[ProcessingArray]) -> tuple[Any, Any]:
        """The record of the lowest feature of all arrays, and whether there is one."""
        head: Any = arrays[0].head
        found: Any = arrays[0].found
        for array in arrays[1:]:
            mine = Signal(name=f"mine_{array.number}")
            next_head = Signal(record_layout(self.configuration), name=f"first_{array.number}")
            next_found = Signal(name=f"found_{array.number}")
            m.d.sync += [
                mine.eq(array.found & (~found | (array.head.feature < head.feature))),
                next_head.eq(Mux(mine, array.head, head)),
                next_found.eq(found | array.found),
            ]
            head, found = next_head, next_found
        return head, found

    def _give(self, m: Module, arrays: list[ProcessingArray], first: tuple[Any, Any]) -> None:
        """Wait for all arrays, then until the row has settled; give the result; restart the arrays."""
        head, found = first
        settle = settle_cycles(self.configuration)
        wait, all_done, restart = Signal(range(settle)), Signal(), Signal()
        result = self.result.payload
        m.d.sync += [
            all_done.eq(_along(m, [array.done for array in arrays], "done", and_)),
            result.size.eq(head.size),
            result.negative.eq(head.negative),
            result.best.eq(self._largest),
            result.feature.eq(head.feature),
            result.bin.eq(head.bin),
            result.found.eq(found),
            result.overflow.eq(_along(m, [array.overflow for array in arrays], "overflow", or_)),
            result.unbalanced.eq(_along(m, [array.unbalanced for array in arrays], "unbalanced", or_)),
        ]
        restarts: Any = restart
        for array in reversed(arrays):  # back along the row; the first arrays rest for less
            m.d.comb += array.restart.eq(restarts)
            restarts = delayed(m, restarts, 1, f"restart_{array.number}", reset_less=False)
        with m.FSM():
            with m.State("RUN"):
                m.d.sync += wait.eq(settle - 1)
                with m.If(all_done):
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += self.result.valid.eq(1)
                with m.If(self.result.ready):
                    m.next = "RESTART"
            with m.State("RESTART"):  # the arrays' `done` is registered once
                m.d.comb += restart.eq(1)
                m.next = "RESTARTED"
            with m.State("RESTARTED"):
                m.next = "RUN"


def _along(m: Module, values: list[Any], name: str, combine: Callable[[Any, Any], Any]) -> Any:
    """Values of all arrays combined, from one array to the next.

    An array ends two cycles or more after the one before it, so the last one's end is not seen later for that.
    """
    combined = values[0]
    for number, value in enumerate(values[1:], start=1):
        combined = combine(delayed(m, combined, 1, f"{name}_before_{number}", reset_less=False), value)
    return combined
