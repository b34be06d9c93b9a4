"""Choice among regions: which are right, which may be chosen, and what the head begins as."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from kit.objectives import (
    WORDS,
    D,
    TaskObjectiveSuite,
    batch_of,
    examples,
    iou,
    loss_of,
    model,
    predictions,
    regions,
    two_pictures,
)
from mmgen_encoders import Bert
from mmgen_masked import Masked
from mmgen_objectives import MaskedRegions
from mmgen_tasks import BoxAccuracy, PhraseRegions, RegionChoice
from mmgen_text import Text
from mmgen_vl.regions import plain, right
from mmgen_vlbert import VlBert, VlBertRegions

from mmgen.model import Objectives, compose
from mmgen.parts import Record
from mmgen.tensors import Example, Prediction

pytestmark = pytest.mark.slow


class TestRegionChoice(TaskObjectiveSuite):
    def config(self):
        return RegionChoice(dropout=0.0)

    def inputs(self):
        return {"question": Text(), "image": regions()}


@pytest.mark.parametrize("loss", ["bce", "softmax"])
def test_regions_are_right_by_their_overlap(loss):
    made = model(RegionChoice(loss=loss), {"question": Text(), "image": regions()})
    some = [*examples(), replace(examples()[0], id="none", labels={"box": (0.95, 0.95, 1.0, 1.0)})]
    expected, count = 0.0, 0
    for example in some:
        boxes = example.inputs["image"].boxes.tolist()
        right = torch.tensor([float(iou(box, example.labels["box"]) >= 0.5) for box in boxes])
        states = made.encode(batch_of(made, [example])).inputs["image"][0, : len(boxes)]
        logits = made.objective("own").head(states).squeeze(-1)
        if loss == "bce":
            expected, count = (
                expected + F.binary_cross_entropy_with_logits(logits, right, reduction="sum"),
                count + len(boxes),
            )
        elif right.any():
            expected, count = expected - (logits.log_softmax(-1) * right / right.sum()).sum(), count + 1
    found = loss_of(made, some)
    assert found.counts == {"own.loss": count} and (loss == "bce" or count == 6)
    assert torch.allclose(found.sums["own.loss"], expected, atol=1e-4)
    for one, example in zip(predictions(made, some), some, strict=True):
        assert one.value["box"] == pytest.approx(example.inputs["image"].boxes[one.value["index"]].tolist(), abs=1e-5)


def test_an_overlap_of_half_is_right():
    made = model(RegionChoice(), {"question": Text(), "image": regions()})
    own = Record("p", np.zeros((2, D), np.float32), np.array([[0, 0, 1, 0.5], [0, 0, 1, 0.49]], np.float32))
    example = replace(examples()[0], inputs={"question": "what", "image": own}, labels={"box": (0.0, 0.0, 1.0, 1.0)})
    assert batch_of(made, [example]).targets["own"].labels["right"].tolist() == [[1, 0]]


WHOLE = {"fields": ("image",), "width": D, "fingerprint": {"extractor": "toy"}, "dropout": 0.0}


@pytest.mark.parametrize("whole", ["mean", "first"])
def test_the_whole_picture_is_chosen_only_where_that_is_wanted(whole):
    """Nor does it learn that the whole picture is right, whose box may be near enough."""
    example = replace(examples()[0], labels={"box": (0.0, 0.0, 1.0, 0.9), "phrases": ((0, 9, (0.0, 0.0, 1.0, 0.9)),)})
    inputs = {"caption": Text(), "image": VlBertRegions(**WHOLE, whole_image=whole)}
    for objective in (RegionChoice(), RegionChoice(whole_image=True), PhraseRegions()):
        made = model(objective, inputs, VlBert)
        labels = batch_of(made, [example]).targets["own"].labels["right"].flatten().tolist()
        with_whole = getattr(objective, "whole", False)
        assert len(labels) == 3 + (whole == "mean") and labels[1:] == [0] * (len(labels) - 1)
        assert labels[0] == ((0 if whole == "first" else 1) if with_whole else -100)
        (told,) = predictions(made, [example])
        if isinstance(objective, PhraseRegions):
            boxes = plain(torch.from_numpy(example.inputs["image"].boxes[whole == "first" :]))
            assert sorted(told.value) == sorted(boxes)
            continue
        with torch.no_grad():
            logits = made.objective("own").logits(made, batch_of(made, [example], predicting=True))
        assert logits.isinf().tolist()[0] == [not with_whole] + [False] * (len(labels) - 1)
        assert with_whole or told.value["index"] > 0


def test_a_picture_of_nothing_but_the_whole_is_chosen_as_a_whole():
    one = replace(examples()[0].inputs["image"], features=np.ones((1, D), np.float32), boxes=np.array([[0, 0, 1, 1.0]]))
    example = replace(examples()[0], inputs={"caption": "a cat", "image": one}, labels={"box": (0.0, 0.0, 1.0, 0.9)})
    inputs = {"caption": Text(), "image": VlBertRegions(**WHOLE, whole_image="first")}
    for loss in ("bce", "softmax"):
        made = model(RegionChoice(loss=loss), inputs, VlBert)
        loss_of(made, [example]).mean.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in made.parameters())
        assert predictions(made, [example])[0].value["index"] == 0


def test_the_head_of_regions_begins_as_that_of_masked_regions():
    inputs = {"caption": Text(), "image": regions()}
    torch.manual_seed(0)
    made = compose(
        Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90),
        {**inputs, "image": inputs["image"].model_copy(update={"classes": ("cat", "dog")})},
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
        objectives=Objectives({"own": RegionChoice(init_from="regions"), "regions": MaskedRegions()}),
    )
    lent, own = made.objective("regions").hidden_layer(), made.objective("own").head[0]
    assert not torch.equal(lent.weight, own.weight)
    made.objective("own").begin(made)
    assert torch.equal(lent.weight, own.weight) and torch.equal(lent.bias, own.bias)
    theirs = {f"module.vlbert.mvrc_head.transform.dense.{part}": torch.rand(32, 32) for part in ("weight", "bias")}
    assert set(made.objective("own").published(theirs)) == {"head.1.weight", "head.1.bias"}


def test_an_overlap_of_half_is_right_in_pixels_while_learning_and_when_it_is_judged():
    rng = random.Random(0)
    pixels = [(rng.randint(200, 640), rng.randint(200, 640), rng.randint(4, 90), rng.randint(4, 90)) for _ in range(50)]
    whole = [(9 / w, 7 / h, (9 + 2 * a) / w, (7 + b) / h) for w, h, a, b in pixels]
    half = torch.tensor([(9 / w, 7 / h, (9 + a) / w, (7 + b) / h) for w, h, a, b in pixels])  # as a store keeps them
    less = torch.tensor([(9 / w, 7 / h, (8 + a) / w, (7 + b) / h) for w, h, a, b in pixels])
    for own, found, expected in [(whole, half, True), (whole, less, False)]:
        learnt = [bool(right(box.unsqueeze(0), other, "e")) for box, other in zip(found, own, strict=True)]
        some = [Example(str(i), {}, (), {}, {"box": box}) for i, box in enumerate(own)]
        said = [Prediction(str(i), {"box": box, "index": 0}, 1.0) for i, box in enumerate(plain(found))]
        judged = BoxAccuracy().build().score(said, some).per_example["accuracy"]
        assert learnt == [expected] * len(own) and judged == [100.0 * expected] * len(own)


def test_the_head_of_regions_drops_what_its_last_layer_reads():
    head = model(RegionChoice(), {"question": Text(), "image": regions()}).objective("own").head
    assert [type(layer).__name__ for layer in head] == ["Linear", "GELU", "Dropout", "Linear"]


def test_a_region_tells_of_which_of_two_pictures_it_is():
    made = model(RegionChoice(), {"question": Text(), "image": regions()})
    some = two_pictures()
    labels = batch_of(made, some).targets["own"].labels["right"]
    assert labels[0].tolist() == [1, 0, 0, 0, 0, 0] and labels[1].tolist()[:3] == [1, 0, 0]  # a box is the first one's
    with torch.no_grad():
        (one, other), logits = predictions(made, some), made.objective("own").logits(made, batch_of(made, some))
    assert one.value["index"] == int(logits[0].argmax()) and one.value["picture"] == one.value["index"] // 3
    assert "picture" not in other.value
    said = [Prediction("pair", {"box": list(some[0].labels["box"]), "index": 0, "picture": n}, 1.0) for n in (0, 1)]
    assert BoxAccuracy().build().score(said, [some[0]] * 2).per_example["accuracy"] == [100.0, 0.0]
