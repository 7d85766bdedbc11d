"""The subjects that kernels can be compiled for, by name, each with example calls of the public API.

Together the calls need every kernel that a public call can reach: `rankwell warm` runs them so that later commands do
not wait, and a wheel is built from the kernels they use. A kernel that no call here reaches makes an installed wheel
compile; `tests/warming` searches for such kernels.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rankwell.parameters import check_choice
from rankwell.warming import cluster_calls, learning_calls, search_calls

SUBJECTS: Mapping[str, Callable[[Path], None]] = {
    "reading": learning_calls.read_text,
    "metrics": learning_calls.measure,
    "least-squares": learning_calls.train_least_squares,
    "rankboost": learning_calls.train_rankboost,
    "lambdamart": learning_calls.train_lambdamart,
    "ranksvm": learning_calls.train_ranksvm,
    "networks": learning_calls.train_networks,
    "models": learning_calls.score_models,
    "cluster": cluster_calls.train_together,
    "index": search_calls.build_index,
    "search": search_calls.search,
    "features": search_calls.extract_features,
}


def warm(subjects: Iterable[str] = (), begin: Callable[[str], None] | None = None) -> None:
    """Compile the kernels of the named subjects, or of all; those that are already compiled are only loaded.

    begin : called with the name of each subject before it is compiled
    """
    chosen = tuple(subjects) or tuple(SUBJECTS)
    for name in chosen:
        check_choice("subject", name, SUBJECTS)
    for name in chosen:
        if begin is not None:
            begin(name)
        with tempfile.TemporaryDirectory() as folder:
            SUBJECTS[name](Path(folder))
