"""Which page a question's results are on, and what the question is called in a plot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Subject:
    """A page of results: its file's name, its title, and the questions on it, by the beginnings of their names."""

    name: str
    title: str
    questions: tuple[str, ...]


SUBJECTS = (
    Subject("quality", "How good the rankings are", ("untuned", "ranker_quality", "retrieval_quality", "click_")),
    Subject("training", "How long rankers train", ("training_",)),
    Subject("lambdamart", "LambdaMART, and scoring trees", ("lambdamart", "evaluate_trees")),
    Subject("rankboost", "RankBoost", ("rankboost",)),
    Subject("ranksvm", "RankSVM", ("ranksvm",)),
    Subject("listnet", "ListNet and other networks", ("listnet",)),
    Subject("cluster", "Several processes, and data larger than memory", ("cluster_", "plan_", "train_streaming")),
    Subject("data", "Reading, binning, measuring", ("read_", "bin_", "evaluate_metrics")),
    Subject(
        "search", "Indexing and searching", ("index_", "select_", "filter_", "forward_", "open_", "static_", "linked_")
    ),
    Subject("features", "Features, and scoring on a GPU", ("extract_", "evaluate_rankers", "scoring_", "cascade")),
    Subject("serving", "Serving", ("serve_", "shards")),
    Subject("hardware", "Accelerators as hardware", ("hardware",)),
    Subject("start", "Starting, and sharing a machine", ("import_", "first_use", "busy_")),
)
OTHER = Subject("other", "Other questions", ())

# What a question does, in two or three words.
ACTIVITIES = {
    "bin_features": "bin features",
    "evaluate_metrics": "measure a ranking",
    "evaluate_trees": "score 1,000 trees",
    "import_time": "import the package",
    "index_text": "index text",
    "lambdamart_cpu": "grow a LambdaMART tree",
    "lambdamart_whole": "train from file to file",
    "listnet_cpu": "train ListNet",
    "rankboost_cpu": "a round of RankBoost",
    "ranksvm_cuda": "sort queries on a GPU",
    "read_text": "read LETOR text",
    "training_seconds": "train as it comes",
    "select_documents": "find the best documents",
    "serve_queries": "answer queries",
}


def subject_of(question: str) -> Subject:
    """The subject whose beginning of the name is the longest."""
    found = [(len(start), subject) for subject in SUBJECTS for start in subject.questions if question.startswith(start)]
    return max(found, key=lambda each: each[0], default=(0, OTHER))[1]


def activity_of(question: str) -> str:
    return ACTIVITIES.get(question, question.replace("_", " "))
