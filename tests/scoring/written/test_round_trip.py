"""A description that is shown and made again scores the same, to the bit: every kind of ranker, every kind of input."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from tests.scoring.random_rankers import random_ranker, random_rows, random_trees

import rankwell
from rankwell.kernels.scoring.rules import VALUE
from rankwell.rankers.registry import RANKERS, ranker_class
from rankwell.scoring.composition import FirstPass, RankerPart
from rankwell.scoring.description import BucketInputs, Dense, LinearInputs, Mean, RankerDescription, Sum
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.ranker_file import RankerFile, write_ranker_file
from rankwell.scoring.scorer import score_description

FEW_STEPS = {"n_rounds": 5, "n_epochs": 2, "epochs": 2}


def again(path, folder):
    """The ranker file at `path`, shown and made again."""
    (folder / "shown.yaml").write_text(rankwell.load(path).description_.to_yaml(path.name))
    made = rankwell.MadeRanker.from_yaml(folder / "shown.yaml")
    made.save(folder / "made.rank")
    return rankwell.load(folder / "made.rank")


def saved(description, folder):
    write_ranker_file(folder / "model.rank", RankerFile("made", {"source": ""}, description))
    return folder / "model.rank"


def agree(path, folder, rows, **queries):
    made = again(path, folder)
    np.testing.assert_array_equal(made.predict(rows, **queries), rankwell.load(path).predict(rows, **queries))
    return made


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("normalize", ["none", "standard", "query-minmax"])
def test_every_ranker_that_can_be_trained(name, normalize, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 5)).astype(np.float32)
    X[:, 3] = 2.5  # the scale of a constant feature is infinite
    found = ranker_class(name)
    few = {key: FEW_STEPS[key] for key in inspect.signature(found).parameters if key in FEW_STEPS}
    ranker = found(normalize=normalize, **few).fit(X, np.round(X[:, 0] + X[:, 1] ** 2), group=[10] * 8)
    ranker.save(tmp_path / "model.rank")
    agree(tmp_path / "model.rank", tmp_path, rng.normal(size=(40, 5)).astype(np.float32), group=[10] * 4)


@pytest.mark.parametrize("name", ["lightgbm.txt", "lightgbm.json", "xgboost.json", "xgboost.ubj"])
def test_models_of_other_libraries(name, golden, tmp_path):
    rankwell.ImportedRanker.from_model(golden / name).save(tmp_path / "model.rank")
    agree(tmp_path / "model.rank", tmp_path, random_rows(np.random.default_rng(0), 100, 4))


@pytest.mark.parametrize("name", ["every-input", "trees", "buckets", "linear", "mean"])
def test_files_of_earlier_releases(name, golden, tmp_path):
    (tmp_path / "model.rank").write_bytes((golden / f"version1-{name}.rank").read_bytes())
    agree(tmp_path / "model.rank", tmp_path, random_rows(np.random.default_rng(0), 100, 7))


@pytest.mark.parametrize("seed", range(5))
def test_inputs_of_every_kind(seed, tmp_path):
    rng = np.random.default_rng(seed)
    agree(saved(random_ranker(rng), tmp_path), tmp_path, random_rows(rng, 150, 7))


def test_two_groups_of_trees(tmp_path):
    rng = np.random.default_rng(3)
    trees = [random_trees(rng, n, 4, kinds=(VALUE,)) for n in (3, 5)]
    between = LinearInputs.identity(2)
    description = RankerDescription(
        ("a", "b b", 'say "c"', "d'é"), Normaliser("none"), (trees[0], between, trees[1]), (Mean(), Sum(-0.0))
    )
    agree(saved(description, tmp_path), tmp_path, random_rows(rng, 60, 4))


def test_edges_that_are_no_short_numbers(tmp_path):
    edges = np.sort(np.random.default_rng(0).normal(size=2000).astype(np.float32))
    edges[-1] = np.inf
    buckets = BucketInputs(np.zeros(1, np.int32), np.array([0, 2000]), edges, np.arange(2001.0), np.array([-0.0]))
    description = RankerDescription(("x",), Normaliser("none"), (buckets,), ())
    made = agree(saved(description, tmp_path), tmp_path, edges[:-1, None])
    np.testing.assert_array_equal(made.description_.inputs[0].edges, edges)


def composed():
    """A network over a ranker of other features, which itself contains one."""
    rng = np.random.default_rng(5)
    inner = random_ranker(rng, 4)
    outer = replace(random_ranker(rng, 5), parts=(RankerPart("inner", (4, 0, 2, 2), inner),))
    outer = replace(outer, inputs=(LinearInputs.identity(6),), layers=(Dense(rng.normal(size=(1, 6)), np.ones(1)),))
    return replace(random_ranker(rng, 7), parts=(RankerPart("a", (6, 5, 4, 3, 2), outer),), layers=(Sum(),))


def test_rankers_of_rankers(tmp_path):
    made = agree(saved(composed(), tmp_path), tmp_path, random_rows(np.random.default_rng(0), 90, 7))
    assert [part.name for part in made.description_.parts[0].description.parts] == ["inner"]


def test_two_passes(tmp_path):
    rng = np.random.default_rng(6)
    description = replace(composed(), first_pass=FirstPass(0, 3))
    made = agree(saved(description, tmp_path), tmp_path, random_rows(rng, 90, 7), group=[30, 0, 2, 58])
    assert made.description_.first_pass == FirstPass(0, 3)
    dataset = rankwell.RankingDataset(random_rows(rng, 20, 7))
    assert not np.isnan(score_description(made.description_, dataset)).any()
