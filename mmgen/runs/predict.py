"""Pictures in, questions out: a finished run asks about images it has never seen, read the way it was taught."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..configs import FeaturesConfig
from ..decoding import Decoding
from ..errors import DataError, RunError, UnavailableError, regular
from ..evaluation.generate import generate
from ..features.embedder import StoredEmbedder
from ..features.extract import folder_pictures, picture
from ..features.store import difference
from ..files import take_name
from ..oom import ADVICE_FEWER_TEXTS, OomRetry
from ..parts import Extractor, FailedImage, Picture
from ..tensors import Example, Generation
from .load import Run, load_run


@dataclass(frozen=True)
class Query:
    """What to ask about: a picture, a caption, or both."""

    name: str
    picture: Picture | None = None
    caption: str | None = None


def requests(sources: Sequence[Path], caption: str | None) -> list[Query]:
    """Requests from image files, folders of images, and JSONL files of {"image": path, "caption": text}; from the
    caption alone when there are no sources. Raises DataError."""
    found: list[Query] = []
    for source in sources:
        if source.is_dir():
            found += [Query(picture.key, picture, caption) for picture in folder_pictures(source)]
        elif source.suffix == ".jsonl":
            found += _listed(source, caption)
        elif source.exists():
            found.append(Query(str(source), picture(source), caption))
        else:
            raise DataError(f"{source}: no such file; give an image, a folder of images, or a JSONL file of them")
    if sources and not found:
        raise DataError(
            f"{', '.join(map(str, sources))}: nothing to ask about; give a JSON object a line, like "
            f'{{"image": "photo.jpg"}}'
        )
    return found or [Query("caption", None, caption)]


def _listed(source: Path, caption: str | None) -> Iterator[Query]:
    for number, line in enumerate(_text(source).split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield _request(json.loads(line), source.parent, number, caption)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f'{source}:{number}: not a line like {{"image": "photo.jpg", "caption": "..."}}: {error}'
            ) from None


def _text(source: Path) -> str:
    try:
        return regular(source).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{source}: cannot be read: {getattr(error, 'strerror', None) or error}; save it as UTF-8, a JSON object a "
            "line"
        ) from None


def _request(entry: Any, folder: Path, number: int, caption: str | None) -> Query:
    """A line of a JSONL file. Raises ValueError for values of other types than are asked for."""
    if not isinstance(entry, dict):
        raise ValueError("it is no object")
    for name, kinds in (("image", str), ("caption", str), ("id", str | int)):
        if entry.get(name) is not None and (not isinstance(entry[name], kinds) or isinstance(entry[name], bool)):
            raise ValueError(f'"{name}" must be a text, not {json.dumps(entry[name])[:40]}')
    image, own = entry.get("image") or None, entry.get("id")
    if image is not None and "\0" in image:
        raise ValueError('"image" holds a NUL')
    name = own if own is not None else image or number
    text = caption if entry.get("caption") is None else entry["caption"]
    if not image and not text:
        raise ValueError('it has neither "image" nor "caption"')
    return Query(str(name), picture(folder / image) if image else None, text or None)


def load(path: str | Path, requests: Iterable[Query], step: str | None = None) -> Run:
    """The run with the weights of `step`, or else of the last step that reads just what the requests give."""
    run = load_run(path, step)
    given = _given(run, list(requests))
    if step is None and set(run.recipe.steps[run.step].inputs) != given:
        fitting = [
            name
            for name, each in run.recipe.steps.items()
            if set(each.inputs) == given and each.evaluate and run.folder.finished(name, "weights.safetensors")
        ]
        if not fitting:
            told = ", ".join(f"{name} ({' and '.join(each.inputs)})" for name, each in run.recipe.steps.items())
            what = (
                f"no step reads just {' and '.join(sorted(given))}"
                if given
                else "some requests have no picture, others no caption, and no step reads what all have"
            )
            raise RunError(f"{path}: {what}; its steps read: {told}; choose one with --step")
        run = load_run(path, fitting[-1])
    return run


def _given(run: Run, requests: list[Query]) -> set[str]:
    """Inputs of the run that every request can fill."""
    pictures = {name for name, embedder in run.model.embedders.items() if isinstance(embedder, StoredEmbedder)}
    given = pictures if all(request.picture for request in requests) else set()
    return given | (set(run.model.inputs) - pictures if all(request.caption for request in requests) else set())


def ask(
    run: Run, requests: Iterable[Query], options: Decoding, at_once: int = 1
) -> Iterator[tuple[Query, list[Generation] | FailedImage]]:
    """Questions for every request, best first; a picture that cannot be read gives its reason instead. `at_once`:
    requests that are answered together, which is quicker, and later for the first."""
    inputs = run.recipe.steps[run.step].inputs
    extractors = {
        name: _extractor(run, name) for name in inputs if isinstance(run.model.embedders[name], StoredEmbedder)
    }
    coming, retry = iter(requests), OomRetry("writing", ADVICE_FEWER_TEXTS)
    while some := list(itertools.islice(coming, at_once)):
        read = [_read(run, inputs, extractors, request) for request in some]
        written = iter(
            generate(run.model, [one for one in read if isinstance(one, Example)], options, inputs, retry=retry)
        )
        for request, one in zip(some, read, strict=True):
            yield request, one if isinstance(one, FailedImage) else next(written)


def _read(
    run: Run, inputs: Sequence[str], extractors: Mapping[str, Extractor], request: Query
) -> Example | FailedImage:
    values: dict[str, Any] = {}
    for name in inputs:
        values[name] = _record(extractors[name], request) if name in extractors else request.caption
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise DataError(
            f"{request.name}: the step '{run.step}' reads {' and '.join(inputs)}, and there is no {missing[0]}"
        )
    return next((value for value in values.values() if isinstance(value, FailedImage)), Example(request.name, values))


def _record(extractor: Extractor, request: Query) -> Any:
    return next(iter(extractor.records([request.picture])), None) if request.picture else None


def _extractor(run: Run, name: str) -> Extractor:
    """What makes an input's features from a raw picture, as they were made for learning."""
    config, embedder = run.recipe.inputs[name], run.model.embedders[name]
    if not isinstance(config, FeaturesConfig) or config.extractor is None:
        made = embedder.fingerprint.get("extractor", embedder.fingerprint)
        raise UnavailableError(
            f"{run.folder.path}: '{name}' was learnt from features of {made}, which cannot be made from a picture "
            "here; "
            f"name the extractor that made them in the recipe ([inputs.{name}.extractor]), or evaluate with `mmgen "
            "run` on a features file"
        )
    extractor = config.extractor.build()
    if dict(extractor.fingerprint) != embedder.fingerprint and not config.allow_other_features:
        raise UnavailableError(
            f"{run.folder.path}: the extractor of '{name}' makes other features here than those learnt from "
            f"({difference(dict(extractor.fingerprint), embedder.fingerprint)}); allow_other_features = true uses them "
            "all the same"
        )
    return extractor


