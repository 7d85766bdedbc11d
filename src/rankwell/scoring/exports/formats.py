"""The formats that rankers are exported to, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rankwell.errors import ParameterError
from rankwell.scoring.description import RankerDescription
from rankwell.scoring.imports.import_choices import check_first_index


@dataclass(frozen=True)
class ExportNames:
    """Names in an exported file.

    model : the model's own name; features : a Vespa expression for each feature whose usual one is not wanted;
    first_index : the column of a LightGBM model that is the first feature, 0 or 1
    """

    model: str = "rankwell"
    features: Mapping[str, str] = field(default_factory=dict)
    first_index: int | None = None


Write = Callable[[RankerDescription, ExportNames], bytes]


def _onnx(description: RankerDescription, names: ExportNames) -> bytes:
    from rankwell.scoring.exports.onnx_model import write_onnx

    return write_onnx(description, names.model)


def _ranklib(description: RankerDescription, names: ExportNames) -> bytes:
    from rankwell.scoring.exports.ranklib_text import write_ranklib

    return write_ranklib(description)


def _opensearch(description: RankerDescription, names: ExportNames) -> bytes:
    from rankwell.scoring.exports.opensearch_json import write_opensearch

    return write_opensearch(description, names.model)


def _opensearch_ranklib(description: RankerDescription, names: ExportNames) -> bytes:
    from rankwell.scoring.exports.opensearch_json import write_opensearch

    return write_opensearch(description, names.model, as_ranklib=True)


def _opensearch_features(description: RankerDescription, names: ExportNames) -> bytes:
    from rankwell.scoring.exports.opensearch_json import write_feature_set

    return write_feature_set(description, names.model)


def _vespa(description: RankerDescription, names: ExportNames) -> bytes:
    from rankwell.scoring.exports.vespa_profile import write_vespa

    return write_vespa(description, names.model, names.features)


def _lightgbm(description: RankerDescription, names: ExportNames) -> bytes:
    from rankwell.scoring.exports.lightgbm_text import write_lightgbm

    return write_lightgbm(description, names.first_index or 0)


def _c(description: RankerDescription, names: ExportNames) -> bytes:
    from rankwell.scoring.exports.c_source import write_c

    return write_c(description, names.model)


FORMATS: Mapping[str, Write] = {
    "onnx": _onnx,
    "ranklib": _ranklib,
    "opensearch": _opensearch,
    "opensearch-ranklib": _opensearch_ranklib,
    "opensearch-features": _opensearch_features,
    "vespa": _vespa,
    "lightgbm": _lightgbm,
    "c": _c,
}
# What a user of a format should know.
_NOTES: Mapping[str, str] = {
    "ranklib": "RankLib has no missing values: a feature that a document lacks counts as 0 there",
    "opensearch": "the names of the feature set's features must be the ranker's; --to opensearch-features writes one",
    "opensearch-ranklib": "RankLib counts features in the feature set's order; --to opensearch-features writes one",
    "opensearch-features": "values agree as far as OpenSearch cuts words as the index of the training data does",
    "vespa": "each feature is a function in the profile: check that its expression is what the ranker was trained on",
    "lightgbm": "LightGBM counts a value within 1e-35 of zero as zero; when it reads text that numbers features from 1 "
    "itself, the model must be written with --first-index 1",
}
# Formats that say two passes in one file.
_TWO_PASSES = frozenset({"vespa"})
PASSES = ("first", "second")


def export_description(
    description: RankerDescription, to: str, names: ExportNames, *, ranking_pass: str | None = None
) -> bytes:
    """The content of a file in the format `to`.

    ranking_pass : "first" or "second" for one pass of a ranker that ranks in two
    """
    if to not in FORMATS:
        raise ParameterError(f"must be one of {', '.join(FORMATS)}, got {to!r}.", parameter="to")
    if names.features and to != "vespa":
        raise ParameterError("is for vespa alone: other formats have the ranker's names.", parameter="features")
    if names.first_index is not None and to != "lightgbm":
        raise ParameterError(
            "is for lightgbm alone: other formats do not count columns of text.", parameter="first_index"
        )
    check_first_index(names.first_index)
    description = _one_pass(description, to, ranking_pass)
    if not description.n_inputs:
        raise ParameterError("the ranker has no inputs: there is nothing to export.")
    return FORMATS[to](description, names)


def export_notes(description: RankerDescription, to: str, *, ranking_pass: str | None = None) -> list[str]:
    """What a user of the ranker in the format `to` should know."""
    notes = [_NOTES[to]] if to in _NOTES else []
    if _one_pass(description, to, ranking_pass).needs_queries:
        notes.append(
            "this ranker compares a document with the others of its query: the rows of one call must be all documents "
            "of one query, and no others"
        )
    return notes


def _one_pass(description: RankerDescription, to: str, ranking_pass: str | None) -> RankerDescription:
    first_pass = description.first_pass
    if ranking_pass is not None and ranking_pass not in PASSES:
        raise ParameterError(f"must be first or second, got {ranking_pass!r}.", parameter="ranking_pass")
    if first_pass is None:
        if ranking_pass is not None:
            raise ParameterError("is for rankers in two passes; this one has one.", parameter="ranking_pass")
        return description
    if ranking_pass == "first":
        return description.parts[first_pass.part].description
    if ranking_pass == "second":
        return description.second_pass
    if to not in _TWO_PASSES:
        raise ParameterError(
            f"is needed: this ranker ranks in two passes, and {to} scores in one. Export each, first and second, to a "
            "file of its own.",
            parameter="ranking_pass",
        )
    return description
