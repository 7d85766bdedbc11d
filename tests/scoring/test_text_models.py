"""Models of RankLib, svm_rank and LIBLINEAR score as their programs say: by arithmetic that can be checked by eye."""

import numpy as np
import pytest
from tests.scoring.exports.exported_rankers import RANKERS, expected_scores, rows_for
from tests.scoring.text_models import (
    ADARANK,
    COORDINATE_ASCENT,
    LAMBDAMART,
    LIBLINEAR,
    LINEAR_REGRESSION,
    MODELS,
    RANDOM_FORESTS,
    RANKBOOST,
    SVM_RANK,
)

import rankwell
from rankwell import FileFormatError
from rankwell.scoring.imports.reader import import_model, model_format
from rankwell.scoring.reference_scores import reference_scores

NAN = np.nan


@pytest.fixture
def scores_of(tmp_path):
    def scores(text, features, **options):
        (tmp_path / "model.txt").write_text(text)
        return (
            rankwell.ImportedRanker.from_model(tmp_path / "model.txt", **options).predict(np.array(features)).tolist()
        )

    return scores


def test_lambdamart(scores_of):
    features = [[-2, 0, 0.25], [-1.5, 0, 0], [-1, 0, 0], [0, 0, 0.3], [NAN, NAN, NAN]]
    # 0.5 · leaf + 0.1 · 10, weights being float32; a missing value counts as 0.
    constant = float(np.float32(0.1)) * 10
    assert scores_of(LAMBDAMART, features) == [0.5 * leaf + constant for leaf in (2, 2, -1, 4, -1)]
    assert scores_of(LAMBDAMART.replace("LambdaMART", "MART"), features[:1]) == [0.5 * 2 + constant]


def test_random_forests_are_the_mean_of_their_bags(scores_of):
    assert scores_of(RANDOM_FORESTS, [[0, 1], [0, 1.5]]) == [(1 + 2) / 2, (3 + 8) / 2]


def test_rankboost(scores_of):
    features = [[1, 0, 0], [0.5, 0, -2], [-1, 0, -3], [NAN, NAN, NAN]]
    expected = [0.25 + 0.75 + 0.5 + 0.125, 0.25 + 0.125, 0.125, 0.25 + 0.5 + 0.125]
    assert scores_of(RANKBOOST, features) == expected


def test_rankboost_compares_float32_with_its_float64_thresholds(scores_of):
    """0.1 as float32 is above 0.1 as float64."""
    assert scores_of("## RankBoost\n1:0.1:1.0\n", np.array([[0.1], [0.09]], np.float32)) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "features", "expected"),
    [
        (COORDINATE_ASCENT, [[1, 2, 9, 3], [NAN, 0, 0, 1]], [0.5 - 0.5 + 6, 2.0]),
        (LINEAR_REGRESSION, [[1, 2, 10]], [1.5 + 0.5 - 0.5 + 1.0]),
        (ADARANK, [[4, 2]], [0.25 * 4 + (0.5 + 0.5) * 2]),
        (SVM_RANK, [[1, 2, 9, 3]], [0.5 - 0.5 + 6]),
        (SVM_RANK.replace("0 # threshold", "0.25 # threshold"), [[1, 2, 9, 3]], [0.5 - 0.5 + 6 - 0.25]),
        # The decision value is that of label 0, which came first: the score is that of label 1. The constant is -1.5.
        (LIBLINEAR, [[1, 2, 3]], [-(0.5 - 0.5 + 6 - 1.5)]),
        (LIBLINEAR.replace("label 0 1", "label 1 0"), [[1, 2, 3]], [0.5 - 0.5 + 6 - 1.5]),
    ],
)
def test_linear_models(scores_of, text, features, expected):
    assert scores_of(text, features) == expected


def test_several_support_vectors_are_added(scores_of):
    two = SVM_RANK.replace("2 # number of support", "3 # number of support") + "-2 1:1 3:0.5 #\n"
    assert scores_of(two, [[1, 2, 4, 3]]) == [0.5 - 0.5 + 6 - 2 - 4]


def test_there_may_be_more_features_than_a_model_reads(scores_of, tmp_path):
    features = [[1, 0, 0, 9, 9]]
    assert scores_of(RANKBOOST, features, n_features=5) == [0.25 + 0.75 + 0.5 + 0.125]
    assert scores_of(SVM_RANK, features, feature_names=list("abcde")) == [0.5 + 18]
    with pytest.raises(FileFormatError, match="reads feature 3, but there are 2 features"):
        scores_of(RANKBOOST, [[1, 2]], n_features=2)


@pytest.mark.parametrize("name", MODELS)
def test_formats_are_recognised(name, tmp_path):
    (tmp_path / "model").write_text(MODELS[name])
    found = model_format(tmp_path / "model")
    program = {"svm_rank": "svm_rank", "liblinear": "LIBLINEAR"}.get(name, "RankLib")
    assert found is not None
    assert found.title == f"a model of {program}"


