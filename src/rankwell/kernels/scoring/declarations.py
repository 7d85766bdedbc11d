"""Definitions that the CUDA kernels of model evaluation share with Python."""

from __future__ import annotations

from rankwell.kernels.c_declarations import constants, enumeration
from rankwell.kernels.scoring.rules import (
    ACTIVATIONS,
    IN_CATEGORIES,
    LARGEST_STACK,
    LEAF_BIN,
    SUM_RUN,
    VALUE,
    ZERO_IS_MISSING,
    Operation,
)

TILE = 32  # of `transpose`: the width of a warp
DENSE_UNITS = 8  # units that a block of `dense` works on
# A block of `dense_tiles`: its warps, and the documents per lane, which share each read of a weight.
TILE_WARPS = 2
LANE_DOCS = 2
TILE_DOCUMENTS, TILE_UNITS = TILE * LANE_DOCS, TILE_WARPS * DENSE_UNITS

CUDA = (
    constants(
        SUM_RUN=SUM_RUN,
        LEAF=LEAF_BIN,
        LARGEST_STACK=LARGEST_STACK,
        TILE=TILE,
        DENSE_UNITS=DENSE_UNITS,
        TILE_WARPS=TILE_WARPS,
        TILE_UNITS=TILE_UNITS,
        LANE_DOCS=LANE_DOCS,
    )
    + enumeration("ColumnKind", {"VALUE": VALUE, "ZERO_IS_MISSING": ZERO_IS_MISSING, "IN_CATEGORIES": IN_CATEGORIES})
    # Operations have different names for the same functions.
    + enumeration("Activation", {f"ACTIVATION_{name.upper()}": number for number, name in enumerate(ACTIVATIONS)})
    + enumeration("Operation", Operation)
)
