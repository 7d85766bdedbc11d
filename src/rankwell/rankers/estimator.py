"""scikit-learn's conventions for an estimator, without importing scikit-learn.

The interface that scikit-learn requires: parameters that can be read, set and cloned, tags, and the
metadata (here `qid`) that its methods take. Importing scikit-learn takes most of a second, which would delay the
command line; code that uses its `clone`, pipelines or searches has already imported it.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Self

from rankwell.errors import NotFittedError, ParameterError, UnknownParameterError
from rankwell.rankers.foreign_parameters import unknown_argument, unknown_parameter

# The methods that scikit-learn may pass metadata to, and the metadata they request by default.
_METHODS = ("fit", "predict", "score")
_NOT_METADATA = ("self", "X", "y")


class Estimator:
    """An object with parameters, which are the arguments of its constructor.

    A subclass's constructor stores each argument under its own name and does nothing else.

    Attributes
    ----------
    requested_metadata : tuple of str
        The metadata that `fit`, `predict` and `score` request by default from scikit-learn's metadata routing.
    """

    requested_metadata: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Let the constructor, `fit` and `predict` explain names that they do not know."""
        super().__init_subclass__(**options)
        for name in ("__init__", "fit", "predict"):
            if name in cls.__dict__:
                setattr(cls, name, _explaining(cls.__dict__[name]))

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The parameters' names, in alphabetical order. The method's name is scikit-learn's."""
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name. `deep` has no effect, since no parameter has parameters of its own."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name."""
        known = self._get_param_names()
        for name in parameters:
            if name not in known:
                raise UnknownParameterError(unknown_parameter(type(self).__name__, name, known))
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def untrained(self) -> Self:
        """A new, unfitted estimator with the same parameters."""
        return type(self)(**copy.deepcopy(self.get_params()))

    def __repr__(self) -> str:
        """The constructor's call, with the parameters that differ from their defaults."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._changed_params())})"

    def _changed_params(self) -> list[tuple[str, Any]]:
        """The parameters that differ from their defaults, with their values."""
        defaults = inspect.signature(type(self).__init__).parameters
        return [
            (name, value) for name, value in self.get_params().items() if not _is_equal(value, defaults[name].default)
        ]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags
        from sklearn.utils._tags import InputTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(sparse=self._takes_sparse(), allow_nan=True),
        )

    def _takes_sparse(self) -> bool:
        """Whether `fit` takes sparse features, under these parameters."""
        return True

    def get_metadata_routing(self) -> Any:
        """The metadata that scikit-learn's metadata routing may pass to each method."""
        from sklearn.utils.metadata_routing import MetadataRequest

        if hasattr(self, "_metadata_request"):
            return copy.deepcopy(self._metadata_request)
        request = MetadataRequest(owner=self)
        for method in _METHODS:
            for name in inspect.signature(getattr(self, method)).parameters:
                if name not in _NOT_METADATA:
                    getattr(request, method).add_request(param=name, alias=name in self.requested_metadata or None)
        return request

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Set whether `fit` requests an argument by scikit-learn's metadata routing: True, False, None or an alias."""
        return self._set_request("fit", requests)

    def set_predict_request(self, **requests: bool | str | None) -> Self:
        """Like `set_fit_request`, for `predict`."""
        return self._set_request("predict", requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Like `set_fit_request`, for `score`."""
        return self._set_request("score", requests)

    def _set_request(self, method: str, requests: dict[str, bool | str | None]) -> Self:
        import sklearn

        if not sklearn.get_config()["enable_metadata_routing"]:
            raise ParameterError(
                f"set_{method}_request needs scikit-learn's metadata routing, which is disabled. Enable it: "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        routing = self.get_metadata_routing()
        for name, alias in requests.items():
            getattr(routing, method).add_request(param=name, alias=alias)
        # scikit-learn's `clone` copies the attribute of this name.
        self._metadata_request = routing
        return self


def _explaining(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, with an error that says what an unknown argument is called here."""
    arguments = inspect.signature(method).parameters
    if any(argument.kind == argument.VAR_KEYWORD for argument in arguments.values()):
        return method
    known = [name for name in arguments if name != "self"]

    @functools.wraps(method)
    def call(self: Any, *positional: Any, **named: Any) -> Any:
        for name in named:
            if name not in known:
                raise UnknownParameterError(_unknown(type(self), method.__name__, name, known))
        return method(self, *positional, **named)

    return call


def _unknown(owner: type[Estimator], method: str, name: str, known: list[str]) -> str:
    if method == "__init__":
        return unknown_parameter(owner.__name__, name, known)
    return unknown_argument(owner.__name__, method, name, known, owner._get_param_names())


@functools.cache
def _not_fitted_class() -> type[NotFittedError]:
    """A class that is Rankwell's error and scikit-learn's, made when it is needed: that imports scikit-learn."""
    from sklearn.exceptions import NotFittedError as NotFittedInScikitLearn

    return type("NotFittedError", (NotFittedError, NotFittedInScikitLearn), {"__doc__": NotFittedError.__doc__})


def not_fitted_error(message: str) -> NotFittedError:
    """The error of an estimator that is used before `fit`; `except` clauses for scikit-learn's catch it too."""
    return _not_fitted_class()(message)


def _is_equal(value: Any, default: Any) -> bool:
    """Whether a parameter has its default value; False for values that cannot be compared (arrays)."""
    return type(value) is type(default) and repr(value) == repr(default)
