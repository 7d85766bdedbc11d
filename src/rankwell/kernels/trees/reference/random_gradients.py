"""Random numbers and the gradients of xendcg, slowly."""

from __future__ import annotations

import numpy as np

_MASK = 2**64 - 1
_GOLDEN, _MIX_1, _MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def random_units(seed: int, number: int, documents: range) -> np.ndarray:
    """The random numbers of round `number` for these documents, in (0, 1): see `kernels/cpu/random_numbers`."""
    of_round = _mix(seed + _GOLDEN * (number + 1))
    bits = [_mix(of_round + _GOLDEN * (document + 1)) >> 11 for document in documents]
    return (np.array(bits, dtype=np.float64) + 0.5) * 2.0**-53


def _mix(x: int) -> int:
    x &= _MASK
    x = ((x ^ (x >> 30)) * _MIX_1) & _MASK
    x = ((x ^ (x >> 27)) * _MIX_2) & _MASK
    return x ^ (x >> 31)


def xendcg(scores: np.ndarray, gains: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian of one query's documents, as LightGBM's rank_xendcg; all (n_docs,)."""
    if len(scores) < 2 or gains.min() == gains.max():
        return np.zeros(len(scores)), np.zeros(len(scores))
    exponentials = np.exp(scores.astype(float) - float(scores.max()))
    share = exponentials / exponentials.sum()
    targets = gains + 1.0 - units
    first = share - targets / targets.sum()
    spread = first / (1.0 - share)
    second = share * (spread.sum() - spread)
    spread = second / (1.0 - share)
    third = share * (spread.sum() - spread)
    return first + second + third, share * (1.0 - share)
