"""The objectives of the tasks: their losses by the papers' definitions, what they predict, and what they refuse."""

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mmgen_encoders import Bert, Roberta
from mmgen_masked import Masked
from mmgen_objectives import MaskedRegions, MaskedWords
from mmgen_regions import Regions
from mmgen_tasks import AnswerClasses, BoxAccuracy, MultipleChoice, PhraseRegions, RegionChoice, TrueOrFalse
from mmgen_text import Text
from mmgen_vl.regions import plain, right
from mmgen_vlbert import VlBert, VlBertRegions

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.data.seeds import Place
from mmgen.errors import DataError
from mmgen.model import Objectives, compose
from mmgen.parts import Record
from mmgen.tensors import All, Example, Prediction

pytestmark = pytest.mark.slow

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
        backbone(layers=2, width=32, heads=4, vocabulary=120, dropout=0.0),
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
        return Bert(layers=1, width=32, heads=4, vocabulary=120, dropout=0.0)

    def examples(self):
        return examples()

    def labels(self):
        return {"answers": KNOWN}


class TestAnswerClasses(OfATask):
    def config(self):
        return AnswerClasses(dropout=0.0, loss="bce", transform=True)

    def inputs(self):
        return QUESTION


class TestTrueOrFalse(OfATask):
    def config(self):
        return TrueOrFalse(dropout=0.0)

    def inputs(self):
        return {"question": Text(), "image": regions()}


class TestMultipleChoice(OfATask):
    def config(self):
        return MultipleChoice(dropout=0.0)

    def inputs(self):
        return {"question": Text(), "choice": Text(), "image": regions()}


class TestRegionChoice(OfATask):
    def config(self):
        return RegionChoice(dropout=0.0)

    def inputs(self):
        return {"question": Text(), "image": regions()}


class TestPhraseRegions(OfATask):
    def config(self):
        return PhraseRegions()

    def inputs(self):
        return {"caption": Text(), "image": regions()}


# --- answers --------------------------------------------------------------------------------------------------------


def answer_logits(made, example):
    """One row, written out: the state of the last slot of the question."""
    batch = batch_of(made, [example])
    prefix = made.prefix(batch).slots
    states = made.backbone.encode(prefix).last[0]
    asked = int(prefix.of("question")[0].nonzero()[-1])
    assert torch.equal(prefix.states[0, asked], made.backbone.embed(torch.tensor([made.backbone.mask_id]))[0])
    objective = made.objective("own")
    return objective.head(objective.transform(states[asked]))


@pytest.mark.parametrize("loss", ["kl", "bce"])
def test_answers_are_weighed_as_people_gave_them(loss):
    made, some = model(AnswerClasses(loss=loss), QUESTION), examples()[:3]
    expected = 0.0
    for example in some:
        logits = answer_logits(made, example)
        weights = torch.tensor([example.labels["answers"].get(answer, 0.0) for answer in KNOWN])
        if loss == "kl":
            shares = logits.log_softmax(-1)
            expected += sum(w * (w.log() - s) for w, s in zip(weights, shares, strict=True) if w)
        else:
            shares = logits.sigmoid()
            expected -= (weights * shares.log() + (1 - weights) * (1 - shares).log()).sum()
    found = loss_of(made, some)
    assert found.counts == {"own.loss": 3}
    assert torch.allclose(found.sums["own.loss"], expected, atol=1e-4)


def test_the_likeliest_answers_are_told_and_never_the_unknown_one():
    made = model(AnswerClasses(told=2), QUESTION)
    with torch.no_grad():
        made.objective("own").head.bias[0] = 50.0
    for one, example in zip(predictions(made, examples()), examples(), strict=True):
        logits = answer_logits(made, example)[1:]
        shares = dict(zip(KNOWN[1:], logits.softmax(-1).tolist(), strict=True))
        best = sorted(shares, key=shares.get, reverse=True)[:2]
        assert one.id == example.id and list(one.value["probabilities"]) == best and one.value["label"] == best[0]
        assert one.score == pytest.approx(shares[best[0]], abs=1e-5)


@pytest.mark.parametrize("backbone", [Bert, Roberta])
def test_the_head_begins_as_the_masked_lm_heads_transform(backbone):
    made = model(AnswerClasses(transform=True), QUESTION, backbone)
    states = torch.randn(3, 32)
    with torch.no_grad():
        assert not torch.allclose(made.objective("own").transform(states), _transformed(made.backbone, states))
        made.objective("own").begin(made)
        assert torch.allclose(made.objective("own").transform(states), _transformed(made.backbone, states), atol=1e-6)


