"""The device is chosen in one place; what is asked for and not there is an error with the remedy."""

import logging

import pytest

from rankwell import DeviceError, ParameterError
from rankwell.kernels import device
from rankwell.kernels.device import DeviceReport, choose_device, report_device


@pytest.fixture
def pretend(monkeypatch):
    """Pretend that these devices, and no others, can be used."""

    def set_usable(*usable):
        monkeypatch.setattr(
            device,
            "report_device",
            lambda kind: DeviceReport(kind, kind in usable, f"pretended {kind}, run nvidia-smi"),
        )

    return set_usable


def test_auto_prefers_cuda_where_it_is_usable_and_supported(pretend, caplog):
    pretend("cpu", "cuda")
    with caplog.at_level(logging.INFO, logger="rankwell"):
        assert choose_device("auto", ("cpu", "cuda")) == "cuda"
    assert "device='auto' picked cuda (pretended cuda" in caplog.text
    assert choose_device("auto", ("cpu",)) == "cpu"


def test_auto_never_picks_opencl_by_itself(pretend):
    pretend("cpu", "opencl")
    assert choose_device("auto", ("cpu", "cuda", "opencl")) == "cpu"


def test_a_device_asked_for_and_not_there_is_an_error(pretend):
    pretend("cpu")
    with pytest.raises(DeviceError, match=r"device='cuda' cannot be used: pretended cuda, run nvidia-smi"):
        choose_device("cuda", ("cpu", "cuda"))


def test_a_device_the_ranker_has_no_kernels_for_is_refused():
    with pytest.raises(ParameterError, match=r"device must be one of 'auto', 'cpu', got 'tpu'"):
        choose_device("tpu", ("cpu",))


def test_reports_name_the_device_or_the_remedy():
    assert report_device("cpu").usable
    for kind in ("cuda", "opencl"):
        report = report_device(kind)
        assert report.kind == kind
        assert report.usable or "nstall" in report.description or "nvidia-smi" in report.description
