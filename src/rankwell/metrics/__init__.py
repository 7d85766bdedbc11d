"""How good is a ranking?"""

from rankwell.metrics.conventions import CONVENTIONS, DEFAULT, Convention, get_convention
from rankwell.metrics.evaluation import Evaluation, evaluate
from rankwell.metrics.evaluator import MetricEvaluator, metric_function
from rankwell.metrics.metric import Metric
from rankwell.metrics.names import parse_metric, parse_metrics
from rankwell.metrics.significance import Comparison, compare

__all__ = [
    "CONVENTIONS",
    "DEFAULT",
    "Comparison",
    "Convention",
    "Evaluation",
    "Metric",
    "MetricEvaluator",
    "compare",
    "evaluate",
    "get_convention",
    "metric_function",
    "parse_metric",
    "parse_metrics",
]
