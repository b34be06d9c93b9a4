"""The surfaces of kills that write files: each is work in a folder, done in a fork, killed, and done again.

Half of the kills come at a random moment of the work's duration; the others come before one of the calls of the file
system that it makes, such as between a file's last byte and its name."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch
from kit import exports, served
from mmgen_scenes import Scenes
from PIL import Image

from mmgen.decoding import Decoding
from mmgen.features.extract import extract
from mmgen.features.index import write_index
from mmgen.features.merge import checked_shards, write_merged
from mmgen.features.picture_sources import folder_pictures
from mmgen.features.shards import Shard, ShardOf
from mmgen.features.writer import StoreWriter
from mmgen.files import write_text
from mmgen.inference.export import export
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query
from mmgen.inference.shard_answers import merged, write_shard
from mmgen.parts import Record
from mmgen.progress import Progress
from mmgen.registry import installed
from mmgen.runs.export import export as export_data
from mmgen.runs.export import find_exporter
from mmgen.training.checkpoint import Checkpoint, Cursor

from . import folders, forks
from .piece import Outcome

Work = Callable[[Path], object]  # gets the folder in which it works
FINGERPRINT = {"extractor": "trials"}
KILLS = (1, 1, 2, 3)  # of a case, before the work is done to its end
LARGE = 75_000_000  # float32 values of a checkpoint of 300 MB
CARD = "# the user's text\n"


@dataclass(frozen=True)
class Writer:
    """Work that writes into a folder.

    name      of the surface
    work      writes; done again, it leaves the same files
    prepare   fills the folder in which the work begins
    replaces  whether the work replaces folders, which a kill may leave missing until the work is done again
    """

    name: str
    work: Work
    prepare: Work = lambda folder: None
    replaces: bool = False


class Writing:
    """The surface of a writer. `folder` gets the files before the work, those after it, and those of cases."""

    def __init__(self, writer: Writer, folder: Path) -> None:
        self.writer, self.name = writer, writer.name
        self.before, self.after, self.place = folder / "before", folder / "after", folder / "case"
        self.before.mkdir(parents=True)
        writer.prepare(self.before)
        self.calls = forks.calls(partial(writer.work, self._begin(self.after)), self.after)
        ending = forks.run(partial(writer.work, self._begin(self.place)), self.place)
        self.seconds = ending.seconds
        if different := folders.differences(self.after, self.place):
            raise SystemExit(f"error: {self.name}: undisturbed work differs: {different}")

    def case(self, draw: random.Random) -> Outcome:
        """Kill the work once or more often, and do it to its end."""
        work, wrong, kills = partial(self.writer.work, self._begin(self.place)), list[str](), 0
        for _ in range(draw.choice(KILLS)):
            if draw.random() < 0.5:
                ending = forks.run_and_kill(work, self.place, draw.uniform(0, self.seconds))
            else:
                ending = forks.Fork(work, self.place, kill_before=draw.randint(1, self.calls)).wait()
            wrong += forks.complaints(ending.errors)
            if not ending.killed:
                self.seconds = min(self.seconds, ending.seconds)
                wrong += _error(ending)
                break
            kills += 1
            wrong += folders.incomplete(self.before, self.after, self.place, self.writer.replaces)
        ending = forks.run(work, self.place)
        wrong += forks.complaints(ending.errors)
        wrong += _error(ending) or folders.differences(self.after, self.place)
        wrong += [f"{name} is left over among temporary files" for name in folders.files(Path(f"{self.place}.tmp"))]
        return Outcome(self.name, kills, tuple(wrong))

    def _begin(self, folder: Path) -> Path:
        """The folder as the work begins."""
        for path in (folder, Path(f"{folder}.tmp")):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.before, folder)
        return folder


def _error(ending: forks.Ending) -> list[str]:
    return [f"the work ends with {ending.status}: {ending.output[-300:].strip()}"] if ending.status else []


class Materials:
    """What writers write: a small model with random weights, pictures, records and tensors, all from the seed 0."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)

    @cached_property
    def predictor(self) -> Predictor:
        return served.predictor(self.folder)

    @cached_property
    def queries(self) -> list[Query]:
        return [
            Query(f"{color} {number}", {"image": served.picture(color), "caption": f"{number} dogs"})
            for number in range(4)
            for color in ("red", "green", "blue")
        ]

    @cached_property
    def photos(self) -> Path:
        """A folder of 12 pictures."""
        folder = self.folder / "photos"
        folder.mkdir()
        draw = np.random.default_rng(0)
        for number in range(12):
            pixels = draw.integers(0, 255, (64, 64, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.png")
        return folder

    @cached_property
    def records(self) -> list[Record]:
        draw = np.random.default_rng(0)
        return [Record(str(number), draw.standard_normal((7, 64)).astype(np.float32)) for number in range(60)]

    @cached_property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Weights and moments of 1 MB."""
        return _tensors(250_000)

    @cached_property
    def large_tensors(self) -> dict[str, torch.Tensor]:
        return _tensors(LARGE)


def _tensors(count: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    names = ("model.a", "optimizer.exp_avg.a", "optimizer.exp_avg_sq.a")
    return {name: torch.rand(count // len(names), generator=generator) for name in names}


def _checkpoint(tensors: dict[str, torch.Tensor], done: int, folder: Path) -> None:
    records = [{"update": number, "epoch": 0, "loss": 1.0, "grad_norm": 1.0} for number in range(done)]
    Checkpoint(folder).write(tensors, Cursor(done, records=records))


def _store(records: list[Record], path: Path) -> None:
    with StoreWriter(path, FINGERPRINT, "float32") as writer:
        for record in records:
            writer.add(record)
        writer.finish()


def _shards(records: list[Record], path: Path) -> None:
    for number in range(1, 4):
        shard = Shard(number, 3)
        _store([record for record in records if shard.owns(record.key)], shard.path(path))


def _answer(materials: Materials, shard: Shard, folder: Path) -> None:
    part = ShardOf.of(shard, [query.id for query in materials.queries])
    path = folder / "answers.jsonl"
    write_shard(materials.predictor, materials.queries, Decoding(), path, part, lambda steps: None)


def _merge_answers(folder: Path) -> None:
    """As `mmgen merge` does it."""
    lines = merged(folder / "answers.jsonl")
    write_text(folder / "answers.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def _merge_stores(folder: Path) -> None:
    path = folder / "regions.h5"
    write_merged(path, checked_shards(path), Progress())


def _extract(materials: Materials, folder: Path) -> None:
    shard = Shard(1, 2)
    extractor = materials.predictor.features.extractor("image")
    extract(extractor, folder_pictures(materials.photos, shard), shard.path(folder / "regions.h5"))


def _export(materials: Materials, folder: Path) -> None:
    export(materials.predictor, folder / "export", card=lambda *_: "# a card of mmgen\n")


def _edited_export(materials: Materials, folder: Path) -> None:
    """An export whose user has written the card and added a file."""
    _export(materials, folder)
    (folder / "export/README.md").write_text(CARD)
    (folder / "export/notes.txt").write_text("keep\n")


def _export_data(materials: Materials, folder: Path) -> None:
    """As `mmgen data export` does it, which refuses a finished export."""
    if not (folder / "data").exists():
        form = find_exporter("vqg", installed())
        export_data(materials.predictor.recipe, Scenes(**exports.FEW), form, folder / "data", None, Progress())


def writers(materials: Materials) -> list[Writer]:
    """All writers. What they write is made when a writer first needs it, before its process is forked."""

    def answer_shards(folder: Path) -> None:
        for number in (1, 2):
            _answer(materials, Shard(number, 2), folder)

    def checkpoints(tensors: str) -> tuple[Work, Work]:
        """The work, after the checkpoint of the update before."""
        return (
            lambda folder: _checkpoint(getattr(materials, tensors), 2, folder),
            lambda folder: _checkpoint(getattr(materials, tensors), 1, folder),
        )

    return [
        Writer("checkpoint", *checkpoints("tensors")),
        Writer("checkpoint of 300 MB", *checkpoints("large_tensors")),
        Writer("export", partial(_export, materials), lambda _: materials.predictor, replaces=True),
        Writer("export over an export", partial(_export, materials), partial(_edited_export, materials), replaces=True),
        Writer("data set export", partial(_export_data, materials), lambda _: materials.predictor, replaces=True),
        Writer("feature store", lambda folder: _store(materials.records, folder / "regions.h5")),
        Writer(
            "feature store that grows",
            lambda folder: _store(materials.records, folder / "regions.h5"),
            lambda folder: _store(materials.records[:20], folder / "regions.h5"),
        ),
        Writer("shard of features", partial(_extract, materials), lambda _: (materials.predictor, materials.photos)),
        Writer(
            "shard of answers",
            lambda folder: _answer(materials, Shard(1, 2), folder),
            lambda _: (materials.predictor, materials.queries),
        ),
        Writer("merged answers", _merge_answers, answer_shards),
        Writer("merged stores", _merge_stores, lambda folder: _shards(materials.records, folder / "regions.h5")),
        Writer("index of stores", write_index, lambda folder: _shards(materials.records, folder / "regions.h5")),
    ]