def different(n: int) -> Decoding:
    """How n different questions are looked for: diverse beam search, two beams a group."""
    return (
        Decoding()
        if n == 1
        else Decoding(num_beams=2 * n, num_beam_groups=n, diversity_penalty=1.0, num_return_sequences=n)
    )


def as_json(request: Query, outcome: list[Generation] | FailedImage) -> Mapping[str, Any]:
    if isinstance(outcome, FailedImage):
        return {"id": request.name, "error": outcome.reason}
    return {"id": request.name, "questions": [{"text": text.text, "score": round(text.score, 4)} for text in outcome]}


@contextlib.contextmanager
def answers_file(path: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Calls of what it yields add lines to `.<name>.partial` beside `path`, each at once, and it takes the file's name
    when all are there. Whatever stops that, the lines so far stay in it, an older file stays as it is, and a note on
    the exception says so. Raises RunError when something cannot be written, at first before there is anything to
    add."""
    partial, lines = path.with_name(f".{path.name}.partial"), 0

    def add(line: Mapping[str, Any]) -> None:
        nonlocal lines
        with _refused(path):
            _append(partial, json.dumps(line, ensure_ascii=False) + "\n")
        lines += 1

    with _refused(path):
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is no file")
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(b"")
    try:
        yield add
        with _refused(path):
            take_name(partial, path)
    except BaseException as error:
        if lines:
            error.add_note(f"the answers so far ({lines}) are in {partial}; the same command begins anew")
        else:
            partial.unlink(missing_ok=True)
        raise


def _append(path: Path, line: str) -> None:
    """A whole line or nothing. Half a character, which some JSON files have and UTF-8 has not, is written as JSON
    spells it."""
    before = path.stat().st_size
    try:
        with path.open("ab") as file:
            file.write(line.encode("utf-8", "backslashreplace"))
    except OSError:
        os.truncate(path, before)
        raise


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror or error}") from None
