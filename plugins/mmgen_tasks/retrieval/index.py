"""An index of vectors for `mmgen find`: those of a folder's pictures, in a file, so that each is encoded only once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmgen.errors import DataError, RunError
from mmgen.inference.answers import Answer
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query
from mmgen.progress import Progress
from mmgen.storage.weights import read_tensors, write_tensors

MODEL, ENTRIES = "model", "entries"  # keys of the file's metadata
DELETE = "delete the file, and the pictures are encoded again"


class Match(NamedTuple):
    """An entry of an index. `similarity`: the cosine similarity to the query, from -1 to 1."""

    id: str
    similarity: float


class VectorIndex:
    """Vectors of one kind, such as pictures, by a step that predicts `vectors`.

        index = VectorIndex(mmgen.load("runs/retrieval/default/seed-0"), "photos.vectors")
        index.add(read_sources([Path("photos")]))
        index.rank({"caption": "a red ball near a dog"})[:5]

    predictor  the model
    path       the file of vectors; None: nothing is kept. It has one entry for each picture file, with the file's size
               and date; a file that has changed is encoded again, and so is everything after training. Other queries
               (lines of a file) are always encoded

    Raises RunError for a step without vectors, and for a damaged file.
    """

    def __init__(self, predictor: Predictor, path: str | Path | None = None) -> None:
        if predictor.kind != "vectors" or not predictor.names.separate:
            raise RunError(
                f"{predictor.where}: step '{predictor.step}' predicts {predictor.kind}, not a vector for every input; "
                "choose a step that trains 'contrastive'"
            )
        self.predictor, self.path = predictor, Path(path) if path else None
        self.ids: list[str] = []
        self.vectors = torch.zeros(0, 0)  # (N, W)
        self.encoded = 0  # queries that were not in the file
        self._model = _digest_of_model(predictor)
        self._known = _read(self.path, self._model) if self.path and self.path.exists() else {}
        self._width = next((len(vector) for vector in self._known.values()), 0)  # 0: unknown

    def add(self, queries: Sequence[Query], progress: Progress | None = None, batch_size: int = 16) -> list[Answer]:
        """Add queries that give the same single input, and write the file. Returns the answers of queries that cannot
        be read, which are left out. Stopped in the middle, it keeps what it has encoded."""
        states = [_size_and_time(query) for query in queries]
        missing = [query for query, state in zip(queries, states, strict=True) if state not in self._known]
        answers = self.predictor.answers(missing, batch_size=batch_size)
        rows, failed = [*self.vectors], list[Answer]()
        try:
            with (progress or Progress()).task(f"{self.predictor.step}: encoding", len(queries), "queries") as advance:
                for query, state in zip(queries, states, strict=True):
                    if state not in self._known:
                        answer = next(answers)
                        vector = None if answer.error else self._vector(answer)
                        self.encoded += 1
                        if vector is None:
                            failed.append(answer)
                            continue
                        if state:
                            self._known[state] = vector
                    rows.append(self._known[state] if state else vector)
                    self.ids.append(query.id)
                    advance()
        finally:
            self.vectors = torch.stack(rows) if rows else self.vectors
            if self.path and self._known and self.encoded:
                vectors = torch.stack([*self._known.values()])
                write_tensors(
                    self.path, {"vectors": vectors}, {MODEL: self._model, ENTRIES: json.dumps([*self._known])}
                )
        return failed

    def rank(self, query: Any) -> list[Match]:
        """All entries, the most similar to the query first; equal similarities in the order of `add`. The query is that
        of `Predictor.predict`: a picture, or a text by the name of its input. Raises DataError."""
        vector = self._vector(self.predictor.predict(query))
        similarities = (self.vectors @ vector if self.ids else torch.zeros(0)).tolist()
        matches = [Match(id_, similarity) for id_, similarity in zip(self.ids, similarities, strict=True)]
        return sorted(matches, key=lambda match: -match.similarity)

    def _vector(self, answer: Answer) -> Tensor:
        """As `_only_vector`. Raises RunError if the vectors of the file have another length."""
        vector = _only_vector(answer)
        if self._width not in (0, len(vector)):
            raise RunError(
                f"{self.path}: has vectors of {self._width} numbers, but the model's have {len(vector)}; {DELETE}"
            )
        return vector


def _read(path: Path, model: str) -> dict[str, Tensor]:
    """State of a picture file -> (W,), of a file with a vector for each; empty if it is of another model. Raises
    RunError."""
    tensors, about = read_tensors(path)
    if {MODEL, ENTRIES} - about.keys() or "vectors" not in tensors:
        raise RunError(f"{path}: is not an index of vectors; choose another name")
    if about[MODEL] != model:
        return {}
    vectors = tensors["vectors"]
    try:
        states = json.loads(about[ENTRIES])
    except (TypeError, ValueError, RecursionError):
        states = None
    if not isinstance(states, list) or not all(isinstance(state, str) for state in states):
        raise RunError(f"{path}: '{ENTRIES}' must be a list of strings; {DELETE}")
    if len({*states}) != len(states) or vectors.dim() != 2 or len(vectors) != len(states):
        raise RunError(
            f"{path}: expected a vector for each of {len(states)} different pictures, but got an array of the shape "
            f"{tuple(vectors.shape)} for {len({*states})}; {DELETE}"
        )
    if vectors.dtype != torch.float32 or not (vectors.norm(dim=1) < 1.001).all():  # false for nan
        raise RunError(f"{path}: every vector must have finite float32 numbers and a length of at most 1; {DELETE}")
    return dict(zip(states, vectors, strict=True))


def _only_vector(answer: Answer) -> Tensor:
    """(W,) of length 1. Raises DataError for a query with several inputs."""
    if len(answer.value) > 1:
        raise DataError(f"{answer.id}: gives {' and '.join(answer.value)}; give one of them")
    return F.normalize(torch.tensor(next(iter(answer.value.values()))), dim=0)


def _size_and_time(query: Query) -> str:
    """A picture file with its size and date, or "" for another query."""
    if not isinstance(query.picture, Path) or query.inputs:
        return ""
    path = (query.folder or Path()) / query.picture
    try:
        about = path.stat()
    except OSError:  # reading the picture will say what is wrong
        return ""
    return json.dumps([str(path.resolve()), about.st_size, about.st_mtime_ns])


def _digest_of_model(predictor: Predictor) -> str:
    """A digest of the weights and the recipe, on which vectors depend."""
    digest = hashlib.sha256(repr((predictor.step, predictor.recipe.model_dump_json())).encode())
    for name, tensor in predictor.model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
