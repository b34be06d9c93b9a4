"""The one pass over the data before the first update: how often examples are created, and sizes from files."""

import importlib
import json

import pytest
from kit import toys
from kit.training import RecordedProgress
from mmgen_encoders import Bert

from mmgen.data.datasets import Datasets
from mmgen.data.example_sizes import Measures
from mmgen.data.plan import Plan
from mmgen.data.unread_text import MAX_EXAMPLES, warn_of_unread_text
from mmgen.errors import DataError
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs import data_pass
from mmgen.runs.data_pass import DataPass
from mmgen.runs.run import run
from mmgen.storage import plan_file
from mmgen.storage.data_cache import DataCache
from mmgen.storage.model_files import build_model
from mmgen.storage.run_folder import RunFolder
from mmgen.storage.weights import read_tensors, write_tensors
from mmgen.training import train

LAZY = '''
    from collections import Counter
    from collections.abc import Sequence
    from typing import Literal

    import mmgen
    from mmgen.configs import DatasetConfig
    from mmgen.files import file_fingerprint
    from mmgen.tensors import Example

    MADE = Counter()  # how often each training example was made


    class Lazy(DatasetConfig):
        """Made-up examples, made when they are asked for."""

        type: Literal["lazy"] = "lazy"
        file: str = ""
        lacks: int = -1
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

                def fingerprint(_):
                    return file_fingerprint([Path(self.file)]) if self.file else None

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
            inputs = {} if number == self.config.lacks and self.name == "train" else {"caption": captions}
            return Example(f"{self.name}-{number}", inputs, (f"what is {number} ?",) * (number % 3 + 1))


    @mmgen.hookimpl
    def register_datasets():
        return [Lazy]
'''


class Stop(Exception):
    """Raised before the first update."""


@pytest.fixture
def lazy(site, monkeypatch):
    """The module of the data set, which counts the creation of examples."""
    site("mmgen-lazy", "mmgen_lazy", LAZY)
    monkeypatch.setattr(data_pass, "WORTH_KEEPING", 10)
    return importlib.import_module("mmgen_lazy")


def write_recipe(folder, **data):
    inputs = {"inputs": ["caption"], "train": ["backbone"]}
    steps = {"first": inputs, "second": {**inputs, "start": "first"}}
    text = toys.recipe(output=str(folder / "runs"), data=None, metrics={}, steps=steps, training={"epochs": 2})
    (folder / "lazy.toml").write_text(text + toys.toml({"data": {"type": "lazy", **data}}))
    return load(folder / "lazy.toml", installed())[0]


def test_every_example_is_made_once_before_the_first_update(lazy, tmp_path, monkeypatch):
    recipe = write_recipe(tmp_path)

    def stop(*arguments):
        raise Stop

    monkeypatch.setattr(train, "Learner", stop)  # after the plan
    with pytest.raises(Stop):
        run(recipe)
    assert dict.fromkeys(range(40), 1) == lazy.MADE


@pytest.mark.slow
def test_a_plan_is_in_a_file_until_its_step_is_done(lazy, tmp_path, monkeypatch, no_page):
    monkeypatch.setattr(plan_file, "WORTH_KEEPING", 10)
    recipe, make, steps = write_recipe(tmp_path), Plan.make, []

    def stop(*arguments):
        raise Stop

    def noted(streams, options):
        steps.append(options.step)
        return make(streams, options)

    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(train, "Learner", stop)
        run(recipe)
    assert (RunFolder.of(recipe).step("first") / plan_file.NAME).exists()
    monkeypatch.setattr(Plan, "make", noted)
    run(recipe)
    assert steps == ["second"] and not list(tmp_path.rglob(plan_file.NAME))


def prepare(recipe, model=None):
    """The preparation of a run's data: the data sets, a model, and the printed lines."""
    datasets, said, folder = Datasets(recipe), RecordedProgress(), RunFolder.of(recipe)
    cache = DataCache(folder, said)
    cache.recall_examples(datasets)
    fingerprint = datasets.fingerprint()
    cache.keep_examples(datasets)
    model = model or build_model(recipe, datasets)
    DataPass(recipe, model, datasets, cache, said).run(["first", "second"])
    warn_of_unread_text(recipe, model, datasets, ["first"], said)
    return datasets, model, fingerprint, said.lines


def columns(datasets):
    """The sizes of the examples of both steps."""
    sources = [source for step in ("first", "second") for source in datasets.sources(step).values()]
    return [{name: column.tolist() for name, column in source.measures.columns().items()} for source in sources]


