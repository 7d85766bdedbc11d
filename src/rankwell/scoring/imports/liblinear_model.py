"""LIBLINEAR's models of one weight vector: regression, ranking, and classification in two classes.

The score is the decision value; of two classes, that of the one with the larger label.
"""

from __future__ import annotations

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.imports.complaint import complaint
from rankwell.scoring.imports.numbered_features import MOST_FEATURES, finite_number, linear_description

_BEGINNING = "solver_type"
_MULTICLASS = "MCSVM_CS"


def is_liblinear(head: bytes) -> bool:
    """Whether a file that begins so is one."""
    return head.lstrip().startswith(_BEGINNING.encode())


def read_liblinear(text: str) -> RankerDescription:
    """The model in `text`."""
    header, has_weights, rest = text.partition("\nw\n")
    entries = {key: value.split() for key, _, value in (line.partition(" ") for line in header.splitlines())}
    try:
        (solver,), (n_classes,) = entries["solver_type"], entries["nr_class"]
        width, bias = int(entries["nr_feature"][0]), finite_number(entries["bias"][0], "bias")
    except FileFormatError:
        raise
    except (KeyError, ValueError, IndexError) as cause:
        raise FileFormatError(f"the LIBLINEAR model's header is incomplete ({complaint(cause)}).") from cause
    if not has_weights or not 0 <= width <= MOST_FEATURES:
        raise FileFormatError("the LIBLINEAR model was cut short, or has too many features.")
    if solver == _MULTICLASS or n_classes != "2":
        raise FileFormatError(f"the model has {n_classes} classes ({solver}), a ranker gives one score.")
    weights = [finite_number(line, f"weight {number}") for number, line in enumerate(rest.split(), start=1)]
    if len(weights) != width + (bias >= 0):
        raise FileFormatError(f"the LIBLINEAR model has {len(weights)} weights, {width + (bias >= 0)} were expected.")
    sign = _sign(entries.get("label", []))
    intercept = sign * bias * weights.pop() if bias >= 0 else 0.0
    return linear_description(
        {column: sign * weight for column, weight in enumerate(weights)}, intercept, max(1, width)
    )


def _sign(labels: list[str]) -> float:
    """LIBLINEAR's decision value is that of the label it met first."""
    numbers = [finite_number(label, "a label") for label in labels]
    return -1.0 if len(numbers) == 2 and numbers[0] < numbers[1] else 1.0
