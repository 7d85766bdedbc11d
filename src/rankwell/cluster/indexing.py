"""Shards built on a cluster, each by an actor of its own: Ray starts it again if its process or host dies.

Tasks would do, but a task can only be ended by `ray.cancel`, and Ray (2.60) aborts the caller's process if the task
finishes at that moment ("Tried to complete task that was not pending"). Actors can be killed at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rankwell.cluster.session import Session
from rankwell.errors import ClusterError, RankwellError
from rankwell.index.shard_building import TRIES, Done, Runner, ShardTask, build_shard

# Seconds until a killed actor is taken for dead, so that what it has written can be removed.
_SECONDS_TO_DIE = 10


def run_on_cluster(session: Session, *, at_a_time: int | None = None) -> Runner:
    """Build shards in the processes of a session, one CPU each; all hosts must see the corpus and the shards' folder.

    at_a_time : int, optional
        Shards at most that are built at the same time; by default as many as the cluster has CPUs.
    """
    ray = session.ray
    builder: Any = ray.remote(num_cpus=1, max_restarts=TRIES - 1, max_task_retries=TRIES - 1)(ShardBuilder)

    def run(tasks: Sequence[ShardTask], done: Done) -> None:
        session.check_room(1)
        waiting = list(tasks)
        running: dict[Any, tuple[Any, ShardTask]] = {}
        most = at_a_time or max(1, session.n_cpus)
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    task, actor = waiting.pop(0), builder.remote()
                    running[actor.build.remote(asdict(task))] = actor, task
                finished, _ = ray.wait(list(running))
                for reference in finished:
                    # The actor ends when nothing refers to it any longer.
                    _, task = running.pop(reference)
                    done(task.number, _result(ray, reference, task))
        finally:
            for actor, _ in running.values():
                ray.kill(actor, no_restart=True)
            if running:
                ray.wait(list(running), num_returns=len(running), timeout=_SECONDS_TO_DIE)

    return run


class ShardBuilder:
    """An actor that builds one shard; it is given plain values only."""

    def build(self, task: dict[str, Any]) -> int:
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
            f"shard {task.number} could not be built: its process died {TRIES} times ({type(error).__name__}). See the "
            "logs of Ray; perhaps a host ran out of memory."
        ) from error
