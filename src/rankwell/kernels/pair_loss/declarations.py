"""Definitions that RankSVM's CUDA kernels share with Python."""

from __future__ import annotations

from rankwell.kernels.c_declarations import Struct, constants

# Levels summed in one pass over a query: labels from 0 to 4 are the most common ones.
LEVELS_PER_PASS = 5
# The macro METHOD.
METHOD_NUMBERS = {"direct": 0, "order-statistic": 1}

PLACE = Struct(
    "Place",  # the document at a place of a query
    (
        ("int", "row", "relative to the query's first"),
        ("int", "level", "of its label"),
        ("int", "upper", "partners above it are at places below this one"),
        ("int", "lower", "partners below it are at this place or above"),
    ),
    alignment=16,
)
QUERY = Struct(
    "Query",  # a query with pairs
    (
        ("long long", "start", "its first row"),
        ("long long", "scratch", "where its workspace and products are in global memory, or -1: in shared memory"),
        ("long long", "ranks", "where its ranks are (METHOD 1)"),
        ("double", "weight", ""),
        ("int", "n", "documents"),
        ("int", "n_levels", ""),
    ),
)

CUDA = constants(LEVELS_PER_PASS=LEVELS_PER_PASS) + PLACE.declaration() + QUERY.declaration()
