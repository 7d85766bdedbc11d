"""A session: Ray on the loopback interface only, stopped afterwards, nothing left over."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import socket
from pathlib import Path

import pytest

from rankwell.cluster.session import cluster_session
from rankwell.errors import ClusterError

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is absent: pip install 'rankwell[cluster]'"
)

LISTENING = "0A"
LOOPBACK = "0100007F"
LOOPBACK_IN_V6 = "0000000000000000FFFF00000100007F"


def listening_addresses() -> set[str]:
    """The local addresses at which processes below this one listen, as the kernel writes them."""
    inodes = {
        match[1]
        for process in below(os.getpid())
        for link in Path(f"/proc/{process}/fd").glob("*")
        if (match := re.fullmatch(r"socket:\[(\d+)\]", target_of(link)))
    }
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in inodes:
                found.add(fields[1].partition(":")[0])
    return found


def below(process: int) -> list[int]:
    """A process and those it started, and those they started."""
    children = [
        int(child) for task in Path(f"/proc/{process}/task").glob("*/children") for child in task.read_text().split()
    ]
    return [process, *(one for child in children for one in below(child))]


def target_of(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:  # closed meanwhile
        return ""


@needs_ray
def test_a_local_session_listens_on_the_loopback_interface_only_and_leaves_nothing():
    handler = signal.getsignal(signal.SIGTERM)
    with cluster_session("local", n_cpus=3) as session:
        import ray
        from ray._private import worker

        folder = Path(worker._global_node.get_temp_dir_path())
        assert folder.name.startswith("rankwell-ray-")
        assert folder.exists()
        assert session.is_local
        assert session.n_cpus >= 3
        addresses = listening_addresses()
        assert addresses
        assert addresses <= {LOOPBACK, LOOPBACK_IN_V6}
        with cluster_session("local") as inner:
            assert inner == session
        assert ray.is_initialized()
        assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in os.environ
    assert not ray.is_initialized()
    assert not folder.exists()
    assert signal.getsignal(signal.SIGTERM) is handler


@needs_ray
def test_an_address_where_no_ray_is_says_so():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with (
        pytest.raises(ClusterError, match=f"no Ray answers at 127.0.0.1:{port}"),
        cluster_session(f"127.0.0.1:{port}"),
    ):
        pass


def test_without_ray_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ClusterError, match=r"pip install 'rankwell\[cluster\]'"), cluster_session("local"):
        pass
