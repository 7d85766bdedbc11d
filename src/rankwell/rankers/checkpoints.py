"""Checkpoints: the state of a long training run on disk, so that a killed run can continue.

A checkpoint is one safetensors file, replaced whole each time, with the step, the run's arrays and its history. It also
has a fingerprint of the parameters and data it belongs to: continuing with other data would give a model that no single
run could give, so that is refused.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.data.dataset import RankingDataset
from rankwell.errors import FileFormatError, ParameterError
from rankwell.kernels.disk_arrays import row_blocks
from rankwell.rankers.function_identity import function_identity
from rankwell.streams.json_text import parse_json
from rankwell.streams.whole_files import replace_file

_FORMAT = "rankwell-checkpoint"
# 2: the history has seconds.
_VERSION = "2"
# The steps until the next checkpoint if no checkpoints are written.
_NEVER = sys.maxsize
_REMEDY = "Give this run another file for its checkpoints; or delete this one, if it is an old checkpoint."


@dataclass(frozen=True)
class Checkpoint:
    """Where a run was: the steps it had done, its arrays, and its history by name (lists of one value per step)."""

    step: int
    arrays: dict[str, np.ndarray]
    history: dict[str, list[Any]]


class Checkpoints:
    """The checkpoint file of one training run.

    Parameters
    ----------
    path : str or None
        Where it is written; None writes no checkpoints: none is ever due or found.
    every : int
        Steps between two checkpoints.
    fingerprint : str
        The fingerprint of this run, from `run_fingerprint`.

    Examples
    --------
    >>> checkpoints = Checkpoints(path, 100, run_fingerprint(parameters, train, validation))
    >>> resumed = checkpoints.load()              # None on a fresh start
    >>> checkpoints.save(step, {"weights": weights}, history)    # if checkpoints.steps_until_due(step) <= 0
    >>> checkpoints.remove()                      # the run is complete
    """

    def __init__(self, path: str | None, every: int, fingerprint: str) -> None:
        if every < 1:
            raise ParameterError(f"the steps between two checkpoints must be 1 or more, got {every}.")
        self._path = None if path is None else Path(path)
        self.every = every
        self._fingerprint = fingerprint
        self._last_step = 0

    def steps_until_due(self, step: int) -> int:
        """How many steps after `step` complete `every` of them since the last checkpoint, or since the start."""
        return _NEVER if self._path is None else self._last_step + self.every - step

    def save(self, step: int, arrays: Mapping[str, np.ndarray], history: Mapping[str, list[Any]]) -> None:
        """Replace the checkpoint by one of `step`."""
        from safetensors.numpy import save

        if self._path is None:
            return
        metadata = {
            "format": _FORMAT,
            "version": _VERSION,
            "fingerprint": self._fingerprint,
            "step": str(step),
            "history": json.dumps(dict(history), allow_nan=False),
        }
        content = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        replace_file(self._path, save(content, metadata=metadata))
        self._last_step = step

    def load(self, most_steps: int = _NEVER) -> Checkpoint | None:
        """The checkpoint that an earlier attempt at this run left, or None if there is none.

        most_steps : of this run; what a checkpoint of more steps holds cannot be brought back to fewer
        """
        if self._path is None or not self._path.exists():
            return None
        metadata, arrays = _read(self._path)
        if metadata.get("fingerprint") != self._fingerprint:
            raise ParameterError(
                f"the checkpoint {self._path} belongs to another run: its data or parameters differ. "
                "Delete it to start anew, or give this run its own checkpoint file."
            )
        try:
            history = dict(parse_json(metadata["history"]))
            checkpoint = Checkpoint(int(metadata["step"]), arrays, history)
        except (LookupError, TypeError, ValueError) as cause:
            raise FileFormatError(f"{self._path} is a damaged checkpoint ({cause!r}). {_REMEDY}") from cause
        if checkpoint.step > most_steps:
            raise ParameterError(
                f"the checkpoint {self._path} is of step {checkpoint.step} of a longer training; this one has "
                f"{most_steps} steps. Train for at least {checkpoint.step} steps to go on with it, delete it to start "
                "anew, or give this run its own checkpoint file."
            )
        self._last_step = checkpoint.step
        return checkpoint

    def remove(self) -> None:
        """Delete the checkpoint: the run is complete, and the next one starts anew."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def run_fingerprint(parameters: Mapping[str, Any], *parts: RankingDataset | np.ndarray | None) -> str:
    """A digest of what determines a run: its parameters, functions among them, and every number of the data.

    Leave out parameters that do not change the model (threads, the path of checkpoints).
    """
    told = {name: function_identity(value, name) if callable(value) else value for name, value in parameters.items()}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True, default=_as_json).encode())
    for part in parts:
        if part is None:
            digest.update(b"none")
            continue
        for array in (part,) if isinstance(part, np.ndarray) else _arrays_of(part):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            for rows in row_blocks(array):
                digest.update(np.ascontiguousarray(array[rows]).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _as_json(parameter: Any) -> Any:
    """What stands for a parameter that JSON cannot hold: NumPy's numbers and arrays, sets, and paths."""
    if isinstance(parameter, set | frozenset):
        return sorted(parameter, key=str)
    return parameter.tolist() if isinstance(parameter, np.generic | np.ndarray) else str(parameter)


def _arrays_of(dataset: RankingDataset) -> list[np.ndarray]:
    features = dataset.features
    arrays = [features.data, features.indices, features.indptr] if dataset.is_sparse else [features]
    arrays += [dataset.labels, dataset.query_ptr]
    return arrays + [weights for weights in (dataset.query_weights, dataset.document_weights) if weights is not None]


def _read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, ValueError) as cause:
        raise FileFormatError(f"{path} is not a checkpoint, or a damaged one ({cause}). {_REMEDY}") from cause
    if metadata.get("format") != _FORMAT or metadata.get("version") != _VERSION:
        raise FileFormatError(f"{path} is not a checkpoint that this release can read. {_REMEDY}")
    return metadata, arrays
