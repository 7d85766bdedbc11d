"""A figure: how much faster more PEs are, until memory limits them, and what a run costs in energy."""

from __future__ import annotations

import os
from dataclasses import replace

from rankwell.hardware.rankboost.configuration import GROUP, RankBoostConfiguration
from rankwell.hardware.rankboost.far_paper import N_DOCS, N_FEATURES, RUN_ROUNDS, TABLE_IV, TABLE_V, energy
from rankwell.hardware.rankboost.performance import BOARDS, predict_round

_MOST_ARRAYS = 41
# An H200's round of the paper's data: measured, power.draw sampled (benchmark rankboost_cuda, "energy of a round").
_H200_WATTS, _H200_ROUND_SECONDS = 687.0, 0.30e-3


def speedups(board: str) -> list[tuple[int, float]]:
    """By the number of PEs: how many times faster a search of the paper's data is than the paper's software."""
    software = TABLE_IV["software"].search
    found = []
    for n_arrays in range(1, _MOST_ARRAYS + 1):
        configuration = RankBoostConfiguration(pes=GROUP * n_arrays)
        prediction = predict_round(
            replace(BOARDS[board], pes=configuration.pes), N_DOCS, N_FEATURES, configuration=configuration
        )
        found.append((configuration.pes, software / prediction.search))
    return found


def run_energies() -> dict[str, float]:
    """Watt-hours of 300 rounds of the paper's data, by what runs it."""
    energies = {
        "software (paper)": energy(TABLE_V["naive"].watts, TABLE_IV["software"].total, RUN_ROUNDS) * 1000,
        "FAR1 (paper)": energy(TABLE_V["far1"].watts, TABLE_IV["far1"].total, RUN_ROUNDS) * 1000,
        "FAR2 (paper)": energy(TABLE_V["far2"].watts, TABLE_IV["far2"].total, RUN_ROUNDS) * 1000,
    }
    energies["H200 (measured)"] = energy(_H200_WATTS, _H200_ROUND_SECONDS, RUN_ROUNDS) * 1000
    boards = (("ecp5", "ECP5, 128 PEs (predicted, without host)"), ("hbm", "HBM board (predicted, without host)"))
    for name, title in boards:
        total = predict_round(BOARDS[name], N_DOCS, N_FEATURES).total
        energies[title] = energy(BOARDS[name].watts, total, RUN_ROUNDS) * 1000
    return energies


def plot_speedup(path: str | os.PathLike[str]) -> None:
    """Draw both; needs Matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, title in (("far1", "FAR1's DDR"), ("far2", "FAR2's DDR2"), ("ecp5", "DDR3-800"), ("hbm", "HBM")):
        left.plot(*zip(*speedups(name), strict=True), label=f"{title}, {BOARDS[name].memory / 1e9:.1f} GB/s")
    for name, pes in (("far1", 8), ("far2", 16)):
        times = TABLE_IV[name]
        left.plot(pes, TABLE_IV["software"].search / (times.search + times.transfer), "k*")
        left.annotate(f"{name.upper()}, measured", (pes, TABLE_IV["software"].search / (times.search + times.transfer)))
    left.set(xlabel="processing elements", ylabel="search, times the paper's software", xscale="log", yscale="log")
    left.legend()
    energies = run_energies()
    right.barh(list(energies), list(energies.values()))
    right.set(xlabel="Wh for 300 rounds of 1,196,711 × 646", xscale="log")
    figure.savefig(path)
