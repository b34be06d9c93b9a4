"""What a run's walk through its data found: used while everything it was made from is unchanged."""

from types import SimpleNamespace

import pytest
from kit import toys
from kit.training import RecordedProgress

from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage.data_cache import DataCache


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


def test_data_without_a_fingerprint_are_never_kept(recipe, tmp_path):
    cache(tmp_path).keep_examples(Data(recipe, None))
    assert not (tmp_path / "data").exists()
