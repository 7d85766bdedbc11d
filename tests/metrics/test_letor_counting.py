"""`letor4` on real data: against LETOR's counting rules written down again, and against what its own script printed."""

from __future__ import annotations

import gzip
import math

import numpy as np
import pytest

from rankwell import evaluate

DEPTHS = range(1, 11)
METRICS = [*(f"p@{k}" for k in DEPTHS), "map", *(f"ndcg@{k}" for k in DEPTHS), "mean_ndcg"]


def read_part(path, features):
    """Labels, query ids and some feature columns of a LETOR file, with nothing of ours."""
    labels, qids, columns = [], [], []
    with gzip.open(path, "rt") as file:
        for line in file:
            label, qid, *pairs = line.partition("#")[0].split()
            values = dict(pair.split(":") for pair in pairs)
            labels.append(int(label))
            qids.append(qid)
            columns.append([float(values[str(feature)]) for feature in features])
    return labels, qids, np.array(columns)


def count_as_letor(labels, scores):
    """P@1..10, AP, NDCG@1..10 and MeanNDCG of one query, rule by rule."""
    order = sorted(range(len(labels)), key=lambda row: -scores[row])
    ranked = [labels[row] for row in order]

    def dcg(grades, depth):
        total = 0.0
        for rank in range(1, depth + 1):
            gain = {0: 0, 1: 1, 2: 3}[grades[rank - 1]]
            total += gain if rank <= 2 else gain * math.log(2) / math.log(rank)
        return total

    def ndcg(depth):
        ideal = dcg(sorted(labels, reverse=True), depth)
        return dcg(ranked, depth) / ideal if ideal else 0.0

    padded = ranked + [0] * 10
    precisions = [sum(grade > 0 for grade in padded[:k]) / k for k in DEPTHS]
    found = [rank for rank, grade in enumerate(ranked, start=1) if grade > 0]
    average_precision = sum(n / rank for n, rank in enumerate(found, start=1)) / len(found) if found else 0.0
    every_depth = [ndcg(depth) for depth in range(1, len(labels) + 1)]
    at_depths = [every_depth[k - 1] if k <= len(labels) else 0.0 for k in DEPTHS]
    return [*precisions, average_precision, *at_depths, sum(every_depth) / len(every_depth)]


def by_query(labels, qids, scores):
    rows = {}
    for label, qid, score in zip(labels, qids, scores, strict=True):
        rows.setdefault(qid, ([], []))
        rows[qid][0].append(label)
        rows[qid][1].append(score)
    return np.array([count_as_letor(*query) for query in rows.values()])


@pytest.mark.parametrize("part", ["MQ2008/S1", "MQ2008/S5", "MQ2007/S3"])
def test_the_rules_written_down_again_give_the_same_numbers(shared_data, part):
    labels, qids, columns = read_part(shared_data / "letor" / f"{part}.txt.gz", features=[25, 38])
    noise = np.random.default_rng(1).normal(size=len(labels))
    # Feature 38 has many equal values in a query; rounded noise has some.
    for scores in (columns[:, 0], columns[:, 1], noise, noise.round(1)):
        ours = evaluate(labels, scores, metrics=METRICS, convention="letor4", qid=qids)
        expected = by_query(labels, qids, scores.tolist())
        for number, name in enumerate(METRICS):
            np.testing.assert_allclose(ours.per_query[name], expected[:, number], rtol=0, atol=1e-12)
            assert ours.mean[name] == pytest.approx(expected[:, number].mean(), abs=1e-12)


# The output of LETOR's Eval-Score-4.0.pl for a part of MQ2008 ranked by one feature, printed with ten decimals instead
# of four: P@1..10 and MAP, then NDCG@1..10 and MeanNDCG.
PRINTED = {
    ("S5", 25): """
        0.3397435897 0.3205128205 0.3055555556 0.2884615385 0.2769230769 0.2628205128 0.2536630037 0.2379807692
        0.2215099715 0.2108974359 0.3700750771
        0.2713675214 0.2975427350 0.3174803443 0.3284190440 0.3549490370 0.3748390066 0.3932339811 0.3502035225
        0.1598390599 0.1655066056 0.3692914127""",
    ("S1", 38): """
        0.3375796178 0.3152866242 0.2972399151 0.2834394904 0.2828025478 0.2770700637 0.2584167425 0.2380573248
        0.2229299363 0.2095541401 0.4048328904
        0.2823779193 0.2998938429 0.3231803193 0.3437696357 0.3706445711 0.3942435213 0.3991818689 0.3810145499
        0.1351624789 0.1388730747 0.3928071755""",
}


@pytest.mark.parametrize(("part", "feature"), PRINTED)
def test_letors_own_script_printed_the_same_numbers(shared_data, part, feature):
    labels, qids, columns = read_part(shared_data / "letor" / "MQ2008" / f"{part}.txt.gz", features=[feature])
    ours = evaluate(labels, columns[:, 0], metrics=METRICS, convention="letor4", qid=qids)
    printed = [float(number) for number in PRINTED[part, feature].split()]
    assert [ours.mean[name] for name in METRICS] == pytest.approx(printed, abs=0.5e-10)
