"""Shards built as tasks on a cluster: Ray starts a task again whose process or host died."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rankwell.cluster.session import Session
from rankwell.errors import ClusterError, RankwellError
from rankwell.index.shard_building import TRIES, Done, Runner, ShardTask, build_shard


def run_on_cluster(session: Session, *, at_a_time: int | None = None) -> Runner:
    """Build shards as tasks of a session, one CPU each; all hosts must see the corpus and the folder of the shards.

    at_a_time : int, optional
        Tasks at most that run at the same time; by default as many as the cluster has CPUs.
    """
    ray = session.ray
    build: Any = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_build)

    def run(tasks: Sequence[ShardTask], done: Done) -> None:
        session.check_room(1)
        waiting = list(tasks)
        running: dict[Any, ShardTask] = {}
        most = at_a_time or max(1, session.n_cpus)
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    task = waiting.pop(0)
                    running[build.remote(asdict(task))] = task
                finished, _ = ray.wait(list(running))
                for reference in finished:
                    done(running[reference].number, _result(ray, reference, running[reference]))
                    del running[reference]
        finally:
            for reference in running:
                ray.cancel(reference, force=True)

    return run


def _build(task: dict[str, Any]) -> int:
    """What a worker does: it is given plain values only."""
    return build_shard(ShardTask(**task))


def _result(ray: Any, reference: Any, task: ShardTask) -> int:
    try:
        return int(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, RankwellError | OSError):
            raise cause from None
        raise
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"shard {task.number} could not be built: its task died {TRIES} times ({type(error).__name__}). See the "
            "logs of Ray; perhaps a host ran out of memory."
        ) from error
