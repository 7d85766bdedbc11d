"""Weak rankers: the rounds of a boosted model, h_t(d) = 1 where feature f_t of d is above a threshold, and their sum H.

H(d) = Σ_t α_t·h_t(d),     h_t(d) = 0 where the feature is missing,     α_t = ν·½·ln((1 + r_t) / (1 − r_t))

ν is the learning rate of the round, a power of two (`kernels/boosting/precision.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import FileFormatError
from rankwell.kernels.boosting.precision import LARGEST_R, MOST_HALVINGS, PI_UNIT
from rankwell.kernels.disk_arrays import row_blocks
from rankwell.scoring.array_checks import check_array, check_vector, check_within, require
from rankwell.scoring.inputs import BucketInputs
from rankwell.scoring.step_functions import step_functions


@dataclass(frozen=True)
class WeakRankers:
    """The weak rankers of a model in the order of their rounds.

    feature : int32 (n_rounds,)
    threshold : float32 (n_rounds,)
        h = 1 where x > threshold; with -inf, where x is not missing.
    r : int32 (n_rounds,)
        How well each one orders the pairs, weighted as they were in its round, in units of 2^−30.
    n_halvings : int32 (n_rounds,)
        The learning rate of each round is 2^−n_halvings.
    """

    feature: np.ndarray
    threshold: np.ndarray
    r: np.ndarray
    n_halvings: np.ndarray

    @classmethod
    def none(cls) -> WeakRankers:
        none = np.zeros(0, dtype=np.int32)
        return cls(none, np.zeros(0, dtype=np.float32), none, none)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> WeakRankers:
        """The inverse of `to_arrays`, with checks, since arrays come from a file."""
        try:
            feature, threshold, r = arrays["feature"], arrays["threshold"], arrays["r"]
        except KeyError as cause:
            raise FileFormatError(f"the file has no rounds: {cause} is missing.") from cause
        n_rounds = check_vector(feature, "state.feature", ("i4",))
        # Files written before there was a learning rate have none: it was 1.
        halvings = arrays.get("n_halvings", np.zeros(n_rounds, dtype=np.int32))
        check_array(threshold, "state.threshold", ("f4",), (n_rounds,))
        check_array(r, "state.r", ("i4",), (n_rounds,))
        check_array(halvings, "state.n_halvings", ("i4",), (n_rounds,))
        check_within(feature, n_features, "a round reads a feature that does not exist")
        # Not by abs: that of the smallest integer is itself.
        sound = (r >= -LARGEST_R) & (r <= LARGEST_R) & ~np.isnan(threshold) & (halvings >= 0)
        require(bool((sound & (halvings <= MOST_HALVINGS)).all()), "its rounds are damaged. Train the ranker again")
        return cls(feature, threshold, r, halvings)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"feature": self.feature, "threshold": self.threshold, "r": self.r, "n_halvings": self.n_halvings}

    def __len__(self) -> int:
        return len(self.feature)

    @property
    def alpha(self) -> np.ndarray:
        """α of each round, float64 (n_rounds,); artanh r is ½·ln((1 + r) / (1 − r))."""
        return np.ldexp(np.arctanh(self.r * PI_UNIT), -self.n_halvings)

    def first(self, n_rounds: int) -> WeakRankers:
        """The first `n_rounds` rounds."""
        return WeakRankers(*(values[:n_rounds] for values in self.to_arrays().values()))

    def after(self, n_rounds: int) -> WeakRankers:
        """The rounds after the first `n_rounds`."""
        return WeakRankers(*(values[n_rounds:] for values in self.to_arrays().values()))

    def then(self, later: WeakRankers) -> WeakRankers:
        """These rounds and the `later` ones after them."""
        both = zip(self.to_arrays().values(), later.to_arrays().values(), strict=True)
        return WeakRankers(*(np.concatenate(values) for values in both))

    def above_threshold(self, dataset: RankingDataset, number: int) -> np.ndarray:
        """Where h of round `number` (from 0) is 1: bool (n_docs,). The features must be normalised already."""
        feature, threshold = int(self.feature[number]), self.threshold[number]
        if dataset.is_sparse:
            return dataset.features[:, feature].toarray().ravel() > threshold
        above = np.empty(dataset.n_docs, dtype=bool)
        for rows in row_blocks(dataset.features):
            above[rows] = dataset.features[rows, feature] > threshold
        return above

    def staged_scores(self, dataset: RankingDataset, scores: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """H after each round, summed in the order of the rounds, from `scores` on; the same array each time."""
        scores = np.zeros(dataset.n_docs) if scores is None else scores
        for number, alpha in enumerate(self.alpha):
            np.add(scores, alpha, out=scores, where=self.above_threshold(dataset, number))
            yield scores

    def inputs(self) -> BucketInputs:
        """H as one step function per feature, to be summed (`step_functions`)."""
        return step_functions(self.feature, self.threshold, self.alpha)

    def importance(self, n_features: int) -> np.ndarray:
        """Σ|α| by feature, float64 (n_features,)."""
        return np.bincount(self.feature, np.abs(self.alpha), n_features)
