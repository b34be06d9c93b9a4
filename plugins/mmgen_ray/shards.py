"""Shards as tasks of Ray: features and answers, made as in one process, then merged; a list of what was broken."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.commands import quiet
from mmgen.errors import RunError, printable
from mmgen.features.shards import Shard, ShardOf
from mmgen.files import write_text
from mmgen.progress import tell

from .engine import SHARDS_PER_SLOT, Engine, Reports

Broken = Sequence[tuple[str, str]]  # keys or ids, with reasons
SHOWN = 5  # broken pictures that the terminal shows


@dataclass(frozen=True)
class Extraction:
    """Features to extract. `folder`: where relative paths begin."""

    folder: Path
    source: str
    store: Path
    kind: str
    sets: tuple[str, ...]
    float32: bool

    def do(self, shard: Shard, board: Any) -> Broken | None:
        """The pictures of a shard that could not be read; None if the shard has no readable picture."""
        from mmgen.configs import ExtractorConfig
        from mmgen.features.extract import NoFeatures, extract
        from mmgen.features.picture_sources import pictures_of
        from mmgen.recipe.load import part_from
        from mmgen.registry import installed

        extractor = part_from(ExtractorConfig, self.kind, self.sets, installed()).build()
        pictures = pictures_of(self.source, shard)
        dtype = "float32" if self.float32 else "float16"
        progress = Reports(board, str(shard))
        try:
            if not pictures:
                return None
            return extract(
                extractor, pictures, shard.path(self.store), dtype=dtype, progress=progress, wait=True
            ).broken
        except NoFeatures as error:
            return error.broken


@dataclass(frozen=True)
class Answers:
    """Queries to answer. `writes`: whether with texts, or with another prediction."""

    folder: Path
    run: Path
    sources: tuple[Path, ...]
    pairs: tuple[str, ...]
    sets: tuple[str, ...]
    step: str | None
    n: int | None
    seed: int | None
    out: Path
    writes: bool

    def do(self, shard: Shard, board: Any) -> None:
        from mmgen.inference.load import check_query, load_for, search_options
        from mmgen.inference.query import named_values, read_sources
        from mmgen.inference.query_tables import table_reader
        from mmgen.inference.shard_answers import write_shard

        values, table = named_values(list(self.pairs)), table_reader(self.run, self.step)
        queries = read_sources(self.sources, values, check_query(self.run, self.step, self.writes), None, table)
        predictor = load_for(self.run, queries, self.step, self.sets, self.writes)
        options = search_options(predictor, self.n, self.sets) if self.writes else None
        part = ShardOf.of(shard, (query.id for query in queries))
        with Reports(board, str(shard)).task("answers", len(part.numbers)) as advance:
            write_shard(predictor, queries, options, self.out, part, advance, self.seed)


def do_shard(work: Extraction | Answers, shard: Shard, board: Any) -> Broken | None:
    """The task of a shard."""
    quiet()
    with contextlib.chdir(work.folder):
        return work.do(shard, board)


def run_shards(engine: Engine, work: Extraction | Answers, path: Path, count: int | None, counted: str) -> list[Broken]:
    """Do all shards of `path`; those that are done are skipped. Returns the broken pictures of each. Raises RunError if
    an earlier command has cut the work into another number of shards."""
    before = _count_before(path)
    if count and before and count != before:
        raise RunError(f"--shards {count}: {path} has shards of {before}; leave the option out, or delete those shards")
    count = count or before or SHARDS_PER_SLOT * engine.slots
    shards = [Shard(number, count) for number in range(1, count + 1)]
    tasks = {engine.submit(do_shard, work, shard, engine.board): f"shard {shard}" for shard in shards}
    results = engine.run_all(tasks, path.name, "shards", counted)
    return [broken or () for broken in results.values()]


def _count_before(path: Path) -> int | None:
    """The number of shards into which an earlier command has cut the work; None if there was none."""
    pattern = re.compile(rf"\.?{re.escape(path.stem)}-\d+-of-(\d+){re.escape(path.suffix)}(\.partial)?")
    names = (file.name for file in path.parent.iterdir()) if path.parent.is_dir() else ()
    return next((int(match[1]) for name in names if (match := pattern.fullmatch(name))), None)


def merge_features(work: Extraction, join: bool) -> int:
    """Check that every readable picture has features, and with `join` write one file. The number of pictures."""
    from mmgen.features.merge import checked_shards, write_merged
    from mmgen.features.shards import shard_files
    from mmgen.progress import Bars

    present = shard_files(work.store, lambda shard: False)
    count = next(iter(present)).count
    missing = [shard for number in range(1, count + 1) if (shard := Shard(number, count)) not in present]
    store = checked_shards(work.store, without=missing)
    if join:
        write_merged(work.store, store, Bars())
    return len(store)


def merge_answers(work: Answers) -> tuple[int, Broken]:
    """Write the answers of all shards into one file. Their number, and those with an error."""
    from mmgen.inference.shard_answers import merged

    answers = list(merged(work.out))
    write_text(work.out, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in answers))
    return len(answers), [(line["id"], line["error"]) for line in answers if "error" in line]


def _one_line(text: str) -> str:
    """A text from outside, as a column."""
    return printable(text.replace("\n", r"\n").replace("\t", r"\t"))


def list_broken(path: Path, broken: Iterable[tuple[str, str]]) -> None:
    """Write what could not be read into one list beside `path`, and print the first of it."""
    target = path.with_name(f"{path.name}.broken.tsv")
    rows = sorted((_one_line(key), _one_line(reason)) for key, reason in broken)
    if not rows:
        target.unlink(missing_ok=True)
        return
    write_text(target, "".join(f"{key}\t{reason}\n" for key, reason in rows))
    for key, reason in rows[:SHOWN]:
        tell(f"skipped {key}: {reason}", err=True)
    tell(f"{target}: {len(rows)} pictures could not be read", err=True)
