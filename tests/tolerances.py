"""How closely what a device computes must agree with the reference, by device and quantity.

An entry is for NumPy: ``np.testing.assert_allclose(found, expected, **TOLERANCES["cuda"]["scores"])``. A quantity
that is not here (a model of RankBoost, an integer sum) must be the same bits. Tolerances that belong to a formula (a
finite difference, a share of a sum's magnitude) are beside the formula.
"""

from __future__ import annotations

from typing import TypedDict


class Tolerance(TypedDict):
    rtol: float
    atol: float


# Sums of float32 terms, each with one rounding; exponentials and logarithms of single precision.
_LIST_LOSS = Tolerance(rtol=3e-6, atol=1e-6)
_NETWORKS = {
    "epoch loss": Tolerance(rtol=1e-5, atol=0.0),
    "weights after an epoch": Tolerance(rtol=1e-4, atol=2e-5),
    "weights after many steps": Tolerance(rtol=1e-3, atol=1e-4),
    "network scores": Tolerance(rtol=1e-7, atol=1e-5),
}
# Sums in float64 in another order than the reference's.
_PAIR_LOSS = Tolerance(rtol=1e-9, atol=1e-12)
_SCORES = Tolerance(rtol=1e-12, atol=1e-12)
_EXPRESSIONS = Tolerance(rtol=1e-12, atol=0.0)

TOLERANCES: dict[str, dict[str, Tolerance]] = {
    "cpu": {
        **_NETWORKS,
        "list loss": _LIST_LOSS,
        # The same integers as the reference's; only the last step rounds to float32.
        "fixed-point gradient": Tolerance(rtol=1e-6, atol=1e-30),
        "pair loss": _PAIR_LOSS,
        "boosting loss": Tolerance(rtol=1e-6, atol=1e-12),
        "scores": _SCORES,
        "scores of expressions": _EXPRESSIONS,
        "ranking metrics": Tolerance(rtol=1e-12, atol=1e-15),
        # One rounding to float32, and logarithms that may differ in the last place of float64; a variance or a sum of
        # logarithms may cancel to nearly nothing.
        "features": Tolerance(rtol=1.2e-7, atol=1e-13),
        # Of float32 and float64 tensors alike.
        "torch loss": Tolerance(rtol=1e-5, atol=1e-6),
        "torch gradient": Tolerance(rtol=1e-7, atol=1e-6),
    },
    "cuda": {
        **_NETWORKS,
        "pair loss": _PAIR_LOSS,
        # Of a training that ends by its own tolerance of 1e-6.
        "training objective": Tolerance(rtol=1e-6, atol=0.0),
        "training loss": Tolerance(rtol=1e-4, atol=0.0),
        "scores of a trained network": Tolerance(rtol=1e-2, atol=1e-3),
        "scores": _SCORES,
        "scores of expressions": _EXPRESSIONS,
        # Logarithms may differ in the last place of float32, and a ranker adds such features up.
        "scores of extracted features": Tolerance(rtol=1e-6, atol=0.0),
    },
}
