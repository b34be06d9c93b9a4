"""A run to judge, a sheet of it, and answers of judges."""

import json
from pathlib import Path

from click.testing import CliRunner
from mmgen_humaneval.form import make
from mmgen_humaneval.sheet import Filled

from kit import toys
from mmgen.cli import main
from mmgen.recipe.load import load
from mmgen.registry import installed

RECIPE = toys.recipe(
    steps={
        "zebrastep": {"inputs": ["caption"], "train": ["backbone"]},
        "quaggastep": {"inputs": ["caption"], "train": ["backbone"], "start": "zebrastep"},
    },
    data={"train_size": 4, "val_size": 2, "test_size": 8},
    metrics=None,
)


def write_run(folder: Path, texts=None, test_size: int = 8) -> Path:
    """Write the files of a run folder that judging reads. For even pictures, steps repeat people's first question."""
    folder.mkdir(parents=True)
    (folder / "toy.toml").write_text(RECIPE.replace("test_size = 8", f"test_size = {test_size}"))
    recipe, _ = load(folder / "toy.toml", installed())
    (folder / "recipe.json").write_text(json.dumps(recipe.identity()))
    for step in recipe.steps:
        lines = []
        for place, example in enumerate(recipe.data.build().split("test")):
            text = (texts or f"what is {step[0]} {place} ?") if place % 2 else example.targets[0]
            lines.append(json.dumps([{"id": example.id, "text": text, "tokens": [], "score": 0.0}]))
        (folder / "steps" / step).mkdir(parents=True)
        (folder / "steps" / step / "generations.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def make_sheet(material, folder, **options) -> tuple[dict, dict]:
    """The data of a sheet and its key."""
    make(material, folder / "s.html", **options)
    return tuple(json.loads((folder / name).read_text()) for name in ("s.json", "s.key.json"))


def command(*arguments):
    return CliRunner().invoke(main, ["judge", *map(str, arguments)])


def write(path: Path, value) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


SYSTEMS = ["model", "human"]


IDS = ("1-1", "1-2", "2-1", "2-2", "3-1", "3-2", "4-1")


def answer(judge: str, values, sheet: str = "abc") -> dict:
    ratings = {
        question_id: {"readability": value} for question_id, value in zip(IDS, values, strict=True) if value is not None
    }
    return {"format": Filled.model_fields["format"].default, "sheet": sheet, "judge": judge, "ratings": ratings}
