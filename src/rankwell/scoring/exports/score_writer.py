"""Writing what a description computes in the words of a format, piece by piece.

A description is walked here, once for all formats that can say every piece: normaliser, parts, inputs, layers. A format
says what it writes for each piece. Buckets are written as trees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from rankwell.scoring.composition import RankerPart
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.exports.bucket_trees import bucket_trees
from rankwell.scoring.inputs import BucketInputs, ExpressionInputs, LinearInputs, LogLinearInputs
from rankwell.scoring.layers import Dense, Mean, Sum
from rankwell.scoring.normaliser import Normaliser
from rankwell.scoring.trees import TreeInputs

Columns = TypeVar("Columns")
Values = TypeVar("Values")


class ScoreWriter(ABC, Generic[Columns, Values]):
    """A format's words for the pieces of a description.

    Columns are what inputs read: features, normalised features, and scores of parts. Values are inputs, then the
    outputs of layers.
    """

    def score(self, description: RankerDescription, features: Columns) -> Values:
        """Write the whole description; the one value that is its score."""
        columns = self.normalised(description.normaliser, features)
        if description.parts:
            scores = [
                self.score(part.description, self.part_features(part, features))
                if number in description.read_columns
                else None
                for number, part in enumerate(description.parts, start=description.n_features)
            ]
            columns = self.with_scores(columns, scores)
        layers = description.layers
        summed = bool(layers) and not isinstance(layers[0], Dense)
        groups = [
            _INPUTS[group.kind](self, group, columns, description, summed) for group in description.inputs if len(group)
        ]
        values = self.joined(groups)
        width = description.n_inputs
        for layer in layers:
            values = _LAYERS[layer.kind](self, layer, values, width)
            width = len(layer.bias) if isinstance(layer, Dense) else 1
        return values

    @abstractmethod
    def normalised(self, normaliser: Normaliser, features: Columns) -> Columns:
        """The features after a normaliser."""

    @abstractmethod
    def part_features(self, part: RankerPart, features: Columns) -> Columns:
        """The features that a part reads."""

    @abstractmethod
    def with_scores(self, columns: Columns, scores: Sequence[Values | None]) -> Columns:
        """The columns and after them those of parts, rounded to float32; None is a score that nothing reads."""

    @abstractmethod
    def linear(self, group: LinearInputs, columns: Columns) -> Values:
        """Linear inputs."""

    @abstractmethod
    def log_linear(self, group: LogLinearInputs, columns: Columns) -> Values:
        """Log-linear inputs."""

    @abstractmethod
    def trees(self, group: TreeInputs, columns: Columns, *, summed: bool) -> Values:
        """Trees; if only their sum is read, it may be the only value."""

    @abstractmethod
    def expressions(self, group: ExpressionInputs, columns: Columns, names: tuple[str, ...]) -> Values:
        """Expressions over the columns of these names."""

    @abstractmethod
    def joined(self, groups: Sequence[Values]) -> Values:
        """The values of all groups of inputs, in their order."""

    @abstractmethod
    def dense(self, layer: Dense, values: Values) -> Values:
        """A dense layer."""

    @abstractmethod
    def total(self, values: Values, *, divisor: int, bias: float) -> Values:
        """The sum of all values, divided if the divisor is not 1, plus the bias."""


_INPUTS: dict[str, Callable[[ScoreWriter[Any, Any], Any, Any, RankerDescription, bool], Any]] = {
    LinearInputs.kind: lambda writer, group, columns, description, summed: writer.linear(group, columns),
    LogLinearInputs.kind: lambda writer, group, columns, description, summed: writer.log_linear(group, columns),
    BucketInputs.kind: lambda writer, group, columns, description, summed: writer.trees(
        bucket_trees(group), columns, summed=summed
    ),
    TreeInputs.kind: lambda writer, group, columns, description, summed: writer.trees(group, columns, summed=summed),
    ExpressionInputs.kind: lambda writer, group, columns, description, summed: writer.expressions(
        group, columns, description.column_names
    ),
}
_LAYERS: dict[str, Callable[[ScoreWriter[Any, Any], Any, Any, int], Any]] = {
    Dense.kind: lambda writer, layer, values, width: writer.dense(layer, values),
    Sum.kind: lambda writer, layer, values, width: writer.total(values, divisor=1, bias=layer.bias),
    Mean.kind: lambda writer, layer, values, width: writer.total(values, divisor=width, bias=0.0),
}
