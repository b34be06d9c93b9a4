"""Fuzzing of what a run saves of its data for other starts: the fingerprint of examples, their sizes, and the plan. A
damaged file must be said to be damaged, or be as good as missing: nothing but what was saved may come from it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from kit import toys
from kit.training import RecordedProgress

from . import mutations
from .harness import Surface

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
    path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    return path


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

    trusted, sizes = content
    assert trusted == FINGERPRINT and sizes is not None, f"{trusted!r}, {sizes!r}"
    measures, remarks = sizes
    assert [*measures] == ["data"] and remarks == REMARKS, f"{[*measures]}, {remarks}"
    columns = measures["data"].columns()
    assert columns.keys() == _sizes().keys() and measures["data"].table() == _measures().table()
    for name, column in _sizes().items():
        assert torch.equal(columns[name], column), f"{name} are others"


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
