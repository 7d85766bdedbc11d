"""An ONNX graph in the making: operators one after another, constants once each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# Of ai.onnx and ai.onnx.ml, of 2022: old enough for most runtimes; newer ones run them too.
OPERATOR_SET, TREE_OPERATOR_SET = 17, 3
IR_VERSION = 8
TREES_DOMAIN = "ai.onnx.ml"


class OnnxGraph:
    """Operators by name; a value is the name of a tensor."""

    def __init__(self) -> None:
        from onnx import helper, numpy_helper

        self._helper, self._arrays = helper, numpy_helper
        self.nodes: list[Any] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.initialisers: list[Any] = []

    def constant(self, array: npt.ArrayLike, dtype: Any = np.float64) -> str:
        """A constant tensor; equal ones are stored once."""
        made = np.asarray(array, dtype=dtype)
        key = made.dtype.str, made.shape, made.tobytes()
        if key not in self._constants:
            name = f"constant_{len(self._constants)}"
            self._constants[key] = name
            self.initialisers.append(self._arrays.from_array(made, name))
        return self._constants[key]

    def apply(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """The result of an operator."""
        result = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operator, list(inputs), [result], **attributes))
        return result

    def float64(self, value: str) -> str:
        return self.apply("Cast", value, to=self._helper.np_dtype_to_tensor_dtype(np.dtype(np.float64)))

    def float32(self, value: str) -> str:
        return self.apply("Cast", value, to=self._helper.np_dtype_to_tensor_dtype(np.dtype(np.float32)))

    def columns(self, value: str, numbers: Sequence[int] | np.ndarray) -> str:
        """Some columns of a matrix."""
        return self.apply("Gather", value, self.constant(np.asarray(numbers), np.int64), axis=1)

    def where_missing(self, value: str, replacement: str, otherwise: str) -> str:
        """`replacement` where `value` is NaN, else `otherwise`."""
        return self.apply("Where", self.apply("IsNaN", value), replacement, otherwise)

    def sum_of_columns(self, value: str) -> str:
        """The sum of each row: (n_docs, 1)."""
        return self.apply("ReduceSum", value, self.constant([1], np.int64), keepdims=1)
