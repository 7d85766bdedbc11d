"""tantivy's best 1,000 documents, ranked by LightGBM from Python, behind Starlette, msgspec and Uvicorn.

The model is trained on the features that our second pass reads, and scores all candidates. Their features are
extracted by Rankwell (`extracted`), or cost nothing (`given`): then each document has one row for all queries, taken
from a table. Ten results with their stored fields and tantivy's snippets are the answer.

`python -m benchmarks.rivals.tantivy_lightgbm FOLDER` serves, and prints its port.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.served_cases import N_CANDIDATES, ServedCase

NAME = "tantivy and LightGBM"
IS_INSTALLED = find_spec("tantivy") is not None and find_spec("lightgbm") is not None
FEATURES = ("extracted", "given")
# Workers that answer queries, and LightGBM's threads: on two cores, both ways to use them.
WAYS = ((2, 1), (1, 2))
_HEAP_BYTES = 1 << 30
_N_TREES, _N_RESULTS, _SNIPPET_LENGTH = 100, 10, 160


def prepare(case: ServedCase) -> None:
    """`rival` in the case's folder: tantivy's index, LightGBM's model, names of features, and rows to give."""
    import lightgbm

    folder = case.folder / "rival"
    (folder / "index").mkdir(parents=True)
    index = _open(folder / "index", is_stemmed=case.is_stemmed)
    _add_documents(index, case.folder / "documents.jsonl")
    settings = {"objective": "lambdarank", "num_leaves": 31, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 2}
    data = lightgbm.Dataset(case.train.features, case.train.labels.astype(np.int32), group=case.train.query_sizes)
    lightgbm.train(settings, data, _N_TREES).save_model(folder / "model.txt")
    (folder / "features.txt").write_text("\n".join(case.read))
    rows = np.random.default_rng(0).integers(case.train.n_docs, size=index.searcher().num_docs)
    np.save(folder / "rows.npy", case.train.features[rows])


def _open(folder: Path, *, is_stemmed: bool) -> Any:
    import tantivy

    builder = tantivy.SchemaBuilder()
    # Positions are not needed for what is asked here.
    builder.add_text_field("text", stored=True, tokenizer_name="words", index_option="freq")
    # The document as it was given.
    builder.add_bytes_field("source", stored=True, indexed=False)
    index = tantivy.Index(builder.build(), path=str(folder))
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    if is_stemmed:
        words = words.filter(tantivy.Filter.stopword("english")).filter(tantivy.Filter.stemmer("english"))
    index.register_tokenizer("words", words.build())
    (folder / "is_stemmed").write_text("yes" if is_stemmed else "")
    return index


def _add_documents(index: Any, documents: Path) -> None:
    """One thread and a large heap: one segment, whose documents are in their order."""
    import msgspec
    import tantivy

    writer = index.writer(_HEAP_BYTES, 1)
    with documents.open("rb") as lines:
        for line in lines:
            fields = msgspec.json.decode(line)
            text = " ".join(value for name, value in fields.items() if name != "id" and isinstance(value, str))
            writer.add_document(tantivy.Document(text=text, source=line))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    if index.searcher().num_segments != 1:
        raise RuntimeError(f"tantivy wrote {index.searcher().num_segments} segments: documents are not in their order.")


class Searcher:
    """Answers queries; several threads may.

    Parameters
    ----------
    folder : of a case
    features : "extracted" or "given"
    n_threads : LightGBM's
    """

    def __init__(self, folder: Path, features: str, n_threads: int) -> None:
        import lightgbm

        rival = folder / "rival"
        is_stemmed = bool((rival / "index" / "is_stemmed").read_text())
        self._index = _open(rival / "index", is_stemmed=is_stemmed)
        self._searcher = self._index.searcher()
        self._booster = lightgbm.Booster(model_file=rival / "model.txt")
        self._n_threads = n_threads
        self._rows = self._extraction(folder) if features == "extracted" else _given(rival / "rows.npy")

    def search(self, text: str) -> dict[str, Any]:
        import msgspec
        import tantivy

        query, _ = self._index.parse_query_lenient(text, ["text"])
        hits = self._searcher.search(query, N_CANDIDATES, count=False).hits
        docs = np.array([address.doc for _, address in hits], np.int64)
        results: list[dict[str, Any]] = []
        if len(docs):
            rows = self._rows(text, docs)
            scores = self._booster.predict(
                rows, raw_score=True, num_threads=self._n_threads, predict_disable_shape_check=True
            )
            snippets = tantivy.SnippetGenerator.create(self._searcher, query, self._index.schema, "text")
            snippets.set_max_num_chars(_SNIPPET_LENGTH)
            for place in np.argsort(-scores, kind="stable")[:_N_RESULTS].tolist():
                first_score, address = hits[place]
                document = self._searcher.doc(address)
                fields = msgspec.json.decode(bytes(document.get_first("source")))
                caption = snippets.snippet_from_doc(document).to_html()
                results.append(
                    {"id": fields["id"], "score": float(scores[place]), "first_score": first_score, "caption": caption}
                    | {"fields": fields, "rank": len(results) + 1}
                )
        return {"query": text, "n_candidates": len(docs), "results": results}

    def _extraction(self, folder: Path) -> Callable[[str, np.ndarray], np.ndarray]:
        from rankwell import Index
        from rankwell.features.extraction import extract
        from rankwell.features.feature_set import FeatureSet
        from rankwell.features.hit_reading import collect_hits

        index = Index.open(folder / "index")
        names = FeatureSet((folder / "rival" / "features.txt").read_text().split("\n"))

        def rows(text: str, docs: np.ndarray) -> np.ndarray:
            query = index.parse(text, plain=True)
            hits = collect_hits(index, [query], [docs], places=names.reads_places, n_jobs=self._n_threads)
            return extract(hits, names, n_jobs=self._n_threads)

        return rows


def _given(path: Path) -> Callable[[str, np.ndarray], np.ndarray]:
    table = np.load(path)
    return lambda text, docs: table[docs]


def serve(searcher: Searcher, n_workers: int) -> None:
    """Serve on a free port, which is printed, with the settings of our own server."""
    import msgspec
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    encoder, workers = msgspec.json.Encoder(), ThreadPoolExecutor(n_workers)

    async def search(request: Request) -> Response:
        call = partial(searcher.search, request.query_params["q"])
        found = await asyncio.get_running_loop().run_in_executor(workers, call)
        return Response(encoder.encode(found), media_type="application/json")

    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    print(listening.getsockname()[1], flush=True)
    app = Starlette(routes=[Route("/search", search)])
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listening])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals.tantivy_lightgbm")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--features", choices=FEATURES, default="extracted")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    serve(Searcher(options.folder, options.features, options.threads), options.workers)


if __name__ == "__main__":
    main()
