"""Which kernels a newcomer's first commands compile: a new one here makes the first use wait longer."""

import subprocess
import sys

import pytest

import rankwell

SEARCHING = {
    "postings.checking.check_documents",
    "selection.parts.bound_list",
    "selection.parts.length_norms",
    "selection.windows.search_windows",
}
MEASURING = {
    "cpu.ordering.count_grades",
    "cpu.ordering.rank_queries",
    "ranking_metrics.judgments.find_gains",
    "ranking_metrics.judgments.sum_ideal_dcg",
    "ranking_metrics.query_metrics.average_precision",
    "ranking_metrics.query_metrics.ndcg",
    "ranking_metrics.rankings.take_ranked",
}
KERNELS = {
    "search index wing heat": SEARCHING | {"selection.document_bits.count_bits", "selection.document_bits.mark_bits"},
    "features index queries.tsv qrels --out features.txt": SEARCHING
    | {
        "extraction.cpu.candidates.order_queries",
        "extraction.cpu.candidates.read_rows",
        "extraction.cpu.features.extract_candidates",
        "extraction.cpu.features.fill_weights",
        "extraction.cpu.feedback.add_bm25",
        "extraction.cpu.feedback.weigh_terms",
        "extraction.cpu.hits.decode_cells",
        "extraction.cpu.hits.fill_blocks",
        "extraction.cpu.hits.find_in_lists",
        "postings.checking.check_positions",
        "scoring.cpu.expressions.expression_inputs",
        "words.term_table.hash_strings",
        "words.term_table.number_words",
    },
    "train rankboost data.txt --vali data.txt --set n_rounds=30 --out new.rank": MEASURING
    | {
        "binning.bins.bin_interleaved",
        "binning.bins.feature_ranges",
        "binning.bins.width_thresholds",
        "boosting.cpu.rounds.run_rounds",
        "boosting.cpu.weights.choose_exponents",
        "boosting.cpu.weights.level_ratios",
        "boosting.cpu.weights.query_sum",
        "boosting.cpu.weights.sum_levels",
        "letor_text.lines.count_lines_without_row",
        "letor_text.lines.read_lines",
        "scoring.cpu.inputs.bucket_inputs",
        "scoring.cpu.layers._sum",
    },
}
LISTED = """
import sys
from unittest.mock import patch

from rankwell.cli import app
from rankwell.kernels.cpu.compilation import called_kernels

sys.argv = ["rankwell", *sys.argv[1:]]
with patch.object(app, "_leave"):
    app.main()
for one in called_kernels():
    print("KERNEL", one.module + "." + one.name)
"""


@pytest.fixture
def files(tmp_path):
    rankwell.write(rankwell.make_ranking(n_queries=40, n_docs=800, n_features=12), tmp_path / "data.txt")
    texts = ["heat of a wing", "wing and flow", "the boundary layer"]
    (tmp_path / "queries.tsv").write_text("1\twing\n2\tboundary layer\n")
    (tmp_path / "qrels").write_text("1 0 0 1\n2 0 2 2\n")
    with rankwell.IndexWriter(tmp_path / "index") as writer:
        writer.add({"id": str(number), "body": text} for number, text in enumerate(texts))
        writer.commit()
    return tmp_path


def kernels_of(command, folder):
    done = subprocess.run(
        [sys.executable, "-c", LISTED, *command.split()], cwd=folder, capture_output=True, text=True, check=True
    )
    lines = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("KERNEL ")]
    return {name.removeprefix("rankwell.kernels.") for name in lines}


@pytest.mark.parametrize("command", KERNELS)
def test_a_command_compiles_these_kernels_and_no_others(files, command):
    assert kernels_of(command, files) == KERNELS[command]
