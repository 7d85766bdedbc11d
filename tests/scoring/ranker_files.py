"""Ranker files of every kind for tests, and forged ones: contents that no ranker wrote, under a right checksum."""

import json

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from tests.scoring.random_rankers import describe, forest, random_ranker, random_trees

from rankwell import ListNet, RankBoost, RankSVM
from rankwell.rankers.imported import ImportedRanker
from rankwell.scoring import ranker_file
from rankwell.scoring.description import FirstPass, LinearInputs, Mean, RankerDescription, RankerPart, Sum
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.ranker_file import RankerFile, write_ranker_file

N_FEATURES = 7


def write_rankers(folder):
    """One ranker file of each kind; returns their paths."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, N_FEATURES)).astype(np.float32)
    y, group = np.clip(np.round(X[:, 0] + X[:, 1] - X[:, 2] + 1), 0, 3), [12] * 5
    for ranker in (RankBoost(n_rounds=20), RankSVM(C=0.1), ListNet(n_epochs=2, hidden=(3,))):
        ranker.fit(X, y, group=group).save(folder / f"{ranker.name}.rank")
    every = random_ranker(rng, N_FEATURES)
    standard = Normaliser("standard", {"mean": np.zeros(N_FEATURES), "scale": np.ones(N_FEATURES)})
    descriptions = {
        "every-input": every,
        "standard": RankerDescription(every.feature_names, standard, every.inputs, every.layers),
        "trees": forest(random_trees(rng, 6, N_FEATURES), N_FEATURES, 0.5),
        "mean": describe(N_FEATURES, [random_trees(rng, 3, N_FEATURES, most_leaves=300)], [Mean()]),
    }
    part = RankerPart("first", tuple(range(N_FEATURES)), descriptions["trees"])
    for name, first_pass in (("parts", None), ("two-passes", FirstPass(0, 20))):
        inputs = (LinearInputs.identity(N_FEATURES + 1),)
        descriptions[name] = RankerDescription(
            every.feature_names, Normaliser("none"), inputs, (Sum(),), (part,), first_pass
        )
    for name, description in descriptions.items():
        content = RankerFile(ImportedRanker.name, {"source": name}, description)
        write_ranker_file(folder / f"{name}.rank", content)
    return sorted(folder.glob("*.rank"))


def envelope_of(path):
    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()["rankwell-ranker"])


def content_of(path):
    """The header's tree and the arrays of a ranker file."""
    return json.loads(envelope_of(path)["header"]), load_file(path)


def write_forged(path, content, arrays):
    """Write a file whose checksum is right, whatever it contains, as a hostile author could.

    content : the header's tree, or its text
    """
    header = content if isinstance(content, str) else json.dumps(content)
    envelope = {"version": 1, "sha256": ranker_file._checksum(header, arrays), "header": header}
    arrays = {name: np.array(array, order="C") for name, array in arrays.items()}
    save_file(arrays, path, metadata={"rankwell-ranker": json.dumps(envelope)})


def forge(path, change):
    """Change a ranker file's content: ``change(content, arrays)`` alters both in place."""
    content, arrays = content_of(path)
    change(content, arrays)
    write_forged(path, content, arrays)
