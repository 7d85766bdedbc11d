"""Machines that were measured elsewhere, for plans on paper: every number with where it comes from."""

from __future__ import annotations

from rankwell.hardware.rankboost.far_paper import N_DOCS, N_FEATURES
from rankwell.planning.round_model import Coefficients, Network, RoundModel

# One H200: 0.30 ms for a round of the FAR paper's 1,196,711 documents and 646 features (benchmark rankboost_cuda), of
# which reading the bins is two thirds; the rest is counted for documents. Every feature is searched.
_H200_ROUND, _H200_SEARCH_SHARE = 0.30e-3, 0.8
H200 = RoundModel(
    "H200",
    {
        1: Coefficients(
            _H200_ROUND * (1 - _H200_SEARCH_SHARE) / N_DOCS,
            _H200_ROUND * _H200_SEARCH_SHARE / (N_DOCS * N_FEATURES),
            0.0,
            10e-6,
        )
    },
)
H200_BYTES = 139 * 2**30

NETWORKS = {
    "1gbit": Network(0.117e9, 100e-6),
    "10gbit": Network(1.17e9, 50e-6),
    "100gbit": Network(11.7e9, 20e-6),
    "nvlink": Network(450e9, 10e-6),
}
