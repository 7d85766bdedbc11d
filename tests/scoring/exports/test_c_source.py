"""C files are compiled by the machine's compiler and run: the same bits, or the last places where functions of the C
library take part.
"""

import ctypes
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from tests.scoring.exports.exported_rankers import BY_DOCUMENT, RANKERS, expected_scores, rows, rows_for

import rankwell
from rankwell import ParameterError

COMPILER = shutil.which("cc") or shutil.which("gcc")
# Rankers that call functions of the C library.
WITH_FUNCTIONS = {
    "probability of trees",
    "exponential of trees",
    "network",
    "standardised network",
    "transformed",
    "expressions",
    "every kind",
    "query-minmax",
}

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


@pytest.fixture
def compiled(tmp_path):
    """The library made of a ranker's C file; every warning is an error."""

    def compile_ranker(description, name="rankwell"):
        rankwell.export(description, tmp_path / "model.c", to="c", name=name)
        options = ["-O2", "-std=c99", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-pedantic"]
        library = tmp_path / "model.so"
        command = [COMPILER, *options, "-shared", "-fPIC", str(tmp_path / "model.c"), "-o", str(library), "-lm"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        return ctypes.CDLL(str(library))

    return compile_ranker


def score_query(library, features, name="rankwell"):
    scores = np.empty(len(features))
    function = getattr(library, f"{name}_score_query")
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    function.restype = None
    function(np.ascontiguousarray(features).ctypes.data, len(features), scores.ctypes.data)
    return scores


@pytest.mark.parametrize("name", RANKERS)
def test_scores_are_the_same(compiled, name):
    features = rows_for(name)
    scores, expected = score_query(compiled(RANKERS[name]), features), expected_scores(RANKERS[name], features)
    if name in WITH_FUNCTIONS:
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-14)
    else:
        np.testing.assert_array_equal(scores, expected)


def test_one_document_at_a_time(compiled):
    description, features = RANKERS["trees"], rows(20)
    score = compiled(description, "mine").mine_score
    score.argtypes, score.restype = [ctypes.c_void_p], ctypes.c_double
    found = [score(np.ascontiguousarray(row).ctypes.data) for row in features]
    assert found == expected_scores(description, features).tolist()


def test_a_ranker_by_query_has_no_function_of_one_document():
    assert b"rankwell_score(" not in rankwell.export(RANKERS["letor"], to="c")
    assert all(b"rankwell_score(" in rankwell.export(RANKERS[name], to="c") for name in BY_DOCUMENT)


def test_names_cannot_end_the_comment(compiled):
    names = ("a */ int injected; /*", "b\nint other;", *(f"f{i}" for i in range(5)))
    text = rankwell.export(replace(RANKERS["trees"], feature_names=names), to="c").decode()
    assert "*/ int injected" not in text
    assert "\nint other" not in text
    compiled(replace(RANKERS["trees"], feature_names=names))


@pytest.mark.parametrize("name", ["two words", "9", "", "x;"])
def test_a_name_must_be_a_word(name):
    with pytest.raises(ParameterError, match="name must be a word"):
        rankwell.export(RANKERS["trees"], to="c", name=name)
