"""A session: Ray on the loopback interface only, stopped afterwards, nothing left over."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import tempfile
from pathlib import Path

import pytest

from rankwell.cluster.session import cluster_session
from rankwell.errors import ClusterError

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is absent: pip install 'rankwell[cluster]'"
)


def listening_addresses() -> set[str]:
    """The local addresses at which this machine's processes of Ray listen."""
    psutil = pytest.importorskip("psutil", reason="psutil lists the connections of Ray's processes")
    found = set()
    for process in psutil.Process().children(recursive=True):
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                found.add(connection.laddr.ip)
    return found


@needs_ray
def test_a_local_session_listens_on_the_loopback_interface_only_and_leaves_nothing():
    before = set(Path(tempfile.gettempdir()).glob("rankwell-ray-*"))
    handler = signal.getsignal(signal.SIGTERM)
    with cluster_session("local", n_cpus=3) as session:
        import ray

        assert session.is_local
        assert session.n_cpus >= 3
        assert listening_addresses() <= {"127.0.0.1", "::1"}
        with cluster_session("local") as inner:
            assert inner == session
        assert ray.is_initialized()
        assert "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" not in os.environ
    assert not ray.is_initialized()
    assert set(Path(tempfile.gettempdir()).glob("rankwell-ray-*")) == before
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
