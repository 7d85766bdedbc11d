"""What the ports of the ListNet accelerator's kernels mean, for the README beside their Verilog."""

from __future__ import annotations

from typing import Any

from rankwell.hardware.listnet.back_propagation import BackPropagation
from rankwell.hardware.listnet.delta_unit import document_layout
from rankwell.hardware.listnet.forward_pass import ForwardPass, feature_layout, output_layout
from rankwell.hardware.listnet.loss_gradient import LossGradient, gradient_layout, score_layout
from rankwell.hardware.port_list import port_list

MODULES = {"backward": "listnet_back_propagation", "forward": "listnet_forward_pass", "loss": "listnet_loss_gradient"}


def task_readme(task: str, design: Any) -> str:
    """The README of the ports of a task's kernel."""
    readme = {"backward": _back_propagation, "forward": _forward_pass, "loss": _loss_gradient}[task]
    return readme(design)


def _back_propagation(design: BackPropagation) -> str:
    configuration = design.configuration
    bits, hidden, features = configuration.bits, configuration.hidden, configuration.features
    meanings = {
        "weights": f"the output unit's {hidden} weights before the step, {bits} bits each, signed, unit 0 lowest; one "
        "beat before the documents of each query",
        "documents": f"one beat a document: ∂L/∂s·F·2^B, the score, the {hidden} hidden outputs (unit 0 lowest; "
        f"outputs of sigmoids, not negative), all of {bits} bits; the batch B, below {configuration.batches}; "
        "`last` marks the last of a query",
        "features": f"{configuration.feature_beats} beats a document of {configuration.lanes} features, {bits} bits "
        f"each, signed, feature 0 lowest in the first; what is beyond the {features} features is 0",
        "sums": f"{features + 3} beats a query of {hidden} totals, {configuration.total_bits} bits each, signed, unit "
        f"0 lowest: Σ_B sum·2^({configuration.batches - 1} − B) of the weights of feature 0, 1, ...; of the hidden "
        "biases; of the output unit's weights; and in place 0 of the last beat of its bias",
    }
    title = f"ListNet back propagation, {features}-{hidden}-1, {bits} bits, {configuration.unrolling} products a cycle"
    return port_list(design, MODULES["backward"], title, meanings, {"documents": document_layout(configuration)})


def _forward_pass(design: ForwardPass) -> str:
    configuration = design.configuration
    hidden, features = configuration.hidden, configuration.features
    meanings = {
        "weights": f"{features + 3} beats before each query of {hidden} numbers, 16 bits each, signed, 12 after the "
        "point, unit 0 lowest: the weights of feature 0, 1, ...; the hidden biases; the output unit's weights; and in "
        "place 0 of the last beat its bias",
        "features": f"{configuration.feature_beats} beats a document of {configuration.lanes} features, 16 bits each, "
        f"signed, 15 after the point; what is beyond the {features} features is 0; `last` marks the last beat of "
        "a query",
        "outputs": "one beat a document: the hidden outputs (unit 0 lowest) and the score, 15 bits each, all after the "
        "point",
    }
    layouts = {"features": feature_layout(configuration), "outputs": output_layout(configuration)}
    title = f"ListNet forward pass, {features}-{hidden}-1, {configuration.unrolling} products a cycle"
    return port_list(design, MODULES["forward"], title, meanings, layouts)


def _loss_gradient(design: LossGradient) -> str:
    configuration = design.configuration
    odds = ", the odds of its being first (24; at most 64)" if configuration.k == 3 else ""
    meanings = {
        "scores": "one beat a document of a list of two documents or more: the score (15 bits after the point), P_y "
        f"that it is first ({24 if configuration.k == 3 else 16}) and that it is among the first k (24){odds}; `last` "
        "marks the last of the list",
        "gradients": f"one beat a document: ∂L/∂s·F·2^B, {configuration.bits} bits, signed; the batch B; `last`",
    }
    layouts = {"scores": score_layout(configuration), "gradients": gradient_layout(configuration)}
    title = f"ListNet loss gradient, Top-{configuration.k}, lists of up to {configuration.most_docs} documents"
    return port_list(design, MODULES["loss"], title, meanings, layouts)
