"""The forward pass (the thesis's task FP): features in, hidden outputs and scores out.

    features ─> queue ─> hidden sums ─> sigmoids, some units at a time ─┬─> queue ──────────────────────┬─> outputs
                                                                        └─> output unit ─> sigmoid ─> queue ─┘

The hidden sums take `feature_beats` cycles a document; what follows works on the documents before it.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.forward_format import (
    BITS,
    OUTPUT_POINT,
    SIGMOID_LIMIT,
    SIGMOID_POINT,
    SUM_POINT,
    sigmoid_table,
)
from rankwell.hardware.listnet.function_table import TABLE_CYCLES, FunctionTable
from rankwell.hardware.listnet.hidden_sum import HiddenSum, sum_bits, sum_cycles
from rankwell.hardware.queue import StreamQueue, connect

_QUEUE_DEPTH = 8
_IN_FLIGHT = 32
# A sum is rounded to the table's places, and limited to them.
SIGMOID_CYCLES = TABLE_CYCLES + 2


def sigmoid_lanes(configuration: ListNetConfiguration) -> int:
    """Hidden units whose sigmoid is computed in a cycle: enough for a document in `feature_beats` cycles."""
    return -(-configuration.hidden // configuration.feature_beats)


def sigmoid_groups(configuration: ListNetConfiguration) -> int:
    """Cycles in which a document's sigmoids are computed."""
    return -(-configuration.hidden // sigmoid_lanes(configuration))


def feature_layout(configuration: ListNetConfiguration) -> data.StructLayout:
    """A beat of the features' stream; `last` marks the last beat of a query."""
    return data.StructLayout({"features": configuration.lanes * BITS, "last": 1})


def output_layout(configuration: ListNetConfiguration) -> data.StructLayout:
    """A document's hidden outputs, lowest unit lowest, and its score."""
    return data.StructLayout({"hidden": configuration.hidden * OUTPUT_POINT, "score": OUTPUT_POINT})


class ForwardPass(wiring.Component):
    """Scores of one query after the other, in the numbers of `forward_format`.

    Members
    -------
    weights : stream in
        Before each query features + 3 beats of one number for each hidden unit, lowest lowest: the weights of each
        feature, the biases, the output unit's weights, and the output unit's bias in the lowest place.
    features : stream in
        `feature_beats` beats for each document, lowest feature lowest; places without a feature are 0.
    outputs : stream out
        One beat a document.
    """

    def __init__(self, configuration: ListNetConfiguration) -> None:
        self.configuration = configuration
        super().__init__(
            {
                "weights": In(stream.Signature(configuration.hidden * BITS)),
                "features": In(stream.Signature(feature_layout(configuration))),
                "outputs": Out(stream.Signature(output_layout(configuration))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        configuration = self.configuration
        m.submodules.feature_queue = features = StreamQueue(feature_layout(configuration).size, _QUEUE_DEPTH)
        connect(m, self.features, features.incoming)
        sums = [HiddenSum(configuration) for _ in range(configuration.hidden)]
        for number, unit in enumerate(sums):
            m.submodules[f"hidden_sum_{number}"] = unit
        places = sigmoid_groups(configuration) * sigmoid_lanes(configuration)
        output_weights, output_bias = Signal(places * BITS), Signal(signed(BITS))
        done = self._control(m, features.outgoing, sums, output_weights, output_bias)
        self._activate(m, sums, done, output_weights, output_bias)
        return m

    def _control(self, m: Module, features: Any, sums: list[HiddenSum], output_weights: Any, output_bias: Any) -> Any:
        """Load weights, then documents; returns when a document's sums are complete."""
        configuration = self.configuration
        beats, lanes = configuration.feature_beats, configuration.lanes
        item = data.View(feature_layout(configuration), features.payload)
        step, lane = Signal(range(max(2, beats))), Signal(configuration.lane_bits)
        slot, flight = Signal(range(configuration.features + 3)), Signal(range(_IN_FLIGHT + 1))
        issues, ends, begins, given = Signal(), Signal(), Signal(), Signal()
        takes, is_weight, is_bias = Signal(), Signal(), Signal()
        m.d.comb += [
            given.eq(self.outputs.valid & self.outputs.ready),
            ends.eq(issues & (step == beats - 1)),
            begins.eq(issues & (step == 0)),
            features.ready.eq(issues),
            is_weight.eq(slot < configuration.features),
            is_bias.eq(slot == configuration.features),
        ]
        m.d.sync += flight.eq(flight + begins - given)
        for number, unit in enumerate(sums):
            m.d.comb += [
                unit.step.eq(step),
                unit.features.eq(item.features),
                unit.adds.eq(issues),
                unit.first.eq(step == 0),
                unit.stored.eq(step),
                unit.lane.eq(lane),
                unit.value.eq(self.weights.payload.word_select(number, BITS)),
                unit.store_weight.eq(takes & is_weight),
                unit.store_bias.eq(takes & is_bias),
            ]
        with m.FSM():
            with m.State("WEIGHTS"):
                m.d.comb += [self.weights.ready.eq(1), takes.eq(self.weights.valid)]
                with m.If(takes):
                    m.d.sync += [slot.eq(slot + 1), lane.eq(Mux(lane == lanes - 1, 0, lane + 1))]
                    with m.If(lane == lanes - 1):
                        m.d.sync += step.eq(step + 1)
                    with m.If(slot == configuration.features + 1):
                        m.d.sync += output_weights.eq(self.weights.payload)
                    with m.If(slot == configuration.features + 2):
                        m.d.sync += [output_bias.eq(self.weights.payload[:BITS]), step.eq(0), lane.eq(0), slot.eq(0)]
                        m.next = "DOCUMENTS"
            with m.State("DOCUMENTS"):
                m.d.comb += issues.eq(features.valid & ((step != 0) | (flight != _IN_FLIGHT)))
                with m.If(issues):
                    m.d.sync += step.eq(Mux(ends, 0, step + 1))
                    with m.If(item.last):
                        m.next = "FINISH"
            with m.State("FINISH"), m.If(flight == 0):
                m.next = "WEIGHTS"
        return delayed(m, ends, sum_cycles(configuration), "ends", reset_less=False)

    def _activate(self, m: Module, sums: list[HiddenSum], done: Any, output_weights: Any, output_bias: Any) -> None:
        """Sigmoids of the hidden units, group after group, and of the output unit."""
        configuration = self.configuration
        lanes, groups, bits = sigmoid_lanes(configuration), sigmoid_groups(configuration), sum_bits(configuration)
        bank, left = Signal(groups * lanes * bits, reset_less=True), Signal(range(groups + 1))
        with m.If(left != 0):
            m.d.sync += [bank.eq(bank >> lanes * bits), left.eq(left - 1)]
        with m.If(done):
            m.d.sync += [bank.eq(Cat(unit.total for unit in sums)), left.eq(groups)]
        values = [
            self._sigmoid(m, bank.word_select(lane, bits).as_signed(), f"sigmoid_{lane}") for lane in range(lanes)
        ]
        comes = delayed(m, left != 0, SIGMOID_CYCLES, "comes", reset_less=False)
        first, last = (delayed(m, left == end, SIGMOID_CYCLES, f"group_{end}") for end in (groups, 1))
        hidden, complete = Signal(groups * lanes * OUTPUT_POINT, reset_less=True), Signal()
        group_bits = lanes * BITS
        with m.If(comes):
            m.d.sync += [
                hidden.eq(Cat(hidden[lanes * OUTPUT_POINT :], values)),
                output_weights.eq(Cat(output_weights[group_bits:], output_weights[:group_bits])),
            ]
        m.d.sync += complete.eq(comes & last)
        terms = []
        for lane, value in enumerate(values):
            term = Signal(signed(2 * BITS), name=f"output_term_{lane}", reset_less=True)
            m.d.sync += term.eq(output_weights.word_select(lane, BITS).as_signed() * value)
            terms.append(term)
        group, total = Signal(signed(bits), reset_less=True), Signal(signed(bits), reset_less=True)
        begins = delayed(m, first & comes, 2, "begins")
        adds = delayed(m, comes, 2, "adds", reset_less=False)
        m.d.sync += group.eq(sum(terms[1:], start=terms[0]))
        with m.If(adds):
            m.d.sync += total.eq(Mux(begins, output_bias << OUTPUT_POINT, total) + group)
        score = self._sigmoid(m, total, "score")
        scored = delayed(m, comes & last, 3 + SIGMOID_CYCLES, "scored", reset_less=False)
        self._give(m, hidden, complete, score, scored)

    def _sigmoid(self, m: Module, total: Any, name: str) -> Any:
        """The sigmoid of an exact sum, `SIGMOID_CYCLES` later."""
        m.submodules[name] = table = FunctionTable(sigmoid_table())
        shift, limit = SUM_POINT - SIGMOID_POINT, SIGMOID_LIMIT << SIGMOID_POINT
        rounded = Signal(signed(len(total) - shift + 2), name=f"{name}_rounded", reset_less=True)
        place = Signal(len(table.place), name=f"{name}_place", reset_less=True)
        m.d.sync += [
            rounded.eq((total >> shift) + total[shift - 1] + limit),
            place.eq(Mux(rounded < 0, 0, Mux(rounded >= 2 * limit, 2 * limit - 1, rounded))),
        ]
        m.d.comb += table.place.eq(place)
        return table.value

    def _give(self, m: Module, hidden: Any, complete: Any, score: Any, scored: Any) -> None:
        """Hidden outputs wait for their document's score."""
        configuration = self.configuration
        m.submodules.hidden_queue = outputs = StreamQueue(configuration.hidden * OUTPUT_POINT, _IN_FLIGHT)
        m.submodules.score_queue = scores = StreamQueue(OUTPUT_POINT, _IN_FLIGHT)
        both = outputs.outgoing.valid & scores.outgoing.valid
        m.d.comb += [
            outputs.incoming.payload.eq(hidden),
            outputs.incoming.valid.eq(complete),
            scores.incoming.payload.eq(score),
            scores.incoming.valid.eq(scored),
            self.outputs.payload.hidden.eq(outputs.outgoing.payload),
            self.outputs.payload.score.eq(scores.outgoing.payload),
            self.outputs.valid.eq(both),
            outputs.outgoing.ready.eq(both & self.outputs.ready),
            scores.outgoing.ready.eq(both & self.outputs.ready),
        ]
