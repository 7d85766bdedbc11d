"""Definitions that the CUDA kernels that train networks over lists share with Python."""

from __future__ import annotations

from rankwell.kernels.c_declarations import Struct, enumeration, numbered
from rankwell.kernels.lists.cpu import top_k_loss
from rankwell.kernels.lists.network_shape import ACTIVATION_CODES

_TRUTH_ROWS = ("MEMBERSHIP", "FIRST", "RATIO", "EXPONENTIAL", "AFTER_BEST")

LISTS = Struct(
    "Lists",
    (
        ("const feature_t*", "features", "(n_docs, FEATURES)"),
        ("const float*", "feature_scale", "(FEATURES,): the factor of a stored feature"),
        ("const long long*", "query_ptr", "(n_queries + 1,)"),
        ("const float*", "truth", "(5, n_docs)"),
        ("const int*", "best_label", "(n_queries,), within the query"),
        ("const float*", "weights", "(n_queries,)"),
        ("long long", "n_docs", ""),
    ),
)
BUFFERS = Struct(
    "Buffers",
    (
        ("float*", "scores", "(n_docs,)"),
        ("float*", "hidden", "(n_docs, UNITS)"),
        ("double*", "exchange", "(TEAM, 2)"),
        ("float*", "partial", "(2, TEAM, PARAMETERS) or (batch, PARAMETERS)"),
        ("float*", "workspace", "(blocks, data that does not fit in shared memory)"),
        ("unsigned*", "arrivals", "arrivals of blocks at barriers of their team; never reset"),
    ),
)
OPTIMIZER = Struct(
    "Optimizer",
    tuple(("float", name, "") for name in ("rate", "momentum", "beta1", "beta2", "epsilon", "weight_decay")),
)

CUDA = (
    enumeration("TruthRow", {name: getattr(top_k_loss, name) for name in _TRUTH_ROWS})
    + enumeration("Activation", numbered(sorted(ACTIVATION_CODES, key=ACTIVATION_CODES.__getitem__)))
    + "".join(struct.declaration() for struct in (LISTS, BUFFERS, OPTIMIZER))
)
