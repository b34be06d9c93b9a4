"""`mmgen.fit` trains as a recipe's step does."""

import json

import pytest
import torch
from kit import toys

import mmgen
from mmgen.data.datasets import Datasets
from mmgen.runs.run import run
from mmgen.storage.model_files import build_model
from mmgen.storage.weights import state


@pytest.mark.slow
def test_it_is_a_step_of_a_recipe(tmp_path, no_page):
    """With a head that starts from other weights of the model, in one process."""
    words = {"type": "masked_words"}
    step = {"inputs": ["caption"], "train": ["caption", "backbone"], "objectives": ["generator", "words"]}
    changes = {"objectives": {"words": words}, "steps": {"fit": step}, "training": {"epochs": 2}}
    recipe = toys.loaded(tmp_path, toys.recipe(output=str(tmp_path / "runs"), **changes))
    folder = run(recipe).step("fit")
    datasets = Datasets(recipe)
    model, (source,) = build_model(recipe, datasets), datasets.sources("fit").values()
    log = mmgen.fit(
        model, source.examples, epochs=2, batch_size=16, learning_rate=1e-3, seed=0, validation=source.validation
    )
    expected = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [line["loss"] for line in log] == [line["loss"] for line in expected]
    assert log[-1]["validation_loss"] == expected[-1]["validation_loss"]
    trained = toys.load_file(folder / "weights.safetensors")
    assert trained.keys() <= state(model).keys()
    assert all(torch.equal(tensor, state(model)[name].cpu()) for name, tensor in trained.items())


def test_further_keys_are_those_of_a_recipe():
    model, examples = toys.model(), toys.examples(4)
    assert len(mmgen.fit(model, examples, updates=3, batch_size=2)) == 3
    with pytest.raises(ValueError, match="batchsize"):
        mmgen.fit(model, examples, batchsize=2)
    assert len(mmgen.generate(model, examples, mmgen.Decoding(num_beams=2))) == 4
