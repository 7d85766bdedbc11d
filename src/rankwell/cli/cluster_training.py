"""`rankwell train --cluster`: the options, the training, and what is printed of the workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankwell.cli.console import show
from rankwell.cli.figures import make_table
from rankwell.cli.inputs import Reading
from rankwell.cli.progress import progress_bar

if TYPE_CHECKING:
    from rankwell.cluster.report import ClusterReport
    from rankwell.data.dataset import RankingDataset
    from rankwell.rankers.base import Ranker, TrainingStep

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="auto|local|ADDRESS",
        help="Train with several processes on Ray: started on this machine (local), the one that runs here (auto), or "
        "at an address such as 10.0.0.1:6379. TRAIN may then be several files, patterns or folders.",
        show_default=False,
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=1, help="Processes of --cluster; by default one per CPU.", show_default=False
    ),
]
GpusOption = Annotated[
    float, typer.Option("--gpus-per-worker", metavar="G", min=0, help="GPUs that each worker takes.")
]
DivisionOption = Annotated[
    str,
    typer.Option(
        "--division",
        metavar="NAME",
        help="RankBoost: each worker has some documents, or some features: auto, documents or features.",
    ),
]
DashboardOption = Annotated[bool, typer.Option("--dashboard", help="Start Ray's dashboard with --cluster local.")]


@dataclass(frozen=True)
class ClusterChoice:
    """What the options of a cluster say."""

    cluster: str
    workers: int | None
    gpus_per_worker: float
    division: str
    dashboard: bool


def fit_on_cluster(
    ranker: Ranker,
    data: Sequence[Path],
    validation: RankingDataset | None,
    choice: ClusterChoice,
    reading: Reading,
    init: Path | None,
    quiet: bool,
) -> float:
    """Train with a progress bar; returns the seconds it took, without reading."""
    began = time.perf_counter()
    with progress_bar(f"training {ranker.name} on a cluster", quiet=quiet) as bar:

        def show_step(step: TrainingStep) -> None:
            bar.training_step(step, more=ranker.cluster_.line())  # type: ignore[attr-defined]

        ranker.fit_cluster(
            [str(path) for path in data],
            cluster=choice.cluster,
            workers=choice.workers,
            gpus_per_worker=choice.gpus_per_worker,
            division=choice.division,
            eval_set=validation,
            callback=show_step,
            init_model=init,
            label=reading.label,
            qid=reading.qid,
            on_bad_line=reading.on_bad_line,
            memory=reading.memory,
            scratch=reading.scratch,
            dashboard=choice.dashboard,
        )
    return time.perf_counter() - began


def print_workers(report: ClusterReport) -> None:
    columns = ["worker", "host", "documents", "documents/s", "waiting", "sent", "restarts"]
    table = make_table(f"each worker has some {report.division}", columns, left=["host"])
    for row in worker_rows(report):
        table.add_row(
            str(row["worker"]),
            row["host"],
            f"{row['documents']:,}",
            f"{row['documents_per_second']:,.0f}",
            f"{row['waiting']:.0%}",
            f"{row['bytes_sent'] / 2**20:.1f} MiB",
            str(row["restarts"]),
        )
    show(table)


def worker_rows(report: ClusterReport) -> list[dict[str, Any]]:
    """What is reported of each worker, for a table or JSON."""
    return [
        {
            "worker": worker.number,
            "host": worker.host,
            "documents": worker.n_docs,
            "queries": worker.n_queries,
            "seconds_reading": worker.seconds_reading,
            "seconds": worker.seconds,
            "documents_per_second": report.documents_per_second(worker.number),
            "waiting": worker.seconds_waiting / worker.seconds if worker.seconds > 0 else 0.0,
            "bytes_sent": worker.bytes_sent,
            "restarts": worker.n_restarts,
        }
        for worker in report.workers
    ]
