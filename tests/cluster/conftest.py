"""A Ray of the test module's own, on the loopback interface; without Ray, what needs it is skipped."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from rankwell.cluster.session import Session, cluster_session

N_CPUS = 4


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is absent: pip install 'rankwell[cluster]'")
    with cluster_session("local", n_cpus=N_CPUS) as opened:
        yield opened
