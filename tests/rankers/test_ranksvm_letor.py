"""RankSVM on LETOR's real collections: the objective that the authors of the TRON solver report, and accuracies."""

from __future__ import annotations

import numpy as np
import pytest

import rankwell
from rankwell.data.dataset import RankingDataset
from rankwell.rankers.ranksvm import RankSVM

# From the authors of the TRON RankSVM solver: MQ2008, training data of fold 1, C = 2⁸.
OPTIMUM = 7565689.546


def parts(folder, name, numbers):
    """The parts S1 ... S5 of a collection, one after the other."""
    read = [rankwell.read(folder / "letor" / name / f"S{number}.txt.gz") for number in numbers]
    return RankingDataset(
        np.concatenate([part.features for part in read]),
        np.concatenate([part.labels for part in read]),
        group=np.concatenate([part.query_sizes for part in read]),
    )


@pytest.fixture(scope="module")
def mq2008(shared_data):
    return parts(shared_data, "MQ2008", (1, 2, 3))


@pytest.mark.parametrize("method", ["direct", "order-statistic"])
def test_the_objective_of_the_authors(mq2008, method):
    ranker = RankSVM(C=2.0**8, normalize="none", device="cpu", method=method).fit(mq2008)
    assert ranker.converged_
    assert ranker.history_["objective"][-1] == pytest.approx(OPTIMUM, rel=1e-6)


def test_a_tighter_tolerance_comes_closer(mq2008):
    objective = RankSVM(C=2.0**8, normalize="none", tol=1e-8, device="cpu").fit(mq2008).history_["objective"]
    assert objective[-1] == pytest.approx(OPTIMUM, rel=2e-8)
    assert objective == sorted(objective, reverse=True)


@pytest.mark.parametrize(("name", "accuracy"), [("MQ2007", 0.7059), ("MQ2008", 0.8024)])
def test_pairwise_accuracy_of_table_3(shared_data, name, accuracy):
    """The paper does not say on which data; its figures (C = 1) are those of fold 1's training data, to the digit."""
    train = parts(shared_data, name, (1, 2, 3))
    ranker = RankSVM(C=1.0, normalize="none", device="cpu").fit(train)
    found = rankwell.evaluate(train, ranker.predict(train), metrics="pairwise_accuracy", convention="letor4").mean
    assert found["pairwise_accuracy"] == pytest.approx(accuracy, abs=5e-5)
