"""Fuzzing of what a run saves of its data for other starts: the fingerprint of examples, their sizes, and the plan. A
damaged file must be said to be damaged, or be as good as missing: nothing but what was saved may come from it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from kit import toys
from kit.training import RecordedProgress

from . import mutations
from .harness import Surface

MADE_FROM = "made from"
STEP, FINGERPRINT, REMARKS = "first", "of these examples", [["data", 3, 40]]


def surfaces() -> list[Surface]:
    named = r"(examples|sizes)-[0-9a-f]+\.safetensors"
    return [
        Surface("data_cache", _prepare, _spoil, _recall, _check, named=named),
        Surface("plan", _prepare_plan, _spoil_plan, _plan, _check_plan),
    ]


class _Data:
    """Data sets that know their own fingerprint."""

    def __init__(self, recipe: Any) -> None:
        self.recipe, self.trusted = recipe, ""

    def identities(self) -> dict[str, str]:
        return {"train": "v1"}

    def sources(self, step: str) -> dict[str, Any]:
        return {}

    def fingerprint(self) -> str:
        return FINGERPRINT

    def trust(self, fingerprint: str) -> None:
        self.trusted = fingerprint


def _cache(folder: Path) -> Any:
    from mmgen.storage.data_cache import DataCache

    return DataCache(SimpleNamespace(path=folder / "seed-0"), RecordedProgress())  # type: ignore[arg-type]


def _sizes() -> dict[str, Any]:
    """Sizes of 40 examples, half of which have two alternatives."""
    import torch

    return {
        "pairs": torch.arange(40, dtype=torch.int32),
        "slots": torch.arange(60, dtype=torch.float64) / 3,
        "starts": torch.tensor([*range(20), *range(20, 60, 2)]),
        "shapes": torch.tensor([0] * 20 + [1] * 20, dtype=torch.int32),
        "ends": torch.tensor([0] * 20 + [*range(2, 42, 2)]),
        "ids": torch.tensor(list("".join(f"{number}" for number in range(20, 40)).encode()), dtype=torch.uint8),
    }


def _measures() -> Any:
    from mmgen.data.example_sizes import Measures

    return Measures.from_columns(_sizes(), {"counts": [[], [2]], "complete": True})


def _prepare(folder: Path) -> Any:
    from mmgen.recipe.load import load
    from mmgen.registry import installed
    from mmgen.storage import data_cache

    (folder / "toy.toml").write_text(toys.recipe())
    recipe, _ = load(folder / "toy.toml", installed())
    saved = {step: data_cache._made_from(recipe, "", step)[1:] for step in ("", STEP)}  # it looks through sources
    made_from = patch.object(data_cache, "_made_from", lambda recipe, data, step="": [data, *saved[step]])
    cache, data = _cache(folder), _Data(recipe)
    with made_from:
        cache.keep_examples(data)
        cache.keep_sizes(recipe, STEP, data, {"data": _measures()}, REMARKS)
    assert len([*(folder / "data").iterdir()]) == 2
    return data, made_from


def _spoil(draw: Random, folder: Path, _) -> Path:
    path = draw.choice(sorted((folder / "data").iterdir()))
    if draw.random() < 0.3:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    else:
        _reseal(draw, path)
    return path


def _reseal(draw: Random, path: Path) -> None:
    """Write other tensors and tables with a right checksum, as another program would."""
    import torch

    from mmgen.storage.weights import read_tensors, write_tensors

    tensors, about = read_tensors(path)
    for _ in range(draw.choice((1, 1, 2))):
        if not tensors or draw.random() < 0.4:
            key = draw.choice([name for name in about if name != MADE_FROM] or [MADE_FROM])
            with contextlib.suppress(ValueError, RecursionError):  # what cannot be read as JSON already stays as it is
                about[key] = mutations.json_(draw, json.loads(about[key])) if key in ("sources", "remarks") else "x"
            about = {name: text for name, text in about.items() if name != key or draw.random() < 0.9}
            continue
        name = draw.choice([*tensors])
        column = tensors.pop(name)
        number = draw.choice((-1, 0, 1, 2, 19, 40, 60, 255, 10**6, 2**31 - 1, 2**62, float("nan"), float("inf")))
        with contextlib.suppress(ValueError, OverflowError, RuntimeError):  # not a number of this column
            column = column.clone()
            column[draw.randrange(len(column))] = number
        spoilt = draw.choice(
            (column, column, column[:-1], column[:0], column.float(), column[None], torch.cat([column, column]))
        )
        tensors[draw.choice((name, name, name, "0.table", "1.pairs", name[2:]))] = spoilt.contiguous().clone()
    with contextlib.suppress(UnicodeEncodeError):  # as JSON it is always written
        write_tensors(path, tensors, about)


def _recall(path: Path, prepared: Any) -> Any:
    """What comes from the files. A file that is said to be damaged counts as refused; nothing may come from it."""
    from mmgen.errors import DataError

    (data, made_from), cache = prepared, _cache(path.parents[1])
    data.trusted = ""
    with made_from:
        cache.recall_examples(data)
        sizes = cache.recall_sizes(data.recipe, STEP, data)
    content = data.trusted if path.name.startswith("examples") else sizes
    if lines := cache.progress.lines:
        assert not content and len(lines) == 1, f"{content!r:.100} in spite of {lines}"
        raise DataError(lines[0])
    return data.trusted, sizes


def _check(path: Path, content: Any, _) -> None:
    import torch

    from mmgen.data.seeds import RngKey

    (trusted, sizes), (made_from, tensors, about) = content, _file(path)
    if path.name.startswith("examples"):
        assert trusted == about["fingerprint"] and sizes is not None, f"{trusted!r}, {sizes!r}"
        return
    assert trusted == FINGERPRINT and made_from, f"{trusted!r}"
    measures, remarks = sizes
    tables = json.loads(about["sources"])
    assert [*measures] == [*tables] and _same(remarks, json.loads(about["remarks"])), f"{[*measures]}, {remarks}"
    for number, (name, table) in enumerate(tables.items()):
        columns, prefix = measures[name].columns(), f"{number}."
        assert _same(measures[name].table(), {key: table[key] for key in ("counts", "complete")})
        said = {key.removeprefix(prefix): column for key, column in tensors.items() if key.startswith(prefix)}
        assert columns.keys() == {key for key, column in said.items() if len(column)}
        assert all(torch.equal(column, said[key]) for key, column in columns.items()), f"columns of {name} are others"
        for epoch in range(2):  # what the plan of a step asks of them
            measures[name].slots_in(epoch, RngKey(0, "first"))


def _same(value: Any, expected: Any) -> bool:
    """Also where a number is nan."""
    return json.dumps(value) == json.dumps(expected)


def _file(path: Path) -> tuple[str, dict[str, Any], dict[str, str]]:
    """What safetensors finds in the file."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about = json.loads(file.metadata()["mmgen"])
    return about[MADE_FROM], tensors, about