def _transformed(backbone, states):
    """The input of the masked-LM head's last layer."""
    seen = []
    hook = backbone.model.get_output_embeddings().register_forward_hook(lambda _, given, __: seen.append(given[0]))
    backbone.logits(states)
    hook.remove()
    return seen[0]


# --- true or false, choices -----------------------------------------------------------------------------------------


def test_truth_of_two_pictures():
    made = model(TrueOrFalse(), {"question": Text(), "image": regions()})
    pairs = [
        replace(example, inputs=example.inputs | {"image": All((example.inputs["image"], record("other", 2, 9)))})
        for example in examples()[:3]
    ]
    found, expected = loss_of(made, pairs), 0.0
    for pair in pairs:
        states = made.encode(batch_of(made, [pair])).states
        logits = made.objective("own").head(made.backbone.pooled(states))
        expected = expected + F.cross_entropy(logits, torch.tensor([int(pair.labels["truth"])]))
    assert torch.allclose(found.sums["own.loss"], expected, atol=1e-4) and found.counts == {"own.loss": 3}
    for one in predictions(made, pairs):
        assert one.value["label"] == max(one.value["probabilities"], key=one.value["probabilities"].get)
        assert sum(one.value["probabilities"].values()) == pytest.approx(1)


@pytest.mark.parametrize("loss", ["softmax", "bce"])
def test_choices_are_rows_and_compared_within_their_example(loss):
    inputs = {"question": Text(), "choice": Text(), "image": regions()}
    made, some = model(MultipleChoice(loss=loss), inputs), examples()
    alone = model(TrueOrFalse(), inputs)
    shared = {name: value for name, value in made.state_dict().items() if ".own." not in name}
    alone.load_state_dict(shared, strict=False)
    expected, told = 0.0, []
    for example in some:
        rows = [replace(example, inputs=example.inputs | {"choice": choice}) for choice in example.labels["choices"]]
        states = [alone.encode(batch_of(alone, [row])).states for row in rows]
        logits = torch.cat([made.objective("own").head(made.backbone.pooled(each)) for each in states]).squeeze(-1)
        right = torch.tensor([float(place == example.labels["choice"]) for place in range(len(rows))])
        if loss == "softmax":
            expected, shares = expected - (logits.log_softmax(-1) * right).sum(), logits.softmax(-1)
        else:
            expected = expected + F.binary_cross_entropy_with_logits(logits, right, reduction="sum")
            shares = logits.sigmoid()
        told.append(shares)
    found = loss_of(made, some)
    assert found.counts == {"own.loss": 6 if loss == "softmax" else sum(len(e.labels["choices"]) for e in some)}
    assert torch.allclose(found.sums["own.loss"], expected, atol=1e-3)
    for one, shares in zip(predictions(made, some), told, strict=True):
        assert one.value["choice"] == int(shares.argmax())
        assert one.value["probabilities"] == pytest.approx(shares.tolist(), abs=1e-5)


def test_the_rows_of_an_example_hide_words_apart_from_one_another():
    inputs = {"question": Text(), "choice": Text()}
    torch.manual_seed(0)
    made = compose(
        Bert(layers=1, width=32, heads=4, vocabulary=120),
        inputs,
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
        objectives=Objectives({"words": MaskedWords(rate=0.5), "own": MultipleChoice()}),
    )
    example = replace(examples()[0], inputs={"question": WORDS, "choice": "x"})

    def hidden(objectives, one):
        batch = Collator(made, made.inputs, objectives, Place(0, "x"))([one], [0])
        return batch.targets["words"].labels["question"] != -100

    rows = hidden(("words", "own"), example)
    assert len(rows) == 4 and len({tuple(row.tolist()) for row in rows}) == 4
    assert torch.equal(rows[:1], hidden(("words",), example))  # what is drawn for an example of one row stays


def test_looking_at_choices_does_not_wait_for_the_device():
    """How large the table is, loader workers tell."""
    made, some = model(MultipleChoice(), {"choice": Text()}), examples()
    labels = batch_of(made, some).targets["own"].labels
    counts = [len(example.labels["choices"]) for example in some]
    assert labels["there"].sum(1).tolist() == counts and labels["there"].shape == (6, 4)
    meta = {name: each.to("meta") for name, each in labels.items()}
    head = SimpleNamespace(encode=lambda _: SimpleNamespace(states=None), backbone=SimpleNamespace(pooled=None))
    head.backbone.pooled = lambda _: torch.zeros(sum(counts), 32, device="meta")
    assert made.objective("own").to("meta").logits(head, None, meta).shape == (6, 4)  # no number can be looked at


