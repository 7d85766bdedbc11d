"""The ranker file: one safetensors file with a JSON header.

Arrays are plain numbers and the header is plain JSON, so loading runs no code from the file. A SHA-256 over both
detects any altered byte; the file is written next to its target and renamed, so a reader never sees an incomplete file.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription, check_description
from rankwell.streams.json_text import parse_json
from rankwell.streams.whole_files import replace_file

FORMAT = "rankwell-ranker"
# Version 2 added descriptions with parts and first passes. A file that has none is written as version 1, so that
# earlier releases read it.
VERSION = 2
# Larger integers, which JSON allows, could not be made a float.
_LARGEST_FIGURE = 1e308


@dataclass(frozen=True)
class RankerFile:
    """The content of a ranker file.

    ranker : the registered name of the class that trained it
    parameters : its constructor's parameters
    description : what it computes
    state : further arrays of the class (the rounds of a boosted model, ...)
    history : values by training step, as lists of equal length
    metrics : measured values by data set; free-form JSON
    """

    ranker: str
    parameters: dict[str, Any]
    description: RankerDescription
    state: dict[str, np.ndarray] = field(default_factory=dict)
    history: dict[str, list[Any]] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)


def write_ranker_file(path: str | os.PathLike[str], content: RankerFile) -> None:
    """Write `content` to `path`, completely or not at all; never what `read_ranker_file` refuses."""
    from safetensors.numpy import save

    try:
        check_description(content.description)
    except FileFormatError as cause:
        raise FileFormatError(f"{path} is not written, because it could not be read again: {cause}") from cause
    tree, arrays = content.description.to_parts()
    arrays |= {f"state.{name}": array for name, array in content.state.items()}
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = json.dumps(
        {
            "ranker": content.ranker,
            "parameters": content.parameters,
            "description": tree,
            "history": content.history,
            "metrics": content.metrics,
        },
        sort_keys=True,
        allow_nan=False,
    )
    envelope = {"version": 2 if content.description.parts else 1, "sha256": _checksum(header, arrays), "header": header}
    # A single entry: safetensors writes several in random order, and the same model must give the same bytes.
    replace_file(Path(path), save(arrays, metadata={FORMAT: json.dumps(envelope)}))


def read_ranker_file(path: str | os.PathLike[str]) -> RankerFile:
    """Read and verify a ranker file."""
    metadata, arrays = _open(path)
    if FORMAT not in metadata:
        raise FileFormatError(f"{path} is a safetensors file, but not a ranker file of rankwell.")
    header = _open_envelope(path, metadata[FORMAT], arrays)
    try:
        content = parse_json(header)
        prefix = "state."
        return RankerFile(
            ranker=str(content["ranker"]),
            parameters=_object(content["parameters"], "parameters"),
            description=RankerDescription.from_parts(content["description"], arrays),
            state={name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)},
            history=_history(content["history"]),
            metrics=_object(content["metrics"], "metrics"),
        )
    except FileFormatError as cause:
        raise FileFormatError(f"{path}: {cause}") from cause
    except (ArithmeticError, LookupError, TypeError, ValueError) as cause:
        raise FileFormatError(f"{path} has an unreadable header ({cause!r}).") from cause


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FileFormatError(f"the {name} are not an object, but {type(value).__name__}.")
    return value


def _history(value: Any) -> dict[str, list[Any]]:
    """Figures by training step: lists of numbers, null for a figure that was not measured."""
    history = _object(value, "history")
    for name, figures in history.items():
        if not isinstance(figures, list) or not all(figure is None or _is_number(figure) for figure in figures):
            raise FileFormatError(f"the history's {name!r} is not a list of numbers.")
    return history


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) and abs(value) <= _LARGEST_FIGURE


def _open_envelope(path: str | os.PathLike[str], text: str, arrays: dict[str, np.ndarray]) -> str:
    """The JSON header inside the envelope, after checking version and checksum."""
    try:
        envelope = parse_json(text)
        version, checksum, header = envelope["version"], envelope["sha256"], envelope["header"]
        if type(version) is not int:
            raise TypeError(f"version {version!r} is not a whole number")
        # Half of a surrogate pair in the header is no text, and could not be hashed.
        found = None if not isinstance(header, str) else _checksum(header, arrays)
    except (LookupError, TypeError, ValueError) as cause:
        raise FileFormatError(
            f"{path} was altered after it was written: its header is unreadable ({cause})."
        ) from cause
    if version > VERSION:
        raise FileFormatError(
            f"{path} has format version {version}, this release reads up to {VERSION}. Upgrade rankwell to read it."
        )
    if version < 1 or found is None or checksum != found:
        raise FileFormatError(f"{path} was altered after it was written: its checksum does not match. Train it again.")
    return header


def is_ranker_file(path: str | os.PathLike[str]) -> bool:
    """Whether `path` begins like a ranker file (the rest may still be damaged)."""
    with open(path, "rb") as stream:
        head = stream.read(4096)
    return len(head) > 9 and head[8:9] == b"{" and FORMAT.encode() in head


def _open(path: str | os.PathLike[str]) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    from safetensors import SafetensorError, safe_open

    if os.path.isdir(path):
        raise FileFormatError(f"{path} is a folder, not a ranker file.")
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            return dict(file.metadata() or {}), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as cause:
        raise FileFormatError(f"there is no file {path}.") from cause
    except (SafetensorError, OSError, TypeError, ValueError) as cause:
        raise FileFormatError(f"{path} is not a ranker file, or it was cut short ({cause}).") from cause


def _checksum(header: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}:{array.dtype.str}:{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
