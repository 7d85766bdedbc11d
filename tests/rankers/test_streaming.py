"""Training on features on disk gives the model of training in memory, byte for byte, within the memory allowed."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rankwell import LambdaMART, ListNet, RankBoost, RankingDataset, RankSVM, make_ranking, read, write
from rankwell.errors import DataError, ParameterError
from rankwell.kernels import disk_arrays

MEMORY = "8GiB"


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 64 KiB, so that small data has many of them."""
    monkeypatch.setattr(disk_arrays, "BLOCK_BYTES", 2**16)
    monkeypatch.setattr("rankwell.kernels.boosting.cpu.booster.BLOCK_BYTES", 2**14)
    monkeypatch.setattr("rankwell.kernels.boosting.cpu.bounded_search.BLOCK_BYTES", 2**16)
    monkeypatch.setattr("rankwell.data.row_storage.BLOCK_BYTES", 2**16)
    monkeypatch.setattr("rankwell.kernels.trees.cpu.workspace.BLOCK_BYTES", 2**15)
    monkeypatch.setattr("rankwell.kernels.trees.cpu.booster.SLAB_MEMORY", 2**16)
    monkeypatch.setattr("rankwell.kernels.pair_loss.cpu.loss.BLOCK_BYTES", 2**16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same data in every format; enough documents and features for the search by bounds."""
    folder = tmp_path_factory.mktemp("data")
    dataset = make_ranking(n_docs=9000, n_queries=90, n_features=48, missing=0.05, random_state=3)
    for suffix in ("feather", "parquet", "csv"):
        write(dataset, folder / f"data.{suffix}")
    without_missing = dataset.replace(features=np.nan_to_num(dataset.features))
    write(without_missing, folder / "data.txt")
    return folder


def model_bytes(ranker, dataset, path, **options):
    ranker.fit(dataset, **options).save(path)
    return path.read_bytes()


@pytest.mark.parametrize("suffix", ["txt", "csv", "parquet", "feather"])
def test_a_file_read_to_disk_is_the_same_dataset(folder, suffix, small_blocks):
    in_memory, on_disk = read(folder / f"data.{suffix}"), read(folder / f"data.{suffix}", memory=MEMORY)
    assert on_disk.is_on_disk
    assert not in_memory.is_on_disk
    assert on_disk.memory_limit == 8 * 2**30
    np.testing.assert_array_equal(on_disk.features, in_memory.features)
    np.testing.assert_array_equal(on_disk.labels, in_memory.labels)
    np.testing.assert_array_equal(on_disk.query_ptr, in_memory.query_ptr)
    assert on_disk.query_ids.tolist() == in_memory.query_ids.tolist()
    assert on_disk.feature_names == in_memory.feature_names


def test_rows_of_a_query_that_are_apart_are_brought_together_on_disk(tmp_path, small_blocks):
    generator = np.random.default_rng(0)
    rows = [
        f"{label} qid:{qid} 1:{value:.3f} 40:{label}"
        for label, qid, value in zip(
            generator.integers(0, 3, 4000), generator.integers(0, 50, 4000), generator.random(4000), strict=True
        )
    ]
    path = tmp_path / "apart.txt"
    path.write_text("\n".join(rows))
    in_memory, on_disk = read(path), read(path, memory=MEMORY)
    np.testing.assert_array_equal(on_disk.features, in_memory.features)
    np.testing.assert_array_equal(on_disk.doc_idx, in_memory.doc_idx)


def test_a_row_that_is_wider_than_those_before_widens_the_file(tmp_path, small_blocks):
    lines = [f"{n % 3} qid:{n // 20} 1:{n} 2:0.5" for n in range(20000)] + ["1 qid:5000 0:3 70:4"]
    path = tmp_path / "wide.txt"
    path.write_text("\n".join(lines))
    in_memory, on_disk = read(path), read(path, memory=MEMORY)
    assert on_disk.n_features == 71
    np.testing.assert_array_equal(on_disk.features, in_memory.features)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"binning": "quantile", "normalize": "none"},
        {"normalize": "standard", "pair_weight": "ndcg"},
        {"n_bins": 32, "normalize": "letor", "n_jobs": 1},
    ],
)
def test_rankboost_on_disk_is_rankboost_in_memory(folder, tmp_path, settings, small_blocks):
    path, ranker = folder / "data.feather", RankBoost(n_rounds=60, device="cpu", **settings)
    expected = model_bytes(ranker, read(path), tmp_path / "a.rank")
    assert model_bytes(ranker, read(path, memory=MEMORY), tmp_path / "b.rank") == expected


@pytest.mark.parametrize("settings", [{}, {"normalize": "standard"}, {"normalize": "none", "C": 0.01, "n_jobs": 1}])
def test_ranksvm_on_disk_is_ranksvm_in_memory(folder, tmp_path, settings, small_blocks):
    path, ranker = folder / "data.parquet", RankSVM(tol=1e-3, device="cpu", **settings)
    expected = model_bytes(ranker, read(path), tmp_path / "a.rank")
    assert model_bytes(ranker, read(path, memory=MEMORY), tmp_path / "b.rank") == expected


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"binning": "width", "n_leaves": 15, "query_fraction": 0.6, "feature_fraction": 0.7, "n_jobs": 1},
        {"loss": "xendcg", "n_seeds": 2, "normalize": "standard"},
    ],
)
def test_lambdamart_on_disk_is_lambdamart_in_memory(folder, tmp_path, settings, small_blocks):
    path, ranker = folder / "data.parquet", LambdaMART(n_rounds=8, device="cpu", **settings)
    expected = model_bytes(ranker, read(path), tmp_path / "a.rank")
    assert model_bytes(ranker, read(path, memory=MEMORY), tmp_path / "b.rank") == expected


def test_rounds_without_a_cut_on_disk(folder, tmp_path, small_blocks):
    path = folder / "data.parquet"
    ranker = LambdaMART(n_rounds=12, device="cpu", node_feature_fraction=0.05)
    expected = model_bytes(ranker, read(path), tmp_path / "a.rank")
    assert {leaves == 1 for leaves in ranker.history_["leaves"]} == {True, False}
    assert model_bytes(ranker, read(path, memory=MEMORY), tmp_path / "b.rank") == expected


def test_validation_and_checkpoints_work_on_disk(folder, tmp_path, small_blocks):
    validation = read(folder / "data.csv")
    settings = {"n_rounds": 30, "device": "cpu", "checkpoint_every": 10}
    expected = model_bytes(RankBoost(**settings), read(folder / "data.csv"), tmp_path / "a.rank", eval_set=validation)

    def stop(step):
        if step.number == 20:
            raise KeyboardInterrupt

    ranker = RankBoost(**settings, checkpoint=str(tmp_path / "state"))
    on_disk = read(folder / "data.csv", memory=MEMORY)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(on_disk, eval_set=validation, callback=stop)
    ranker.fit(on_disk, eval_set=validation).set_params(checkpoint=None).save(tmp_path / "b.rank")
    assert (tmp_path / "b.rank").read_bytes() == expected


def test_a_model_continues_on_disk(folder, tmp_path, small_blocks):
    dataset, on_disk = read(folder / "data.txt"), read(folder / "data.txt", memory=MEMORY)
    begun = RankBoost(n_rounds=10, device="cpu").fit(dataset)
    expected = model_bytes(RankBoost(n_rounds=10, device="cpu"), dataset, tmp_path / "a.rank", init_model=begun)
    more = RankBoost(n_rounds=10, device="cpu")
    assert model_bytes(more, on_disk, tmp_path / "b.rank", init_model=begun) == expected
    np.testing.assert_array_equal(more.predict(on_disk), more.predict(dataset))


def test_rankers_that_cannot_stream_say_so(folder):
    on_disk = read(folder / "data.feather", memory=MEMORY)
    with pytest.raises(ParameterError, match="listnet cannot train on data that is larger than memory"):
        ListNet().fit(on_disk)
    with pytest.raises(ParameterError, match=r"device='cuda' cannot train RankBoost .* larger than memory"):
        RankBoost(device="cuda").fit(on_disk)
    with pytest.raises(ParameterError, match=r"device='cuda' cannot train RankSVM .* larger than memory"):
        RankSVM(device="cuda").fit(on_disk)
    with pytest.raises(ParameterError, match=r"weak_learner='m3.int' only"):
        RankBoost(weak_learner="m2", device="cpu").fit(on_disk)


def test_a_limit_that_is_too_low_is_refused_with_what_is_needed(folder):
    on_disk = read(folder / "data.feather", memory="20MB")
    with pytest.raises(DataError, match=r"memory is 19 MiB, and rankboost needs about \d+ MiB .* 9,000 documents"):
        RankBoost(device="cpu").fit(on_disk)


def test_validation_data_counts_and_must_be_in_memory(folder, monkeypatch):
    validation = make_ranking(n_docs=40_000, n_queries=400, n_features=48)
    monkeypatch.setattr("rankwell.rankers.streaming.resident_bytes", lambda: 0)
    needed = {}
    for eval_set in (None, validation):
        with pytest.raises(DataError, match="needs about") as refused:
            RankBoost(device="cpu").fit(read(folder / "data.feather", memory="1MB"), eval_set=eval_set)
        needed[eval_set is None] = int(re.search(r"about (\d+) MiB", str(refused.value))[1])
    assert needed[False] - needed[True] == pytest.approx(5 * 40_000 * 48 / 2**20, abs=1)
    on_disk = read(folder / "data.feather", memory=MEMORY)
    with pytest.raises(DataError, match="eval_set must be in memory"):
        RankBoost(device="cpu").fit(on_disk, eval_set=on_disk)


@pytest.mark.parametrize("size", ["4 giga", "", "-1GiB", 0, 1.5, None])
def test_a_size_must_be_one(folder, size):
    if size is None:
        assert not read(folder / "data.feather", memory=None).is_on_disk
        return
    with pytest.raises(ParameterError, match="memory must be a size such as 4GiB"):
        read(folder / "data.feather", memory=size)


def test_a_full_disk_is_a_clear_error(folder, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DataError, match=r"the disk is full: a temporary file in .* needs .* GiB"):
        read(folder / "data.txt", memory=MEMORY, scratch=tmp_path)


def test_an_absent_scratch_folder_is_a_clear_error(folder, tmp_path):
    with pytest.raises(DataError, match=r"cannot make a temporary file in .*absent"):
        read(folder / "data.txt", memory=MEMORY, scratch=tmp_path / "absent")


def test_temporary_files_have_no_names(folder, tmp_path):
    on_disk = read(folder / "data.txt", memory=MEMORY, scratch=tmp_path)
    RankBoost(n_rounds=2, device="cpu").fit(on_disk)
    assert os.listdir(tmp_path) == []


def test_give_back_keeps_what_was_written():
    array = disk_arrays.new_disk_array((3000, 1000), np.float32)
    array[:] = np.arange(3000, dtype=np.float32)[:, None]
    disk_arrays.give_back(array)
    np.testing.assert_array_equal(array[:, 500], np.arange(3000))


_MEASURED = """
import re, sys
from rankwell import LambdaMART, RankBoost, RankSVM, read
name, small, path = sys.argv[1:]
rankers = {"rankboost": RankBoost(n_rounds=25), "ranksvm": RankSVM(tol=0.05), "lambdamart": LambdaMART(n_rounds=2)}
ranker = rankers[name].set_params(device="cpu")
ranker.fit(read(small, memory="8GiB"))  # packages and kernels are loaded
def kib(field):
    return int(re.search(field + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1])
open("/proc/self/clear_refs", "w").write("5")
before = kib("VmRSS")
ranker.fit(read(path, memory="8GiB"))
print(kib("VmHWM") - before)
"""


@pytest.mark.parametrize("name", ["rankboost", "ranksvm", "lambdamart"])
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's peak of memory")
def test_training_on_disk_holds_a_fraction_of_the_data(tmp_path, folder, name):
    generator = np.random.default_rng(0)
    features = generator.random((40_000, 640), dtype=np.float32)  # 98 MiB, and as much normalised
    dataset = RankingDataset(features, generator.integers(0, 4, 40_000), group=[80] * 500)
    write(dataset, tmp_path / "large.feather")
    output = subprocess.run(
        [sys.executable, "-c", _MEASURED, name, str(folder / "data.feather"), str(tmp_path / "large.feather")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert int(output) < 64 * 1024
