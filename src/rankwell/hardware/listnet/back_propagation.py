"""Back propagation of ListNet in fixed point (the thesis's Algorithm 7): documents in, ∂L/∂weights of a query out.

    documents ─> queue ─> δ unit ─> queue ─┐
    features ──> queue ────────────────────┴─> hidden units ─> read-out ─> queue ─> sums

The δ unit works ahead, so that the hidden units have a document whenever its features are there. One that has all its
features takes `steps` cycles. After the last document of a query the sums are read, slot after slot, and cleared.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.accumulators import Accumulators
from rankwell.hardware.listnet.configuration import LOOP_CYCLES, ListNetConfiguration
from rankwell.hardware.listnet.delta_unit import IN_FLIGHT, DeltaUnit, document_layout, prepared_layout
from rankwell.hardware.listnet.hidden_unit import HiddenUnit
from rankwell.hardware.listnet.read_out import ReadOut
from rankwell.hardware.queue import StreamQueue, connect

_QUEUE_DEPTH = 4
# Slots that are being read or wait to be taken; more than the cycles from the first batch to the queue's end.
_SLOTS_IN_FLIGHT = 16
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
        m.submodules.feature_queue = features = StreamQueue(configuration.lanes * configuration.bits, _QUEUE_DEPTH)
        m.submodules.sums_queue = totals = StreamQueue(
            configuration.hidden * configuration.total_bits, _SLOTS_IN_FLIGHT
        )
        connect(m, self.features, features.incoming)
        connect(m, totals.outgoing, self.sums)
        prepared = self._prepare(m)
        control = _Control(configuration)
        control.elaborate(m, prepared, features.outgoing, self.sums.valid & self.sums.ready)
        m.submodules.read_out = read_out = ReadOut(configuration)
        self._accumulate(m, control, read_out, prepared, features.outgoing.payload)
        self._read(m, control, read_out)
        m.d.comb += [totals.incoming.payload.eq(read_out.totals), totals.incoming.valid.eq(read_out.given)]
        return m

    def _prepare(self, m: Module) -> Any:
        """Documents with their δ: a stream's end."""
        configuration = self.configuration
        m.submodules.document_queue = documents = StreamQueue(document_layout(configuration).size, _QUEUE_DEPTH)
        m.submodules.delta_unit = delta_unit = DeltaUnit(configuration)
        m.submodules.prepared_queue = prepared = StreamQueue(prepared_layout(configuration).size, 2 * IN_FLIGHT)
        connect(m, self.documents, documents.incoming)
        connect(m, documents.outgoing, delta_unit.documents)
        connect(m, self.weights, delta_unit.weights)
        m.d.comb += [
            prepared.incoming.payload.eq(delta_unit.prepared),
            prepared.incoming.valid.eq(delta_unit.valid),
            delta_unit.taken.eq(prepared.outgoing.valid & prepared.outgoing.ready),
        ]
        return prepared.outgoing

    def _accumulate(self, m: Module, control: _Control, read_out: ReadOut, prepared: Any, features: Any) -> None:
        """The hidden units, and the accumulator of the output unit's bias."""
        configuration = self.configuration
        bits, cycles = configuration.bits, configuration.product_cycles
        document = data.View(prepared_layout(configuration), prepared.payload)
        address = delayed(m, control.address, cycles, "address")
        writes = delayed(m, control.writes, cycles, "writes", reset_less=False)
        clears = delayed(m, control.clears, cycles, "clears")
        words = []
        for number in range(configuration.hidden):
            m.submodules[f"hidden_unit_{number}"] = unit = HiddenUnit(configuration)
            m.d.comb += [
                unit.delta.eq(document.deltas.word_select(number, bits)),
                unit.output.eq(document.hidden.word_select(number, bits)),
                unit.score_delta.eq(document.score_delta),
                unit.features.eq(features),
                unit.is_bias.eq(control.is_bias),
                unit.is_output.eq(control.is_output),
                unit.address.eq(address),
                unit.writes.eq(writes),
                unit.clears.eq(clears),
            ]
            words.append(unit.word)
        m.submodules.bias = bias = Accumulators(configuration, 1)
        m.d.comb += [
            bias.address.eq(address),
            bias.writes.eq(delayed(m, control.bias_writes, cycles, "bias_writes", reset_less=False)),
            bias.clears.eq(delayed(m, control.bias_clears, cycles, "bias_clears")),
            bias.addends.eq(delayed(m, document.score_delta, cycles + TO_WORD, "score_delta")),
            read_out.words.eq(Cat(words)),
            read_out.bias_word.eq(bias.word),
        ]

    def _read(self, m: Module, control: _Control, read_out: ReadOut) -> None:
        later = self.configuration.product_cycles + TO_WORD
        m.d.comb += [
            read_out.valid.eq(delayed(m, control.reads, later, "reads", reset_less=False)),
            read_out.lane.eq(delayed(m, control.lane, later, "lane")),
            read_out.is_bias.eq(delayed(m, control.reads_bias, later, "reads_bias")),
            read_out.first.eq(delayed(m, control.first_batch, later, "first_batch")),
            read_out.last.eq(delayed(m, control.last_batch, later, "last_batch")),
        ]


