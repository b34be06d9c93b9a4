"""The data sets of a recipe together: one name means one picture, and vocabularies are those of all."""

from dataclasses import replace

import pytest
from kit import toys
from kit.refusals import refusal

from mmgen.data.datasets import Datasets
from mmgen.testing import Toy, ToyDataset, Words


@pytest.mark.slow
def test_one_name_means_one_picture(tmp_path):
    """Features are looked up by a picture's name: data sets may share names, but only for the same pictures."""

    def pictures(seed):
        sizes = {"train_size": 26, "val_size": 1, "test_size": 1}
        data = {"told": {"type": "scenes", **sizes}, "asked": {"type": "scene_answers", **sizes, "seed": seed}}
        steps = {
            name: {"inputs": ["image"], "train": ["backbone"], "evaluate": False, "data": table}
            for name, table in data.items()
        }
        inputs = {"image": {"type": "regions", "extractor": {"type": "roi"}}}
        recipe = toys.loaded(tmp_path, toys.recipe(inputs=inputs, steps=steps))
        return [picture.key for picture in Datasets(recipe).pictures()]

    keys = pictures(0)
    assert len(keys) == len(set(keys)) == 26 + 1 + 1
    assert refusal(pictures, 1) == (
        "data (scene_answers): two data sets use the key 'train-00000' for pictures with different boxes, but features "
        "are looked up by key; give both data sets the same settings (such as the seed) or use two recipes"
    )


class RepeatsIds(ToyDataset):
    def split(self, name):
        return [replace(example, id=str(number)) for number, example in enumerate(super().split(name))]


class RepeatsOne(ToyDataset):
    def split(self, name):
        return [*super().split(name), super().split(name)[1]]


@pytest.mark.parametrize(
    "dataset, words",
    [
        (RepeatsIds, "' of 'val': the id is also in 'train'; ids must be unique, because "),
        (RepeatsOne, "'green-cat' of 'train': the id is also in 'train'; ids must be unique, "),
    ],
)
def test_ids_are_unique(dataset, words):
    said = refusal(toy_datasets(dataset).fingerprint)
    assert said.startswith("data (toy): example '") and words in said


FIELDS = {
    "steps": {},
    "inputs": {"caption": Words(fields=("caption",))},
    "scored_data": staticmethod(lambda step: None),
}


def toy_datasets(dataset):
    class Mine(Toy):
        """A data set."""

        def build(self):
            return dataset()

    recipe = type("Recipe", (), FIELDS | {"data": Mine()})
    return Datasets(recipe)


def test_a_split_to_score_without_examples():
    class Empty(ToyDataset):
        def split(self, name):
            return super().split(name) if name == "train" else []

    said = refusal(toy_datasets(Empty).scored_by, "first")
    assert said == "data.test_split: split 'test' has no examples to score"


@pytest.mark.parametrize(
    "change",
    [{"id": "new"}, {"inputs": {"caption": "a cat"}}, {"targets": ("why ?",)}, {"labels": {"answer": "red"}}],
)
def test_a_changed_example_changes_the_fingerprint_wherever_it_is(change):
    class Changed(ToyDataset):
        def split(self, name):
            *rest, last = super().split(name)
            return [*rest, replace(last, **change) if name == "test" else last]

    assert toy_datasets(ToyDataset).fingerprint() == toy_datasets(ToyDataset).fingerprint()
    assert toy_datasets(Changed).fingerprint() != toy_datasets(ToyDataset).fingerprint()
