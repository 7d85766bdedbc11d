"""The third place's part of the exact Top-3 gradient: a sum over pairs, one pair a cycle.

    E_i · Σ_{a < b, neither i} w_ab/(S − E_a − E_b),      w_ab = P_y(a, b) + P_y(b, a) = o_a·P_b + P_a·o_b

with the odds o = P/(1 − P) of the labels. With ρ_ab = S/(8·(S − E_a − E_b)), which is below 2, a row of pairs is

    row_a = o_a · Σ_b P_b·ρ_ab + P_a · Σ_b o_b·ρ_ab,      Σ_a row_a counts every pair twice,

and the part is (E_i/S) · 4 · (Σ_a row_a − 2·row_i): E_i/S is computed anyway. Only *candidates*, documents whose P is
not 0 in its 24 bits, form pairs; where every document has its own label, these are the best 17.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed

from rankwell.hardware.delay import delayed
from rankwell.hardware.listnet.forward_format import (
    EXPONENTIAL_BITS,
    GRADIENT_POINT,
    ODDS_BITS,
    OTHERS_POINT,
    PAIR_POINT,
    ROW_POINT,
    SHARE_BITS,
)
from rankwell.hardware.listnet.list_words import READ, ListWords
from rankwell.hardware.listnet.product import product

if TYPE_CHECKING:
    from rankwell.hardware.listnet.loss_gradient import LossConfiguration

# Σ P·ρ is below 2, Σ o·ρ below 128, a row below 2 and all rows below 4.
_SUM_BITS, _ODDS_SUM_BITS, _ROW_BITS = PAIR_POINT + 1, PAIR_POINT + 7, ROW_POINT + 1
_PRODUCT_CYCLES = 3
# From ρ to a row that is written: the products, their sums, the row's products, the row.
_TO_ROW = 2 * _PRODUCT_CYCLES + 2
# From E_i/S to its product with the rows.
THIRD_CYCLES = _PRODUCT_CYCLES + 1


def pair_drain(to_ratio: int) -> int:
    """Cycles between the last pair and the next pass; `to_ratio`: from a pair's words to ρ."""
    return READ + to_ratio + _TO_ROW + 1


