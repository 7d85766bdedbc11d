"""The plot of a training history."""

import pytest

from rankwell.errors import DataError
from rankwell.rankers.history_plot import plot_history

pytest.importorskip("matplotlib")


def test_one_panel_a_figure_with_its_values(tmp_path):
    figure = plot_history({"loss": [1.0, 0.5, 0.25], "ndcg@10": [0.1, 0.3, 0.2]}, step_name="round", best_step=2)
    assert [panel.get_ylabel() for panel in figure.axes] == ["loss", "ndcg@10"]
    steps, values = figure.axes[0].lines[0].get_data()
    assert list(steps) == [1, 2, 3]
    assert list(values) == [1.0, 0.5, 0.25]
    assert figure.axes[1].get_xlabel() == "round (best: 2)"


def test_saved_where_a_path_is_given(tmp_path):
    path = tmp_path / "history.png"
    plot_history({"loss": [1.0, 0.5]}, path=path, title="RankBoost")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_nothing_to_plot_is_an_error():
    with pytest.raises(DataError, match="history is empty"):
        plot_history({})
