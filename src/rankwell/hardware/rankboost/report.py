"""All that `rankwell hardware rankboost` tells: resources, clock, cycles, bandwidth, limits, time and energy."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from rankwell.hardware.rankboost.accelerator import RankBoostAccelerator
from rankwell.hardware.rankboost.configuration import RankBoostConfiguration
from rankwell.hardware.rankboost.cpu_measurement import CpuTimes
from rankwell.hardware.rankboost.cycles import round_cycles
from rankwell.hardware.rankboost.far_paper import N_DOCS, N_PAIRS, TABLE_IV, TABLE_V, accelerated_round, energy
from rankwell.hardware.rankboost.performance import BOARDS, Board, RoundPrediction, predict_round
from rankwell.hardware.synthesis import fits, synthesise
from rankwell.hardware.targets import Target

# What a design that was not placed is assumed to reach: 16 PEs route above this, 128 PEs above the second.
ASSUMED_MEGAHERTZ, ASSUMED_MEGAHERTZ_OF_MANY = 200.0, 150.0
# The computers that the table compares: watts of the paper's, of which this machine's are not known.
_CPU_WATTS = TABLE_V["naive"].watts


def describe(
    configuration: RankBoostConfiguration,
    target: Target,
    n_docs: int,
    n_features: int,
    cpu: CpuTimes,
    *,
    n_rounds: int,
    place: bool = False,
    seeds: tuple[int, ...] = (1,),
    memory: float | None = None,
) -> dict[str, Any]:
    """The report as plain values.

    memory : bytes a second of the board's memory, instead of an ECP5 board's
    """
    synthesis = synthesise(RankBoostAccelerator(configuration), target, place=place, seeds=seeds)
    assumed = ASSUMED_MEGAHERTZ if configuration.pes <= 16 else ASSUMED_MEGAHERTZ_OF_MANY
    megahertz = assumed if synthesis.megahertz is None else synthesis.megahertz
    board = replace(
        BOARDS["ecp5"],
        name=target.name,
        title=f"{configuration.pes} PEs on {target.title}",
        pes=configuration.pes,
        megahertz=megahertz,
        memory=BOARDS["ecp5"].memory if memory is None else memory,
    )
    mine = predict_round(
        board, n_docs, n_features, configuration=configuration, host_per_document=cpu.host_per_document
    )
    return {
        "kind": "hardware",
        "accelerator": "rankboost",
        "configuration": asdict(configuration),
        "target": {**asdict(target), "fits": fits(synthesis, target)},
        "synthesis": {**asdict(synthesis), "placed": synthesis.megahertz is not None, "megahertz_used": megahertz},
        "data": {"n_docs": n_docs, "n_features": n_features},
        "round": {
            "cycles": round_cycles(configuration, n_docs, n_features),
            "passes": configuration.passes(n_features),
            "limit": mine.limit,
            "needed_bandwidth": mine.needed_bandwidth,
            "memory_bandwidth": board.memory,
        },
        "n_rounds": n_rounds,
        "compared": [
            *(_board_row(*each, n_rounds) for each in _boards(board, mine, n_docs, n_features, cpu)),
            *_paper_rows(n_docs, n_features, n_rounds),
            _cpu_row(cpu, n_docs, n_features, n_rounds),
        ],
    }


def _boards(
    board: Board, mine: RoundPrediction, n_docs: int, n_features: int, cpu: CpuTimes
) -> list[tuple[Board, RoundPrediction]]:
    rows = [(board, mine)]
    for other in (BOARDS[name] for name in ("far1", "far2", "hbm")):
        rows.append((other, predict_round(other, n_docs, n_features, host_per_document=cpu.host_per_document)))
    return rows


def _board_row(board: Board, prediction: RoundPrediction, n_rounds: int) -> dict[str, Any]:
    return _row(
        board.title,
        "predicted",
        search=prediction.search,
        host=prediction.host + prediction.link,
        watts=board.watts,
        n_rounds=n_rounds,
        note=f"limited by {prediction.limit}; {board.source}; watts of {board.watts_of}",
    )


def _paper_rows(n_docs: int, n_features: int, n_rounds: int) -> list[dict[str, Any]]:
    """FAR1, FAR2 and their software by the paper's model (equations 8 to 10), with its pairs in proportion."""
    rows = []
    for name, title in (("far1", "FAR1, the paper's"), ("far2", "FAR2, the paper's")):
        times = accelerated_round(name, round(N_PAIRS * n_docs / N_DOCS), n_docs, n_features)
        rows.append(
            _row(
                title,
                "published, scaled by its model",
                search=times.search + times.transfer,
                host=times.potentials + times.weights,
                watts=TABLE_V[name].watts,
                n_rounds=n_rounds,
                note=f"measured {TABLE_IV[name].total:.3f} s at 1,196,711 × 646 with 15,146,236 pairs",
            )
        )
    return rows


def _cpu_row(cpu: CpuTimes, n_docs: int, n_features: int, n_rounds: int) -> dict[str, Any]:
    return _row(
        f"this machine's CPU, {cpu.n_threads} threads",
        "measured on a sample, scaled",
        search=cpu.search_per_value * n_docs * n_features,
        host=cpu.host_per_document * n_docs,
        watts=_CPU_WATTS,
        n_rounds=n_rounds,
        note="every feature searched in every round; the watts are those of the paper's computer, not of this machine",
    )


def _row(
    title: str, kind: str, *, search: float, host: float, watts: float, n_rounds: int, note: str
) -> dict[str, Any]:
    total = search + host
    return {
        "what": title,
        "kind": kind,
        "search_seconds": search,
        "host_seconds": host,
        "round_seconds": total,
        "run_seconds": total * n_rounds,
        "watts": watts,
        "run_watt_hours": energy(watts, total, n_rounds) * 1000,
        "note": note,
    }
