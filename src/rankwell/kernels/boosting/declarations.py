"""Definitions that RankBoost's kernels in CUDA and OpenCL C share with Python."""

from __future__ import annotations

from enum import IntEnum

from rankwell.kernels.boosting.precision import (
    LARGEST_EXPONENT,
    LARGEST_R,
    PI_UNIT,
    QUERY_LANES,
    RECENTRE_ROUNDS,
    SMALLEST_WEIGHT,
)
from rankwell.kernels.c_declarations import Struct, constants, enumeration

BINS = 256
# CUDA: copies of a histogram, one per lane, so that a warp's additions have no bank conflicts; and documents that a
# warp takes at a time, 16 per lane.
COLUMNS = 32
TILE = 512


class Control(IntEnum):
    """OpenCL: the numbers of a run's progress."""

    FINISHED = 0
    ROUND = 1
    RECORDED = 2
    COMMON = 3
    FEATURE = 4
    BIN = 5
    R = 6
    RECENTRES = 7
    NEXT_COMMON = 8


CONTROL = Struct(
    "Control",  # the progress of the run; in device memory and shared by all kernels
    (
        ("int", "finished", "training has ended: every later kernel returns at once"),
        ("int", "round", "rounds done, including those before this run"),
        ("int", "recorded", "rounds written to the record since the host last took it"),
        ("int", "common", "power of two that all pair weights were divided by"),
        ("int", "feature", "of the weak ranker chosen last"),
        ("int", "bin", "likewise"),
        ("int", "r", "likewise"),
        ("int", "pending", "1: this round's sums are left to `recentre`; 2: so are the sums before the first round"),
        ("int", "next_common", "the next value of `common`"),
        ("int", "arrived", "blocks that are done; the last one finishes a kernel's work"),
        ("double", "total", "Z"),
        ("double", "up_factor", "e^α"),
        ("double", "down_factor", "e^−α"),
    ),
)
QUERIES = Struct(
    "Queries",
    (
        ("const int*", "segment_ptr", "(n_segments + 1,)"),
        ("const int*", "query_segments", "(n_queries + 1,)"),
        ("const double*", "query_weight", "(n_queries,)"),
        ("const double*", "step", "(n_segments,)"),
        ("double", "carry", "1 if steps add up over levels, else 0"),
        ("int", "n_queries", ""),
    ),
)
SEGMENT_FIELDS = ("up_ratio", "down_ratio", "bridge", "up_sum", "down_sum", "below", "above")
WEIGHTS = Struct(
    "Weights",
    (
        ("double*", "up", "(n_docs,)"),
        ("double*", "down", "(n_docs,)"),
        ("int*", "up_exponent", "(n_segments,)"),
        ("int*", "down_exponent", "(n_segments,)"),
        *(("double*", name, "(n_segments,)") for name in SEGMENT_FIELDS),
        ("double*", "share", "(n_queries,)"),
    ),
)
RECORD = Struct(
    "Record",  # of each round since the host last took it
    (
        ("int*", "feature", ""),
        ("int*", "bin", ""),
        ("int*", "r", ""),
        ("int*", "common", ""),
        ("double*", "total", ""),
    ),
)

_SHARED = constants(
    BINS=BINS,
    QUERY_LANES=QUERY_LANES,
    LARGEST_R=LARGEST_R,
    RECENTRE_ROUNDS=RECENTRE_ROUNDS,
    LARGEST_EXPONENT=LARGEST_EXPONENT,
    PI_UNIT=PI_UNIT,
    SMALLEST_WEIGHT=SMALLEST_WEIGHT,
)
CUDA = (
    _SHARED
    + constants(COLUMNS=COLUMNS, TILE=TILE)
    + "".join(struct.declaration() for struct in (CONTROL, QUERIES, WEIGHTS, RECORD))
)
OPENCL = _SHARED + enumeration("", Control)
