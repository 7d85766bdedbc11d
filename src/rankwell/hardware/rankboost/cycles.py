"""How many cycles the RankBoost accelerator takes, exactly, if its memory keeps up.

A round is `passes` passes over the documents, each for `pes` features:

    pass  = documents + bins · lanes + flush + drain        fill the histograms, scan them lane after lane
    round = passes · pass + rest + settle + handshakes      and choose among the records

All but the documents is the same whatever the data, so the formula holds for every round.
"""

from __future__ import annotations

from rankwell.hardware.rankboost.configuration import RankBoostConfiguration

# π goes into a queue, the end of the last array into a register, the result out of one; and the arrays restart.
_HANDSHAKES = 4


def pass_overhead(configuration: RankBoostConfiguration) -> int:
    """Cycles of a pass in which no document is taken."""
    from rankwell.hardware.rankboost.array import drain_cycles, flush_cycles

    return configuration.bins * configuration.lanes + flush_cycles(configuration) + drain_cycles(configuration)


def round_overhead(configuration: RankBoostConfiguration) -> int:
    """Cycles of a round outside of its passes. π reaches each further array a cycle later."""
    from rankwell.hardware.rankboost.accelerator import settle_cycles
    from rankwell.hardware.rankboost.array import rest_cycles

    return rest_cycles(configuration) + settle_cycles(configuration) + _HANDSHAKES + configuration.arrays - 1


def round_cycles(configuration: RankBoostConfiguration, n_docs: int, n_features: int) -> int:
    """Cycles from one result to the next."""
    one_pass = n_docs + pass_overhead(configuration)
    return configuration.passes(n_features) * one_pass + round_overhead(configuration)


def reset_cycles(configuration: RankBoostConfiguration) -> int:
    """Further cycles of the first round after a reset: the histograms are cleared."""
    return configuration.bins - 1
