"""Reads models of other libraries; the format is recognised by the beginning of the file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rankwell.errors import FileFormatError, Parameter
from rankwell.scoring.description import RankerDescription, check_description
from rankwell.scoring.imports.catboost_model import is_catboost, read_catboost
from rankwell.scoring.imports.complaint import complaint
from rankwell.scoring.imports.import_choices import ImportChoices
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

_NO_CHOICES = ImportChoices()


@dataclass(frozen=True)
class ModelFormat:
    """A format of another library.

    title : what a file of it is; begins : whether a file that begins so may be one; parse : its bytes, and what the
    user says of it, to a description; counts_features : whether a file says how many features there are;
    has_column_0 : whether its columns are counted from 0, and the first may be the empty one before feature 1 of text
    """

    title: str
    begins: Callable[[bytes], bool]
    parse: Callable[[bytes, ImportChoices], RankerDescription]
    counts_features: bool = True
    has_column_0: bool = False


def import_model(path: str | os.PathLike[str], choices: ImportChoices = _NO_CHOICES) -> RankerDescription:
    """The model of another library that is stored at `path`: of LightGBM (text, or the JSON of `dump_model`), XGBoost
    (JSON, UBJSON), CatBoost (JSON), ONNX (trees), RankLib, svm_rank or LIBLINEAR.

    Scores are those of the library's own `predict`: up to float64 rounding, and for XGBoost, ONNX and RankLib's trees
    up to rounding in their float32 sums.

    A model of XGBoost that early stopping ended scores as its estimators' `predict` does, which leaves out the rounds
    after the best one; with `all_rounds`, as `Booster.predict`.
    """
    content = Path(path).read_bytes()
    try:
        description = parse_model(content, choices)
        check_description(description)
    except FileFormatError as cause:
        raise FileFormatError(f"{path}: ", *cause.pieces) from cause
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as cause:
        # The readers say what they look for and do not find; no list of what else can be wrong is ever complete.
        raise FileFormatError(f"{path}: the model is damaged ({complaint(cause)}).") from cause
    return description


def model_format(path: str | os.PathLike[str]) -> ModelFormat | None:
    """The format that the file at `path` begins like; None if it is none that is read."""
    with open(path, "rb") as stream:
        return _format_of(stream.read(4096))


def parse_model(content: bytes, choices: ImportChoices = _NO_CHOICES) -> RankerDescription:
    """The model in `content`, the bytes of a file."""
    found = _format_of(content[:4096])
    if found is not None:
        if choices.first_index is not None and not found.has_column_0:
            raise _not_counted_from_0(found.title)
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


def _not_counted_from_0(title: str) -> FileFormatError:
    return FileFormatError(
        f"this is {title}; only for models of LightGBM and XGBoost can it be said which column is the first feature: "
        "leave out ",
        Parameter("first_index"),
        ".",
    )


def _parse_json(content: bytes, choices: ImportChoices) -> RankerDescription:
    try:
        tree = json.loads(content)
    except (ValueError, RecursionError) as cause:
        if isinstance(cause, json.JSONDecodeError) and cause.msg == "Extra data":
            raise FileFormatError("this is not a model, which is one JSON object: it goes on after its end.") from cause
        raise FileFormatError(f"the JSON is damaged or cut short ({cause}).") from cause
    if "learner" in tree:
        return read_xgboost(tree, choices)
    if "tree_info" in tree:
        return read_lightgbm_json(tree, choices)
    if is_catboost(tree):
        if choices.first_index is not None:
            raise _not_counted_from_0("a model of CatBoost")
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
        lambda content, choices: read_lightgbm_text(_text(content), choices),
        has_column_0=True,
    ),
    ModelFormat(
        "a model of XGBoost",
        lambda head: head.startswith(_UBJSON_BEGINNINGS),
        lambda content, choices: read_xgboost(read_ubjson(content), choices),
        has_column_0=True,
    ),
    ModelFormat(
        "a model of LightGBM, XGBoost or CatBoost",
        lambda head: head.lstrip().startswith(b"{") and any(entry in head for entry in _JSON_ENTRIES),
        _parse_json,
        has_column_0=True,
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
