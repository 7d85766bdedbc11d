"""Kernel swapping: which format trains which epoch."""

import numpy as np
import pytest

from rankwell import ListNet, RankingDataset
from rankwell.errors import ParameterError
from rankwell.rankers.kernel_swap import WINDOW, KernelSwap, check_swap, formats_of


def test_a_schedule_may_swap_any_number_of_times():
    swap = KernelSwap("float32", ((2, "fixed8"), (4, "float32"), (5, "fixed16")))
    assert [swap.before(epoch) for epoch in range(1, 7)] == [
        "float32", "fixed8", "fixed8", "float32", "fixed16", "fixed16",
    ]  # fmt: skip


def test_without_a_swap_the_format_stays():
    swap = KernelSwap("fixed8", None)
    swap.after(0.5, 1.0)
    assert swap.before(100) == "fixed8"


def test_the_rule_swaps_when_the_gain_per_second_falls():
    swap = KernelSwap("fixed8", ("gain", 0.01, "float32", "fixed8"))
    # 0.02 an epoch of one second: above the threshold of 0.01 a second.
    for epoch in range(10):
        assert swap.before(epoch + 1) == "fixed8"
        swap.after(0.3 + 0.02 * epoch, 1.0)
    # No gain any more: after two such epochs the window's five still gained 0.06, after three only 0.04.
    for _ in range(2):
        swap.after(0.48, 1.0)
    assert swap.before(13) == "fixed8"
    swap.after(0.48, 1.0)
    assert swap.before(14) == "float32"
    # The new format has a window of its own before it is judged.
    for _ in range(WINDOW):
        swap.after(0.48, 1.0)
    assert swap.before(19) == "float32"
    swap.after(0.48, 1.0)
    assert swap.before(20) == "fixed8"
    assert swap.swaps == 2


def test_time_counts_in_the_rule():
    """The same gain an epoch is enough in a fast format and too little in a slow one."""
    fast, slow = (KernelSwap("fixed8", ("gain", 0.01, "float32")) for _ in range(2))
    for epoch in range(WINDOW + 1):
        fast.after(0.005 * epoch, 0.1)
        slow.after(0.005 * epoch, 1.0)
    assert (fast.precision, slow.precision) == ("fixed8", "float32")


@pytest.mark.parametrize("swap", [((2, "fixed8"), (4, "float32")), ("gain", 0.1, "fixed8", "float32")])
def test_a_resumed_run_is_as_it_was(swap):
    swapped = KernelSwap("float32", swap)
    swapped.resume(3, 1)
    assert swapped.precision == "fixed8"
    assert swapped.swaps == 1


def test_formats_of_a_run():
    assert formats_of("float32", None) == {"float32"}
    assert formats_of("float32", ((3, "fixed8"),)) == {"float32", "fixed8"}
    assert formats_of("fixed8", ("gain", 0.1, "float32")) == {"fixed8", "float32"}


@pytest.mark.parametrize(
    ("swap", "complaint"),
    [
        ("fixed8", "swap must be None"),
        ((), "swap must be None"),
        ((50, "fixed8"), "pairs of an epoch and a format"),
        (((5, "fixed8"), (5, "float32")), "ascending order"),
        (((5, "fixed99"),), "precision must be"),
        (("gain", "much", "fixed8"), "needs a threshold"),
    ],
)
def test_wrong_swaps_are_refused(swap, complaint):
    with pytest.raises(ParameterError, match=complaint):
        check_swap(swap, has_validation=True)


def test_the_rule_in_a_run():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(200, 4)).astype(np.float32)
    dataset = RankingDataset(features, features[:, 0] > 0, group=[10] * 20)
    # No network gains 1e9 a second: every window ends in a swap.
    ranker = ListNet(n_epochs=14, swap=("gain", 1e9, "fixed8", "float32"), device="cpu").fit(dataset, eval_set=dataset)
    assert ranker.history_["bits"] == [32.0] * 6 + [8.0] * 6 + [32.0] * 2
