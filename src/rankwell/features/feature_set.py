"""A feature set: features by name, in the order of the columns of a row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rankwell.errors import DataError, ParameterError
from rankwell.features.catalogue import (
    BM25F,
    COMBINED,
    GIVEN,
    KINDS,
    PARAMETERS,
    RELEVANCE_MODEL,
    STATIC,
    VERSION,
    in_mslr_order,
)
from rankwell.features.hits import WHOLE, check_streams
from rankwell.features.names import Feature, check_parameter, escaped, feature_name, parse_feature
from rankwell.kernels.extraction.rules import DELTA, K1, LAMBDA, MU, N_KINDS, B, FeatureColumns, Kind
from rankwell.kernels.scoring.kinds import ProgramArrays
from rankwell.kernels.scoring.rules import Operation
from rankwell.scoring.expression import names_in, parse_expression
from rankwell.scoring.inputs import ExpressionInputs
from rankwell.scoring.plan import pack_programs

SETS = ("mslr", "full")
_COLUMN_OF_PARAMETER = {"k1": K1, "b": B, "mu": MU, "lambda": LAMBDA, "delta": DELTA}
_NAMED_IN_ERRORS = 8


@dataclass(frozen=True, eq=False)
class ExpressionLevel:
    """Expressions that can be evaluated together.

    columns : int64 (n,), where the results go; programs : what computes them, NaN where there is no finite value
    """

    columns: np.ndarray
    programs: ProgramArrays


class FeatureSet:
    """The features that a model reads of a candidate, in order.

    Parameters
    ----------
    names : feature names (`rankwell.features.names`), different ones

    Attributes
    ----------
    names : the canonical names; features : what they mean
    feedback : those of them that read the first pass's documents, and are passed with the hits (`with_feedback`)
    own : those of them whose values are given, and are passed with the hits too (`own_features.with_own`)
    fingerprint : 16 hexadecimal digits that change with any name, their order, or the catalogue's formulas

    Examples
    --------
    >>> import rankwell
    >>> features = rankwell.FeatureSet(["bm25.title", "static.clicks"])
    >>> len(features), features.lacking(streams=["title", "body"], statics=[])
    (2, ['static.clicks'])
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.features = tuple(parse_feature(name) for name in names)
        self.names = tuple(feature.name for feature in self.features)
        _refuse_twins(self.features)
        self.feedback = tuple(feature for feature in self.features if feature.kind == RELEVANCE_MODEL.name)
        self.own = tuple(feature for feature in self.features if feature.kind in GIVEN)
        self.expressions = _expression_levels(self.features)
        self._settings = _common_settings(self.features)
        content = "\0".join((f"rankwell features {VERSION}", *self.names))
        self.fingerprint = hashlib.blake2b(content.encode(), digest_size=8).hexdigest()
        self._columns: dict[tuple[tuple[str, ...], tuple[str, ...]], FeatureColumns] = {}

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureSet) and other.names == self.names

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"FeatureSet({len(self)} features, {self.fingerprint})"

    @property
    def reads_places(self) -> bool:
        """Whether a feature reads where in a stream the hits are, and not only how many there are."""
        return any(feature.kind in KINDS and not KINDS[feature.kind].of_whole for feature in self.features)

    def containing(self, names: Iterable[str]) -> FeatureSet:
        """The smallest part of this set that has these features, and those that their expressions read, in order."""
        labels = [feature.label for feature in self.features]
        wanted = {labels[self.names.index(name)] for name in names}
        for feature in reversed(self.features):
            if feature.label in wanted and feature.expression is not None:
                wanted.update(names_in(feature.expression))
        return FeatureSet(feature.name for feature in self.features if feature.label in wanted)

    def lacking(self, streams: Sequence[str], statics: Sequence[str]) -> list[str]:
        """The features that an index with these streams and statics cannot provide."""
        known = {*streams, WHOLE}
        of_streams = {*KINDS, *COMBINED, RELEVANCE_MODEL.name}
        return [
            feature.name
            for feature in self.features
            if (feature.kind == STATIC and feature.stream not in statics)
            or (feature.kind in of_streams and feature.stream not in known)
            or (feature.kind == BM25F.name and not {s for _, s in _of_streams(feature.settings)} <= known)
        ]

    def without_feedback(self) -> FeatureSet:
        """The features that hits alone are enough for; no expression may read the others."""
        feedback = {feature.name for feature in self.feedback}
        return FeatureSet(name for name in self.names if name not in feedback)

    def check(self, streams: Sequence[str], statics: Sequence[str]) -> None:
        """Raise a DataError that names the features that need an absent stream or static."""
        check_streams(streams)
        _refuse_lacking(self.lacking(streams, statics), streams, statics)

    def columns(self, streams: tuple[str, ...], statics: tuple[str, ...]) -> FeatureColumns:
        """Where each feature goes, for kernels that know streams and statics by these numbers.

        statics : names as the hits have them; feedback features are among them, by their own names

        Raises
        ------
        DataError
            Names the features that need an absent stream or static.
        """
        known = self._columns.get((streams, statics))
        if known is None:
            self.check(streams, statics)
            _refuse_without_feedback([feature.name for feature in self.feedback if feature.name not in statics])
            _refuse_without_own([feature.name for feature in self.own if feature.name not in statics])
            known = self._columns[streams, statics] = self._make_columns(streams, statics)
        return known

    def _make_columns(self, streams: tuple[str, ...], statics: tuple[str, ...]) -> FeatureColumns:
        number = {stream: s for s, stream in enumerate((*streams, WHOLE))}
        columns = FeatureColumns(
            column_of=np.full((len(number), N_KINDS), -1, np.int32),
            parameters=np.tile([PARAMETERS[name] for name in _COLUMN_OF_PARAMETER], (len(number), 1)),
            static_column=np.full(len(statics), -1, np.int32),
            bm25f_column=np.full(1, -1, np.int32),
            bm25f=np.ones(1 + 2 * len(streams)),
        )
        for column, feature in enumerate(self.features):
            if feature.kind in KINDS:
                columns.column_of[number[feature.stream], Kind[feature.kind.upper()]] = column
            elif feature.kind == STATIC:
                columns.static_column[statics.index(feature.stream)] = column
            elif feature.kind in (RELEVANCE_MODEL.name, *GIVEN):
                columns.static_column[statics.index(feature.name)] = column
            elif feature.kind == BM25F.name:
                columns.bm25f_column[0] = column
                columns.bm25f[:] = _bm25f_parameters(feature.settings, streams)
        for (stream, parameter), (value, _) in self._settings.items():
            columns.parameters[number[stream], _COLUMN_OF_PARAMETER[parameter]] = value
        return columns


