"""What tests share: the real data, if it is present, and no time limit on examples that compile a kernel first."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent

# The tests of CUDA kernels also run where Hypothesis is not installed.
if importlib.util.find_spec("hypothesis") is not None:
    from hypothesis import settings

    settings.register_profile("rankwell", deadline=None)
    settings.load_profile("rankwell")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real collections: $RANKWELL_DATA, or shared/data next to the checkout."""
    folder = Path(os.environ.get("RANKWELL_DATA", CHECKOUT.parent / "shared" / "data"))
    if not (folder / "letor").is_dir():
        pytest.skip(f"the real collections are absent: no folder {folder / 'letor'} (set RANKWELL_DATA)")
    return folder
