"""Every plot, in the order in which pages show them."""

from __future__ import annotations

from benchmarks.report.drawing import Drawing
from benchmarks.report.figures.growth import GROWTH
from benchmarks.report.figures.listnet import (
    LISTNET_BITS,
    LISTNET_EPOCHS,
    LISTNET_GRADIENTS,
    LISTNET_LENGTHS,
    LISTNET_LOSSES,
    LISTNET_SAMPLING,
)
from benchmarks.report.figures.quality import QUALITY
from benchmarks.report.figures.rankboost import (
    RANKBOOST_ENERGY,
    RANKBOOST_GAMMA,
    RANKBOOST_ROUNDS,
    RANKBOOST_ROUTINES,
    RANKBOOST_SURFACE,
    RANKBOOST_WEAK_LEARNERS,
)
from benchmarks.report.figures.ranksvm import RANKSVM_CONVERGENCE, RANKSVM_TIMES
from benchmarks.report.figures.speed import SPEED
from benchmarks.report.figures.training import TRAINING
from benchmarks.report.figures.web_search import (
    SEARCH_BATCHES,
    SEARCH_DOCUMENTS,
    SEARCH_ENERGY,
    SEARCH_RANKERS,
    SEARCH_SHARES,
)

DRAWINGS: tuple[Drawing, ...] = (
    SPEED,
    QUALITY,
    GROWTH,
    TRAINING,
    RANKBOOST_ROUNDS,
    RANKBOOST_ROUTINES,
    RANKBOOST_SURFACE,
    RANKBOOST_GAMMA,
    RANKBOOST_WEAK_LEARNERS,
    RANKBOOST_ENERGY,
    RANKSVM_TIMES,
    RANKSVM_CONVERGENCE,
    LISTNET_LOSSES,
    LISTNET_EPOCHS,
    LISTNET_LENGTHS,
    LISTNET_SAMPLING,
    LISTNET_GRADIENTS,
    LISTNET_BITS,
    SEARCH_RANKERS,
    SEARCH_DOCUMENTS,
    SEARCH_SHARES,
    SEARCH_BATCHES,
    SEARCH_ENERGY,
)
