"""Choice of devices: contracts decide, an absent device is an error, and auto only chooses a device that works."""

import importlib.util
import logging
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.kernels.pair_loss.pair_loss_cases import random_data

from rankwell import DeviceError, ParameterError
from rankwell.kernels import device
from rankwell.kernels.boosting.contract import LEVEL_BOOSTING, PAIR_BOOSTING, BoostingSizes
from rankwell.kernels.device import Implementation, Refusal, Subject, at_most, device_for, load
from rankwell.kernels.device_report import DeviceReport, report_device
from rankwell.kernels.extraction.contract import EXTRACTION
from rankwell.kernels.lists.contract import NETWORK_TRAINING, NetworkProblem
from rankwell.kernels.lists.losses import EXACT, LISTMLE, STOCHASTIC, list_loss
from rankwell.kernels.lists.network_shape import network_shape
from rankwell.kernels.pair_loss.contract import PAIR_LOSS
from rankwell.kernels.scoring.contract import SCORING
from rankwell.solvers.first_order import FirstOrder

SUBJECTS = (LEVEL_BOOSTING, PAIR_BOOSTING, PAIR_LOSS, NETWORK_TRAINING, EXTRACTION, SCORING)
H200 = DeviceReport("cuda", True, "pretended H200", capability=90, processors=132, shared_memory=232_448)
SMALL_GPU = replace(H200, description="pretended GTX 1650", capability=75, processors=14, shared_memory=65_536)
GIBIBYTE = 2**30


@pytest.fixture
def pretend(monkeypatch):
    """Pretend that there are these devices, besides the CPU, each with so much free memory."""

    def set_devices(*reports, free=16 * GIBIBYTE):
        known = {"cpu": DeviceReport("cpu", True, "2 cores")} | {report.kind: report for report in reports}
        nothing = "pretended: nothing there, run nvidia-smi"
        monkeypatch.setattr(
            device, "report_device", lambda kind: known.get(kind) or DeviceReport(kind, False, nothing, installed=False)
        )
        monkeypatch.setattr(device, "free_memory", lambda kind: free)

    return set_devices


@pytest.fixture
def note(caplog):
    """What was logged, one string."""
    caplog.set_level(logging.INFO, logger="rankwell")
    return lambda: "\n".join(record.getMessage() for record in caplog.records)


# A subject whose problem is a number of things, of which CUDA takes ten.
SMALL = Subject(
    "count things",
    {
        "cpu": Implementation("builtins:dict", options=("colour",)),
        "cuda": Implementation(
            "builtins:dict",
            lacks=lambda things, colour="red": None if colour == "red" else Refusal(f"colour={colour!r}", "'red'"),
            capability=75,
            limits=lambda things, report, colour="red": at_most(things, 10, "things"),
        ),
    },
)