def test_a_second_start_makes_only_the_first_examples_and_finds_the_same(lazy, tmp_path):
    (tmp_path / "color.txt").write_text("red")
    recipe = write_recipe(tmp_path, file=str(tmp_path / "color.txt"), count=1500)
    first, model, fingerprint, lines = prepare(recipe)
    assert dict.fromkeys(range(1500), 1) == lazy.MADE
    lazy.MADE.clear()
    second, _, again, later_lines = prepare(recipe, model)
    assert set(lazy.MADE) == set(range(MAX_EXAMPLES)) and lazy.MADE[500] == 1
    assert again == fingerprint and columns(second) == columns(first) and later_lines == lines


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "scenes"])
def test_a_second_start_measures_only_some_examples_of_a_table_and_of_scenes(kind, tmp_path, monkeypatch):
    """First-party data sets: in published files, and drawn."""
    monkeypatch.setattr(data_pass, "WORTH_KEEPING", 10)
    rows = [f"{number},a ball {number},what is {number} ?" for number in range(400)]
    (tmp_path / "all.csv").write_text("\n".join(["image,caption,question", *rows]))
    data = {"type": "scenes", "train_size": 400}
    if kind == "csv":
        splits = {"train_split": "all", "validation_split": "all", "test_split": "all"}
        data = {"type": "csv", "folder": str(tmp_path), "files": {"all": "all.csv"}, **splits}
    steps = {"first": {"inputs": ["caption"], "train": ["backbone"]}}
    steps["second"] = {**steps["first"], "start": "first"}
    text = toys.recipe(output=str(tmp_path / "runs"), data=None, metrics={}, steps=steps)
    (tmp_path / "r.toml").write_text(text + toys.toml({"data": data}))
    recipe = load(tmp_path / "r.toml", installed())[0]
    sizes, add = [], Measures.add

    def noted(measures, examples):
        sizes.append(len(examples))
        add(measures, examples)

    monkeypatch.setattr(Measures, "add", noted)
    first, model, fingerprint, _ = prepare(recipe)
    assert sum(sizes) == 400
    sizes.clear()
    second, _, again, _ = prepare(recipe, model)
    assert sum(sizes) == 2 * data_pass.VERIFIED and again == fingerprint and columns(first) == columns(second)
    if kind == "csv":
        (tmp_path / "all.csv").write_text("\n".join(["image,caption,question", *rows[1:]]))
        assert prepare(recipe, model)[2] != fingerprint


@pytest.mark.slow
def test_files_that_are_out_of_date_or_damaged_are_written_again_and_said_so(lazy, tmp_path):
    (tmp_path / "color.txt").write_text("red")
    recipe = write_recipe(tmp_path, file=str(tmp_path / "color.txt"))
    first, model, fingerprint, _ = prepare(recipe)
    (tmp_path / "color.txt").write_text("green and blue")
    changed, _, new_fingerprint, lines = prepare(recipe, model)
    assert new_fingerprint != fingerprint and columns(changed) != columns(first)
    files = sorted(RunFolder.of(recipe).path.parent.glob("data/*.safetensors"))
    reason = "the data, files of parts or versions have changed; every example is read again"
    assert [line for line in lines if "every example" in line] == [f"{file}: {reason}" for file in files]
    for file in files:
        file.write_bytes(file.read_bytes()[:-1])
    repaired, _, same, lines = prepare(recipe, model)
    assert same == new_fingerprint and columns(repaired) == columns(changed)
    damaged = [f"{file}: damaged; every example is read again" for file in files]
    assert [line for line in lines if "every example" in line] == damaged
    assert not any("every example" in line for line in prepare(recipe, model)[-1])


@pytest.mark.parametrize("remarks", ["[[1, 2, 3]]", '{"unknown": [1, 2]}', '{"train": 3}', "3"])
def test_remarks_that_cannot_be_are_as_good_as_missing(remarks, lazy, tmp_path):
    (tmp_path / "color.txt").write_text("red")
    recipe = write_recipe(tmp_path, file=str(tmp_path / "color.txt"))
    first, model, _, lines = prepare(recipe)
    for file in RunFolder.of(recipe).path.parent.glob("data/sizes-*"):
        tensors, about = read_tensors(file)
        write_tensors(file, tensors, {**about, "remarks": remarks.replace("train", next(iter(first.sources("first"))))})
    second, _, _, later_lines = prepare(recipe, model)
    assert columns(second) == columns(first) and later_lines == lines


def test_sizes_of_another_tokenizer_are_not_used(lazy, tmp_path):
    recipe = write_recipe(tmp_path)
    first, model, _, _ = prepare(recipe)
    model.generator.reader.max_tokens = 3  # as a tokenizer would whose files have changed
    assert columns(prepare(recipe, model)[0]) != columns(first)


def test_sizes_of_a_changed_tokenizer_file_are_not_used(lazy, tmp_path):
    """Also if only an example behind the first ones, which every start measures, has another size."""
    source = toys.model(vocab_size=200).backbone
    source.model.save_pretrained(tmp_path / "encoder")
    source.tokenizer.save_pretrained(tmp_path / "encoder")
    recipe = write_recipe(tmp_path, count=60)
    recipe = recipe.model_copy(update={"backbone": Bert(weights=str(tmp_path / "encoder"))})
    first = prepare(recipe)[0]
    file = tmp_path / "encoder" / "tokenizer.json"
    table = json.loads(file.read_text())
    vocabulary = table["model"]["vocab"]
    vocabulary["5"], vocabulary["##7"] = vocabulary.pop("tree"), vocabulary.pop("house")  # "57" has two pieces now
    file.write_text(json.dumps(table))
    assert columns(prepare(recipe)[0]) != columns(first)


def test_a_gap_is_named_with_all_that_have_it_and_nothing_is_kept(lazy, tmp_path):
    recipe = write_recipe(tmp_path, lacks=7)
    with pytest.raises(DataError) as error:
        prepare(recipe)
    assert str(error.value) == (
        "step 'first': example 'train-7' has no caption; its inputs are: none (1 of 40 examples); remove these "
        "examples, or remove 'caption' from the step's inputs"
    )
    assert not list(tmp_path.glob("runs/**/sizes-*"))


@pytest.mark.slow
def test_runs_are_equal_with_and_without_the_files(lazy, tmp_path, no_page):
    (tmp_path / "color.txt").write_text("red")
    weights = []
    for output in ("first", "second", "second"):  # the third finds the files of the second
        recipe = write_recipe(tmp_path, file=str(tmp_path / "color.txt") if output == "second" else "")
        recipe = recipe.model_copy(update={"output": str(tmp_path / output)})
        folder = run(recipe, fresh=True)
        weights.append((folder.step("second") / "weights.safetensors").read_bytes())
    assert len(set(weights)) == 1 and list((tmp_path / "second").glob("toy/default/data/sizes-*"))
