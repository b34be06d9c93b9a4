"""Renamed keys: the message names the new key, a stored table gets it, and configs with a key of the old name keep
it."""

import pytest
from kit import toys

from mmgen.configs import Config, SequenceConfig
from mmgen.errors import RecipeError
from mmgen.recipe.load import load
from mmgen.recipe.renamed_keys import RENAMED, new_name, with_new_names
from mmgen.recipe.tables import Step
from mmgen.recipe.training import Training
from mmgen.registry import installed


@pytest.mark.parametrize(
    ("old", "line"),
    [
        (("train = [", "learn = ["), "toy.toml:18: steps.first.learn: this key is now called 'train'"),
        (("epochs = 1", "bucket = 1"), "toy.toml:14: training.bucket: this key is now called 'length_bucket'"),
    ],
)
def test_check_names_todays_key(tmp_path, old, line):
    (tmp_path / "toy.toml").write_text(toys.RECIPE.replace(*old, 1))
    with pytest.raises(RecipeError) as raised:
        load(tmp_path / "toy.toml", installed())
    assert str(raised.value).replace(f"{tmp_path}/", "") == line


def test_a_stored_table_gets_todays_keys():
    stored = {"bucket": 4, "micro_batch": None, "epochs": 2}
    assert with_new_names(Training, stored) == {"length_bucket": 4, "micro_batch_size": None, "epochs": 2}


def test_a_config_that_still_has_the_key_keeps_it():
    class Own(Config):
        learn: int = 1
        train: int = 2

    assert new_name("learn", Own.model_fields) is None
    assert new_name("learn", Step.model_fields) == "train"
    assert new_name("learn", Training.model_fields) is None


def test_every_new_name_is_a_key_of_some_config():
    """Otherwise the table names keys that do not exist."""
    parts = [part.config for part in installed().parts]
    fields = {name for config in (*parts, Training, Step, SequenceConfig) for name in config.model_fields}
    assert {new for names in RENAMED.values() for new in names} <= fields