def make_feature_set(
    name: str, streams: Sequence[str], statics: Sequence[str] = (), parameters: Mapping[str, float] | None = None
) -> FeatureSet:
    """One of the sets by name, for an index with these streams and statics.

    Parameters
    ----------
    name : {"mslr", "full"}
        "mslr" is the 25 kinds of MSLR for each stream and the whole document, kind by kind, the streams in MSLR's
        order: 125 features for body, anchor, title and url. "full" is those, then the features that read places, the
        statics, those made of others, and the relevance model of the whole document, which reads the first documents
        of the first pass (`feedback.with_feedback`).
    parameters : mapping, optional
        k1, b, mu, lambda, delta and weight, for all streams or for one (``"b.title"``).
    """
    if name not in SETS:
        raise ParameterError(f"a feature set is one of {', '.join(SETS)}, got {name!r}.")
    check_streams(streams)
    chosen = _check_parameters(parameters or {}, streams)
    ordered = in_mslr_order(tuple(streams))
    names = [_stream_name(kind, stream, chosen) for kind in KINDS if KINDS[kind].of_whole for stream in ordered]
    if name == "full":
        places = [kind for kind in KINDS if not KINDS[kind].of_whole]
        names += [_stream_name(kind, stream, chosen) for kind in places for stream in ordered[:-1]]
        names += [f"{STATIC}.{escaped(static)}" for static in statics]
        own = {key: value for key, value in chosen.items() if key.split(".")[0] in BM25F.parameters}
        names.append(feature_name(BM25F.name, "", own))
        names += [f"{kind}.{escaped(stream)}" for kind in COMBINED for stream in ordered[:-1]]
        names.append(_relevance_model_name(chosen))
    return FeatureSet(names)


def _stream_name(kind: str, stream: str, chosen: Mapping[str, float]) -> str:
    """The feature's name with the parameters that were chosen for this stream, or for all."""
    settings = {
        name: chosen.get(f"{name}.{stream}", chosen.get(name, PARAMETERS[name])) for name in KINDS[kind].parameters
    }
    return feature_name(kind, stream, settings)


def _relevance_model_name(chosen: Mapping[str, float]) -> str:
    """The relevance model of the whole document, with the parameters of BM25 that were chosen for it."""
    settings = {name: chosen.get(f"{name}.{WHOLE}", chosen.get(name, PARAMETERS[name])) for name in ("k1", "b")}
    return feature_name(RELEVANCE_MODEL.name, WHOLE, settings)


