"""The control of back propagation: which accumulators are added to, read and cleared.

Everything is decided on a cycle before it is done, so that what moves queues and addresses memories are registers.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data

from rankwell.hardware.listnet.configuration import LOOP_CYCLES, ListNetConfiguration
from rankwell.hardware.listnet.delta_unit import IN_FLIGHT, prepared_layout

# Words of features that may wait in their queue.
FEATURE_WORDS = 8


class Steps:
    """The steps of documents.

    Documents and words of features are counted when they enter their queues: one that is counted is at its queue's end
    when the step that was decided on is taken.

    Attributes
    ----------
    goes, number, takes_word, is_final : the step that is taken: whether there is one, and which; it takes features; it
        ends a document
    is_bias, is_output : it has the slot of the bias; of the output unit's weight
    """

    def __init__(self, configuration: ListNetConfiguration) -> None:
        self.configuration = configuration
        self.goes, self.takes_word, self.is_final = Signal(), Signal(), Signal()
        self.is_bias, self.is_output = Signal(), Signal()
        self.number = Signal(configuration.step_bits)

    def elaborate(self, m: Module, allowed: Any, document_comes: Any, word_comes: Any) -> None:
        """Add the logic to a module; `allowed`: a step may be decided on."""
        configuration = self.configuration
        documents, words = Signal(range(2 * IN_FLIGHT)), Signal(range(2 * FEATURE_WORDS))
        following, final, goes = Signal(configuration.step_bits), Signal(), Signal()
        is_first, needs_word = Signal(init=1), Signal(init=1)
        m.d.comb += [
            final.eq(following == configuration.steps - 1),
            goes.eq(allowed & (~is_first | (documents != 0)) & (~needs_word | (words != 0))),
        ]
        m.d.sync += [
            documents.eq(documents + document_comes - (goes & is_first)),
            words.eq(words + word_comes - (goes & needs_word)),
            self.goes.eq(goes),
            self.takes_word.eq(goes & needs_word),
            self.is_final.eq(goes & final),
            self.number.eq(following),
            self.is_bias.eq(following == configuration.features // configuration.lanes),
            self.is_output.eq(following == (configuration.features + 1) // configuration.lanes),
        ]
        with m.If(goes):
            m.d.sync += [
                following.eq(Mux(final, 0, following + 1)),
                is_first.eq(final),
                needs_word.eq(final | (following < configuration.feature_beats - 1)),
            ]


class Control:
    """Steps of documents, then the slots of a query, batch after batch; after a reset, every sum is cleared.

    Attributes
    ----------
    steps : Steps
    address, writes, clears : of all hidden units
    bias_writes : of the output unit's bias, which has the same address
    reads, lane, reads_bias, first_batch, last_batch : see `ReadOut`
    opens : the next query may begin
    """

    def __init__(self, configuration: ListNetConfiguration) -> None:
        self.configuration = configuration
        self.steps = Steps(configuration)
        self.address = Signal(configuration.address_bits)
        self.writes, self.clears, self.bias_writes = Signal(), Signal(), Signal()
        self.reads, self.reads_bias, self.first_batch, self.last_batch = Signal(), Signal(), Signal(), Signal()
        self.lane, self.opens = Signal(configuration.lane_bits), Signal(init=1)
        # Of what is read or cleared, as it was decided on.
        self._place = Signal(configuration.address_bits)
        self._writes, self._bias_writes = Signal(), Signal()

    def elaborate(
        self, m: Module, prepared: Any, features: Any, *, document_comes: Any, word_comes: Any, begins: Any, given: Any
    ) -> None:
        """Add the logic to a module.

        prepared, features : the ends of the queues; document_comes, word_comes : one enters a queue; begins : a query
        does; given : a slot's sums leave
        """
        configuration = self.configuration
        document = data.View(prepared_layout(configuration), prepared.payload)
        adding, issues = Signal(), Signal()
        wait, owed = Signal(range(LOOP_CYCLES)), Signal(range(configuration.slots_in_flight + 1))
        self.steps.elaborate(m, adding, document_comes, word_comes)
        self._do(m, document, prepared, features)
        m.d.sync += [owed.eq(owed + issues - given), self._writes.eq(0), self._bias_writes.eq(0), self.reads.eq(0)]
        with m.If(begins):
            m.d.sync += self.opens.eq(0)
        step, batch = Signal(configuration.step_bits), Signal(configuration.batch_bits)
        slot, lane = Signal(range(configuration.slots + 1)), Signal(configuration.lane_bits)
        with m.FSM():
            with m.State("CLEAR"):  # after a reset: the sums may be anything
                m.d.sync += [self._place.eq(Cat(step, batch)), self._writes.eq(1), self._bias_writes.eq(1)]
                m.d.sync += Cat(step, batch).eq(Cat(step, batch) + 1)
                with m.If(Cat(step, batch) == configuration.depth - 1):
                    m.next = "ADD"
            with m.State("ADD"):
                m.d.comb += adding.eq(1)
                m.d.sync += wait.eq(LOOP_CYCLES - 2)
                with m.If(self.steps.is_final & document.last):
                    m.next = "FLUSH"
            with m.State("FLUSH"):
                m.d.sync += [wait.eq(wait - 1), slot.eq(0), lane.eq(0), step.eq(0), batch.eq(0)]
                with m.If(wait == 0):
                    m.next = "READ"
            with m.State("READ"), m.If((batch != 0) | (owed != configuration.slots_in_flight)):
                m.d.comb += issues.eq(batch == 0)
                m.d.sync += wait.eq(LOOP_CYCLES - 1)
                self._read(m, step, batch, slot, lane)
            with m.State("SETTLE"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.d.sync += self.opens.eq(1)
                    m.next = "ADD"

    def _do(self, m: Module, document: Any, prepared: Any, features: Any) -> None:
        """What was decided on: a step adds, everything else clears what it writes."""
        steps = self.steps
        m.d.comb += [
            features.ready.eq(steps.takes_word),
            prepared.ready.eq(steps.is_final),
            self.address.eq(Mux(steps.goes, Cat(steps.number, document.batch), self._place)),
            self.writes.eq(steps.goes | self._writes),
            self.bias_writes.eq((steps.goes & steps.is_bias) | self._bias_writes),
            self.clears.eq(~steps.goes),
        ]

    def _read(self, m: Module, step: Any, batch: Any, slot: Any, lane: Any) -> None:
        """One batch of one slot; a word is cleared when its last lane is read."""
        configuration = self.configuration
        last_slot, last_lane = slot == configuration.slots - 1, lane == configuration.lanes - 1
        is_bias, last_batch = slot == configuration.slots, batch == configuration.batches - 1
        m.d.sync += [
            self._place.eq(Cat(step, batch)),
            self.reads.eq(1),
            self.reads_bias.eq(is_bias),
            self.first_batch.eq(batch == 0),
            self.last_batch.eq(last_batch),
            self.lane.eq(lane),
            self._writes.eq(~is_bias & (last_lane | last_slot)),
            self._bias_writes.eq(is_bias),
            batch.eq(batch + 1),
        ]
        with m.If(last_batch):
            m.d.sync += [batch.eq(0), slot.eq(slot + 1), lane.eq(Mux(last_lane, 0, lane + 1))]
            with m.If(last_lane):
                m.d.sync += step.eq(step + 1)
            with m.If(last_slot):
                m.d.sync += step.eq(configuration.features // configuration.lanes)
            with m.If(is_bias):
                m.next = "SETTLE"