class _Control:
    """Which accumulators are added to, read and cleared.

    address, writes, clears : of all hidden units
    bias_writes, bias_clears : of the output unit's bias
    is_bias, is_output : whether this step has the slot of the bias, and of the output unit's weight
    reads, lane, reads_bias, first_batch, last_batch : see `ReadOut`
    """

    def __init__(self, configuration: ListNetConfiguration) -> None:
        self.configuration = configuration
        self.address = Signal(configuration.address_bits)
        self.writes, self.clears, self.bias_writes, self.bias_clears = Signal(), Signal(), Signal(), Signal()
        self.is_bias, self.is_output = Signal(), Signal()
        self.reads, self.reads_bias, self.first_batch, self.last_batch = Signal(), Signal(), Signal(), Signal()
        self.lane = Signal(configuration.lane_bits)

    def elaborate(self, m: Module, prepared: Any, features: Any, given: Any) -> None:
        """Add the logic to a module; `given`: a beat of sums has left."""
        configuration = self.configuration
        step, batch = Signal(configuration.step_bits), Signal(configuration.batch_bits)
        wait = Signal(range(LOOP_CYCLES))
        slot, owed = Signal(range(configuration.slots + 1)), Signal(range(_SLOTS_IN_FLIGHT + 1))
        begins = Signal()
        m.d.comb += self.is_bias.eq(step == configuration.features // configuration.lanes)
        m.d.comb += self.is_output.eq(step == (configuration.features + 1) // configuration.lanes)
        m.d.sync += owed.eq(owed + begins - given)
        document = data.View(prepared_layout(configuration), prepared.payload)
        with m.FSM():
            with m.State("CLEAR"):  # after a reset: the sums may be anything
                self._clear_all(m, step, batch)
            with m.State("ADD"):
                self._add(m, step, document, prepared, features, wait)
            with m.State("FLUSH"):
                m.d.sync += [wait.eq(wait - 1), slot.eq(0), self.lane.eq(0), step.eq(0), batch.eq(0)]
                with m.If(wait == 0):
                    m.next = "READ"
            with m.State("READ"), m.If((batch != 0) | (owed != _SLOTS_IN_FLIGHT)):
                m.d.comb += [self.reads.eq(1), begins.eq(batch == 0)]
                self._read(m, step, batch, slot, wait)
            with m.State("SETTLE"):
                m.d.sync += [wait.eq(wait - 1), step.eq(0)]
                with m.If(wait == 0):
                    m.next = "ADD"

    def _clear_all(self, m: Module, step: Any, batch: Any) -> None:
        configuration = self.configuration
        m.d.comb += [self.address.eq(Cat(step, batch)), self.writes.eq(1), self.clears.eq(1)]
        m.d.comb += [self.bias_writes.eq(1), self.bias_clears.eq(1)]
        m.d.sync += Cat(step, batch).eq(Cat(step, batch) + 1)
        with m.If(Cat(step, batch) == configuration.depth - 1):
            m.d.sync += step.eq(0)
            m.next = "ADD"

    def _add(self, m: Module, step: Any, document: Any, prepared: Any, features: Any, wait: Any) -> None:
        configuration = self.configuration
        has_features, issues, final = Signal(), Signal(), Signal()
        m.d.comb += [
            has_features.eq(step < configuration.feature_beats),
            issues.eq(prepared.valid & (~has_features | features.valid)),
            final.eq(issues & (step == configuration.steps - 1)),
            features.ready.eq(issues & has_features),
            prepared.ready.eq(final),
            self.address.eq(Cat(step, document.batch)),
            self.writes.eq(issues),
            self.bias_writes.eq(issues & self.is_bias),
        ]
        m.d.sync += wait.eq(LOOP_CYCLES - 1)
        with m.If(issues):
            m.d.sync += step.eq(step + 1)
        with m.If(final):
            m.d.sync += step.eq(0)
            with m.If(document.last):
                m.next = "FLUSH"

    def _read(self, m: Module, step: Any, batch: Any, slot: Any, wait: Any) -> None:
        """One batch of one slot; a word is cleared when its last lane is read."""
        configuration = self.configuration
        last_slot = slot == configuration.slots - 1
        last_lane = self.lane == configuration.lanes - 1
        m.d.comb += [
            self.address.eq(Cat(step, batch)),
            self.reads_bias.eq(slot == configuration.slots),
            self.first_batch.eq(batch == 0),
            self.last_batch.eq(batch == configuration.batches - 1),
            self.clears.eq(1),
            self.writes.eq(~self.reads_bias & (last_lane | last_slot)),
            self.bias_clears.eq(1),
            self.bias_writes.eq(self.reads_bias),
        ]
        m.d.sync += [batch.eq(batch + 1), wait.eq(LOOP_CYCLES - 1)]
        with m.If(self.last_batch):
            m.d.sync += [batch.eq(0), slot.eq(slot + 1), self.lane.eq(Mux(last_lane, 0, self.lane + 1))]
            with m.If(last_lane):
                m.d.sync += step.eq(step + 1)
            with m.If(last_slot):
                m.d.sync += step.eq(configuration.features // configuration.lanes)
            with m.If(self.reads_bias):
                m.next = "SETTLE"
