"""Back propagation of ListNet in fixed point (the thesis's Algorithm 7): documents in, ∂L/∂weights of a query out.

    documents ─> queue ─> δ unit ─> queue ─┐
    features ──> queue ────────────────────┴─> hidden units ─> read-out ─> queue ─> sums

The δ unit works ahead, so that the hidden units have a document whenever its features are there. One that has all its
features takes `steps` cycles. After the last document of a query the sums are read, slot after slot, and cleared.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.accumulators import Accumulators
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.control import FEATURE_WORDS, Control
from rankwell.hardware.listnet.delta_unit import IN_FLIGHT, DeltaUnit, document_layout, prepared_layout
from rankwell.hardware.listnet.hidden_unit import HiddenUnit
from rankwell.hardware.listnet.read_out import ReadOut
from rankwell.hardware.queue import StreamQueue, connect

_DOCUMENTS = 8
# From the address to the sums: see `Accumulators`.
TO_WORD = 2


class BackPropagation(wiring.Component):
    """∂L/∂weights and ∂L/∂biases of one query after the other, as sums of fixed-point products.

    Members
    -------
    weights : stream in
        The output unit's weights, lowest hidden unit lowest: one beat before each query.
    documents : stream in
        u, score, hidden outputs and batch of each document; `last` marks the last of a query.
    features : stream in
        `feature_beats` beats for each document, lowest feature lowest; places without a feature are 0.
    sums : stream out
        For each query features + 3 beats of one total for each hidden unit, lowest lowest: the weights of each
        feature, the biases, the output unit's weights, and the output unit's bias in the lowest place.
    """

    def __init__(self, configuration: ListNetConfiguration) -> None:
        self.configuration = configuration
        bits, hidden = configuration.bits, configuration.hidden
        super().__init__(
            {
                "weights": In(stream.Signature(hidden * bits)),
                "documents": In(stream.Signature(document_layout(configuration))),
                "features": In(stream.Signature(configuration.lanes * bits)),
                "sums": Out(stream.Signature(hidden * configuration.total_bits)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        configuration = self.configuration
        m.submodules.feature_queue = features = StreamQueue(configuration.lanes * configuration.bits, FEATURE_WORDS)
        m.submodules.sums_queue = totals = StreamQueue(
            configuration.hidden * configuration.total_bits, configuration.slots_in_flight
        )
        connect(m, self.features, features.incoming)
        connect(m, totals.outgoing, self.sums)
        control = Control(configuration)
        prepared, document_comes = self._prepare(m, control.opens)
        control.elaborate(
            m,
            prepared,
            features.outgoing,
            document_comes=document_comes,
            word_comes=features.incoming.valid & features.incoming.ready,
            begins=self.weights.valid & self.weights.ready,
            given=self.sums.valid & self.sums.ready,
        )
        m.submodules.read_out = read_out = ReadOut(configuration)
        self._accumulate(m, control, read_out, prepared, features.outgoing.payload)
        self._read(m, control, read_out)
        m.d.comb += [totals.incoming.payload.eq(read_out.totals), totals.incoming.valid.eq(read_out.given)]
        return m

    def _prepare(self, m: Module, opens: Any) -> tuple[Any, Any]:
        """Documents with their δ, a stream's end; and whether one comes into its queue."""
        configuration = self.configuration
        m.submodules.document_queue = documents = StreamQueue(document_layout(configuration).size, _DOCUMENTS)
        m.submodules.delta_unit = delta_unit = DeltaUnit(configuration)
        m.submodules.prepared_queue = prepared = StreamQueue(prepared_layout(configuration).size, 2 * IN_FLIGHT)
        connect(m, self.documents, documents.incoming)
        connect(m, documents.outgoing, delta_unit.documents)
        connect(m, self.weights, delta_unit.weights)
        m.d.comb += [
            prepared.incoming.payload.eq(delta_unit.prepared),
            prepared.incoming.valid.eq(delta_unit.valid),
            delta_unit.taken.eq(prepared.outgoing.ready),
            delta_unit.opens.eq(opens),
        ]
        return prepared.outgoing, delta_unit.valid

    def _accumulate(self, m: Module, control: Control, read_out: ReadOut, prepared: Any, features: Any) -> None:
        """The hidden units, and the accumulator of the output unit's bias.

        What all units need moves from group to group; so do the sums that are read, so that they come out together.
        """
        configuration = self.configuration
        bits, cycles = configuration.bits, configuration.product_cycles
        document = data.View(prepared_layout(configuration), prepared.payload)
        shared = {
            "score_delta": document.score_delta,
            "features": features,
            "is_bias": control.steps.is_bias,
            "is_output": control.steps.is_output,
            "address": delayed(m, control.address, cycles, "address"),
            "writes": delayed(m, control.writes, cycles, "writes", reset_less=False),
            "clears": delayed(m, control.clears, cycles, "clears"),
            "lane": delayed(m, control.lane, cycles + TO_WORD, "lane"),
        }
        m.submodules.bias = bias = Accumulators(configuration, 1)
        m.d.comb += [
            bias.address.eq(shared["address"]),
            bias.writes.eq(delayed(m, control.bias_writes, cycles, "bias_writes", reset_less=False)),
            bias.clears.eq(shared["clears"]),
            bias.addends.eq(delayed(m, document.score_delta, cycles + TO_WORD, "score_delta")),
            read_out.bias_word.eq(delayed(m, bias.word, configuration.unit_groups - 1, "bias_word")),
        ]
        sums = []
        for number in range(configuration.hidden):
            later, place = divmod(number, configuration.units_of_group)
            if later and not place:
                shared = {
                    name: delayed(m, value, 1, f"{name}_{later}", reset_less=name != "writes")
                    for name, value in shared.items()
                }
            m.submodules[f"hidden_unit_{number}"] = unit = HiddenUnit(configuration)
            delta, output = (values.word_select(number, bits) for values in (document.deltas, document.hidden))
            m.d.comb += [getattr(unit, name).eq(value) for name, value in shared.items()]
            m.d.comb += [
                unit.delta.eq(delayed(m, delta, later, f"delta_{number}")),
                unit.output.eq(delayed(m, output, later, f"output_{number}")),
            ]
            sums.append(delayed(m, unit.sum, configuration.unit_groups - 1 - later, f"sum_{number}"))
        m.d.comb += read_out.sums.eq(Cat(sums))

    def _read(self, m: Module, control: Control, read_out: ReadOut) -> None:
        later = self.configuration.product_cycles + TO_WORD + self.configuration.unit_groups - 1
        m.d.comb += [
            read_out.valid.eq(delayed(m, control.reads, later, "reads", reset_less=False)),
            read_out.is_bias.eq(delayed(m, control.reads_bias, later, "reads_bias")),
            read_out.first.eq(delayed(m, control.first_batch, later, "first_batch")),
            read_out.last.eq(delayed(m, control.last_batch, later, "last_batch")),
        ]
