"""Fuzzing of the index of `mmgen find`: damaged bytes, and other entries and vectors under a right checksum. Matches
must be those of the vectors that the file has; a picture without one is encoded."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import mutations
from .harness import Surface

QUERY = [0.6, 0.8, 0.0]
VECTORS = {"a.png": [1.0, 0.0, 0.0], "b.png": [0.0, 1.0, 0.0], "c.png": [0.6, 0.0, 0.8]}


def surfaces() -> list[Surface]:
    return [Surface("find_index", _prepare, _spoil, _find, _check)]


def _answers(queries: Any, **_: Any) -> Any:
    """As `Predictor.answers`, without a model."""
    from mmgen.inference.answers import Answer
    from mmgen.tensors import Prediction

    vectors = [VECTORS[query.id] if hasattr(query, "id") else QUERY for query in queries]
    return iter([Answer("q", prediction=Prediction("q", {"image": vector}, 1.0)) for vector in vectors])


def _prepare(folder: Path) -> Any:
    """A predictor without a model, queries for pictures, which no case touches, and their index."""
    from mmgen_tasks.retrieval.index import VectorIndex

    from mmgen.inference.query import Query
    from mmgen.storage.weights import read_tensors

    for name in VECTORS:
        (folder / name).write_bytes(b"a picture")
    predictor = SimpleNamespace(kind="vectors", step="s", names=SimpleNamespace(separate=True), answers=_answers)
    predictor.recipe, predictor.model = SimpleNamespace(model_dump_json=str), SimpleNamespace(state_dict=dict)
    predictor.predict = lambda query: next(_answers([query]))
    queries = [Query(name, picture=folder / name) for name in VECTORS]
    VectorIndex(predictor, folder / "photos.vectors").add(queries)  # type: ignore[arg-type]
    return predictor, queries, read_tensors(folder / "photos.vectors")[1]["model"]


def _spoil(draw: Random, folder: Path, _) -> Path:

    from mmgen.storage.weights import read_tensors, write_tensors

    path = folder / "photos.vectors"
    if draw.random() < 0.3:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
        return path
    tensors, about = read_tensors(path)
    vectors, key = tensors["vectors"], draw.choice(("entries", "entries", "model"))
    number = draw.choice((0.0, -1.0, 2.0, 1e30, float("nan"), float("inf")))
    vectors[draw.randrange(3), draw.randrange(3)] = number if draw.random() < 0.3 else vectors[0, 0]
    replacements = (
        vectors,
        vectors,
        vectors[:2],
        vectors[:0],
        vectors[:, :2],
        vectors[None],
        vectors.double(),
        vectors[0],
    )
    with contextlib.suppress(UnicodeEncodeError):  # as JSON it is always written
        about[key] = mutations.json_(draw, json.loads(about[key])) if key == "entries" else draw.choice(("", "x"))
        if draw.random() < 0.2:
            del about[key]
        write_tensors(path, {"vectors": draw.choice(replacements).contiguous().clone()}, about)
    return path


def _find(path: Path, prepared: Any) -> Any:
    from mmgen_tasks.retrieval.index import VectorIndex

    predictor, queries, _ = prepared
    before = path.read_bytes()
    index = VectorIndex(predictor, path)
    assert not index.add(queries)
    return before, index.rank({"image": "query"})


def _check(path: Path, content: Any, prepared: Any) -> None:
    from safetensors import safe_open

    (before, matches), (_, queries, model) = content, prepared
    path.write_bytes(before)
    with safe_open(path, "np") as file:
        about, vectors = json.loads(file.metadata()["mmgen"]), file.get_tensor("vectors")
    saved = dict(zip(json.loads(about["entries"]), vectors, strict=True)) if about["model"] == model else {}
    for query in queries:
        stat = (query.folder / query.picture).stat()
        state = json.dumps([str(query.folder / query.picture), stat.st_size, stat.st_mtime_ns])
        similarity = float(np.dot(saved.get(state, VECTORS[query.id]), QUERY))
        (actual,) = (match.similarity for match in matches if match.id == query.id)
        assert abs(actual - similarity) < 1e-5, f"{query.id}: {actual} instead of {similarity}"
    order = [match.similarity for match in matches]
    assert order == sorted(order, reverse=True) and len(order) == len(queries), f"{matches}"
