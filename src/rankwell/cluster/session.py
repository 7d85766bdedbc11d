"""A session on a cluster: Ray started on this machine alone, or a connection to one that is already running.

>>> with cluster_session("local", n_cpus=2) as session:      # doctest: +SKIP
...     task = session.ray.remote(work)
...     session.ray.get([task.remote(part) for part in parts])

Ray is imported here and nowhere else: the rest of `cluster` takes the module from the session.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType

from rankwell.errors import ClusterError, ParameterError
from rankwell.kernels.threads import available_cores

logger = logging.getLogger("rankwell")

LOCAL, AUTOMATIC = "local", "auto"
# What workers exchange does not go through Ray's object store: it holds small arguments and results.
_OBJECT_STORE_BYTES = 128 * 2**20
_SECONDS_TO_CONNECT = 10.0
# Set while Ray starts, and inherited by its processes.
_ENVIRONMENT = {
    # Ray takes the loopback address for this machine's own only where it believes that clusters do not exist.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


@dataclass(frozen=True)
class Session:
    """An open session.

    ray : the module, initialised
    is_local : whether all processes of the cluster are on this machine and listen on the loopback interface only
    n_cpus, n_gpus : what the cluster has in all
    """

    ray: ModuleType
    is_local: bool
    n_cpus: int
    n_gpus: int

    def check_room(self, n_workers: int, *, cpus_per_worker: int = 1, gpus_per_worker: float = 0) -> None:
        """Refuse workers that the cluster could never start: they would be waited for in vain."""
        for need, have, kind in (
            (n_workers * cpus_per_worker, self.n_cpus, "CPUs"),
            (n_workers * gpus_per_worker, self.n_gpus, "GPUs"),
        ):
            if need > have:
                raise ClusterError(
                    f"{n_workers} workers need {need:g} {kind}, and the cluster has {have}. Use fewer workers, or "
                    "start Ray on more hosts (`ray start --address=...`)."
                )


@contextmanager
def cluster_session(
    cluster: str = LOCAL, *, n_cpus: int | None = None, n_gpus: int | None = None, dashboard: bool = False
) -> Iterator[Session]:
    """A session in which Ray can be used; what was started for it is stopped at its end.

    Parameters
    ----------
    cluster : "local", "auto" or an address such as "10.0.0.1:6379"
        "local" starts Ray on this machine, on the loopback interface only. "auto" takes the Ray that runs here already,
        and starts one as "local" does if there is none. An address is that of a running Ray. A connection that this
        process has open already is used for "local" and "auto", and left open.
    n_cpus, n_gpus : int, optional
        What a Ray that is started here says it has; the CPUs are not fewer than this machine's cores.
    dashboard : bool
        Whether a Ray that is started here has a dashboard.

    Raises
    ------
    ClusterError
        Ray is not installed, cannot be started, or does not answer.
    """
    ray = _imported_ray()
    if ray.is_initialized() and cluster in (LOCAL, AUTOMATIC):
        yield _session(ray)
        return
    _check_address(cluster)
    with ExitStack() as stack:
        stack.callback(_handler_restorer())
        stack.enter_context(_messages_logged())
        if cluster == LOCAL or (cluster == AUTOMATIC and not _runs_here(ray)):
            stack.enter_context(_started(ray, n_cpus, n_gpus, dashboard))
        else:
            stack.enter_context(_connected(ray, cluster))
        yield _session(ray)


def _imported_ray() -> ModuleType:
    try:
        import ray
    except ImportError as cause:
        raise ClusterError("a cluster needs Ray, which is not installed: pip install 'rankwell[cluster]'.") from cause
    return ray


def _check_address(cluster: str) -> None:
    host, separator, port = cluster.rpartition(":")
    if cluster not in (LOCAL, AUTOMATIC) and not (separator and host and port.isdigit()):
        raise ParameterError(
            f"must be 'local', 'auto' or the address of a running Ray such as '10.0.0.1:6379', got {cluster!r}.",
            parameter="cluster",
        )


@contextmanager
def _started(ray: ModuleType, n_cpus: int | None, n_gpus: int | None, dashboard: bool) -> Iterator[None]:
    # A short path of its own: Ray's sockets are in it, their paths are limited to 107 bytes, and nothing is left over.
    folder = tempfile.mkdtemp(prefix="rankwell-ray-", dir="/tmp" if os.path.isdir("/tmp") else None)
    try:
        with _environment(), _loopback_only():
            ray.init(
                address=LOCAL,
                num_cpus=max(n_cpus or 0, available_cores()),
                num_gpus=n_gpus,
                include_dashboard=dashboard,
                object_store_memory=_OBJECT_STORE_BYTES,
                log_to_driver=False,
                configure_logging=False,
                logging_level=logging.ERROR,
                _temp_dir=folder,
            )
        yield
    except (ConnectionError, OSError, RuntimeError) as cause:
        if ray.is_initialized():
            raise
        raise ClusterError(f"Ray could not be started on this machine: {cause}") from cause
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _connected(ray: ModuleType, address: str) -> Iterator[None]:
    try:
        _check_reachable(address)
        ray.init(address=address, log_to_driver=False, configure_logging=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as cause:
        reason = str(cause).strip().partition("\n")[0].rstrip(".")
        raise ClusterError(
            f"no Ray answers at {address}: {reason}. Check the address, that `ray status` works there, and that the "
            "token of the cluster is in ~/.ray/auth_token or RAY_AUTH_TOKEN here."
        ) from cause
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Fail at once where nobody listens: Ray itself would try for minutes."""
    if address != AUTOMATIC:
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT).close()


def _runs_here(ray: ModuleType) -> bool:
    """Whether `ray start` was called on this machine, or RAY_ADDRESS names a cluster."""
    from ray._private.services import canonicalize_bootstrap_address

    if os.environ.get("RAY_ADDRESS"):
        return True
    try:
        return canonicalize_bootstrap_address(AUTOMATIC) is not None
    except ConnectionError:
        return False


def _session(ray: ModuleType) -> Session:
    resources = ray.cluster_resources()
    address = ray.get_runtime_context().gcs_address
    host = address.rpartition(":")[0]
    return Session(ray, host in ("127.0.0.1", "localhost"), int(resources.get("CPU", 0)), int(resources.get("GPU", 0)))


@contextmanager
def _environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in (*_ENVIRONMENT, "RAY_AUTH_MODE")}
    os.environ.update({name: value for name, value in _ENVIRONMENT.items() if before[name] is None})
    log = logging.getLogger("ray")
    level = log.level
    # Ray says that a token protects what it starts here, which is as it should be.
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)


@contextmanager
def _loopback_only() -> Iterator[None]:
    """What `RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0` does, for this process, which may have imported Ray long ago."""
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def _messages_logged() -> Iterator[None]:
    """What Ray would print of its processes on stdout, among a command's own output, goes to the log."""
    from ray._private import worker

    before = worker.print_to_stdstream
    worker.print_to_stdstream = lambda data, *_, **__: logger.debug("Ray: %s", " ".join(data["lines"]))
    try:
        yield
    finally:
        worker.print_to_stdstream = before


def _handler_restorer() -> Callable[[], None]:
    """A call that restores the handler of SIGTERM, which Ray replaces; nothing outside the main thread."""
    before = signal.getsignal(signal.SIGTERM)

    def restore() -> None:
        try:
            signal.signal(signal.SIGTERM, before)
        except ValueError:  # not the main thread: Ray did not replace it either
            return

    return restore
