"""How near is the predicted time of a RankBoost round to the measured one, for sizes that the model was not fitted to?

The model of `rankwell plan train` is fitted on this machine to rounds of seven sizes and to exchanges between two
processes, and then predicts twelve other settings of documents, features and workers of one thread, of which each is
measured: the shortest of several rounds, every feature searched.
"""

from __future__ import annotations

from benchmarks.harness import Benchmark
from rankwell.planning.measurement import UNSEEN, MeasuredRound, check_model, fit_coefficients, measure_machine
from rankwell.planning.round_model import Coefficients, RoundModel, TrainingSizes
from rankwell.planning.worker_measurement import measure_exchange

MOST_ERROR = 0.15


def run(bench: Benchmark) -> None:
    check_fit(bench)
    model, network = measure_machine(quick=bench.quick), measure_exchange()
    errors = []
    for measured, predicted in check_model(model, network, settings=UNSEEN[:2] if bench.quick else UNSEEN):
        error = abs(predicted / measured.seconds - 1.0)
        errors.append(error)
        bench.record(
            f"{measured.n_docs:,} × {measured.n_features}, {measured.n_workers} workers",
            value=predicted / measured.seconds,
            unit="predicted / measured",
            note=f"measured {measured.seconds * 1e3:.3g} ms, predicted {predicted * 1e3:.3g} ms",
        )
    bench.record(
        f"the largest error of {len(errors)} settings",
        value=max(errors),
        unit="of the measured time",
        target=None if bench.quick else MOST_ERROR,
    )


def check_fit(bench: Benchmark) -> None:
    """Times that follow the model are fitted exactly."""
    true = Coefficients(2e-9, 3e-10, 1e-7, 2e-5)
    model = RoundModel("made up", {1: true})
    made = [
        MeasuredRound(docs, features, 1, model.round_time(TrainingSizes(docs, features)).total)
        for docs, features in ((5_000, 32), (5_000, 320), (40_000, 96), (80_000, 32), (160_000, 256))
    ]
    found = fit_coefficients(made)
    close = all(abs(getattr(found, name) / value - 1) < 1e-6 for name, value in vars(true).items())
    bench.check("the coefficients of made-up times are found", close)
