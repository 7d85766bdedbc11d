"""Ranker files: what is written comes back, and whatever is wrong with a file is said."""

import contextlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tests.scoring.ranker_files import envelope_of, forge

import rankwell
from rankwell import FileFormatError, LeastSquares
from rankwell.scoring import ranker_file
from rankwell.scoring.layers import Dense
from rankwell.scoring.ranker_file import is_ranker_file, read_ranker_file, write_ranker_file


def trained():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return LeastSquares(normalize="standard").fit(X, np.round(X[:, 0]), group=[10] * 4), X


@pytest.fixture
def saved(tmp_path):
    ranker, _ = trained()
    ranker.metrics_ = {"vali": {"convention": "letor4", "ndcg@10": 0.5}}
    ranker.save(tmp_path / "model.rank")
    return tmp_path / "model.rank"


def test_everything_comes_back(saved):
    ranker, X = trained()
    again = rankwell.load(saved)
    assert isinstance(again, LeastSquares)
    assert again.get_params() == ranker.get_params()
    assert again.metrics_ == {"vali": {"convention": "letor4", "ndcg@10": 0.5}}
    assert again.description_.feature_names == ("f1", "f2", "f3")
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))


def test_saving_twice_gives_the_same_bytes(saved, tmp_path):
    ranker = rankwell.load(saved)
    ranker.save(tmp_path / "again.rank")
    assert (tmp_path / "again.rank").read_bytes() == saved.read_bytes()


def test_a_failed_save_leaves_the_old_file_and_nothing_else(saved, monkeypatch):
    before = saved.read_bytes()

    def full_disk(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ranker_file.os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        trained()[0].save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["model.rank"]


def test_every_cut_is_found(saved, tmp_path):
    whole = saved.read_bytes()
    cut = tmp_path / "cut.rank"
    for length in [*range(64), *range(64, len(whole), 37), len(whole) - 1]:
        cut.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            rankwell.load(cut)


@pytest.mark.parametrize("envelope", ["", "[]", "{}", '{"version": "x"}', '{"version": 1, "sha256": 0, "header": 3}'])
def test_a_broken_envelope_is_found(saved, envelope):
    save_file(load_file(saved), saved, metadata={"rankwell-ranker": envelope})
    with pytest.raises(FileFormatError, match="was altered"):
        rankwell.load(saved)


@given(st.data())
def test_an_altered_byte_is_found_or_changes_nothing(data):
    """Only white space that pads the header can change without a trace."""
    ranker, X = trained()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.rank"
        ranker.save(path)
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        was_space = content[place] == ord(" ")
        content[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        if was_space and content[place] in b"\t\r\n":
            # Padding between JSON's parts: nothing changes. A space inside one of its strings: refused like the rest.
            with contextlib.suppress(FileFormatError):
                np.testing.assert_array_equal(rankwell.load(path).predict(X), ranker.predict(X))
        else:
            with pytest.raises(FileFormatError, match=r"model\.rank"):
                rankwell.load(path)


def rewrite(path, **changes):
    envelope = envelope_of(path) | changes
    save_file(load_file(path), path, metadata={"rankwell-ranker": json.dumps(envelope)})


def test_a_newer_version_says_upgrade(saved):
    rewrite(saved, version=3)
    with pytest.raises(FileFormatError, match=r"format version 3, this release reads up to 2\. Upgrade"):
        rankwell.load(saved)


def test_another_safetensors_file_is_told_apart(tmp_path):
    save_file({"weights": np.ones(3)}, tmp_path / "other.safetensors")
    with pytest.raises(FileFormatError, match="not a ranker file of rankwell"):
        rankwell.load(tmp_path / "other.safetensors")
    assert not is_ranker_file(tmp_path / "other.safetensors")


def unknown_ranker(content, arrays):
    content["ranker"] = "os.system"


def unknown_parameter(content, arrays):
    content["parameters"]["shell"] = "rm"


def feature_out_of_range(content, arrays):
    arrays["inputs.0.feature"] = np.array([0, 1, 99], dtype=np.int32)


def short_weights(content, arrays):
    arrays["layers.0.weights"] = np.ones((1, 2))


def two_scores(content, arrays):
    arrays["layers.0.weights"] = np.ones((2, 3))
    arrays["layers.0.bias"] = np.zeros(2)


def missing_array(content, arrays):
    del arrays["layers.0.bias"]


def unknown_layer(content, arrays):
    content["description"]["layers"][0]["kind"] = "python"


def unknown_activation(content, arrays):
    content["description"]["layers"][0]["activation"] = "eval"


def no_description(content, arrays):
    del content["description"]


@pytest.mark.parametrize(
    "change",
    [
        unknown_ranker,
        unknown_parameter,
        feature_out_of_range,
        short_weights,
        two_scores,
        missing_array,
        unknown_layer,
        unknown_activation,
        no_description,
    ],
)
def test_a_forged_file_is_refused(saved, change):
    forge(saved, change)
    with pytest.raises(FileFormatError, match=r"model\.rank"):
        rankwell.load(saved)


def test_a_ranker_file_is_recognised_by_its_head(saved):
    assert is_ranker_file(saved)
    assert read_ranker_file(saved).ranker == "least-squares"


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileFormatError, match="there is no file"):
        rankwell.load(tmp_path / "nothing.rank")
    with pytest.raises(FileFormatError, match="not a ranker file"):
        rankwell.load(tmp_path)


def test_what_could_not_be_read_again_is_not_written(saved):
    content, before = read_ranker_file(saved), saved.read_bytes()
    layer = Dense(np.full((1, content.description.n_inputs), np.nan), np.zeros(1))
    broken = replace(content, description=replace(content.description, layers=(layer,)))
    with pytest.raises(FileFormatError, match=f"{saved} is not written, because it could not be read again: .*finite"):
        write_ranker_file(saved, broken)
    assert saved.read_bytes() == before
