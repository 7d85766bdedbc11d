"""What do users prefer? The log of results shown and clicked, the position bias in it, and the judgments it implies."""

from rankwell.clicks.click_counts import ClickCounts, count_clicks, read_click_counts
from rankwell.clicks.click_judgments import click_judgments, click_pairs
from rankwell.clicks.position_bias import PositionBias, estimate_position_bias, exchanged_neighbours
from rankwell.clicks.simulation import simulate_clicks
from rankwell.clicks.use_log import Impression, UseLog, read_impressions

__all__ = [
    "ClickCounts",
    "Impression",
    "PositionBias",
    "UseLog",
    "click_judgments",
    "click_pairs",
    "count_clicks",
    "estimate_position_bias",
    "exchanged_neighbours",
    "read_click_counts",
    "read_impressions",
    "simulate_clicks",
]
