"""What the FAR paper (Xu et al. 2009) measured and assumed: tables II to V and equations 7 to 13.

Seconds unless said otherwise. The paper's constants α, β, a are not printed; they follow from table IV, whose figures
are for the data of table II.
"""

from __future__ import annotations

from dataclasses import dataclass

# Table II.
N_DOCS, N_FEATURES, N_PAIRS, N_QUERIES, N_BINS = 1_196_711, 646, 15_146_236, 25_724, 256
# Table III: hours of a run of 300 rounds.
RUN_HOURS = {"naive": 46.06, "software": 4.43, "distributed": 0.78, "far1": 0.27, "far2": 0.17}
RUN_ROUNDS = 300


@dataclass(frozen=True)
class RoundTimes:
    """A column of table IV."""

    potentials: float
    search: float
    transfer: float
    weights: float
    total: float


TABLE_IV = {
    "software": RoundTimes(0.110, 52.068, 0.0, 0.958, 53.136),
    "optimised software": RoundTimes(0.110, 26.157, 0.0, 0.959, 27.226),
    "far1": RoundTimes(0.176, 0.719, 0.058, 2.122, 3.075),
    "far2": RoundTimes(0.137, 0.362, 0.049, 1.375, 1.923),
}


@dataclass(frozen=True)
class EnergyRow:
    """A row of table V: 10,000 rounds."""

    watts: float
    hours: float
    kilowatt_hours: float


TABLE_V = {
    "naive": EnergyRow(200, 1535.33, 307.07),
    "far1": EnergyRow(220, 9, 1.98),
    "far2": EnergyRow(240, 5.67, 1.36),
    "distributed": EnergyRow(400, 26, 10.40),
    "distributed, 52 threads": EnergyRow(5200, 9, 46.80),
}
ENERGY_ROUNDS = 10_000


def naive_round(n_pairs: int = N_PAIRS, n_docs: int = N_DOCS, n_features: int = N_FEATURES) -> float:
    """Equation 8: α·pairs + β₀·features·documents·thresholds; β₀ from table III."""
    software = TABLE_IV["software"]
    alpha = (software.potentials + software.weights) / N_PAIRS
    measured = RUN_HOURS["naive"] * 3600 / RUN_ROUNDS - alpha * N_PAIRS
    return alpha * n_pairs + measured * n_docs * n_features / (N_DOCS * N_FEATURES)


def software_round(n_pairs: int = N_PAIRS, n_docs: int = N_DOCS, n_features: int = N_FEATURES) -> float:
    """Equation 9: α·pairs + β₁·features·documents."""
    times = TABLE_IV["software"]
    alpha = (times.potentials + times.weights) / N_PAIRS
    return alpha * n_pairs + times.search * n_docs * n_features / (N_DOCS * N_FEATURES)


def accelerated_round(
    board: str, n_pairs: int = N_PAIRS, n_docs: int = N_DOCS, n_features: int = N_FEATURES
) -> RoundTimes:
    """Equation 10: α·pairs + β·features·documents + a·features·thresholds, for "far1" or "far2".

    b, what one DMA transfer costs, is in a: the paper gives one measurement for both.
    """
    times = TABLE_IV[board]
    pairs, values = n_pairs / N_PAIRS, n_docs * n_features / (N_DOCS * N_FEATURES)
    parts = (
        times.potentials * pairs,
        times.search * values,
        times.transfer * n_features / N_FEATURES,
        times.weights * pairs,
    )
    return RoundTimes(*parts, total=sum(parts))


def distributed_round(n_threads: int) -> float:
    """Equations 11 to 13 for the data of table II, without the distribution of features at the start.

    The seconds that each further client costs follow from the paper's statement that 52 threads are as fast as FAR1.
    """
    times = TABLE_IV["optimised software"]
    host = times.potentials + times.weights
    per_client = (TABLE_IV["far1"].total - host - times.search / 52) / 52
    return host + times.search / n_threads + per_client * n_threads


def energy(watts: float, round_seconds: float, n_rounds: int = ENERGY_ROUNDS) -> float:
    """Kilowatt-hours of a run (equation 7 without initialisation, times power)."""
    return watts * round_seconds * n_rounds / 3.6e6
