"""What the tests of shards with faults share: the files of four shards, and rankers."""

import pytest


@pytest.fixture
def folders(tmp_path):
    from tests.serving.node_network import make_shards  # needs the extra 'serve', as the tests do

    return make_shards(tmp_path, 4)


@pytest.fixture(scope="session")
def rankers(served, tmp_path_factory):
    """The rankers of `served_index`, and one that scores each document alone, so that nodes do."""
    from tests.serving.served_index import save_alone

    return {**served[1], "alone": save_alone(served[1]["boosted"], tmp_path_factory.mktemp("alone") / "alone.rank")}
