"""Feature extraction: hits in, rows of float32 out. Training and serving both use it.

Missing values, one rule: a stream that a document lacks is an empty stream and has an empty stream's values; a static
that a document lacks is NaN; an expression that is not a number, or too large for float32, is NaN.
"""

from __future__ import annotations

import numpy as np

from rankwell.errors import DataError
from rankwell.features.feature_set import ExpressionLevel, FeatureSet
from rankwell.features.hits import Hits
from rankwell.kernels.device import load
from rankwell.kernels.extraction.contract import EXTRACTION
from rankwell.kernels.threads import kernel_threads, run_parts

# Blocks of documents whose expressions one thread computes at a time.
_BLOCKS_A_PART = 64


def extract(hits: Hits, feature_set: FeatureSet, *, device: str = "cpu", n_jobs: int | None = None) -> np.ndarray:
    """The features of every candidate.

    Parameters
    ----------
    device : {"cpu", "cuda", "auto"}
    n_jobs : int, optional
        Threads; None is every core. The result does not depend on it.

    Returns
    -------
    float32 array (n_candidates, n_features), C order

    Raises
    ------
    DataError
        Names the features that need a stream or a static that the index lacks.
    """
    if feature_set.reads_places and not hits.has_places:
        raise DataError("the features read places, but these hits have only frequencies: collect_hits(places=True).")
    rows: np.ndarray = load(EXTRACTION, device, hits, hits, feature_set, n_jobs=n_jobs)
    return rows


def extract_on_cpu(hits: Hits, feature_set: FeatureSet, *, n_jobs: int | None = None) -> np.ndarray:
    """`extract` on the CPU."""
    from rankwell.kernels.extraction.cpu.features import extract_features

    columns = feature_set.columns(hits.streams, hits.static_names)
    rows = np.empty((hits.n_candidates, len(feature_set)), np.float32)
    with kernel_threads(n_jobs):
        extract_features(hits.for_kernels(), hits.n_docs, columns, rows)
        for level in feature_set.expressions:
            fill_expressions(rows, level)
    return rows


def fill_expressions(rows: np.ndarray, level: ExpressionLevel) -> None:
    """Fill the columns of expressions that read only columns already filled."""
    from rankwell.kernels.scoring.cpu.expressions import expression_inputs
    from rankwell.kernels.scoring.kinds import LANES

    n_expressions, n_blocks = len(level.columns), -(-len(rows) // LANES)
    values = np.empty((n_blocks, n_expressions, LANES))

    def fill(part: int) -> None:
        first, end = part * _BLOCKS_A_PART, (part + 1) * _BLOCKS_A_PART
        expression_inputs(rows[first * LANES : end * LANES], level.programs, 0, values[first:end])

    run_parts(fill, -(-n_blocks // _BLOCKS_A_PART))
    by_row = values.transpose(0, 2, 1).reshape(-1, n_expressions)[: len(rows)]
    by_row[np.abs(by_row) > np.finfo(np.float32).max] = np.nan
    rows[:, level.columns] = by_row
