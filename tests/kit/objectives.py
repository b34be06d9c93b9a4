"""Objectives of tasks in small models: examples with the labels of all tasks, batches, losses, predictions."""

from dataclasses import replace

import numpy as np
import torch
from mmgen_encoders import Bert
from mmgen_masked import Masked
from mmgen_regions import Regions
from mmgen_text import Text

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.data.seeds import Place
from mmgen.model import Objectives, compose
from mmgen.parts import Record
from mmgen.tensors import All, Example

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
    """Examples with the labels of all tasks, and regions of their own: 3, 4 or 5."""
    found = []
    for n in range(6):
        own = record(f"p{n}", 3 + n % 3, n)
        text = "a red cat and two dogs"
        labels = {
            "answers": [{"red": 1.0, "blue": 0.3}, {"two": 0.9}, {}][n % 3],
            "truth": n % 2 == 0,
            "choices": ("a red cat", "two dogs", "grass", "the ball")[: 4 - n % 2],
            "choice": n % 3,
            "box": tuple(own.boxes[n % 3].tolist()),
            "phrases": ((0, 9, tuple(own.boxes[1].tolist())), (14, 22, (0.9, 0.9, 1.0, 1.0))),
        }
        inputs = {"image": own, "question": "what color is the ball", "caption": text, "choice": "x"}
        found.append(Example(f"e{n}", inputs, (), {}, labels))
    return found


QUESTION = {"question": Text(append_mask=True), "image": regions()}


def model(objective, inputs, backbone=Bert, seed=0):
    torch.manual_seed(seed)
    made = compose(
        backbone(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=120, dropout=0.0),
        inputs,
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
        objectives=Objectives({"own": objective}, {"answers": KNOWN}),
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return made.eval()


def batch_of(made, some, asks=False):
    return Collator(made, made.inputs, ("own",), Place(0, "x"), some, asks)(some, None if asks else [0] * len(some))


def loss_of(made, some):
    return made(batch_of(made, some))


def predictions(made, some):
    batch = batch_of(made, some, asks=True)
    return made.objective("own").predict(made, batch, batch.targets["own"])


class OfATask(mmgen.testing.ObjectiveSuite):
    def backbone_config(self):
        return Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=120, dropout=0.0)

    def examples(self):
        return examples()

    def labels(self):
        return {"answers": KNOWN}


def iou(one, other):
    width = max(0, min(one[2], other[2]) - max(one[0], other[0]))
    height = max(0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return width * height / (sum(areas) - width * height)


def two_pictures():
    """An example that shows two pictures with the same boxes, and one that shows one."""
    first = examples()[0]
    pair = replace(first, id="pair", inputs={**first.inputs, "image": All((record("a", 3, 0), record("b", 3, 0)))})
    return [pair, first]
