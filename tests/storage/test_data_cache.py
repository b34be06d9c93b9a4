"""What a run's walk through its data found: used while everything it was made from is unchanged."""

import json
from types import SimpleNamespace

import pytest
import torch
from kit import toys
from kit.training import RecordedProgress

from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage.data_cache import DataCache
from mmgen.storage.weights import read_tensors, write_tensors


class Data:
    """Data sets of a recipe that know their own fingerprint."""

    def __init__(self, recipe, identity="v1"):
        self.recipe, self.identity, self.trusted = recipe, identity, ""

    def identities(self):
        return self.identity and {"train": self.identity}

    def sources(self, step):
        return {}

    def fingerprint(self):
        return f"of {self.identity}"

    def trust(self, fingerprint):
        self.trusted = fingerprint


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.recipe())
    return load(tmp_path / "toy.toml", installed())[0]


def cache(folder):
    return DataCache(SimpleNamespace(path=folder / "seed-0"), RecordedProgress())


def recalled(folder, data):
    """What data are trusted for, and what is said."""
    used = cache(folder)
    used.recall_examples(data)
    return data.trusted, used.progress.lines


def test_unchanged_data_are_trusted(recipe, tmp_path):
    assert recalled(tmp_path, Data(recipe)) == ("", [])
    cache(tmp_path).keep_examples(Data(recipe))
    assert recalled(tmp_path, Data(recipe)) == ("of v1", [])


def test_other_data_are_read_again_and_said_so(recipe, tmp_path):
    cache(tmp_path).keep_examples(Data(recipe))
    (file,) = (tmp_path / "data").iterdir()
    trusted, lines = recalled(tmp_path, Data(recipe, "v2"))
    reason = "the data, files of parts or versions have changed"
    assert (trusted, lines) == ("", [f"{file}: {reason}; every example is read again"])
    file.write_bytes(b"damaged")
    assert recalled(tmp_path, Data(recipe)) == ("", [f"{file}: damaged; every example is read again"])


def test_files_that_another_program_has_written_are_as_good_as_missing(recipe, tmp_path):
    cache(tmp_path).keep_examples(Data(recipe))
    (file,) = (tmp_path / "data").iterdir()
    about = read_tensors(file)[1]
    write_tensors(file, {}, {"made from": about["made from"]})
    assert recalled(tmp_path, Data(recipe)) == ("", [f"{file}: damaged; every example is read again"])


SIZES = {"pairs": torch.tensor([1, 2], dtype=torch.int32), "slots": torch.tensor([3.0, 4.0], dtype=torch.float64)}
VARIED = {
    **{"pairs": SIZES["pairs"], "slots": torch.tensor([3.0, 4.0, 5.0], dtype=torch.float64)},
    **{"starts": torch.tensor([0, 1]), "shapes": torch.tensor([0, 1], dtype=torch.int32)},
    **{"ends": torch.tensor([0, 2]), "ids": torch.tensor([97, 98], dtype=torch.uint8)},
}
TABLE = {"counts": [[], [2]], "complete": True}


@pytest.mark.parametrize(
    "columns, table",
    [
        (SIZES, "["),
        (SIZES, "[]"),
        (SIZES, 3),
        (SIZES, {"counts": [[]]}),
        (SIZES, {"counts": [[], []], "complete": True}),
        (SIZES, {"counts": [[], [0]], "complete": True}),
        ({**SIZES, "pairs": torch.tensor([1.0, 2.0])}, TABLE),
        ({**SIZES, "slots": SIZES["slots"][:1]}, TABLE),
        ({**SIZES, "table": SIZES["pairs"].clone()}, TABLE),
        ({**SIZES, "slots": SIZES["slots"] / 0}, TABLE),
        ({**VARIED, "shapes": VARIED["shapes"] + 1}, TABLE),
        ({**VARIED, "starts": VARIED["starts"] + 1}, TABLE),
        ({**VARIED, "ends": VARIED["ends"] + 1}, TABLE),
        ({**VARIED, "ids": VARIED["ids"] + 100}, TABLE),
        ({**VARIED, "ends": VARIED["ends"][:1]}, TABLE),
    ],
)
def test_sizes_that_cannot_be_are_as_good_as_missing(recipe, tmp_path, columns, table):
    data, (step,) = Data(recipe), [*recipe.steps][:1]
    for valid in (SIZES, VARIED):
        write_sizes(tmp_path, recipe, data, valid, TABLE)
        assert cache(tmp_path).recall_sizes(recipe, step, data)[0]["data"].columns().keys() == valid.keys()
    file = write_sizes(tmp_path, recipe, data, columns, table)
    used = cache(tmp_path)
    assert used.recall_sizes(recipe, step, data) is None
    assert used.progress.lines == [f"{file}: damaged; every example is read again"]


def write_sizes(folder, recipe, data, columns, table):
    """The file of sizes with these columns, as a program would write it that seals what it writes."""
    (step,) = [*recipe.steps][:1]
    if not (folder / "data").exists():
        cache(folder).keep_sizes(recipe, step, data, {}, [])
    (file,) = (folder / "data").iterdir()
    sources = table if isinstance(table, str) else json.dumps({"data": table})
    tensors = {f"0.{name}": column for name, column in columns.items()}
    write_tensors(file, tensors, {**read_tensors(file)[1], "sources": sources})
    return file


def test_data_without_a_fingerprint_are_never_kept(recipe, tmp_path):
    cache(tmp_path).keep_examples(Data(recipe, None))
    assert not (tmp_path / "data").exists()
