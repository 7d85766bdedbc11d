"""What the ports of the RankBoost accelerator mean, for the README beside its Verilog."""

from __future__ import annotations

from rankwell.hardware.port_list import port_list
from rankwell.hardware.rankboost.accelerator import RankBoostAccelerator, potential_layout, result_layout

MODULE = "rankboost_accelerator"


def accelerator_readme(accelerator: RankBoostAccelerator) -> str:
    """The README of an accelerator's ports."""
    configuration = accelerator.configuration
    bins = configuration.lanes // configuration.channels
    meanings = {
        "potentials": "π of the documents in units of 2^−30, all of them again in every pass; `last` marks the last "
        "of a pass. They must sum to 0",
        "result": "one beat a round: the weak ranker h(d) = 1 where bin > `bin`, |r| is `size`, its sign `negative`; "
        "`best` is the largest |r|. No weak ranker helps unless `best` > margin. With `overflow`, repeat the round "
        "with floor = best − margin − 1 and take what comes. With `unbalanced`, π did not sum to 0",
        "passes": f"passes of a round, ⌈features / {configuration.pes}⌉; stable in a round, as all below",
        "margin": "|r| that differ by no more than this count as equal: 2·⌊√documents⌋ + 2",
        "floor": "0, unless a round is repeated",
    }
    for array in range(configuration.arrays):
        for channel in range(configuration.channels):
            first = array * configuration.lanes + channel * bins
            meanings[f"words_{array * configuration.channels + channel}"] = (
                f"a document's bins, 8 bits each, of features {first} to {first + bins - 1} of the pass's "
                f"{configuration.pes}; missing features are 0"
            )
    layouts = {"potentials": potential_layout(configuration), "result": result_layout(configuration)}
    title = f"RankBoost accelerator with {configuration.pes} processing elements"
    return port_list(accelerator, MODULE, title, meanings, layouts)