class ThirdPlace:
    """Candidates and their pairs.

    Attributes
    ----------
    is_final : the pair that is at hand is the list's last
    removed : E_a + E_b of the pair of READ + 1 cycles ago
    """

    def __init__(self, configuration: LossConfiguration) -> None:
        self.configuration = configuration
        bits = configuration.place_bits
        self._row, self._column, self._count, self._last = (Signal(bits) for _ in range(4))
        self.is_final, self._row_ends = Signal(), Signal()
        self.removed = Signal(EXPONENTIAL_BITS + 1, reset_less=True)
        self._total = Signal(_ROW_BITS + 1)

    def elaborate(
        self, m: Module, passes: Any, document: Mapping[str, Any], ratio: Any, to_ratio: int, to_quotient: int
    ) -> None:
        """Add the logic to a module.

        passes : see `loss_gradient`; document : what is loaded, `place`, `exponential`, `share`, `odds` and `comes`;
        ratio : ρ, `to_ratio` cycles after a pair's words; E/S comes `to_quotient` cycles after a document's
        """
        depth, bits = self.configuration.most_docs, self.configuration.place_bits
        self._go(m, passes)
        of_row = ListWords(m, "row_exponential", EXPONENTIAL_BITS, depth, self._row)
        of_column = ListWords(m, "column_exponential", EXPONENTIAL_BITS, depth, self._column)
        m.d.sync += self.removed.eq(of_row.word + of_column.word)
        column = delayed(m, self._column, to_ratio, "column")
        factors = ListWords(m, "factors", SHARE_BITS + ODDS_BITS, depth, column)
        to_sums = to_ratio + _PRODUCT_CYCLES + 1
        row = delayed(m, self._row, to_sums, "row")
        candidate = ListWords(m, "candidate", SHARE_BITS + ODDS_BITS + bits, depth, row)
        is_candidate = Signal()
        m.d.comb += is_candidate.eq(document["comes"] & document["share"].any())
        with m.If(is_candidate):
            m.d.sync += [self._count.eq(self._count + 1), self._last.eq(self._count)]
        for words in (of_row, of_column):
            words.put(m, self._count, document["exponential"], is_candidate)
        weights = Cat(document["share"], document["odds"])
        factors.put(m, self._count, weights, is_candidate)
        candidate.put(m, self._count, Cat(weights, document["place"]), is_candidate)
        sums = self._sum_columns(m, passes.pairs, factors.word, ratio, READ + to_ratio + _PRODUCT_CYCLES)
        row_place, row_value = self._row_of(m, candidate.word, sums)
        comes = delayed(m, self._row_ends, READ + to_sums + _PRODUCT_CYCLES + 1, "row_comes", reset_less=False)
        # Rows are read a cycle before the quotient comes: they are taken from their sum first. Others have none.
        self._rows = ListWords(m, "rows", _ROW_BITS, depth, delayed(m, passes.place, to_quotient - 1, "rows_place"))
        self._rows.put(m, Mux(comes, row_place, document["place"]), Mux(comes, row_value, 0), comes | document["comes"])
        with m.If(comes):
            m.d.sync += self._total.eq(self._total + row_value)
        with m.If(passes.ends):
            m.d.sync += [self._total.eq(0), self._count.eq(0), self._last.eq(0)]

    def _go(self, m: Module, passes: Any) -> None:
        """From pair to pair, row after row."""
        at_end = Signal()
        m.d.comb += [
            at_end.eq(self._column == self._last),
            self.is_final.eq(at_end & (self._row == self._last)),
            self._row_ends.eq(passes.pairs & at_end),
        ]
        with m.If(passes.pairs):
            m.d.sync += self._column.eq(Mux(at_end, 0, self._column + 1))
        with m.If(self._row_ends):
            m.d.sync += self._row.eq(Mux(self.is_final, 0, self._row + 1))

    def part(self, m: Module, quotient: Any) -> Any:
        """The third place's part, from E/S, `THIRD_CYCLES` − 1 cycles after it."""
        others = Signal(signed(_ROW_BITS + 2), reset_less=True)
        m.d.sync += others.eq(self._total - (self._rows.word << 1))
        lower = others >> ROW_POINT - OTHERS_POINT
        exact = _product(m, quotient, lower, max(len(quotient) + 1, len(lower)), "third_place")
        return exact >> OTHERS_POINT - 2

    def _sum_columns(self, m: Module, goes: Any, factors: Any, ratio: Any, then: int) -> tuple[Any, Any]:
        """Σ_b P_b·ρ_ab and Σ_b o_b·ρ_ab of a row so far; `then`: from a pair to its products."""
        counts = delayed(m, goes & (self._row != self._column), then, "counts")
        begins = delayed(m, self._column == 0, then, "row_begins")
        sums = []
        for name, factor, bits in (
            ("shares", factors[:SHARE_BITS], _SUM_BITS),
            ("odds", factors[SHARE_BITS:], _ODDS_SUM_BITS),
        ):
            exact = _product(m, factor, ratio, ODDS_BITS + 1, f"pair_{name}")
            total = Signal(bits, name=f"sum_of_{name}", reset_less=True)
            addend = Mux(counts, exact >> 2 * GRADIENT_POINT - PAIR_POINT, 0)
            m.d.sync += total.eq(Mux(begins, 0, total) + addend)
            sums.append(total)
        return sums[0], sums[1]

    def _row_of(self, m: Module, candidate: Any, sums: tuple[Any, Any]) -> tuple[Any, Any]:
        """The place and the row of a candidate, `_PRODUCT_CYCLES` + 1 cycles after its words and sums."""
        share, odds = candidate[:SHARE_BITS], candidate[SHARE_BITS : SHARE_BITS + ODDS_BITS]
        of_shares, of_odds = sums
        fewer = _SUM_BITS + ROW_POINT - _ODDS_SUM_BITS  # bits after the point, so that both are as wide
        by_odds = _product(m, odds, of_shares >> PAIR_POINT - ROW_POINT, _ROW_BITS + 1, "row_odds")
        by_share = _product(m, share, of_odds >> PAIR_POINT - fewer, _ROW_BITS + 1, "row_share")
        row = Signal(_ROW_BITS, reset_less=True)
        m.d.sync += row.eq((by_odds >> GRADIENT_POINT) + (by_share >> GRADIENT_POINT + fewer - ROW_POINT))
        return delayed(m, candidate[SHARE_BITS + ODDS_BITS :], _PRODUCT_CYCLES + 1, "candidate_place"), row


def _product(m: Module, left: Any, right: Any, bits: int, name: str) -> Any:
    """left · right, exact, of numbers that fit into `bits` signed bits; `_PRODUCT_CYCLES` later."""
    operands = []
    for side, value in (("left", left), ("right", right)):
        operand = Signal(signed(bits), name=f"{name}_{side}")
        m.d.comb += operand.eq(value)
        operands.append(operand)
    return product(m, operands[0], operands[1], _PRODUCT_CYCLES, name)
