"""Every CUDA and OpenCL source compiles, with the macros that Python gives it, on machines without a GPU too."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import rankwell
from rankwell.kernels.boosting.cuda import booster
from rankwell.kernels.boosting.opencl import booster as opencl_booster
from rankwell.kernels.cuda.module import COMPILE_OPTIONS
from rankwell.kernels.device_report import report_device
from rankwell.kernels.lists.contract import CUDA_TEAM, NetworkProblem
from rankwell.kernels.lists.cuda import trainer
from rankwell.kernels.lists.cuda.placement import place
from rankwell.kernels.lists.losses import EXACT, list_loss
from rankwell.kernels.lists.network_shape import network_shape
from rankwell.kernels.pair_loss.cuda import loss
from rankwell.kernels.pair_loss.method import METHODS
from rankwell.kernels.scoring.cuda import launches
from rankwell.kernels.source_text import source_text
from rankwell.kernels.trees.columns import arrange_columns
from rankwell.kernels.trees.contract import BOOSTED_TREES, TreeProblem, TreeSettings
from rankwell.kernels.trees.cuda import booster as tree_booster
from rankwell.kernels.trees.cuda import gradients
from rankwell.kernels.trees.feature_rules import FeatureRules, group_bits
from rankwell.kernels.trees.losses import PAIR_LOSSES, XENDCG, RankingLoss
from rankwell.kernels.trees.slabs import SLAB_BYTES
from rankwell.solvers.first_order import FirstOrder

KERNELS = Path(rankwell.__file__).parent / "kernels"
CLUSTERS_FROM = 90
# Bytes of shared memory that a block may have, by compute capability.
SHARED_MEMORY = {75: 65_536, 80: 166_912, 86: 101_376, 89: 101_376, 90: 232_448}


def network_macros(capability, *, team, n_features=46, hidden=(15,), optimizer="sgd", feature_bits=32):
    problem = NetworkProblem(
        features=np.empty((0, n_features), np.float32),
        labels=np.empty(0),
        query_ptr=np.array([0, 1000]),
        query_weights=np.ones(1),
        shape=network_shape(n_features, hidden, "sigmoid", "sigmoid"),
        loss=list_loss(EXACT, 3),
        optimizer=FirstOrder(optimizer).settings(),
        batch_queries=1,
        dropout=0.0,
    )
    placement = place(problem.shape, 1000, SHARED_MEMORY[capability], one_step_per_query=team > 1)
    return trainer.definitions(problem, placement, team, capability >= CLUSTERS_FROM, feature_bits)


def tree_macros(capability, *, is_symmetric=False, direction=0, n_groups=0, n_categories=0):
    settings = TreeSettings(n_leaves=8, max_depth=3, is_symmetric=is_symmetric)
    columns = arrange_columns(np.array([2]), np.array([False]))
    rules = FeatureRules(np.array([direction], np.int8), np.array([n_categories]), group_bits([[0]] * n_groups, 1))
    problem = TreeProblem(np.empty((1, 1, SLAB_BYTES), np.uint8), columns, settings, feature_rules=rules)
    return tree_booster.definitions(tree_booster.column_groups(SHARED_MEMORY[capability]), problem)


# Of each source what it is compiled with, by compute capability; the first of a source is compiled in every run.
BUILDS = {
    "boosting/boosting": [
        ("8 lanes", lambda capability: booster.definitions(min(5, SHARED_MEMORY[capability] // 32_768), 8)),
        ("32 lanes", lambda capability: booster.definitions(min(5, SHARED_MEMORY[capability] // 32_768), 32)),
    ],
    "pair_loss/support_pairs": [
        (method, lambda _, method=method: loss.support_definitions(method)) for method in METHODS
    ],
    "pair_loss/hessian_vector": [
        ("136 features", lambda _: loss.product_definitions("direct", 34)),
        ("46 features", lambda _: loss.product_definitions("order-statistic", 12)),
        ("768 features", lambda _: loss.product_definitions("direct", 192)),
    ],
    "pair_loss/rows": [("", lambda _: ())],
    "pair_loss/sort": [("", lambda _: ())],
    "lists/network_training": [
        ("a team", lambda capability: network_macros(capability, team=CUDA_TEAM)),
        ("batches", lambda capability: network_macros(capability, team=1, optimizer="adam")),
        ("646 features", lambda capability: network_macros(capability, team=CUDA_TEAM, n_features=646)),
        ("linear, int8", lambda capability: network_macros(capability, team=1, hidden=(), feature_bits=8)),
        (
            "64 units, float16",
            lambda capability: network_macros(capability, team=1, hidden=(64,), feature_bits=16),
        ),
    ],
    "scoring/scoring": [
        ("narrow words", lambda _: launches.definitions(wide_words=False)),
        ("wide words", lambda _: launches.definitions(wide_words=True)),
    ],
    "scoring/normalisation": [("", lambda _: ())],
    "extraction/extraction": [("", lambda _: ())],
    "vectors/products": [("", lambda _: ())],
    "trees/growth": [
        ("", lambda capability: tree_macros(capability)),
        ("symmetric", lambda capability: tree_macros(capability, is_symmetric=True)),
        ("rising, groups", lambda capability: tree_macros(capability, direction=1, n_groups=1)),
        ("categories", lambda capability: tree_macros(capability, n_categories=2)),
        (
            "symmetric, rising, groups",
            lambda capability: tree_macros(capability, is_symmetric=True, direction=1, n_groups=65),
        ),
    ],
    "trees/lambdas": [
        (name, lambda _, kind=kind: gradients.kernels_of(RankingLoss(kind, 30, 1.0, 1)).definitions)
        for name, kind in PAIR_LOSSES.items()
    ],
    "trees/cross_entropy": [("", lambda _: gradients.kernels_of(RankingLoss(XENDCG, 1, 1.0, 0)).definitions)],
    "trees/score_noise": [("", lambda _: ())],
}
QUICK = (75, 90)
# What the contract demands, where it is more than the least of all.
LEAST_CAPABILITY = {"trees/growth": BOOSTED_TREES.devices["cuda"].capability}
COMPILATIONS = [
    pytest.param(
        source,
        capability,
        macros,
        id=f"{source} {name} {capability}",
        marks=[] if capability in QUICK and number == 0 else [pytest.mark.slow],
    )
    for source, builds in BUILDS.items()
    for number, (name, macros) in enumerate(builds)
    for capability in SHARED_MEMORY
    if capability >= LEAST_CAPABILITY.get(source, 0)
]


def test_every_source_is_compiled_here():
    found = {f"{path.parts[-3]}/{path.stem}" for path in KERNELS.rglob("*.cu")}
    assert found == set(BUILDS)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc on this machine")
@pytest.mark.parametrize(("source", "capability", "macros"), COMPILATIONS)
def test_cuda_source_compiles_without_warnings(source, capability, macros, tmp_path):
    subject, name = source.split("/")
    text = tmp_path / f"{name}.cu"
    text.write_text(source_text(subject, "cuda", text.name), encoding="utf-8")
    options = [option for option in COMPILE_OPTIONS if option.startswith("-std")]
    options += ["-cubin", f"-arch=sm_{capability}", "-Werror", "all-warnings"]
    defined = [f"-D{definition}" for definition in macros(capability)]
    command = ["nvcc", *options, *defined, "-o", str(tmp_path / "out"), str(text)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif(not report_device("opencl").usable, reason=report_device("opencl").description)
@pytest.mark.parametrize("with_doubles", [True, False])
def test_opencl_source_compiles(with_doubles):
    from rankwell.kernels.opencl.program import opencl_devices, opencl_program

    assert [path.stem for path in KERNELS.rglob("*.cl")] == ["boosting"]
    devices = opencl_devices()
    if with_doubles and "cl_khr_fp64" not in devices[0].extensions:
        pytest.skip("the OpenCL device has no double precision")
    program = opencl_program("boosting/boosting", *opencl_booster.definitions(with_doubles=with_doubles))
    names = {kernel.function_name for kernel in program.all_kernels()}
    assert {"histograms", "integrate", "choose"} <= names
    assert ("potentials" in names) == with_doubles
