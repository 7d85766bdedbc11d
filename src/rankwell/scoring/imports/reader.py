"""Reads models of other libraries; the format is recognised by the beginning of the file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription, check_description
from rankwell.scoring.imports.lightgbm_json import read_lightgbm_json
from rankwell.scoring.imports.lightgbm_text import read_lightgbm_text
from rankwell.scoring.imports.ubjson import read_ubjson
from rankwell.scoring.imports.xgboost_model import read_xgboost


def import_model(path: str | os.PathLike[str]) -> RankerDescription:
    """The LightGBM model (text, or the JSON of `dump_model`) or XGBoost model (JSON, UBJSON) stored at `path`.

    Scores are those of the library's own `predict`: for LightGBM up to float64 rounding, for XGBoost up to rounding
    in its float32 sums.
    """
    content = Path(path).read_bytes()
    try:
        description = parse_model(content)
        check_description(description)
    except FileFormatError as cause:
        raise FileFormatError(f"{path}: {cause}") from cause
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as cause:
        # The readers say what they look for and do not find; no list of what else can be wrong is ever complete.
        raise FileFormatError(f"{path}: the model is damaged ({cause!r}).") from cause
    return description


def looks_like_model(path: str | os.PathLike[str]) -> bool:
    """Whether the file at `path` begins like a model of LightGBM or XGBoost."""
    with open(path, "rb") as stream:
        head = stream.read(4096)
    return head.startswith((b"tree\n", b"tree\r\n")) or (
        head.lstrip().startswith(b"{") and (b"tree_info" in head or b"learner" in head or b'"tree"' in head)
    )


def parse_model(content: bytes) -> RankerDescription:
    """The model in `content`, the bytes of a file."""
    head = content[:64].lstrip()
    if head.startswith((b"tree\n", b"tree\r\n")):
        return read_lightgbm_text(content.decode("utf-8", errors="replace"))
    # UBJSON objects begin with { and the marker of a length; JSON objects with { and a quote or white space.
    if head.startswith(b"{") and content[:2] in (b"{L", b"{l", b"{I", b"{i", b"{U", b"{#", b"{$"):
        return read_xgboost(read_ubjson(content))
    if not head.startswith(b"{"):
        raise FileFormatError(
            "this is neither a LightGBM model (text, JSON) nor an XGBoost model (JSON, UBJSON). XGBoost's old binary "
            "format and pickled models are not read: save the model again with save_model('model.json')."
        )
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError) as cause:
        raise FileFormatError(f"the JSON is damaged or cut short ({cause}).") from cause
    if "learner" in tree:
        return read_xgboost(tree)
    if "tree_info" in tree:
        return read_lightgbm_json(tree)
    raise FileFormatError("the JSON is neither an XGBoost model (no 'learner') nor a LightGBM dump (no 'tree_info').")