@pytest.mark.parametrize("name", MODELS)
def test_altered_and_cut_files_are_refused_or_safe(name, tmp_path):
    """These files have no checksum: what is read must at least score as the slow reference does."""
    whole, rng, path = MODELS[name].encode(), np.random.default_rng(0), tmp_path / "model.txt"
    complaints = []
    for attempt in range(200):
        content = bytearray(whole)
        if attempt % 2:
            del content[int(rng.integers(len(content))) :]
        else:
            content[int(rng.integers(len(content)))] = int(rng.integers(256))
        path.write_bytes(content)
        try:
            description = import_model(path)
        except FileFormatError as error:
            complaints.append(str(error))
            continue
        if description.n_features < 50:
            row = rng.normal(size=(1, description.n_features)).astype(np.float32)
            found = rankwell.MadeRanker.from_description(description).predict(row)
            np.testing.assert_allclose(found, reference_scores(description, row))
    assert len(complaints) > 20
    assert all("model.txt" in complaint for complaint in complaints)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("## RankNet\n1 2\n", "RankLib's RankNet, a network"),
        ("## RankBoost\n", "cut short: it has no weights"),
        ("## RankBoost\n1:2\n", "weak ranker 1 must be feature:threshold:weight"),
        ("## RankBoost\n0:1:2\n", "a feature's number from 1"),
        ("## RankBoost\n1:x:2\n", "must be a number, got 'x'"),
        ("## Coordinate Ascent\n1:1 2\n", "weight 2 must be feature:weight"),
        ("## Coordinate Ascent\n99999999999:1\n", "a feature's number from 1 to"),
        ("## Coordinate Ascent\n1:nan\n", "must be a number"),
        ("## LambdaMART\n<ensemble>\n</ensemble>\n", "has no trees"),
        (LAMBDAMART.replace("</ensemble>", ""), "cut short: its last ensemble does not end"),
        (LAMBDAMART.replace('weight="0.5"', ""), "a tree without a weight"),
        (LAMBDAMART.replace("<feature>1 </feature>", "<feature>1 2 </feature>"), "a feature's number from 1"),
        (LAMBDAMART.replace("<feature>1 </feature>", "<feature>1</feature><feature>2</feature>"), "two values"),
        (LAMBDAMART.replace("<feature>1 </feature>", "text"), "the text 'text' between its tags"),
        (LAMBDAMART.replace("<feature>1 </feature>", "<evil/>"), "'<evil/>' where it may not be"),
        (LAMBDAMART.replace("<output>2.0 </output>", ""), "neither a leaf nor a node"),
        ('## LambdaMART\n<!DOCTYPE x [<!ENTITY a "b">]>\n' + LAMBDAMART, "where it may not be"),
        (SVM_RANK.replace("0 # kernel type", "2 # kernel type"), "kernel type '2'; only 0"),
        (SVM_RANK.replace("2 # number of support", "3 # number of support"), "1 support vectors, one less than '3'"),
        (SVM_RANK.partition("1 1:0.5")[0], "cut short: it has no support vectors"),
        (LIBLINEAR.replace("nr_class 2", "nr_class 4"), "4 classes"),
        (LIBLINEAR.replace("nr_feature 3", "nr_feature 4"), "4 weights, 5 were expected"),
        (LIBLINEAR.replace("nr_feature 3", "nr_feature x"), "header is incomplete"),
        (LIBLINEAR.partition("\nw\n")[0], "cut short"),
    ],
)
def test_what_is_wrong_is_named(text, complaint, tmp_path):
    (tmp_path / "model.txt").write_text(text)
    with pytest.raises(FileFormatError, match=complaint):
        import_model(tmp_path / "model.txt")


def test_deep_trees_are_read(tmp_path):
    depth = 5000
    opening = "<split><feature>1</feature><threshold>0</threshold><split><output>1</output></split>"
    body = opening * depth + "<split><output>7</output></split>" + "</split>" * depth
    (tmp_path / "model.txt").write_text(f'## MART\n<ensemble><tree weight="1">{body}</tree></ensemble>\n')
    assert rankwell.ImportedRanker.from_model(tmp_path / "model.txt").predict(np.array([[1.0], [-1.0]])).tolist() == [
        7,
        1,
    ]


@pytest.mark.parametrize(
    ("name", "first_line"),
    [
        ("trees", "## LambdaMART"),
        ("mean of trees", "## LambdaMART"),
        ("trees of one leaf", "## LambdaMART"),
        ("weighted trees", "## LambdaMART"),
        ("standardised trees", "## LambdaMART"),
        ("buckets", "## RankBoost"),
        ("standardised buckets", "## RankBoost"),
        ("linear", "## Linear Regression"),
        ("linear through zero", "## Coordinate Ascent"),
        ("standardised linear", "## Linear Regression"),
    ],
)
def test_exports_to_ranklib_come_back(name, first_line, tmp_path):
    rankwell.export(RANKERS[name], tmp_path / "model.txt", to="ranklib")
    assert (tmp_path / "model.txt").read_text().startswith(f"{first_line}\n")
    features = rows_for(name, missing=False)
    back = rankwell.ImportedRanker.from_model(tmp_path / "model.txt", n_features=7).predict(features)
    expected = expected_scores(RANKERS[name], features)
    # RankLib's trees are float32; normalised features are float32 here, and do not exist there.
    tolerance = 1e-6 if "trees" in name or "standardised" in name else 1e-12
    assert np.abs(back - expected).max() <= tolerance * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("network", "RankLib cannot say linear inputs"),
        ("probability of trees", "RankLib cannot say sigmoid of the sum"),
        ("categories and zeros", "RankLib cannot say nodes that test categories"),
        ("letor", "RankLib cannot say the normaliser letor"),
        ("made of rankers", "RankLib cannot say rankers inside a ranker"),
    ],
)
def test_what_ranklib_cannot_say_is_named(name, complaint):
    with pytest.raises(rankwell.ParameterError, match=complaint):
        rankwell.export(RANKERS[name], to="ranklib")
