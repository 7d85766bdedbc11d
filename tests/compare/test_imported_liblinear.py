"""Models of LIBLINEAR, whose solvers scikit-learn runs: its decision values are the scores here."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC, LinearSVR

import rankwell


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4)).astype(np.float32)
    return X, X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=200) / 10


def model_text(solver, coef, intercept, labels=None):
    """As LIBLINEAR's save_model writes it, with `bias 1`."""
    lines = [f"solver_type {solver}", "nr_class 2"]
    lines += [] if labels is None else [f"label {labels[0]} {labels[1]}"]
    lines += [f"nr_feature {len(coef)}", "bias 1", "w", *(f"{weight:.17g} " for weight in (*coef, intercept))]
    return "\n".join(lines) + "\n"


def imported(tmp_path, text):
    (tmp_path / "model").write_text(text)
    return rankwell.ImportedRanker.from_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("solver", "model"),
    [
        ("L2R_L2LOSS_SVC_DUAL", LinearSVC(random_state=0)),
        ("L2R_LR", LogisticRegression(solver="liblinear", random_state=0)),
    ],
)
def test_classes(data, tmp_path, solver, model):
    X, y = data
    model.fit(X, y > 0)
    expected = model.decision_function(X)
    coef, intercept = model.coef_[0], float(model.intercept_[0])
    # LIBLINEAR's weights are of the label that it met first.
    first = imported(tmp_path, model_text(solver, coef, intercept, labels=(1, 0))).predict(X)
    np.testing.assert_allclose(first, expected, rtol=1e-12, atol=1e-12)
    second = imported(tmp_path, model_text(solver, -coef, -intercept, labels=(0, 1))).predict(X)
    np.testing.assert_allclose(second, expected, rtol=1e-12, atol=1e-12)


def test_regression(data, tmp_path):
    X, y = data
    model = LinearSVR(random_state=0, max_iter=100_000).fit(X, y)
    text = model_text("L2R_L1LOSS_SVR_DUAL", model.coef_, float(model.intercept_[0]))
    np.testing.assert_allclose(imported(tmp_path, text).predict(X), model.predict(X), rtol=1e-12, atol=1e-12)
