"""A run with an encoder of any family: trained, exported, and loaded without a network by mmgen and transformers."""

import pytest
import torch
from kit import toys
from transformers import AutoModelForMaskedLM

import mmgen

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("family", ["modernbert", pytest.param("eurobert", marks=pytest.mark.exhaustive)])
def test_a_run_is_exported_and_loaded(family, tmp_path, monkeypatch, no_page):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "toy.toml").write_text(
        toys.recipe(backbone={"type": "encoder", "family": family, "num_hidden_layers": 2}, steps={"first": STEP})
    )
    done = toys.mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    run = mmgen.load(tmp_path / toys.PLACE)
    folder = run.save(tmp_path / "exported", transformers=True)
    loaded = mmgen.load(folder)
    captions = ["a red dog is near the tree", "a dog"]
    answers = [[predictor.ask({"caption": caption}).texts for caption in captions] for predictor in (run, loaded)]
    assert answers[0] == answers[1] and answers[0][0]
    model, report = AutoModelForMaskedLM.from_pretrained(folder / "backbone", output_loading_info=True)
    assert not (report["missing_keys"] or report["unexpected_keys"] or report["mismatched_keys"])
    ids = torch.arange(5, 12)[None]
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(ids).logits, loaded.model.backbone.model(ids).logits)


STEP = {"inputs": ["caption"], "train": ["backbone"]}
