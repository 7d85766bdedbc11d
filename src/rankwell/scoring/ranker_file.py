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
from rankwell.scoring.description import RankerDescription
from rankwell.streams.whole_files import replace_file

FORMAT = "rankwell-ranker"
VERSION = 1


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
    """Write `content` to `path`, completely or not at all."""
    from safetensors.numpy import save

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
    envelope = {"version": VERSION, "sha256": _checksum(header, arrays), "header": header}
    # A single entry: safetensors writes several in random order, and the same model must give the same bytes.
    replace_file(Path(path), save(arrays, metadata={FORMAT: json.dumps(envelope)}))


def read_ranker_file(path: str | os.PathLike[str]) -> RankerFile:
    """Read and verify a ranker file."""
    metadata, arrays = _open(path)
    if FORMAT not in metadata:
        raise FileFormatError(f"{path} is a safetensors file, but not a ranker file of rankwell.")
    header = _open_envelope(path, metadata[FORMAT], arrays)
    try:
        content = json.loads(header)
        prefix = "state."
        return RankerFile(
            ranker=str(content["ranker"]),
            parameters=dict(content["parameters"]),
            description=RankerDescription.from_parts(content["description"], arrays),
            state={name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)},
            history=dict(content["history"]),
            metrics=dict(content["metrics"]),
        )
    except FileFormatError as cause:
        raise FileFormatError(f"{path}: {cause}") from cause
    except (KeyError, TypeError, ValueError) as cause:
        raise FileFormatError(f"{path} has an unreadable header ({cause!r}).") from cause


def _open_envelope(path: str | os.PathLike[str], text: str, arrays: dict[str, np.ndarray]) -> str:
    """The JSON header inside the envelope, after checking version and checksum."""
    try:
        envelope = json.loads(text)
        version, checksum, header = int(envelope["version"]), envelope["sha256"], envelope["header"]
    except (KeyError, TypeError, ValueError) as cause:
        raise FileFormatError(
            f"{path} was altered after it was written: its header is unreadable ({cause})."
        ) from cause
    if version > VERSION:
        raise FileFormatError(
            f"{path} has format version {version}, this release reads up to {VERSION}. Upgrade rankwell to read it."
        )
    if version < 1 or not isinstance(header, str) or checksum != _checksum(header, arrays):
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
    except (SafetensorError, OSError, ValueError) as cause:
        raise FileFormatError(f"{path} is not a ranker file, or it was cut short ({cause}).") from cause


def _checksum(header: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}:{array.dtype.str}:{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
