"""The three rankers of the thesis (table 4.2) as synthetic rankers of the same structure.

| ranker  | inputs | bucket | linear | log-linear | tree  | layers |
| ------- | ------ | ------ | ------ | ---------- | ----- | ------ |
| R-S-BLG | 125    | 54     | 2      | 69         | 0     | 1      |
| R-M-BGD | 515    | 10     | 0      | 5          | 500   | 1      |
| R-L-D   | 1,250  | 0      | 0      | 0          | 1,250 | 2      |

The thesis says neither how large the trees are nor how wide the hidden layer is. Trees have 64 leaves, as in the other
benchmark of trees; the hidden layer has 64 units. 125 features, as many as the thesis extracts.
"""

from __future__ import annotations

import numpy as np

from benchmarks.tree_cases import grow_forest
from rankwell.scoring.description import (
    BucketInputs,
    Dense,
    InputGroup,
    LinearInputs,
    LogLinearInputs,
    RankerDescription,
    default_feature_names,
)
from rankwell.scoring.normaliser import Normaliser

N_FEATURES, N_LEAVES, N_HIDDEN = 125, 64, 64
RANKERS = {
    "R-S-BLG": {"bucket": 54, "linear": 2, "log-linear": 69, "tree": 0, "layers": 1},
    "R-M-BGD": {"bucket": 10, "linear": 0, "log-linear": 5, "tree": 500, "layers": 1},
    "R-L-D": {"bucket": 0, "linear": 0, "log-linear": 0, "tree": 1250, "layers": 2},
}


def thesis_ranker(name: str, *, shrink: int = 1) -> RankerDescription:
    """The ranker called `name`; with `shrink`, that many times fewer trees."""
    make = RANKERS[name]
    rng = np.random.default_rng(len(name))
    inputs: list[InputGroup] = []
    if make["bucket"]:
        inputs.append(_buckets(rng, make["bucket"]))
    for kind in (LinearInputs, LogLinearInputs):
        if make[kind.kind]:
            inputs.append(_lines(rng, kind, make[kind.kind]))
    if make["tree"]:
        inputs.append(grow_forest(make["tree"] // shrink, N_LEAVES, N_FEATURES))
    width = sum(len(group) for group in inputs)
    layers = []
    if make["layers"] == 2:
        layers.append(Dense(rng.normal(size=(N_HIDDEN, width)) / np.sqrt(width), rng.normal(size=N_HIDDEN), "tanh"))
        width = N_HIDDEN
    layers.append(Dense(rng.normal(size=(1, width)), np.zeros(1)))
    return RankerDescription(default_feature_names(N_FEATURES), Normaliser("none"), tuple(inputs), tuple(layers))


def _lines(rng: np.random.Generator, kind: type[LinearInputs | LogLinearInputs], n_inputs: int) -> InputGroup:
    feature = rng.permutation(N_FEATURES)[:n_inputs].astype(np.int32)
    return kind(feature, rng.normal(size=n_inputs), rng.normal(size=n_inputs), np.zeros(n_inputs))


def _buckets(rng: np.random.Generator, n_inputs: int) -> BucketInputs:
    """1 where lower <= x < upper: edges just below both, since a bucket here begins above its edge."""
    limits = np.sort(rng.lognormal(size=(n_inputs, 2)), axis=1).astype(np.float32)
    return BucketInputs(
        feature=rng.permutation(N_FEATURES)[:n_inputs].astype(np.int32),
        edge_ptr=2 * np.arange(n_inputs + 1),
        edges=np.nextafter(limits, np.float32(-np.inf)).ravel(),
        values=np.tile([0.0, 1.0, 0.0], n_inputs),
        missing=np.zeros(n_inputs),
    )
