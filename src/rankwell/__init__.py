"""Rankwell: accelerated learning to rank.

The public names, and nothing else. They are looked up when first used, so `import rankwell` stays light: no compiler,
no GPU and no optional package is touched.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rankwell.errors import (
    ConvergenceWarning,
    DataError,
    DeviceError,
    FileFormatError,
    IndexLockedError,
    NotFittedError,
    ParameterError,
    QueryError,
    RankwellError,
    ServerError,
)
from rankwell.version import __version__

if TYPE_CHECKING:
    from rankwell.data.binning import Binner
    from rankwell.data.dataset import RankingDataset
    from rankwell.data.files import read, write
    from rankwell.data.synthetic import make_ranking
    from rankwell.data.trec_run import read_run, write_run
    from rankwell.features.feature_set import FeatureSet
    from rankwell.features.own_features import OwnFeatures
    from rankwell.features.qrels import read_qrels, write_qrels
    from rankwell.index.reader import Index
    from rankwell.index.schema import Schema
    from rankwell.index.writer import IndexWriter
    from rankwell.metrics.evaluation import evaluate
    from rankwell.metrics.significance import compare
    from rankwell.rankers.base import Ranker
    from rankwell.rankers.cascade import Cascade
    from rankwell.rankers.exporting import export
    from rankwell.rankers.imported import ImportedRanker
    from rankwell.rankers.lambdamart import LambdaMART
    from rankwell.rankers.lambdarank import LambdaRank
    from rankwell.rankers.least_squares import LeastSquares
    from rankwell.rankers.listmle import ListMLE
    from rankwell.rankers.listnet import ListNet
    from rankwell.rankers.made import MadeRanker
    from rankwell.rankers.rankboost import RankBoost
    from rankwell.rankers.ranknet import RankNet
    from rankwell.rankers.ranksvm import RankSVM
    from rankwell.rankers.registry import load
    from rankwell.scoring.description import RankerDescription
    from rankwell.serving.client import Client
    from rankwell.serving.ranking.feature_log import FeatureLog
    from rankwell.serving.ranking.ranked_search import RankedSearch

_HOME_OF = {
    "Binner": "rankwell.data.binning",
    "Cascade": "rankwell.rankers.cascade",
    "Client": "rankwell.serving.client",
    "ImportedRanker": "rankwell.rankers.imported",
    "FeatureLog": "rankwell.serving.ranking.feature_log",
    "FeatureSet": "rankwell.features.feature_set",
    "Index": "rankwell.index.reader",
    "IndexWriter": "rankwell.index.writer",
    "LambdaMART": "rankwell.rankers.lambdamart",
    "LambdaRank": "rankwell.rankers.lambdarank",
    "LeastSquares": "rankwell.rankers.least_squares",
    "ListMLE": "rankwell.rankers.listmle",
    "ListNet": "rankwell.rankers.listnet",
    "MadeRanker": "rankwell.rankers.made",
    "OwnFeatures": "rankwell.features.own_features",
    "RankBoost": "rankwell.rankers.rankboost",
    "RankNet": "rankwell.rankers.ranknet",
    "RankSVM": "rankwell.rankers.ranksvm",
    "RankedSearch": "rankwell.serving.ranking.ranked_search",
    "Ranker": "rankwell.rankers.base",
    "RankerDescription": "rankwell.scoring.description",
    "RankingDataset": "rankwell.data.dataset",
    "Schema": "rankwell.index.schema",
    "compare": "rankwell.metrics.significance",
    "evaluate": "rankwell.metrics.evaluation",
    "export": "rankwell.rankers.exporting",
    "load": "rankwell.rankers.registry",
    "make_ranking": "rankwell.data.synthetic",
    "read": "rankwell.data.files",
    "read_qrels": "rankwell.features.qrels",
    "read_run": "rankwell.data.trec_run",
    "write": "rankwell.data.files",
    "write_qrels": "rankwell.features.qrels",
    "write_run": "rankwell.data.trec_run",
}

__all__ = [
    "Binner",
    "Cascade",
    "Client",
    "ConvergenceWarning",
    "DataError",
    "DeviceError",
    "FeatureLog",
    "FeatureSet",
    "FileFormatError",
    "ImportedRanker",
    "Index",
    "IndexLockedError",
    "IndexWriter",
    "LambdaMART",
    "LambdaRank",
    "LeastSquares",
    "ListMLE",
    "ListNet",
    "MadeRanker",
    "NotFittedError",
    "OwnFeatures",
    "ParameterError",
    "QueryError",
    "RankBoost",
    "RankNet",
    "RankSVM",
    "RankedSearch",
    "Ranker",
    "RankerDescription",
    "RankingDataset",
    "RankwellError",
    "Schema",
    "ServerError",
    "__version__",
    "compare",
    "evaluate",
    "export",
    "load",
    "make_ranking",
    "read",
    "read_qrels",
    "read_run",
    "write",
    "write_qrels",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rankwell' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
