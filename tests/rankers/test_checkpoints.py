"""Checkpoints: round trip, refusal of another run's file, damage, and removal."""

import numpy as np
import pytest

from rankwell.data.dataset import RankingDataset
from rankwell.errors import FileFormatError, ParameterError
from rankwell.rankers.checkpoints import Checkpoints, run_fingerprint


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "run.checkpoint")


def test_round_trip(path):
    arrays = {"alpha": np.array([0.5, -0.25]), "feature": np.array([3, 1], dtype=np.int32)}
    Checkpoints(path, 10, "run").save(10, arrays, {"loss": [1.0, 0.5]})
    found = Checkpoints(path, 10, "run").load()
    assert found.step == 10
    assert found.history == {"loss": [1.0, 0.5]}
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)


def test_due_counts_from_the_last_one(path):
    checkpoints = Checkpoints(path, 10, "run")
    assert [checkpoints.steps_until_due(step) for step in (1, 9, 10, 11)] == [9, 1, 0, -1]
    checkpoints.save(12, {}, {})
    assert [checkpoints.steps_until_due(step) for step in (12, 21, 22)] == [10, 1, 0]
    resumed = Checkpoints(path, 10, "run")
    resumed.load()
    assert resumed.steps_until_due(21) == 1


def test_without_a_path_nothing_happens(tmp_path):
    checkpoints = Checkpoints(None, 1, "run")
    assert checkpoints.steps_until_due(100) > 10**9
    checkpoints.save(100, {"x": np.zeros(1)}, {})
    assert checkpoints.load() is None
    checkpoints.remove()
    assert list(tmp_path.iterdir()) == []


def test_another_runs_checkpoint_is_refused(path):
    Checkpoints(path, 1, "one").save(1, {}, {})
    with pytest.raises(ParameterError, match="belongs to another run"):
        Checkpoints(path, 1, "two").load()


def test_a_checkpoint_of_more_steps_than_the_run_has_is_refused(path):
    Checkpoints(path, 1, "run").save(6, {}, {})
    assert Checkpoints(path, 1, "run").load(6).step == 6
    with pytest.raises(ParameterError, match=r"is of step 6 .* has 5 steps\. Train for at least 6 steps .* or give"):
        Checkpoints(path, 1, "run").load(5)
    assert Checkpoints(path, 1, "run").load().step == 6


def test_damaged_file_is_refused(path):
    Checkpoints(path, 1, "run").save(1, {"x": np.arange(100)}, {})
    with open(path, "r+b") as stream:
        stream.truncate(120)
    with pytest.raises(FileFormatError, match="or delete this one, if it is an old checkpoint"):
        Checkpoints(path, 1, "run").load()


def test_remove_starts_the_next_run_anew(path):
    checkpoints = Checkpoints(path, 1, "run")
    checkpoints.save(1, {}, {})
    checkpoints.remove()
    checkpoints.remove()
    assert Checkpoints(path, 1, "run").load() is None


def test_every_zero_is_refused(path):
    with pytest.raises(ParameterError, match="must be 1 or more, got 0"):
        Checkpoints(path, 0, "run")


def test_fingerprint_sees_every_number():
    X, y = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([0, 1, 0, 1])
    base = run_fingerprint({"n_bins": 256}, RankingDataset(X, y, group=[2, 2]), None)
    assert base == run_fingerprint({"n_bins": 256}, RankingDataset(X.copy(), y, group=[2, 2]), None)
    other = X.copy()
    other[3, 1] += 1
    different = [
        run_fingerprint({"n_bins": 128}, RankingDataset(X, y, group=[2, 2]), None),
        run_fingerprint({"n_bins": 256}, RankingDataset(other, y, group=[2, 2]), None),
        run_fingerprint({"n_bins": 256}, RankingDataset(X, y[::-1], group=[2, 2]), None),
        run_fingerprint({"n_bins": 256}, RankingDataset(X, y, group=[1, 3]), None),
        run_fingerprint({"n_bins": 256}, RankingDataset(X, y, group=[2, 2], query_weights=[1, 2]), None),
        run_fingerprint({"n_bins": 256}, RankingDataset(X, y, group=[2, 2]), np.zeros(2)),
    ]
    assert len({base, *different}) == 7
