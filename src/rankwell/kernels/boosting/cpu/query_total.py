"""Z over the queries of several processes: the same bits as if one process had them all.

A float64 sum depends on its order, and the order of `weights.query_sum` is that of the queries. Processes have the
queries in a row, so each adds its own to the lanes that the one before it passes on, and the last one announces the
sum.
"""

from __future__ import annotations

import math

import numpy as np

from rankwell.kernels.boosting.contract import Companions
from rankwell.kernels.boosting.cpu.weights import NO_PAIRS, add_to_lanes, sum_of_lanes
from rankwell.kernels.boosting.precision import QUERY_LANES


class QueryTotal:
    """The sum of the shares of all queries.

    Each process divides its pair weights by a power of two of its own. To multiply by a power of two is exact: shares
    are brought to the largest power before they are added, and the sum back to this process's.
    """

    def __init__(self, companions: Companions) -> None:
        self._companions = companions
        self._own = self._common = 0

    def recentre(self, common: int) -> int:
        """This process's pair weights are divided by 2^common from now on; all processes call this together.

        Returns `common`, or that of the others if this process has no pairs.
        """
        self._common = self._companions.largest(common)
        self._own = common if common > NO_PAIRS else self._common
        return self._own

    def of(self, shares: np.ndarray) -> float:
        """Z, divided as this process's pair weights are. shares : float64 (n_queries,)"""
        companions = self._companions
        received = companions.hand_on(np.zeros(QUERY_LANES))
        lanes = np.zeros(QUERY_LANES) if received is None else received
        add_to_lanes(np.ldexp(shares, self._own - self._common), companions.first_query, lanes)
        last = companions.n_processes - 1
        total = np.zeros(1)
        if companions.number < last:
            companions.pass_on(lanes)
        else:
            total[0] = sum_of_lanes(lanes, companions.n_queries)
        return math.ldexp(float(companions.announce(total, last)[0]), self._common - self._own)