def test_mentions_of_a_choice_come_with_it():
    reader = model(MultipleChoice(), {"choice": Text()}).objective("own").reader
    mentions = (((0, 1, (0,)),), (), (), ())
    example = replace(examples()[0], labels=examples()[0].labels | {"choice_mentions": mentions})
    rows = reader.rows(example, None, None)
    assert [row.inputs["choice_mentions"] for row in rows] == [All(each) for each in mentions]


# --- regions --------------------------------------------------------------------------------------------------------


def iou(one, other):
    width = max(0, min(one[2], other[2]) - max(one[0], other[0]))
    height = max(0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return width * height / (sum(areas) - width * height)


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


WHOLE = {"reads": ("image",), "width": D, "fingerprint": {"extractor": "toy"}, "dropout": 0.0}


@pytest.mark.parametrize("whole", ["mean", "first"])
def test_the_whole_picture_is_chosen_only_where_that_is_wanted(whole):
    """Nor does it learn that the whole picture is right, whose box may be near enough."""
    example = replace(examples()[0], labels={"box": (0.0, 0.0, 1.0, 0.9), "phrases": ((0, 9, (0.0, 0.0, 1.0, 0.9)),)})
    inputs = {"caption": Text(), "image": VlBertRegions(**WHOLE, whole=whole)}
    for objective in (RegionChoice(), RegionChoice(whole=True), PhraseRegions()):
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
            logits = made.objective("own").logits(made, batch_of(made, [example], asks=True))
        assert logits.isinf().tolist()[0] == [not with_whole] + [False] * (len(labels) - 1)
        assert with_whole or told.value["index"] > 0


def test_a_picture_of_nothing_but_the_whole_is_chosen_as_a_whole():
    one = replace(examples()[0].inputs["image"], features=np.ones((1, D), np.float32), boxes=np.array([[0, 0, 1, 1.0]]))
    example = replace(examples()[0], inputs={"caption": "a cat", "image": one}, labels={"box": (0.0, 0.0, 1.0, 0.9)})
    inputs = {"caption": Text(), "image": VlBertRegions(**WHOLE, whole="first")}
    for loss in ("bce", "softmax"):
        made = model(RegionChoice(loss=loss), inputs, VlBert)
        loss_of(made, [example]).mean.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in made.parameters())
        assert predictions(made, [example])[0].value["index"] == 0


