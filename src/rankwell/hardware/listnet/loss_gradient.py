"""The loss gradient (the thesis's task Loss Function): scores and truth in, u and batches for back propagation out.

The exact Top-1, Top-2 and Top-3 losses, without permutations (docs/algorithms/listnet.md), for scores in [0, 1):

    ∂L/∂s_i = E_i/S − m_i                                                   Top-1
              E_i/S + E_i·(R − r_i) − m_i,   r_a = P_a/(S − E_a), R = Σ r   Top-2; for Top-3 see `third_place.py`

A list is gone through three times, for Top-2 and Top-3 four times, one document a cycle: E and S; r and R; gradients,
and the largest of them; gradients scaled into b bits. For Top-3 all pairs are gone through before the gradients. The
list is kept in block RAM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rankwell.errors import ParameterError
from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.divider import Divider
from rankwell.hardware.listnet.forward_format import (
    EXPONENTIAL_BITS,
    EXPONENTIAL_POINT,
    FIRST_BITS,
    GRADIENT_BITS,
    GRADIENT_POINT,
    ODDS_BITS,
    OUTPUT_POINT,
    SHARE_BITS,
    exponential_table,
)
from rankwell.hardware.listnet.function_table import TABLE_CYCLES, FunctionTable
from rankwell.hardware.listnet.gradient_scale import LENGTH_BITS, SCALE_CYCLES, GradientScale, length_of
from rankwell.hardware.listnet.list_words import READ, ListWords
from rankwell.hardware.listnet.third_place import THIRD_CYCLES, ThirdPlace, pair_drain
from rankwell.hardware.queue import StreamQueue, connect
from rankwell.kernels.lists.fixed_point_format import BATCH, FEWEST_BITS, MOST_BITS
from rankwell.parameters import check_whole_number

_QUEUE_DEPTH = 8
_IN_FLIGHT = 16
_QUOTIENT_BITS = GRADIENT_POINT + 1
# From the words to the quotient: its operands are registered.
_TO_QUOTIENT = _QUOTIENT_BITS + 1
# Cycles between two passes: the last document's E and S; its quotient, gradient, length, and what is stored of them.
LOAD_DRAIN, DIVIDE_DRAIN = TABLE_CYCLES + 1, READ + _TO_QUOTIENT + 5
SCALE_DRAIN = READ + 2
# ρ of a pair: E_a + E_b comes first.
_TO_RATIO = _TO_QUOTIENT + 1
PAIR_DRAIN = pair_drain(_TO_RATIO)
# The ratio is S/(8·(S − E_a − E_b)).
_RATIO_SHIFT = 3


@dataclass(frozen=True)
class LossConfiguration:
    """The parameters of the loss gradient.

    k : 1 to 3; most_docs : of a list, a power of two; bits, batches, method : of the format of back propagation
    """

    k: int = 1
    most_docs: int = 2048
    bits: int = 8
    batches: int = 10
    method: int = BATCH

    def __post_init__(self) -> None:
        check_whole_number("k", self.k, least=1, most=3)
        check_whole_number("most_docs", self.most_docs, least=2, most=2**16)
        check_whole_number("bits", self.bits, least=FEWEST_BITS, most=MOST_BITS)
        check_whole_number("batches", self.batches, least=1, most=64)
        if self.most_docs & (self.most_docs - 1):
            raise ParameterError(f"must be a power of two, got {self.most_docs}.", parameter="most_docs")

    @property
    def place_bits(self) -> int:
        return self.most_docs.bit_length() - 1

    @property
    def sum_bits(self) -> int:
        """Of S."""
        return EXPONENTIAL_BITS + self.place_bits

    @property
    def batch_bits(self) -> int:
        return max(1, (self.batches - 1).bit_length())

    @property
    def final_drain(self) -> int:
        """Cycles between the pass that divides and the one that scales."""
        return DIVIDE_DRAIN + (THIRD_CYCLES - 2 if self.k == 3 else 0)


def score_layout(configuration: LossConfiguration) -> data.StructLayout:
    """A beat of the scores' stream: the score, P_y(first), m; `last` marks the last of a list of two or more.

    For Top-3, P_y(first) has 24 bits after the point, not 16, and its odds come too.
    """
    fields = {"score": OUTPUT_POINT, "first": FIRST_BITS, "membership": GRADIENT_POINT + 1, "last": 1}
    if configuration.k == 3:
        fields |= {"first": SHARE_BITS, "odds": ODDS_BITS}
    return data.StructLayout(fields)


def gradient_layout(configuration: LossConfiguration) -> data.StructLayout:
    """A beat of the gradients' stream: u, its batch, and whether it is the list's last."""
    return data.StructLayout({"gradient": configuration.bits, "batch": configuration.batch_bits, "last": 1})


class LossGradient(wiring.Component):
    """u and batches of one list after the other.

    Members
    -------
    scores : stream in
    gradients : stream out
    """

    def __init__(self, configuration: LossConfiguration) -> None:
        self.configuration = configuration
        super().__init__(
            {
                "scores": In(stream.Signature(score_layout(configuration))),
                "gradients": Out(stream.Signature(gradient_layout(configuration))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.score_queue = queue = StreamQueue(score_layout(self.configuration).size, _QUEUE_DEPTH)
        connect(m, self.scores, queue.incoming)
        third = ThirdPlace(self.configuration) if self.configuration.k == 3 else None
        passes = _Passes(self.configuration)
        given = self.gradients.valid & self.gradients.ready
        passes.elaborate(m, queue.outgoing, given, None if third is None else third.is_final)
        words = {
            name: ListWords(m, name, bits, self.configuration.most_docs, passes.place)
            for name, bits in (
                ("exponential", EXPONENTIAL_BITS),
                ("first", FIRST_BITS),
                ("membership", GRADIENT_POINT + 1),
                ("ratio", _QUOTIENT_BITS),
                ("gradient", GRADIENT_BITS + LENGTH_BITS),
            )
        }
        total, document = self._load(m, passes, queue.outgoing.payload, words)
        quotient, place = self._divide(m, passes, words, total, None if third is None else third.removed)
        if third is not None:
            third.elaborate(m, passes, document, quotient, _TO_RATIO, _TO_QUOTIENT)
        gradient, later = self._gradient(m, passes, words, quotient, place, third)
        longest = self._keep(m, passes, words, gradient, delayed(m, place, later, "gradient_place"), later)
        self._scale(m, passes, words, longest)
        return m

    def _load(
        self, m: Module, passes: _Passes, payload: Any, words: dict[str, ListWords]
    ) -> tuple[Any, dict[str, Any]]:
        """E of the list, and S; returns S, and what is loaded, for the third place."""
        item = data.View(score_layout(self.configuration), payload)
        m.submodules.exponential = table = FunctionTable(exponential_table())
        m.d.comb += table.place.eq(item.score)
        comes = delayed(m, passes.loads, TABLE_CYCLES, "loads", reset_less=False)
        place = delayed(m, passes.place, TABLE_CYCLES, "loaded_place")
        first = delayed(m, item.first, TABLE_CYCLES, "loaded_first")
        document = {"place": place, "exponential": table.value, "share": first, "comes": comes}
        if self.configuration.k == 3:
            document["odds"] = delayed(m, item.odds, TABLE_CYCLES, "loaded_odds")
        words["exponential"].put(m, place, table.value, comes)
        words["first"].put(m, place, first[-FIRST_BITS:], comes)
        words["membership"].put(m, place, delayed(m, item.membership, TABLE_CYCLES, "loaded_membership"), comes)
        total = Signal(self.configuration.sum_bits)
        with m.If(comes):
            m.d.sync += total.eq(total + table.value)
        with m.If(passes.ends):
            m.d.sync += total.eq(0)
        return total, document

    def _divide(
        self, m: Module, passes: _Passes, words: dict[str, ListWords], total: Any, removed: Any
    ) -> tuple[Any, Any]:
        """P/(S − E), E/S or S/(8·(S − E_a − E_b)), and the document that the first two belong to.

        removed : E_a + E_b, a cycle after the words of a pair; None without pairs
        """
        bits = len(total) + (0 if removed is None else _RATIO_SHIFT)
        m.submodules.divider = divider = Divider(bits, GRADIENT_POINT)
        second = delayed(m, passes.seconds, READ, "second")
        numerator, denominator = Signal(bits, reset_less=True), Signal(bits, reset_less=True)
        exponential = words["exponential"].word
        m.d.sync += [
            numerator.eq(Mux(second, words["first"].word, exponential)),
            denominator.eq(total - Mux(second, exponential, 0)),
        ]
        if removed is not None:
            with m.If(delayed(m, passes.pairs, READ + 1, "pair")):
                m.d.sync += [numerator.eq(total), denominator.eq((total - removed) << _RATIO_SHIFT)]
        m.d.comb += [divider.numerator.eq(numerator), divider.denominator.eq(denominator)]
        return divider.quotient, delayed(m, passes.place, READ + _TO_QUOTIENT, "divided_place")

    def _gradient(
        self,
        m: Module,
        passes: _Passes,
        words: dict[str, ListWords],
        quotient: Any,
        place: Any,
        third: ThirdPlace | None,
    ) -> tuple[Any, int]:
        """∂L/∂s, and how many cycles after the quotient."""
        membership = delayed(m, words["membership"].word, _TO_QUOTIENT, "membership_then")
        gradient = Signal(signed(GRADIENT_BITS), reset_less=True)
        if self.configuration.k == 1:
            m.d.sync += gradient.eq(quotient - membership)
            return gradient, 1
        comes = delayed(m, passes.seconds, READ + _TO_QUOTIENT, "ratio_comes", reset_less=False)
        words["ratio"].put(m, place, quotient, comes)
        ratios = Signal(_QUOTIENT_BITS + 1)
        with m.If(comes):
            m.d.sync += ratios.eq(ratios + quotient)
        with m.If(passes.ends):
            m.d.sync += ratios.eq(0)
        others = Signal(signed(_QUOTIENT_BITS + 2), reset_less=True)
        weighted = Signal(signed(_QUOTIENT_BITS + 2 + EXPONENTIAL_BITS), reset_less=True)
        first_place = Signal(signed(GRADIENT_BITS), reset_less=True)
        exponential = delayed(m, words["exponential"].word, 1, "exponential_then")
        m.d.sync += [
            others.eq(ratios - words["ratio"].word),
            weighted.eq(others * exponential),
            first_place.eq(quotient - membership),
        ]
        second_place = delayed(m, weighted >> EXPONENTIAL_POINT, _TO_QUOTIENT - 1, "second_place")
        m.d.sync += gradient.eq(first_place + second_place)
        if third is None:
            return gradient, 2
        three_places = Signal(signed(GRADIENT_BITS), reset_less=True)
        two_places = delayed(m, gradient, THIRD_CYCLES - 3, "two_places")
        m.d.sync += three_places.eq(two_places + third.part(m, quotient))
        return three_places, THIRD_CYCLES

    def _keep(
        self, m: Module, passes: _Passes, words: dict[str, ListWords], gradient: Any, place: Any, later: int
    ) -> Any:
        """Store a gradient and the length of its number; returns the largest length."""
        size = Signal(GRADIENT_BITS - 1, reset_less=True)
        length, longest = Signal(LENGTH_BITS, reset_less=True), Signal(LENGTH_BITS)
        m.d.sync += [size.eq(Mux(gradient < 0, -gradient, gradient)), length.eq(length_of(size))]
        kept = delayed(m, passes.divides, READ + _TO_QUOTIENT + later + 2, "kept", reset_less=False)
        number = delayed(m, gradient, 2, "kept_gradient")
        words["gradient"].put(m, delayed(m, place, 2, "kept_place"), Cat(number, length), kept)
        with m.If(kept & (length > longest)):
            m.d.sync += longest.eq(length)
        with m.If(passes.ends):
            m.d.sync += longest.eq(0)
        return longest

    def _scale(self, m: Module, passes: _Passes, words: dict[str, ListWords], longest: Any) -> None:
        configuration = self.configuration
        m.submodules.scale = scale = GradientScale(configuration.bits, configuration.batches, configuration.method)
        layout = gradient_layout(configuration)
        m.submodules.gradient_queue = queue = StreamQueue(layout.size, _IN_FLIGHT)
        connect(m, queue.outgoing, self.gradients)
        item = data.View(layout, queue.incoming.payload)
        stored = words["gradient"].word
        m.d.comb += [
            scale.gradient.eq(stored[:GRADIENT_BITS]),
            scale.length.eq(stored[GRADIENT_BITS:]),
            scale.longest.eq(longest),
            item.gradient.eq(scale.value),
            item.batch.eq(scale.batch),
            item.last.eq(delayed(m, passes.is_last, READ + SCALE_CYCLES, "is_last")),
            queue.incoming.valid.eq(delayed(m, passes.scales, READ + SCALE_CYCLES, "scales", reset_less=False)),
        ]


class _Passes:
    """Which pass over the list goes on, and at which document; between two passes the pipeline runs empty.

    place, is_last : the document, and whether it is the last; loads, seconds, divides, scales : what is done with it
    pairs : a pair is taken; ends : the list is finished
    """

    def __init__(self, configuration: LossConfiguration) -> None:
        self.configuration = configuration
        self.place, self.is_last, self.ends = Signal(configuration.place_bits), Signal(), Signal()
        self.loads, self.seconds, self.divides, self.scales = Signal(), Signal(), Signal(), Signal()
        self.pairs = Signal()

    def elaborate(self, m: Module, incoming: Any, given: Any, final_pair: Any) -> None:
        """Add the logic to a module; `given`: a gradient has left; `final_pair`: the pair at hand is the last."""
        k = self.configuration.k
        last, flight = Signal(self.configuration.place_bits), Signal(range(_IN_FLIGHT + 1))
        wait = Signal(range(max(PAIR_DRAIN, self.configuration.final_drain)))
        item = data.View(score_layout(self.configuration), incoming.payload)
        m.d.comb += self.is_last.eq(self.place == last)
        m.d.sync += flight.eq(flight + self.scales - given)
        with m.FSM():
            with m.State("LOAD"):
                m.d.comb += [self.loads.eq(incoming.valid), incoming.ready.eq(1)]
                with m.If(self.loads):
                    m.d.sync += [self.place.eq(self.place + 1), wait.eq(LOAD_DRAIN - 1)]
                    with m.If(item.last):
                        m.d.sync += [last.eq(self.place), self.place.eq(0)]
                        m.next = "LOADED"
            self._drain(m, "LOADED", wait, "DIVIDE" if k == 1 else "SECOND")
            if k >= 2:
                self._go_through(m, "SECOND", self.seconds, wait, DIVIDE_DRAIN)
                self._drain(m, "SECOND_DONE", wait, "DIVIDE" if k == 2 else "PAIR")
            if k == 3:
                with m.State("PAIR"):
                    m.d.comb += self.pairs.eq(1)
                    m.d.sync += wait.eq(PAIR_DRAIN - 1)
                    with m.If(final_pair):
                        m.next = "PAIR_DONE"
                self._drain(m, "PAIR_DONE", wait, "DIVIDE")
            self._go_through(m, "DIVIDE", self.divides, wait, self.configuration.final_drain)
            self._drain(m, "DIVIDE_DONE", wait, "SCALE")
            with m.State("SCALE"):
                m.d.comb += self.scales.eq(flight != _IN_FLIGHT)
                m.d.sync += wait.eq(SCALE_DRAIN - 1)
                with m.If(self.scales):
                    m.d.sync += self.place.eq(self.place + 1)
                    with m.If(self.is_last):
                        m.d.sync += self.place.eq(0)
                        m.next = "SCALED"
            with m.State("SCALED"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.d.comb += self.ends.eq(1)
                    m.next = "LOAD"

    def _go_through(self, m: Module, name: str, goes: Any, wait: Any, drain: int) -> None:
        with m.State(name):
            m.d.comb += goes.eq(1)
            m.d.sync += [self.place.eq(self.place + 1), wait.eq(drain - 1)]
            with m.If(self.is_last):
                m.d.sync += self.place.eq(0)
                m.next = f"{name}_DONE"

    def _drain(self, m: Module, name: str, wait: Any, following: str) -> None:
        with m.State(name):
            m.d.sync += wait.eq(wait - 1)
            with m.If(wait == 0):
                m.next = following
