"""Step functions of features from weak rankers: h(x) = weight where x is above a threshold, else 0, and their sum."""

from __future__ import annotations

import numpy as np

from rankwell.scoring.inputs import BucketInputs


def step_functions(feature: np.ndarray, threshold: np.ndarray, weight: np.ndarray) -> BucketInputs:
    """The sum of weak rankers as one step function per feature, to be summed; a missing value gives 0.

    The weights of one feature and threshold are added in their order, those sums from the lowest threshold up;
    evaluation then adds the features from the first to the last.

    feature : int (n,); threshold : float32 (n,), −inf where every value counts; weight : float64 (n,)
    """
    features = np.unique(feature)
    edges, values, edge_ptr = [], [], [0]
    for number in features:
        mine = feature == number
        of_feature, place = np.unique(threshold[mine], return_inverse=True)
        step = np.zeros(len(of_feature))
        np.add.at(step, place, weight[mine])
        height = np.cumsum(step)
        # The value below every edge: 0, or the sum of the weak rankers that only need a value.
        always = of_feature == -np.inf
        edges.append(of_feature[~always])
        values.append(np.concatenate((height[:1] if always.any() else [0.0], height[~always])))
        edge_ptr.append(edge_ptr[-1] + len(edges[-1]))
    return BucketInputs(
        feature=features.astype(np.int32),
        edge_ptr=np.array(edge_ptr, dtype=np.int64),
        edges=np.concatenate([*edges, np.zeros(0)]).astype(np.float32),
        values=np.concatenate([*values, np.zeros(0)]),
        missing=np.zeros(len(features)),
    )
