"""Preparation: another process compiles the rankers' kernels while this one reads, indexes and extracts.

Compiling takes most of a first run's time and one core. Kernels are cached on disk, so that the process that compiles
them first does it for both; in a later run there is nothing to do, and the process ends after a few seconds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.demo.contest import SETTINGS, Part, first_pass_entry, lightgbm_entry, ranker_entry
from rankwell.demo.lightgbm_model import IS_INSTALLED

# Enough documents and features that RankBoost searches by bounds, as it does on the demo's own data.
_N_QUERIES, _QUERY_SIZE, _N_FEATURES = 320, 30, 48


def start_preparation() -> subprocess.Popen[bytes]:
    """Start the other process. Its outcome affects only the time that the contest takes."""
    return subprocess.Popen(
        [sys.executable, "-m", "rankwell.demo.preparation"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def prepare() -> None:
    """Run the contest on a little synthetic data, which needs the same kernels."""
    part = _made_up_part()
    parts = dict.fromkeys(("train", "vali", "test"), part)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        baseline = first_pass_entry(part, folder)
        for ranker in SETTINGS:
            ranker_entry(ranker, parts, folder).against(baseline)
        if IS_INSTALLED:
            lightgbm_entry(parts, folder)


def _made_up_part() -> Part:
    generator = np.random.default_rng(0)
    features = generator.standard_normal((_N_QUERIES * _QUERY_SIZE, _N_FEATURES)).astype(np.float32)
    labels = np.clip(np.round(features[:, 0] + generator.standard_normal(len(features))), 0, 2)
    queries = np.repeat(np.arange(_N_QUERIES), _QUERY_SIZE)
    names = [f"made up {number}" for number in range(_N_FEATURES)]
    dataset = RankingDataset(features, labels, qid=queries, feature_names=names)
    return Part(dataset, features[:, 0].astype(float), {query: [1.0] for query in range(_N_QUERIES)})


if __name__ == "__main__":
    prepare()
