"""All that `rankwell hardware listnet` tells: resources, clock, cycles, bandwidth, limits, time and energy."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from rankwell.hardware.listnet import thesis
from rankwell.hardware.listnet.board import clock
from rankwell.hardware.listnet.configuration import ListNetConfiguration
from rankwell.hardware.listnet.cpu_measurement import CpuTimes
from rankwell.hardware.listnet.cycles import query_overhead
from rankwell.hardware.listnet.loss_gradient import LossConfiguration
from rankwell.hardware.listnet.performance import predict_all_tasks, predict_epoch
from rankwell.hardware.listnet.tasks import task_cycles, task_design
from rankwell.hardware.rankboost.performance import BOARDS
from rankwell.hardware.synthesis import fits, synthesise
from rankwell.hardware.targets import Target

_ALL_TASKS = "all three tasks on the board"


def describe(
    configuration: ListNetConfiguration,
    loss: LossConfiguration,
    target: Target,
    query_sizes: np.ndarray,
    cpu: CpuTimes,
    *,
    task: str = "backward",
    n_epochs: int,
    place: bool = False,
    seeds: tuple[int, ...] = (1,),
    memory: float | None = None,
) -> dict[str, Any]:
    """The report as plain values.

    task : of `TASKS`, whose kernel is synthesised
    memory : bytes a second of the board's memory, instead of an ECP5 board's
    """
    synthesis = synthesise(task_design(task, configuration, loss), target, place=place, seeds=seeds)
    megahertz = clock(configuration) / 1e6 if synthesis.megahertz is None else synthesis.megahertz
    board = replace(
        BOARDS["ecp5"],
        name=target.name,
        title=f"back propagation on {target.title}, the rest on this machine's CPU",
        megahertz=megahertz,
        memory=BOARDS["ecp5"].memory if memory is None else memory,
        source=f"{megahertz:.0f} MHz; 10 W are an assumption; PCIe 1.1 x1 at 200 MB/s",
    )
    mine = predict_epoch(configuration, board, query_sizes, host_per_document=cpu.forward_and_loss)
    whole = predict_all_tasks(configuration, loss, board, query_sizes)
    cycles = task_cycles(configuration, loss, query_sizes)
    n_docs = int(query_sizes.sum())
    row = _row(board.title, "predicted", mine.back_propagation, mine.host + mine.link, n_epochs, board.watts)
    row["note"] = f"limited by {mine.limit}; {board.source}"
    backward = cycles["backward"] / (megahertz * 1e6)
    all_row = _row(_ALL_TASKS, "predicted", backward, whole.total - backward, n_epochs, board.watts)
    all_row["note"] = f"limited by {whole.limit}; the three kernels were not placed together; the step is the host's"
    return {
        "kind": "hardware",
        "accelerator": "listnet",
        "task": task,
        "configuration": {
            **asdict(configuration),
            "steps": configuration.steps,
            "multipliers": configuration.multipliers,
        },
        "target": {**asdict(target), "fits": fits(synthesis, target)},
        "synthesis": {**asdict(synthesis), "placed": synthesis.megahertz is not None, "megahertz_used": megahertz},
        "data": {"n_docs": n_docs, "n_queries": len(query_sizes), "n_features": configuration.features},
        "epoch": {
            "cycles": cycles,
            "steps": configuration.steps,
            "query_overhead": query_overhead(configuration),
            "limit": mine.limit,
            "needed_bandwidth": mine.needed_bandwidth,
            "memory_bandwidth": board.memory,
        },
        "n_epochs": n_epochs,
        "compared": [row, all_row, *_thesis_rows(n_epochs), *_cpu_rows(cpu, n_docs, configuration, n_epochs)],
    }


def _thesis_rows(n_epochs: int) -> list[dict[str, Any]]:
    """The thesis's own figures, of its own data: permutations do not grow with the documents, so nothing is scaled."""
    rows = []
    for title, tasks, note in (
        ("the thesis's FPGA, Top-2, float32", thesis.TABLE_3_4["fpga"], "table 3.4: every permutation of two"),
        ("the thesis's CPU, Top-2", thesis.TABLE_3_4["cpu"], "table 3.4"),
    ):
        row = _row(title, "published", tasks.backward, tasks.forward + tasks.loss, n_epochs, None)
        rows.append({**row, "note": f"{note}; 471 queries, 540,679 documents, whatever the data here"})
    for title, seconds in (
        ("the thesis's FPGA, Top-3 sampled, 8 bits", thesis.TABLE_4_3["batch, 8 bits"]),
        ("the thesis's GPU, Top-3 sampled", thesis.TABLE_4_3["gpu"]),
    ):
        row = _row(title, "published", None, None, n_epochs, None, total=seconds)
        rows.append({**row, "note": "table 4.3; 471 queries, 540,679 documents, whatever the data here"})
    return rows


def _cpu_rows(cpu: CpuTimes, n_docs: int, configuration: ListNetConfiguration, n_epochs: int) -> list[dict[str, Any]]:
    rows = []
    for title, per_document in (
        (f"this machine's CPU, {configuration.bits} bits emulated", cpu.fixed_epoch),
        ("this machine's CPU, float32", cpu.float_epoch),
    ):
        host = cpu.forward_and_loss * n_docs
        backward = max(per_document * n_docs - host, 0.0)
        row = _row(title, "measured on a sample, scaled", backward, host, n_epochs, None)
        rows.append({**row, "note": "exact Top-1, one thread, one step a query; its watts are not known"})
    return rows


def _row(
    title: str,
    kind: str,
    back_propagation: float | None,
    rest: float | None,
    n_epochs: int,
    watts: float | None,
    *,
    total: float | None = None,
) -> dict[str, Any]:
    seconds = (back_propagation or 0.0) + (rest or 0.0) if total is None else total
    return {
        "what": title,
        "kind": kind,
        "back_propagation_seconds": back_propagation,
        "rest_seconds": rest,
        "epoch_seconds": seconds,
        "run_seconds": seconds * n_epochs,
        "watts": watts,
        "run_watt_hours": None if watts is None else watts * seconds * n_epochs / 3600,
    }
