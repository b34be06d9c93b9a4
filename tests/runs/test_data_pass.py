"""The one pass over the data before the first update: how often examples are created, and what they lack."""

import importlib

import pytest
from kit import toys

from mmgen.data.datasets import Datasets
from mmgen.errors import DataError
from mmgen.progress import Progress
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.data_pass import DataPass
from mmgen.runs.run import run
from mmgen.storage.model_files import build_model
from mmgen.training import train

LAZY = '''
    from collections import Counter
    from collections.abc import Sequence
    from typing import Literal

    import mmgen
    from mmgen.configs import DatasetConfig
    from mmgen.tensors import Example

    MADE = Counter()  # how often each training example was made


    class Lazy(DatasetConfig):
        """Made-up examples, made when they are asked for."""

        type: Literal["lazy"] = "lazy"
        file: str = ""
        gap: int = -1
        count: int = 40

        def build(self):
            from pathlib import Path

            from mmgen.parts import Dataset

            class LazyDataset(Dataset):
                def splits(_):
                    return ("train", "val", "test")

                def split(_, name):
                    return Made(name, self, Path(self.file).read_text().strip() if self.file else "red")

                def describe(_):
                    return {"name": "lazy", "licence": "free", "source": "made up"}

            return LazyDataset()


    class Made(Sequence):
        def __init__(self, name, config, color):
            self.name, self.config, self.color = name, config, color

        def __len__(self):
            return self.config.count if self.name == "train" else 4

        def __getitem__(self, number):
            if isinstance(number, slice):
                return [self[index] for index in range(len(self))[number]]
            if not 0 <= number < len(self):
                raise IndexError(number)
            if self.name == "train":
                MADE[number] += 1
            captions = (f"a {self.color} ball {number}", f"the ball is {self.color} and round")[: number % 2 + 1]
            inputs = {} if number == self.config.gap and self.name == "train" else {"caption": captions}
            return Example(f"{self.name}-{number}", inputs, (f"what is {number} ?",) * (number % 3 + 1))


    @mmgen.hookimpl
    def register_datasets():
        return [Lazy]
'''


class Stop(Exception):
    """Raised before the first update."""


@pytest.fixture
def lazy(site):
    """The module of the data set, which counts the creation of examples."""
    site("mmgen-lazy", "mmgen_lazy", LAZY)
    return importlib.import_module("mmgen_lazy")


def write_recipe(folder, **data):
    inputs = {"inputs": ["caption"], "train": ["backbone"]}
    steps = {"first": inputs, "second": {**inputs, "start": "first"}}
    text = toys.recipe(output=str(folder / "runs"), data=None, metrics={}, steps=steps, training={"epochs": 2})
    (folder / "lazy.toml").write_text(text + toys.toml({"data": {"type": "lazy", **data}}))
    return load(folder / "lazy.toml", installed())[0]


def test_an_example_is_made_a_few_times_before_the_first_update(lazy, tmp_path, monkeypatch):
    recipe = write_recipe(tmp_path)

    def stop(*arguments):
        raise Stop

    monkeypatch.setattr(train, "Trainer", stop)  # after the plan
    with pytest.raises(Stop):
        run(recipe)
    assert set(lazy.MADE) == {*range(40)} and max(lazy.MADE.values()) <= 8


def prepare(recipe):
    """The preparation of a run's data."""
    datasets = Datasets(recipe)
    DataPass(recipe, build_model(recipe, datasets), datasets, Progress()).run(["first", "second"])


def test_a_gap_is_named_with_all_that_have_it(lazy, tmp_path):
    recipe = write_recipe(tmp_path, gap=7)
    with pytest.raises(DataError) as error:
        prepare(recipe)
    assert str(error.value) == (
        "step 'first': example 'train-7' has no caption; its inputs are: none (1 of 40 examples); remove these "
        "examples, or remove 'caption' from the step's inputs"
    )
