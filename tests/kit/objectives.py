"""Objectives of tasks in small models: examples with the labels of all tasks, batches, losses, predictions."""

from dataclasses import replace

import numpy as np
import torch
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_inputs import Regions, Text

import mmgen.testing
from kit.weights import perturbed
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.examples import All, Example
from mmgen.model import Objectives, compose
from mmgen.parts import Record

D, KNOWN = 6, ("<unk>", "red", "blue", "two")


WORDS = "what color is the ball . a red cat and two dogs on grass"


def record(name, regions, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.uniform(0, 0.4, (regions, 2))
    boxes = np.concatenate([first, first + 0.5], 1).astype(np.float32)
    boxes[0] = [0.0, 0.0, 0.3, 0.3]
    return Record(name, rng.standard_normal((regions, D)).astype(np.float32), boxes)


def regions():
    return Regions(width=D, fingerprint={"extractor": "toy"})


def examples():
    """Examples with the labels of all tasks and with 3, 4 or 5 regions."""
    all_examples = []
    for n in range(6):
        regions_record = record(f"p{n}", 3 + n % 3, n)
        text = "a red cat and two dogs"
        labels = {
            "answers": [{"red": 1.0, "blue": 0.3}, {"two": 0.9}, {}][n % 3],
            "truth": n % 2 == 0,
            "choices": ("a red cat", "two dogs", "grass", "the ball")[: 4 - n % 2],
            "choice": n % 3,
            "box": tuple(regions_record.boxes[n % 3].tolist()),
            "phrases": ((0, 9, tuple(regions_record.boxes[1].tolist())), (14, 22, (0.9, 0.9, 1.0, 1.0))),
        }
        inputs = {"image": regions_record, "question": "what color is the ball", "caption": text, "choice": "x"}
        all_examples.append(Example(f"e{n}", inputs, (), {}, labels))
    return all_examples


QUESTION = {"question": Text(append_mask=True), "image": regions()}


def model_of(inputs, objectives, vocabularies=None, backbone=Bert, words=WORDS):
    """A small model without dropout."""
    torch.manual_seed(0)
    composed = compose(
        backbone(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=120, dropout=0.0),
        inputs,
        Masked(max_tokens=9),
        texts=[words] * 3,
        objectives=Objectives(objectives, vocabularies or {}),
    )
    return perturbed(composed)


def model(objective, inputs, backbone=Bert):
    return model_of(inputs, {"own": objective}, {"answers": KNOWN}, backbone)


def batch_of(built_model, chosen, predicting=False):
    return Collator(built_model, built_model.inputs, ("own",), RngKey(0, "x"), chosen, predicting)(
        chosen, None if predicting else [0] * len(chosen)
    )


def loss_of(built_model, chosen):
    return built_model(batch_of(built_model, chosen))


def predictions(built_model, chosen):
    batch = batch_of(built_model, chosen, predicting=True)
    return built_model.objective("own").predict(built_model, batch, batch.targets["own"])


class TaskObjectiveSuite(mmgen.testing.ObjectiveSuite):
    def backbone_config(self):
        return Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=120, dropout=0.0)

    def examples(self):
        return examples()

    def vocabularies(self):
        return {"answers": KNOWN}


def iou(first, second):
    width = max(0, min(first[2], second[2]) - max(first[0], second[0]))
    height = max(0, min(first[3], second[3]) - max(first[1], second[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return width * height / (sum(areas) - width * height)


def two_pictures():
    """An example that shows two pictures with the same boxes, and one that shows one."""
    first = examples()[0]
    pair = replace(first, id="pair", inputs={**first.inputs, "image": All((record("a", 3, 0), record("b", 3, 0)))})
    return [pair, first]
