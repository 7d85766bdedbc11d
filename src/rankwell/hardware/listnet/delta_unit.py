"""δ of every unit of a document: the part of back propagation before the weights' gradients.

    ds = u·slope(s)             δ of the output unit; u itself if the score is no sigmoid
    δ  = (ds·w)·slope(a)        of each hidden unit

The hidden units of a document follow each other through one pipeline, `delta_lanes` at a time; ds is computed again for
each of them, so that nothing has to wait for it.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.product import multiply, slope, slope_cycles

# Documents on their way; a power of two, and enough that the array never waits for δ.
IN_FLIGHT = 8


def document_layout(configuration: ListNetConfiguration) -> data.StructLayout:
    """A beat of the documents' stream: u, the score, the hidden units' outputs (lowest unit lowest), the batch."""
    bits = configuration.bits
    return data.StructLayout(
        {
            "gradient": bits,
            "score": bits,
            "hidden": configuration.hidden * bits,
            "batch": configuration.batch_bits,
            "last": 1,
        }
    )


def prepared_layout(configuration: ListNetConfiguration) -> data.StructLayout:
    """A document with its δ; there are as many places as lanes fill."""
    bits, places = configuration.bits, configuration.groups * configuration.delta_lanes
    return data.StructLayout(
        {
            "deltas": places * bits,
            "hidden": places * bits,
            "score_delta": bits,
            "batch": configuration.batch_bits,
            "last": 1,
        }
    )


def delta_cycles(configuration: ListNetConfiguration) -> int:
    """Cycles of the pipeline: a slope and three products."""
    cycles = configuration.product_cycles
    return slope_cycles(cycles) + 3 * (cycles + 1)


class DeltaUnit(wiring.Component):
    """Takes the output unit's weights, then the documents of a query.

    Members
    -------
    weights : stream in
        The output unit's weights, lowest hidden unit lowest; one beat before the documents of a query.
    documents : stream in
    prepared, valid : out
        A document with its δ. It is not held: there must be room for `IN_FLIGHT` of them.
    taken : in
        One of those given has been taken.
    opens : in
        Whether the next query may begin, so that its weights are taken; not while one goes on.
    """

    def __init__(self, configuration: ListNetConfiguration) -> None:
        self.configuration = configuration
        super().__init__(
            {
                "weights": In(stream.Signature(configuration.hidden * configuration.bits)),
                "documents": In(stream.Signature(document_layout(configuration))),
                "prepared": Out(prepared_layout(configuration)),
                "valid": Out(1),
                "taken": In(1),
                "opens": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        configuration = self.configuration
        group_bits = configuration.delta_lanes * configuration.bits
        places = configuration.groups * group_bits
        document = Signal(document_layout(configuration), reset_less=True)
        outputs, weights = Signal(places, reset_less=True), Signal(places, reset_less=True)
        left, flight, has_weights = Signal(range(configuration.groups + 1)), Signal(range(IN_FLIGHT + 1)), Signal()
        # What enables many registers is known a cycle before: groups are left, at most one is, there is room.
        issues, ends, room, take = Signal(), Signal(init=1), Signal(), Signal()
        m.d.comb += [
            self.documents.ready.eq(has_weights & ends & room),
            take.eq(self.documents.valid & self.documents.ready),
            self.weights.ready.eq(self.opens),
        ]
        m.d.sync += [
            flight.eq(flight + take - self.taken),
            room.eq(flight < IN_FLIGHT - 1),
            issues.eq(take | (left > 1)),
            ends.eq(Mux(take, configuration.groups == 1, left <= 2)),
        ]
        with m.If(issues):
            m.d.sync += [
                left.eq(left - 1),
                outputs.eq(outputs >> group_bits),
                weights.eq(Cat(weights[group_bits:], weights[:group_bits])),
            ]
        with m.If(take):
            given = self.documents.payload
            m.d.sync += [document.eq(given), outputs.eq(given.hidden), left.eq(configuration.groups)]
            m.d.sync += has_weights.eq(~given.last)
        with m.If(self.weights.valid & self.weights.ready):
            m.d.sync += [weights.eq(self.weights.payload), has_weights.eq(1)]
        self._collect(m, document, outputs[:group_bits], weights[:group_bits], issues, left == 1)
        return m

    def _deltas(self, m: Module, document: Any, outputs: Any, weights: Any) -> tuple[Any, Any]:
        """δ of a group of hidden units, and ds, `delta_cycles` later."""
        configuration = self.configuration
        bits, cycles = configuration.bits, configuration.product_cycles
        to_slope, one = slope_cycles(cycles), cycles + 1
        if configuration.sigmoid_output:
            gradient = delayed(m, document.gradient, to_slope, "gradient")
            score_delta = multiply(m, gradient, slope(m, document.score, cycles, "score"), cycles, "score_delta")
        else:
            score_delta = delayed(m, document.gradient, to_slope + one, "gradient")
        deltas = []
        for lane in range(configuration.delta_lanes):
            weight = delayed(m, weights.word_select(lane, bits), to_slope + one, f"weight_{lane}")
            product = multiply(m, score_delta, weight, cycles, f"weighted_{lane}")
            sigmoid = slope(m, outputs.word_select(lane, bits), cycles, f"output_{lane}")
            deltas.append(multiply(m, product, delayed(m, sigmoid, 2 * one, f"slope_{lane}"), cycles, f"delta_{lane}"))
        return Cat(deltas), delayed(m, score_delta, 2 * one, "score_delta")

    def _collect(self, m: Module, document: Any, outputs: Any, weights: Any, issues: Any, is_last: Any) -> None:
        """Put the groups of a document together again."""
        configuration = self.configuration
        latency, group_bits = delta_cycles(configuration), configuration.delta_lanes * configuration.bits
        deltas, score_delta = self._deltas(m, document, outputs, weights)
        comes = delayed(m, issues, latency, "issues", reset_less=False)
        ends = delayed(m, is_last, latency, "is_last")
        outputs_then = delayed(m, outputs, latency, "outputs")
        batch, last = delayed(m, document.batch, latency, "batch"), delayed(m, document.last, latency, "last")
        m.d.sync += self.valid.eq(comes & ends)
        with m.If(comes):
            m.d.sync += [
                self.prepared.deltas.eq(Cat(self.prepared.deltas[group_bits:], deltas)),
                self.prepared.hidden.eq(Cat(self.prepared.hidden[group_bits:], outputs_then)),
                self.prepared.score_delta.eq(score_delta),
                self.prepared.batch.eq(batch),
                self.prepared.last.eq(last),
            ]
