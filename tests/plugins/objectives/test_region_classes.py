"""Region classes: VL-BERT's second loss of VCR, beside the choice of an answer."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from kit import toys
from kit.objectives import D, model_of, record
from kit.refusals import refusal
from mmgen_inputs import Text
from mmgen_objectives import MaskedRegions, RegionClasses
from mmgen_objectives.tasks import MultipleChoice
from mmgen_vlbert import VlBert, VlBertRegions

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.examples import All, Example

NAMES = ("person", "car", "dog")


def examples():
    """Pictures of 2 to 4 objects; all but the second have a last region that is not an object."""
    objects = (("person", "car"), ("dog", "person", "person"), ("car", "dog", "person", "dog"))
    items = []
    for n, names in enumerate(objects):
        inputs = {"question": "what color is it", "image": record(f"p{n}", len(names) + (n != 1), n)}
        labels = {"choices": ("a red cat", "two dogs"), "choice": n % 2, "objects": names}
        items.append(Example(f"e{n}", inputs, (), {}, labels))
    return items


def regions(**settings):
    return VlBertRegions(width=D, fingerprint={"extractor": "toy"}, classes=("cat", "dog"), dropout=0.0, **settings)


def inputs(**settings):
    return {"question": Text(), "choice": Text(token_type=1), "image": regions(**settings)}


def compose_model(**settings):
    learnt = {"own": RegionClasses(), "choices": MultipleChoice(loss="bce"), "regions": MaskedRegions()}
    return model_of(inputs(**settings), learnt, {"objects": NAMES}, VlBert)


def batch_of(model, some, objectives=("choices", "own")):
    return Collator(model, model.inputs, objectives, RngKey(0, "x"), some)(some, [0] * len(some))


class TestRegionClasses(mmgen.testing.ObjectiveSuite):
    def config(self):
        return RegionClasses()

    def backbone_config(self):
        return VlBert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90, dropout=0.0)

    def inputs(self):
        return {"question": Text(), "image": regions(region_scale=1.0)}  # from 0 on, sixty updates may not be enough

    def vocabularies(self):
        return {"objects": NAMES}

    def examples(self):
        return examples()


def test_every_region_of_every_choice_is_classified():
    """Written out: rows one by one, the whole picture of the class 0, the mean over all regions of all rows."""
    model, some = compose_model(), examples()
    loss = model(batch_of(model, some))
    objective, total, count = model.objective("own"), 0.0, 0
    for example in some:
        classes = [0, *(1 + NAMES.index(name) for name in example.labels["objects"])]
        classes += [0] * (1 + len(example.inputs["image"].features) - len(classes))  # the last region is not an object
        for choice in example.labels["choices"]:
            row = replace(example, inputs={**example.inputs, "choice": choice})
            states = model.encode(Collator(model, model.inputs, ())([row])).inputs["image"][0]
            hidden = F.gelu(states[: len(classes)] @ objective.head.dense.weight.T + objective.head.dense.bias)
            logits = hidden @ objective.head.classes.weight.T + objective.head.classes.bias
            total += F.cross_entropy(logits, torch.tensor(classes), reduction="sum")
            count += len(classes)
    assert loss.counts["own.loss"] == count == 2 * (4 + 4 + 6)
    assert torch.allclose(loss.sums["own.loss"], total, atol=1e-4)
    mean = loss.sums["own.loss"] / count + loss.sums["choices.loss"] / 6
    assert torch.allclose(loss.mean, mean, atol=1e-5)  # each its own mean, of weight 1


def test_unknown_objects_and_further_pictures_are_not_classified_nor_objects_without_a_region():
    example = examples()[0]
    odd = replace(example, labels=example.labels | {"objects": ("sphinx", "car")})
    two = replace(example, inputs=example.inputs | {"image": All((record("a", 2, 0), record("b", 3, 1)))})
    few = {"max_regions": 1}
    for some, settings, expected in (
        (odd, {}, [0, -100, 2, 0]),
        (two, {}, [0, 1, 2, *[-100] * 4]),
        (example, few, [0, 1]),
    ):
        targets = batch_of(compose_model(**settings), [some]).targets["own"]
        assert targets.labels["classes"].tolist() == [expected] * 2
        assert targets.counts["loss"] == 2 * sum(class_id != -100 for class_id in expected)


def test_an_example_without_objects_is_named():
    unlabelled = [replace(example, labels=example.labels | {"objects": None}) for example in examples()]
    assert refusal(batch_of, compose_model(), unlabelled) == "example 'e0' has no label 'objects'"


# --- from a recipe --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_it_is_trained_with_the_choice_on_drawn_scenes(tmp_path):
    text = {"type": "text"}
    image = {"type": "vlbert_regions", "extractor": {**toys.ROI, "weights": "random"}}
    step, scenes = (
        {"train": ["image", "backbone"]},
        {"type": "scenes", "train_size": 6, "val_size": 2, "image_size": 64},
    )
    recipe = toys.vlbert(
        inputs={"caption": text, "question": text, "choice": text, "image": image},
        objectives={
            "choices": {"type": "multiple_choice"},
            "classes": {"type": "region_classes", "init_from": "regions"},
        },
        steps={
            "pretrain": {
                **step,
                "inputs": ["caption", "image"],
                "objectives": ["regions"],
                "evaluate": False,
                "data": scenes,
            },
            "choices": {
                **step,
                "inputs": ["question", "choice", "image"],
                "objectives": ["choices", "classes"],
                "start": "pretrain",
            },
        },
        data={"type": "scene_choices", "train_size": 4, "val_size": 2, "test_size": 3},
        training={"batch_size": 8},
        metrics={"choices": {"type": "choice_accuracy"}},
    )
    (tmp_path / "toy.toml").write_text(recipe)
    done = toys.mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / toys.PLACE / "steps/choices/log.jsonl").read_text().splitlines()
    losses = [json.loads(line)["losses"] for line in lines]
    assert losses and all(set(step_losses) == {"choices.loss", "classes.loss"} for step_losses in losses)
    assert losses[0]["classes.loss"] == pytest.approx(np.log(29), abs=0.2)  # 28 kinds, and the background
