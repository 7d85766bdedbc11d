"""How long a round takes on a board, and what limits it: the FAR paper's equations 7 to 10 for this accelerator.

search = passes · (max(documents / clock, bytes of a pass / bandwidth) + overhead / clock) + round overhead / clock
link   = 4 · documents / link bandwidth + latency       π to the board; the result is 16 bytes
host   = seconds per document · documents               π and new weights: O(documents), where FAR has O(pairs)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.cycles import pass_overhead, round_cycles, round_overhead
from rankwell.hardware.rankboost.far_paper import N_DOCS, N_FEATURES, TABLE_IV

_PI_BYTES = 4


@dataclass(frozen=True)
class Board:
    """A board, real or assumed.

    megahertz : the accelerator's clock
    memory : bytes a second that the memory streams
    link, link_latency : bytes a second from the host, seconds of one transfer
    watts : of the board, or, where `watts_of` says so, of the whole computer
    source : where the numbers come from
    """

    name: str
    title: str
    pes: int
    megahertz: float
    memory: float
    link: float
    link_latency: float
    watts: float
    watts_of: str
    source: str


BOARDS: Mapping[str, Board] = {
    board.name: board
    for board in (
        Board(
            "far1",
            "this design on FAR1's board: DDR at 1.1 GB/s, PCI",
            112,
            180.0,
            N_DOCS * N_FEATURES / TABLE_IV["far1"].search,
            0.1e9,
            1e-5,
            220.0,
            "the computer",
            "FAR paper, section 3.2.3 (clock), tables IV (773 MB in 719 ms) and V (watts); PCI at 100 MB/s assumed",
        ),
        Board(
            "far2",
            "this design on FAR2's board: two DDR2 at 2.1 GB/s, PCIe",
            112,
            180.0,
            N_DOCS * N_FEATURES / TABLE_IV["far2"].search,
            1.0e9,
            1e-5,
            240.0,
            "the computer",
            "FAR paper, table IV (773 MB in 362 ms; the memory's peak is 6.25 GB/s), table V; PCIe at 1 GB/s assumed",
        ),
        Board(
            "ecp5",
            "ECP5-85k with 32 bits of DDR3-800",
            128,
            180.0,
            3.2e9,
            0.2e9,
            1e-5,
            10.0,
            "the board",
            "128 PEs route at 180.6 MHz; 10 W are an assumption; 32 bit · 800 MT/s; PCIe 1.1 x1 at 200 MB/s",
        ),
        Board(
            "hbm",
            "a board with HBM (AMD Alveo U280)",
            656,
            300.0,
            460e9,
            12e9,
            1e-5,
            225.0,
            "the board",
            "AMD DS963: 460 GB/s, 225 W at most; 300 MHz assumed, PCIe 3.0 x16 at 12 GB/s; not placed",
        ),
    )
}


@dataclass(frozen=True)
class RoundPrediction:
    """Seconds of a round, term by term.

    cycles : of the search if memory keeps up
    fill_compute, fill_memory : what filling the histograms takes by the clock and by the memory; the longer counts
    overhead : scans and handshakes
    needed_bandwidth : bytes a second at which memory would not limit
    """

    cycles: int
    fill_compute: float
    fill_memory: float
    overhead: float
    link: float
    host: float
    needed_bandwidth: float
    limit: str

    @property
    def search(self) -> float:
        return max(self.fill_compute, self.fill_memory) + self.overhead

    @property
    def total(self) -> float:
        return self.search + self.link + self.host


def predict_round(
    board: Board,
    n_docs: int,
    n_features: int,
    *,
    configuration: RankBoostConfiguration | None = None,
    host_per_document: float = 0.0,
) -> RoundPrediction:
    """A round of this accelerator on a board; `host_per_document` in seconds."""
    configuration = RankBoostConfiguration(pes=board.pes) if configuration is None else configuration
    clock, passes = board.megahertz * 1e6, configuration.passes(n_features)
    bytes_per_document = configuration.pes + _PI_BYTES
    compute = passes * n_docs / clock
    memory = passes * n_docs * bytes_per_document / board.memory
    overhead = (passes * pass_overhead(configuration) + round_overhead(configuration)) / clock
    link = _PI_BYTES * n_docs / board.link + board.link_latency
    host = host_per_document * n_docs
    terms = {"memory bandwidth": memory, "clock": compute, "scans": overhead, "link": link, "host": host}
    return RoundPrediction(
        cycles=round_cycles(configuration, n_docs, n_features),
        fill_compute=compute,
        fill_memory=memory,
        overhead=overhead,
        link=link,
        host=host,
        needed_bandwidth=clock * bytes_per_document,
        limit=max(terms, key=lambda name: terms[name]),
    )
