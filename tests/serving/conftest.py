from pathlib import Path

import pytest
from tests.serving.served_index import make_served_index


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Path]]:
    """A folder with an index and ranker files, which tests do not change."""
    folder = tmp_path_factory.mktemp("served")
    return folder, make_served_index(folder)
