"""One training on a cluster, as a ranker's driver sees it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankwell.cluster.worker_group import WorkerGroup
from rankwell.rankers.base import Ranker, TrainingTask
from rankwell.rankers.checkpoints import Checkpoints, run_fingerprint

# Parameters that do not change the model.
_WITHOUT_EFFECT = frozenset(
    {"n_jobs", "device", "checkpoint", "checkpoint_every", "n_rounds", "n_epochs", "max_iter", "importance"}
)


@dataclass(frozen=True)
class ClusterRun:
    """A run whose workers have read their parts.

    group : the workers
    summaries : what each says of its part
    files : all files that were read
    division : what the user wants each worker to have, "auto", "documents" or "features"
    """

    group: WorkerGroup
    summaries: Sequence[Mapping[str, Any]]
    files: Sequence[str]
    division: str = "auto"

    @property
    def n_docs(self) -> int:
        return sum(summary["n_docs"] for summary in self.summaries)

    @property
    def n_queries(self) -> int:
        return sum(summary["n_queries"] for summary in self.summaries)

    def checkpoints(self, ranker: Ranker, task: TrainingTask, variant: str = "") -> Checkpoints | None:
        """The checkpoints of the run, if the ranker has some.

        The driver does not read the data: names, sizes and times of the files stand for what is in them.
        """
        path = getattr(ranker, "checkpoint", None)
        if path is None:
            return None
        decisive = {name: value for name, value in ranker.get_params(deep=False).items() if name not in _WITHOUT_EFFECT}
        decisive["files"] = [_identity(file) for file in self.files]
        decisive["variant"] = variant
        if task.init_model is not None:
            state = task.init_model.state_
            decisive["init_model"] = hashlib.sha256(
                json.dumps({name: state[name].tobytes().hex() for name in sorted(state)}).encode()
            ).hexdigest()
        return Checkpoints(f"{path}{variant}", ranker.checkpoint_every, run_fingerprint(decisive, task.validation))  # type: ignore[attr-defined]


def _identity(file: str) -> list[Any]:
    status = os.stat(file)
    return [os.path.basename(file), status.st_size, status.st_mtime_ns]