class TestLoad:
    def test_auto_takes_the_first_device_that_refuses_nothing(self, pretend, note):
        pretend(H200)
        assert device_for(SMALL, "auto", 10) == "cuda"
        assert note() == "device='auto' picked cuda (pretended H200)"

    def test_auto_says_why_not_the_other(self, pretend, note):
        pretend(H200)
        assert device_for(SMALL, "auto", 11) == "cpu"
        assert note() == "device='auto' picked cpu (2 cores): cuda refuses 11 things (at most 10)"

    def test_auto_says_why_a_device_that_is_installed_does_not_answer(self, pretend, note):
        pretend(replace(H200, usable=False, description="no CUDA device answers"))
        assert device_for(SMALL, "auto", 1) == "cpu"
        assert note() == "device='auto' picked cpu (2 cores): cuda cannot be used: no CUDA device answers"

    def test_auto_is_silent_on_what_is_not_installed(self, pretend, note):
        pretend()
        assert device_for(SMALL, "auto", 1) == "cpu"
        assert note() == "device='auto' picked cpu (2 cores)"

    def test_an_option_that_a_device_does_not_have_is_a_wrong_parameter_even_without_the_device(self, pretend):
        pretend()
        expected = (
            r"device='cuda' cannot count things with colour='blue'; allowed: 'red'\. Use the device 'cpu' or 'auto'\."
        )
        with pytest.raises(ParameterError, match=expected):
            load(SMALL, "cuda", 1, colour="blue")

    def test_sizes_that_a_device_does_not_have_are_a_device_error(self, pretend):
        pretend(H200)
        expected = (
            r"device='cuda' cannot count things with 11 things; allowed: at most 10\. Use the device 'cpu' or 'auto'\."
        )
        with pytest.raises(DeviceError, match=expected):
            load(SMALL, "cuda", 11)

    def test_old_devices_are_refused(self, pretend):
        pretend(replace(H200, capability=70))
        with pytest.raises(DeviceError, match=r"with compute capability 7\.0; allowed: 7\.5 or above"):
            load(SMALL, "cuda", 1)

    def test_a_device_asked_for_and_not_there_is_an_error(self, pretend):
        pretend()
        with pytest.raises(DeviceError, match=r"device='cuda' cannot be used: pretended: nothing there"):
            load(SMALL, "cuda", 1)

    def test_devices_that_a_subject_does_not_have(self):
        with pytest.raises(ParameterError, match=r"device must be one of 'auto', 'cpu', 'cuda', got 'tpu'\."):
            load(SMALL, "tpu", 1)
        with pytest.raises(ParameterError, match=r"got 'opencl': no other device can count things\."):
            load(SMALL, "opencl", 1)

    def test_an_implementation_gets_arguments_and_the_options_it_takes(self, pretend):
        pretend(H200)
        assert load(SMALL, "cpu", 1, {"a": 1}, colour="red") == {"a": 1, "colour": "red"}
        assert load(SMALL, "cpu", {"a": 1}) == {"a": 1}

    def test_opencl_is_never_picked_by_itself(self, pretend):
        pretend(DeviceReport("opencl", True, "pretended"))
        assert device_for(LEVEL_BOOSTING, "auto", None) == "cpu"


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.task)
def test_what_a_contract_names_exists(subject):
    for implementation in subject.devices.values():
        for target in filter(None, (implementation.target, implementation.memory)):
            assert callable(device._imported(target))


class TestBoosting:
    SIZES = BoostingSizes(n_docs=1_000_000, n_segments=30_000, n_queries=10_000, n_features=646)

    def test_cuda_takes_bins_that_do_not_fit(self, pretend):
        """646 columns of 1 MB; three of them, and 24 bytes a document, fit into 64 MiB."""
        pretend(H200, free=64 * 2**20)
        assert device_for(LEVEL_BOOSTING, "auto", self.SIZES, naive=False) == "cuda"

    def test_documents_that_do_not_fit_are_refused(self, pretend, note):
        pretend(H200, free=GIBIBYTE)
        large = replace(self.SIZES, n_docs=100_000_000)
        assert device_for(LEVEL_BOOSTING, "auto", large, naive=False) == "cpu"
        assert "cuda refuses 2.5 GiB of device memory (1.0 GiB, which is free)" in note()

    def test_opencl_takes_bins_that_do_not_fit(self, pretend):
        """Neither into one array nor into the memory."""
        pretend(DeviceReport("opencl", True, "pretended", largest_buffer=16 * 2**20), free=64 * 2**20)
        assert device_for(LEVEL_BOOSTING, "opencl", self.SIZES, naive=False) == "opencl"

    def test_opencl_refuses_documents_and_features_that_do_not_fit(self, pretend):
        report = DeviceReport("opencl", True, "pretended", largest_buffer=7_999_999)
        pretend(report, free=GIBIBYTE)
        with pytest.raises(DeviceError, match=r"8000000 bytes of weights in one array; allowed: at most 7999999"):
            device_for(LEVEL_BOOSTING, "opencl", self.SIZES, naive=False)
        wide = replace(self.SIZES, n_docs=1000, n_features=7813)
        with pytest.raises(DeviceError, match=r"8000512 bytes of histograms in one array; allowed: at most 7999999"):
            device_for(LEVEL_BOOSTING, "opencl", wide, naive=False)
        pretend(replace(report, largest_buffer=GIBIBYTE), free=24 * 2**20)
        with pytest.raises(DeviceError, match="GiB of device memory"):
            device_for(LEVEL_BOOSTING, "opencl", self.SIZES, naive=False)

    def test_naive_search_and_pairs_are_for_the_cpu(self, pretend):
        pretend(H200)
        assert device_for(LEVEL_BOOSTING, "auto", self.SIZES, naive=True) == "cpu"
        with pytest.raises(ParameterError, match=r"with weak_learner='m3'; allowed: weak_learner='m3.int'"):
            device_for(LEVEL_BOOSTING, "cuda", self.SIZES, naive=True)
        with pytest.raises(ParameterError, match=r"must be one of 'auto', 'cpu', got 'cuda': .* pair by pair"):
            device_for(PAIR_BOOSTING, "cuda", None)