def test_the_head_of_regions_begins_as_that_of_masked_regions():
    inputs = {"caption": Text(), "image": regions()}
    torch.manual_seed(0)
    made = compose(
        Bert(layers=1, width=32, heads=4, vocabulary=90),
        {**inputs, "image": inputs["image"].model_copy(update={"classes": ("cat", "dog")})},
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
        objectives=Objectives({"own": RegionChoice(begins_as="regions"), "regions": MaskedRegions()}),
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


def two_pictures():
    """An example that shows two pictures with the same boxes, and one that shows one."""
    first = examples()[0]
    pair = replace(first, id="pair", inputs={**first.inputs, "image": All((record("a", 3, 0), record("b", 3, 0)))})
    return [pair, first]


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


def test_phrases_of_two_pictures_are_refused():
    made = model(PhraseRegions(), {"caption": Text(), "image": regions()})
    with pytest.raises(DataError, match="example 'pair' shows several pictures; a phrase's boxes are those of one"):
        batch_of(made, two_pictures())


def test_phrases_look_from_their_last_word_piece():
    made = model(PhraseRegions(width=8), {"caption": Text(), "image": regions()})
    some, expected = examples(), 0.0
    objective = made.objective("own")
    for example in some:
        boxes = example.inputs["image"].boxes.tolist()
        (first, end, box), _ = example.labels["phrases"]  # no region is near the second
        encoded = made.encode(batch_of(made, [example]))
        spans = made.embedders["caption"].describe(example)["spans"]
        last = [slot for slot, (start, stop) in enumerate(spans) if start < end and stop > first][-1]
        assert spans[last][1] == end
        query, keys = objective.query(encoded.inputs["caption"][0, last]), objective.key(encoded.inputs["image"][0])
        shares = (keys @ query / 8**0.5).log_softmax(-1)
        right = [place for place, each in enumerate(boxes) if iou(each, box) >= 0.5]
        expected = expected + sum((1 / len(right)) * (np.log(1 / len(right)) - shares[place]) for place in right)
    found = loss_of(made, some)
    assert found.counts == {"own.loss": 6}
    assert torch.allclose(found.sums["own.loss"], expected.float(), atol=1e-4)
    for one, example in zip(predictions(made, some), some, strict=True):
        assert np.allclose(sorted(one.value), sorted(example.inputs["image"].boxes.tolist()), atol=1e-5)
    assert one.value[0] == pytest.approx(boxes[int(shares.argmax())], abs=1e-5)


def test_a_phrase_that_was_cut_off_is_left_out():
    made = model(PhraseRegions(), {"caption": Text(max_tokens=2), "image": regions()})
    own = examples()[0].inputs["image"].boxes[1].tolist()
    example = replace(examples()[0], labels={"phrases": ((0, 5, own), (14, 22, own))})
    targets = batch_of(made, [example]).targets["own"]
    assert targets.counts == {"loss": 1} and targets.labels["last"][0, 1] == -100


# --- what is refused ------------------------------------------------------------------------------------------------


NO_LIST = 'example \'e0\' has choices that are no list of texts; give all of them, as ["the first", "the second"]'


@pytest.mark.parametrize(
    ("config", "inputs", "labels", "message"),
    [
        (AnswerClasses(), QUESTION, {}, "example 'e0' has no label 'answers'"),
        (
            AnswerClasses(),
            QUESTION,
            {"answers": {"green": 1.0}},
            "example 'e0' has the answer 'green', none of the 4 known",
        ),
        (TrueOrFalse(), {"question": Text()}, {}, "example 'e0' has no label 'truth'"),
        (MultipleChoice(), {"question": Text()}, {}, "example 'e0' has no choices"),
        (MultipleChoice(), {"question": Text()}, {"choices": "a dog"}, NO_LIST),
        (MultipleChoice(), {"question": Text()}, {"choices": {"a dog": 1}}, NO_LIST),
        (MultipleChoice(), {"question": Text()}, {"choices": ("a dog", 7)}, NO_LIST),
        (MultipleChoice(), {"choice": Text()}, {"choices": ("a", "b")}, "example 'e0' has no label 'choice'"),
        (
            MultipleChoice(),
            {"choice": Text()},
            {"choices": ("a", "b"), "choice": 2},
            "example 'e0': choice 2 is none of its 2 choices, which count from 0",
        ),
        (RegionChoice(), {"image": regions()}, {}, "example 'e0' has no label 'box'"),
        (
            RegionChoice(),
            {"image": regions()},
            {"box": (0.5, 0, 0.2, 1)},
            "example 'e0': the box (0.5, 0, 0.2, 1) is not [x0, y0, x1, y1] with x0 < x1 and y0 < y1",
        ),
        (PhraseRegions(), {"caption": Text(), "image": regions()}, {}, "example 'e0' has no label 'phrases'"),
        (
            PhraseRegions(),
            {"caption": Text(), "image": regions()},
            {"phrases": ((50, 60, (0, 0, 1, 1)),)},
            "example 'e0': letters 50 to 60 of its caption hold no word",
        ),
        (
            PhraseRegions(),
            {"caption": Text(), "image": regions()},
            {"phrases": ((3,),)},
            "example 'e0': a phrase is its first character, end and box, and not (3,)",
        ),
    ],
)
def test_labels_that_do_not_do(config, inputs, labels, message):
    example = replace(
        examples()[0], labels=labels, inputs={n: v for n, v in examples()[0].inputs.items() if n != "choice"}
    )
    with pytest.raises(DataError) as told:
        batch_of(model(config, inputs), [example])
    assert str(told.value) == message


@pytest.mark.parametrize(
    ("config", "inputs", "message"),
    [
        (
            AnswerClasses(),
            {"question": Text()},
            "the [MASK] behind 'question'; the step needs such an input with append",
        ),
        (MultipleChoice(), {"question": Text()}, "needs an input that reads 'choice'; add one of type \"text\""),
        (RegionChoice(), {"image": Text()}, "chooses among the regions of 'image'; the step needs such an input of"),
        (PhraseRegions(), {"image": regions()}, "reads phrases of 'caption'; the step needs such an input of type"),
        (
            PhraseRegions(),
            {"caption": Text(reads=("words",)), "image": regions()},
            "reads phrases of 'caption', and that input reads 'words'; call the input as the field is called",
        ),
        (
            PhraseRegions(),
            {"caption": Text(append_mask=True), "image": regions()},
            "reads phrases of 'caption', which must end in its own words; give it append_mask = false",
        ),
    ],
)
def test_inputs_that_do_not_do(config, inputs, message):
    assert message in config.misfits({name: each.named(name) for name, each in inputs.items()})