def _check_parameters(parameters: Mapping[str, float], streams: Sequence[str]) -> Mapping[str, float]:
    for key, value in parameters.items():
        name, _, stream = key.partition(".")
        if name not in PARAMETERS or (stream and stream not in (*streams, WHOLE)):
            raise ParameterError(
                f"there is no parameter {key!r}: parameters are {', '.join(PARAMETERS)}, for one stream as in "
                f"b.{streams[0] if streams else 'title'}."
            )
        check_parameter(name, value)
    return parameters


def _refuse_twins(features: Sequence[Feature]) -> None:
    """Refuse two features of one label, or of one kind and stream, for which the kernels have one place."""
    seen: dict[tuple[str, str], str] = {}
    for feature in features:
        keys = [("label", feature.label), ("place", f"{feature.kind}.{feature.stream}")]
        for key in keys[: 1 if feature.kind == "expression" else 2]:
            if key in seen:
                raise ParameterError(f"a feature set holds each feature once: {seen[key]!r} and {feature.name!r}.")
            seen[key] = feature.name


def _common_settings(features: Sequence[Feature]) -> dict[tuple[str, str], tuple[float, str]]:
    """The parameters of each stream: features of one stream must agree on them."""
    settings: dict[tuple[str, str], tuple[float, str]] = {}
    for feature in features:
        if feature.kind not in KINDS:
            continue
        for parameter, value in feature.settings.items():
            before, name = settings.setdefault((feature.stream, parameter), (value, feature.name))
            if before != value:
                raise ParameterError(
                    f"{name!r} and {feature.name!r} have different {parameter}: a stream has only one in a feature set."
                )
    return settings


def _of_streams(settings: Mapping[str, float]) -> list[tuple[str, str]]:
    """(parameter, stream) of the settings of one stream."""
    parts = [name.partition(".") for name in settings]
    return [(parameter, stream) for parameter, dot, stream in parts if dot]


def _bm25f_parameters(settings: Mapping[str, float], streams: Sequence[str]) -> list[float]:
    b = [settings.get(f"b.{stream}", settings["b"]) for stream in streams]
    weights = [settings.get(f"weight.{stream}", settings["weight"]) for stream in streams]
    return [settings["k1"], *b, *weights]


def _expression_levels(features: Sequence[Feature]) -> tuple[ExpressionLevel, ...]:
    """Expressions by level: a level reads only what the levels before it filled."""
    labels = tuple(feature.label for feature in features)
    level_of = [0] * len(features)
    for column, feature in enumerate(features):
        if feature.expression is None:
            continue
        try:
            program = parse_expression(feature.expression, labels[:column])
        except ParameterError as cause:
            raise ParameterError(f"feature {feature.name!r}: {cause}") from cause
        reads = program.operand[program.operation == Operation.FEATURE]
        level_of[column] = 1 + max((level_of[number] for number in reads), default=0)
    levels = []
    for level in range(1, max(level_of, default=0) + 1):
        columns = np.flatnonzero(np.array(level_of) == level)
        texts = tuple(str(features[column].expression) for column in columns.tolist())
        group = ExpressionInputs(texts, np.full(len(texts), np.nan))
        levels.append(ExpressionLevel(columns, pack_programs(group, labels)))
    return tuple(levels)


def _refuse_without_feedback(lacking: Sequence[str]) -> None:
    if lacking:
        raise DataError(
            f"the hits lack {', '.join(lacking[:_NAMED_IN_ERRORS])}: these features read the first pass's documents. "
            "Pass the hits through rankwell.features.feedback.with_feedback."
        )


def _refuse_without_own(lacking: Sequence[str]) -> None:
    if lacking:
        raise DataError(
            f"the hits lack {', '.join(lacking[:_NAMED_IN_ERRORS])}: the values of these features are given. "
            "Pass the hits through rankwell.features.own_features.with_own."
        )


def _refuse_lacking(lacking: Sequence[str], streams: Sequence[str], statics: Sequence[str]) -> None:
    if lacking:
        more = f" and {len(lacking) - _NAMED_IN_ERRORS} more" if len(lacking) > _NAMED_IN_ERRORS else ""
        needing = "1 feature needs" if len(lacking) == 1 else f"{len(lacking)} features need"
        raise DataError(
            f"the index lacks what {needing}: {', '.join(lacking[:_NAMED_IN_ERRORS])}{more}. It has "
            f"the streams {', '.join(streams) or 'none'} and the statics {', '.join(statics) or 'none'}."
        )