class TestPairLoss:
    def test_auto_takes_the_cpu_where_the_device_has_too_little_memory(self, pretend, note):
        data = random_data([5000] * 20, 100, 3)
        pretend(H200, free=10**7)
        assert device_for(PAIR_LOSS, "auto", data, method="auto") == "cpu"
        assert "cuda refuses 0.1 GiB of device memory (0.0 GiB, which is free)" in note()
        with pytest.raises(DeviceError, match=r"cannot train RankSVM with 0\.1 GiB of device memory"):
            load(PAIR_LOSS, "cuda", data, method="auto")
        pretend(H200)
        assert device_for(PAIR_LOSS, "auto", data, method="auto") == "cuda"

    def test_the_features_are_most_of_what_is_needed(self):
        from rankwell.kernels.pair_loss.cuda.layout import device_bytes

        data = random_data([50] * 2000, 136, 3)
        features = 4 * 100_000 * 136
        assert features < device_bytes(data, H200) < 1.4 * features

    @pytest.mark.parametrize("report", [H200, SMALL_GPU], ids=lambda report: report.description)
    def test_workspaces_fit_the_shared_memory(self, report):
        """9 doubles a document: of 1,024 documents 73,776 bytes, which the smallest devices do not have."""
        from rankwell.kernels.pair_loss.cuda.layout import STATIC_BYTES, lay_out_queries, workspace_doubles

        layout = lay_out_queries(np.array([3000, 10]), np.array([40, 2]), "order-statistic", report.shared_memory)
        assert 8 * workspace_doubles(layout.capacity) + STATIC_BYTES <= report.shared_memory
        assert layout.scratch_ptr.tolist() == [0, -1]
        assert layout.n_scratch == 9 * 3000 + 6
        assert layout.n_ranks == 6 * 3001 + 1 * 11


def network_problem(n_features=646, hidden=(15,), *, sizes=(2, 1000), loss=None, batch=1, dropout=0.0):
    query_ptr = np.concatenate(([0], np.cumsum(sizes)))
    n_docs = int(query_ptr[-1])
    return NetworkProblem(
        features=np.zeros((n_docs, n_features), np.float32),
        labels=np.zeros(n_docs),
        query_ptr=query_ptr,
        query_weights=np.ones(len(sizes)),
        shape=network_shape(n_features, hidden, "sigmoid", "sigmoid"),
        loss=loss or list_loss(EXACT, 3),
        optimizer=FirstOrder().settings(),
        batch_queries=batch,
        dropout=dropout,
    )


