"""Models of svm_rank and SVM-light with a linear kernel: score = Σ weight · (support vector · x) − b."""

from __future__ import annotations

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.imports.numbered_features import feature_number, finite_number, linear_description

_BEGINNING = "SVM-light Version"
# The lines between the first and the support vectors.
_KERNEL, _N_VECTORS, _THRESHOLD, _N_HEADER_LINES = 1, 9, 10, 11
_LINEAR = "0"


def is_svm_rank(head: bytes) -> bool:
    """Whether a file that begins so is one."""
    return head.lstrip().startswith(_BEGINNING.encode())


def read_svm_rank(text: str, n_features: int | None) -> RankerDescription:
    """The model in `text`."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) <= _N_HEADER_LINES:
        raise FileFormatError("the svm_rank model was cut short: it has no support vectors.")
    values = [line.partition("#")[0].strip() for line in lines[:_N_HEADER_LINES]]
    if values[_KERNEL] != _LINEAR:
        raise FileFormatError(
            f"the svm_rank model has kernel type {values[_KERNEL][:40]!r}; only 0, a linear one, can be imported."
        )
    if values[_N_VECTORS] != str(len(lines) - _N_HEADER_LINES + 1):
        raise FileFormatError(
            f"the svm_rank model has {len(lines) - _N_HEADER_LINES} support vectors, one less than "
            f"{values[_N_VECTORS][:40]!r} were expected."
        )
    weights: dict[int, float] = {}
    for number, line in enumerate(lines[_N_HEADER_LINES:], start=1):
        place = f"support vector {number}"
        first, *pairs = line.partition("#")[0].split() or [""]
        factor = finite_number(first, place)
        for pair in pairs:
            feature, _, value = pair.partition(":")
            column = feature_number(feature, place)
            weights[column] = weights.get(column, 0.0) + factor * finite_number(value, place)
    return linear_description(weights, -finite_number(values[_THRESHOLD], "the threshold b"), n_features)
