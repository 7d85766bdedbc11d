"""Definitions that the CUDA kernels of feature extraction share with Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwell.kernels.c_declarations import constants, enumeration, numbered
from rankwell.kernels.extraction.rules import (
    DELTA,
    K1,
    LAMBDA,
    MU,
    N_KINDS,
    N_WHOLE_KINDS,
    PAIR_WINDOW,
    SEQUENCE_WORDS,
    B,
    Kind,
)

# Up to this many terms, a thread keeps its state in local memory; longer queries need scratch memory.
FEW_TERMS = 8
# A batch is a header of int64 (candidates, queries, then the byte at which each array begins) and the arrays, in this
# order: those of the hits, and the weights of their terms. The queries' pointers come first, so that they begin at the
# same byte in every batch.
HEADER_BYTES = 256
QUERY_ARRAYS: dict[str, Any] = {
    "query_ptr": np.int64,
    "term_ptr": np.int64,
    "word_ptr": np.int64,
    "cell_base": np.int64,
    "query_frequency": np.int32,
    "words": np.int32,
    "word_places": np.int32,
}
# These grow with the candidates; elements of all of them have four bytes here.
CANDIDATE_ARRAYS: dict[str, Any] = {
    "lengths": np.int32,
    "distinct": np.int32,
    "statics": np.float32,
    "cell_ptr": np.uint32,
    "positions": np.int32,
}
HIT_ARRAYS = QUERY_ARRAYS | CANDIDATE_ARRAYS
# The fields of `rankwell.kernels.extraction.cpu.features.TermWeights`, all float64.
WEIGHT_ARRAYS = ("idf", "background", "idf_sum", "squares", "importance", "likelihood", "relative_length")
PARAMETERS = {"K1": K1, "B": B, "MU": MU, "LAMBDA": LAMBDA, "DELTA": DELTA}

CUDA = (
    constants(
        FEW_TERMS=FEW_TERMS,
        PAIR_WINDOW=PAIR_WINDOW,
        SEQUENCE_WORDS=SEQUENCE_WORDS,
        N_KINDS=N_KINDS,
        N_WHOLE_KINDS=N_WHOLE_KINDS,
        N_PARAMETERS=len(PARAMETERS),
    )
    + enumeration("Kind", Kind)
    + enumeration("Parameter", PARAMETERS)
    + enumeration("BatchNumber", numbered(["n_candidates", "n_queries"]))
    + enumeration("BatchArray", numbered((f"at_{name}" for name in (*HIT_ARRAYS, *WEIGHT_ARRAYS)), first=2))
)