class TestNetworks:
    @pytest.mark.parametrize(
        ("problem", "options", "expected"),
        [
            (network_problem(loss=list_loss(STOCHASTIC, 3)), {}, "sampling='stochastic'; allowed: the exact Top-k"),
            (network_problem(loss=list_loss(LISTMLE)), {}, "ListMLE's loss; allowed"),
            (network_problem(), {"fixed_point": True}, "fixed point; allowed: precision='float32'"),
            (network_problem(dropout=0.5), {}, "dropout=0.5; allowed: dropout=0"),
            (network_problem(hidden=(15, 10)), {}, "2 hidden layers; allowed: at most 1"),
            (network_problem(hidden=(65,)), {}, "65 hidden units; allowed: at most 64"),
        ],
    )
    def test_what_cuda_does_not_train(self, pretend, problem, options, expected):
        pretend(H200)
        with pytest.raises(ParameterError, match=f"device='cuda' cannot train a network over lists with {expected}"):
            device_for(NETWORK_TRAINING, "cuda", problem, **options)
        assert device_for(NETWORK_TRAINING, "auto", problem, **options) == "cpu"

    def test_wide_inputs_and_devices_without_clusters_are_taken(self, pretend):
        for report in (H200, SMALL_GPU):
            pretend(report)
            assert device_for(NETWORK_TRAINING, "auto", network_problem()) == "cuda"

    def test_a_team_needs_a_processor_for_each_block(self, pretend, note):
        pretend(replace(SMALL_GPU, processors=6))
        assert device_for(NETWORK_TRAINING, "auto", network_problem()) == "cpu"
        assert "cuda refuses 6 multiprocessors (8 or more)" in note()

    @pytest.mark.parametrize("report", [H200, SMALL_GPU], ids=lambda report: report.description)
    @pytest.mark.parametrize("hidden", [(), (15,), (64,)])
    @pytest.mark.parametrize("n_features", [1, 46, 646, 5000])
    @pytest.mark.parametrize("n_docs", [2, 1000, 100_000])
    @pytest.mark.parametrize("one_step_per_query", [True, False])
    def test_shared_memory_is_never_asked_for_beyond_what_there_is(
        self, report, hidden, n_features, n_docs, one_step_per_query
    ):
        from rankwell.kernels.lists.cuda.placement import STATIC_BYTES, TILE, place

        shape = network_shape(n_features, hidden, "sigmoid", "sigmoid")
        placement = place(shape, n_docs, report.shared_memory, one_step_per_query=one_step_per_query)
        assert placement.shared_bytes + STATIC_BYTES <= report.shared_memory
        of_parameter = 4 if one_step_per_query else 2
        everything = (
            of_parameter * shape.n_parameters + 4 * n_docs + TILE * (n_features + 2 * max(shape.n_hidden, 1) + 1)
        )
        elsewhere = 0 if placement.tile else TILE * n_features
        assert placement.shared_bytes // 4 + placement.workspace_floats + elsewhere == everything

    def test_a_network_of_the_benchmarks_is_all_in_shared_memory(self):
        from rankwell.kernels.lists.cuda.placement import place

        shape = network_shape(46, (15,), "sigmoid", "sigmoid")
        placement = place(shape, 1000, H200.shared_memory, one_step_per_query=True)
        assert (placement.documents, placement.parameters, placement.tile) == (True, True, True)


def test_extraction_of_a_batch_too_large_for_cuda_is_for_the_cpu(pretend, note):
    class Hits:
        n_candidates, n_hits = 2**20 + 1, 5

    pretend(H200)
    assert device_for(EXTRACTION, "auto", Hits) == "cpu"
    assert "cuda refuses 1048577 candidates at a time (at most 1048576)" in note()


def test_reports_name_the_device_or_the_remedy():
    assert report_device("cpu").usable
    for kind in ("cuda", "opencl"):
        report = report_device(kind)
        assert report.kind == kind
        assert report.usable or "nstall" in report.description or "nvidia-smi" in report.description


def test_a_device_that_cannot_compile_is_not_usable(monkeypatch):
    """As PoCL on a processor that is newer than it."""
    pytest.importorskip("pyopencl")
    from rankwell.kernels import device_report
    from rankwell.kernels.opencl import program

    device = SimpleNamespace(name="pthread-new", max_mem_alloc_size=GIBIBYTE)
    monkeypatch.setattr(program, "opencl_devices", lambda: [device])
    for complaint in ("error: unknown target CPU 'new'", None):
        monkeypatch.setattr(program, "compiler_complaint", lambda complaint=complaint: complaint)
        report = device_report._report_opencl.__wrapped__()
        assert report.usable == (complaint is None)
        assert complaint is None or f"pthread-new cannot compile kernels ({complaint})" in report.description


def test_a_folder_called_cupy_is_not_cupy(tmp_path):
    (tmp_path / "cupy").mkdir()
    code = "from rankwell.kernels.device_report import report_device; print(report_device('cuda').installed)"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == str(importlib.util.find_spec("cupy") is not None)
