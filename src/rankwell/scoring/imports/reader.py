"""Reads models of other libraries; the format is recognised by the beginning of the file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rankwell.errors import FileFormatError
from rankwell.scoring.description import RankerDescription, check_description
from rankwell.scoring.imports.catboost_model import is_catboost, read_catboost
from rankwell.scoring.imports.complaint import complaint
from rankwell.scoring.imports.liblinear_model import is_liblinear, read_liblinear
from rankwell.scoring.imports.lightgbm_json import read_lightgbm_json
from rankwell.scoring.imports.lightgbm_text import read_lightgbm_text
from rankwell.scoring.imports.onnx_trees import is_onnx, read_onnx
from rankwell.scoring.imports.ranklib_model import is_ranklib, read_ranklib
from rankwell.scoring.imports.svm_rank_model import is_svm_rank, read_svm_rank
from rankwell.scoring.imports.ubjson import read_ubjson
from rankwell.scoring.imports.xgboost_model import read_xgboost

_LIGHTGBM_BEGINNINGS = (b"tree\n", b"tree\r\n")
# UBJSON objects begin with { and the marker of a length; JSON objects with { and a quote or white space.
_UBJSON_BEGINNINGS = (b"{L", b"{l", b"{I", b"{i", b"{U", b"{#", b"{$")
# The beginning of CatBoost's .cbm files.
_CATBOOST_BINARY = b"CBM1"
# Entries of the three libraries' JSON.
_JSON_ENTRIES = (b"tree_info", b"learner", b'"tree"', b"features_info", b"oblivious_trees")


@dataclass(frozen=True)
class ImportChoices:
    """What a user says of a model, where its file leaves it open.

    n_features : how many features there are: more than a file reads that does not say it
    all_rounds : of a model of XGBoost that early stopping ended, the rounds after the best one as well
    """

    n_features: int | None = None
    all_rounds: bool = False


@dataclass(frozen=True)
class ModelFormat:
    """A format of another library.

    title : what a file of it is; begins : whether a file that begins so may be one; parse : its bytes, and what the
    user says of it, to a description; counts_features : whether a file says how many features there are
    """

    title: str
    begins: Callable[[bytes], bool]
    parse: Callable[[bytes, ImportChoices], RankerDescription]
    counts_features: bool = True


def import_model(
    path: str | os.PathLike[str], *, n_features: int | None = None, all_rounds: bool = False
) -> RankerDescription:
    """The model of another library that is stored at `path`: of LightGBM (text, or the JSON of `dump_model`), XGBoost
    (JSON, UBJSON), CatBoost (JSON), ONNX (trees), RankLib, svm_rank or LIBLINEAR.

    Scores are those of the library's own `predict`: up to float64 rounding, and for XGBoost, ONNX and RankLib's trees
    up to rounding in their float32 sums.

    n_features : how many features there are, where the file does not say it: more than it reads
    all_rounds : as XGBoost's `Booster.predict` scores a model that early stopping ended; its estimators' `predict`
        leaves out the rounds after the best one, and so does this, unless it is said
    """
    content = Path(path).read_bytes()
    try:
        description = parse_model(content, n_features=n_features, all_rounds=all_rounds)
        check_description(description)
    except FileFormatError as cause:
        raise FileFormatError(f"{path}: {cause}") from cause
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as cause:
        # The readers say what they look for and do not find; no list of what else can be wrong is ever complete.
        raise FileFormatError(f"{path}: the model is damaged ({complaint(cause)}).") from cause
    return description


def model_format(path: str | os.PathLike[str]) -> ModelFormat | None:
    """The format that the file at `path` begins like; None if it is none that is read."""
    with open(path, "rb") as stream:
        return _format_of(stream.read(4096))


def parse_model(content: bytes, *, n_features: int | None = None, all_rounds: bool = False) -> RankerDescription:
    """The model in `content`, the bytes of a file."""
    choices = ImportChoices(n_features, all_rounds)
    found = _format_of(content[:4096])
    if found is not None:
        return found.parse(content, choices)
    if content.lstrip().startswith(b"{"):
        return _parse_json(content, choices)
    if content.startswith(_CATBOOST_BINARY):
        raise FileFormatError(
            "this is CatBoost's binary format, which is not read: save the model again with "
            "save_model('model.json', format='json')."
        )
    raise FileFormatError(
        "this is neither a LightGBM model (text, JSON) nor one of XGBoost (JSON, UBJSON), CatBoost (JSON), ONNX "
        "(trees), RankLib, svm_rank or LIBLINEAR. XGBoost's old binary format and pickles are not read: save the "
        "model again with save_model('model.json')."
    )


def _format_of(head: bytes) -> ModelFormat | None:
    return next((known for known in _FORMATS if known.begins(head)), None)


def _parse_json(content: bytes, choices: ImportChoices) -> RankerDescription:
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError) as cause:
        if isinstance(cause, json.JSONDecodeError) and cause.msg == "Extra data":
            raise FileFormatError("this is not a model, which is one JSON object: it goes on after its end.") from cause
        raise FileFormatError(f"the JSON is damaged or cut short ({cause}).") from cause
    if "learner" in tree:
        return read_xgboost(tree, all_rounds=choices.all_rounds)
    if "tree_info" in tree:
        return read_lightgbm_json(tree)
    if is_catboost(tree):
        return read_catboost(tree)
    raise FileFormatError(
        "the JSON is neither an XGBoost model (no 'learner') nor a LightGBM dump (no 'tree_info') nor a CatBoost model "
        "(no 'oblivious_trees')."
    )


def _text(content: bytes) -> str:
    return content.decode("utf-8", errors="replace")


_FORMATS = (
    ModelFormat(
        "a model of LightGBM",
        lambda head: head.lstrip().startswith(_LIGHTGBM_BEGINNINGS),
        lambda content, choices: read_lightgbm_text(_text(content)),
    ),
    ModelFormat(
        "a model of XGBoost",
        lambda head: head.startswith(_UBJSON_BEGINNINGS),
        lambda content, choices: read_xgboost(read_ubjson(content), all_rounds=choices.all_rounds),
    ),
    ModelFormat(
        "a model of LightGBM, XGBoost or CatBoost",
        lambda head: head.lstrip().startswith(b"{") and any(entry in head for entry in _JSON_ENTRIES),
        _parse_json,
    ),
    ModelFormat(
        "a model of RankLib",
        is_ranklib,
        lambda content, choices: read_ranklib(_text(content), choices.n_features),
        counts_features=False,
    ),
    ModelFormat(
        "a model of svm_rank",
        is_svm_rank,
        lambda content, choices: read_svm_rank(_text(content), choices.n_features),
        counts_features=False,
    ),
    ModelFormat("a model of LIBLINEAR", is_liblinear, lambda content, choices: read_liblinear(_text(content))),
    ModelFormat("an ONNX model", is_onnx, lambda content, choices: read_onnx(content)),
)
