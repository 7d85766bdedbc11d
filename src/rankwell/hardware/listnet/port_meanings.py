"""What the ports of the ListNet accelerator mean, for the README beside its Verilog."""

from __future__ import annotations

from rankwell.hardware.listnet.back_propagation import BackPropagation
from rankwell.hardware.listnet.delta_unit import document_layout
from rankwell.hardware.port_list import port_list

MODULE = "listnet_back_propagation"


def back_propagation_readme(design: BackPropagation) -> str:
    """The README of a design's ports."""
    configuration = design.configuration
    bits, hidden, features = configuration.bits, configuration.hidden, configuration.features
    meanings = {
        "weights": f"the output unit's {hidden} weights before the step, {bits} bits each, signed, unit 0 lowest; one "
        "beat before the documents of each query",
        "documents": f"one beat a document: ∂L/∂s·F·2^B, the score, the {hidden} hidden outputs (unit 0 lowest; outputs "
        f"of sigmoids, not negative), all of {bits} bits; the batch B, below {configuration.batches}; `last` marks the "
        "last of a query",
        "features": f"{configuration.feature_beats} beats a document of {configuration.lanes} features, {bits} bits "
        f"each, signed, feature 0 lowest in the first; what is beyond the {features} features is 0",
        "sums": f"{features + 3} beats a query of {hidden} totals, {configuration.total_bits} bits each, signed, unit 0 "
        f"lowest: Σ_B sum·2^({configuration.batches - 1} − B) of the weights of feature 0, 1, ...; of the hidden "
        "biases; of the output unit's weights; and in place 0 of the last beat of its bias",
    }
    title = f"ListNet back propagation, {features}-{hidden}-1, {bits} bits, {configuration.unrolling} products a cycle"
    return port_list(design, MODULE, title, meanings, {"documents": document_layout(configuration)})
