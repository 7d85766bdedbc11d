"""The feature log of a server, whose searches go on if it cannot be written."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from rankwell.features.feature_set import FeatureSet
from rankwell.serving.log_losses import LogLosses
from rankwell.serving.ranking.feature_log import FeatureLog


class ServedFeatureLog(FeatureLog):
    """A feature log that loses what it cannot write. losses : how much, and whether it does now"""

    def __init__(self, path: str | os.PathLike[str], feature_set: FeatureSet) -> None:
        self.losses = LogLosses("feature log")
        super().__init__(path, feature_set)

    def append(self, query_id: str, document_ids: Sequence[str], features: np.ndarray) -> None:
        write = super().append
        self.losses.attempt(lambda: write(query_id, document_ids, features))