def _prepare_plan(folder: Path) -> Any:
    """The plan of a step of 60 examples in a file; returns the plan, and what makes it."""
    from mmgen.data.collate import Collator
    from mmgen.data.example_sizes import Measures
    from mmgen.data.plan import PlanOptions
    from mmgen.data.sources import DataStream, Source
    from mmgen.storage import plan_file

    collate, examples = Collator(toys.model(), ["caption"]), toys.examples(60)
    source = Source(examples, measures=Measures.of(examples, collate))
    options = PlanOptions(7, STEP, 3, batch_size=12, micro_batch_size=4, length_bucket=4)

    def make(place: Path) -> Any:
        with patch.object(plan_file, "WORTH_KEEPING", 1):
            return plan_file.make_plan(place, [DataStream(source, collate)], options, writes=True)

    plan = make(folder)
    assert (folder / plan_file.NAME).exists()
    return plan, make


def _spoil_plan(draw: Random, folder: Path, _) -> Path:
    path = folder / "plan.safetensors"
    path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    return path


def _plan(path: Path, prepared: Any) -> Any:
    return prepared[1](path.parent)


def _check_plan(path: Path, plan: Any, prepared: Any) -> None:
    assert plan == prepared[0], "another plan"
    assert prepared[1](path.parent) == plan, "the file was not written again"
