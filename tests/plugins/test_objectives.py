"""The first-party objectives: what they hide and ask, and that they learn by the papers' definitions."""

import json
import random
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
import toys
from mmgen_encoders import Bert, Roberta
from mmgen_masked import Masked
from mmgen_objectives import MaskedWords
from mmgen_text import Text

from mmgen.data.collate import Collator
from mmgen.data.seeds import Place
from mmgen.model import Objectives, compose
from mmgen.recipe.tables import Step, Training
from mmgen.tensors import Example, Hiding
from mmgen.training.accumulate import Accumulator
from mmgen.training.checkpoint import Cursor
from mmgen.training.train import make_material

EXAMPLES = toys.examples(12)


def model(backbone=Bert, seed=0, **objectives):
    """A caption-to-question model with objectives, random weights, no dropout, in eval mode."""
    torch.manual_seed(seed)
    made = compose(
        backbone(layers=2, width=32, heads=4, vocabulary=90, dropout=0.0),
        {"caption": Text()},
        Masked(max_tokens=9),
        texts=[" ".join(toys.WORDS)] * 3,
        objectives=Objectives(objectives or {"words": MaskedWords()}),
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return made.eval()


def text_reader(backbone=Bert):
    return model(backbone).embedders["caption"].reader


def hidden(reader, text, hiding, seed=0):
    item = reader.read(Example("e", {"caption": text}))
    return item, *reader.hide(item, random.Random(seed), hiding)


def test_a_share_of_the_words_is_hidden_in_three_ways():
    reader = text_reader()
    reader.max_tokens = 6000
    item, ids, labels = hidden(reader, " ".join(toys.WORDS * 400), Hiding(0.15, (0.8, 0.1)))
    asked = labels != -100
    assert torch.equal(labels[asked], item[asked]) and torch.equal(ids[~asked], item[~asked])
    assert asked.float().mean() == pytest.approx(0.15, abs=0.02)
    masked = ids[asked] == reader.mask_id
    kept = ids[asked] == item[asked]
    assert masked.float().mean() == pytest.approx(0.8, abs=0.05)
    assert kept.float().mean() == pytest.approx(0.1 + 0.1 / 80, abs=0.04)
    special = torch.tensor(reader.tokenizer.all_special_ids)
    assert not torch.isin(ids[asked & ~(ids == reader.mask_id)], special).any()


@pytest.mark.parametrize("backbone", [Bert, Roberta])
def test_whole_words_are_hidden_with_all_their_pieces(backbone):
    reader = text_reader(backbone)
    text = "zebra what redball colors"  # words that the vocabulary has in pieces
    item = reader.read(Example("e", {"caption": text}))
    words = reader._words(item.tolist())
    assert len(words) == 4 < len(item) and [place for word in words for place in word] == [*range(len(item))]
    for seed in range(20):
        _, _, labels = hidden(reader, text, Hiding(0.5, (0.8, 0.1), whole_words=True), seed)
        assert all(len({int(labels[place]) == -100 for place in word}) == 1 for word in words)


def test_the_item_stays_as_it_is():
    item, ids, _ = hidden(text_reader(), " ".join(toys.WORDS), Hiding(1.0, (1.0, 0.0)))
    assert (ids != item).all()


def test_the_loss_is_the_cross_entropy_of_hidden_words_with_all_else_visible():
    """Against the encoder called by hand on [CLS] and the holed caption, example by example."""
    made = model()
    collate = Collator(made, ["caption"], ["words"], Place(0, "s"))
    batch = collate(EXAMPLES, [0] * len(EXAMPLES))
    loss = made(batch)
    ids, labels = batch.inputs["caption"]["ids"], batch.targets["words"].labels["caption"]
    total, count = 0.0, 0
    for own, asked, mask in zip(ids, labels, batch.inputs["caption"]["mask"], strict=True):
        tokens = torch.cat([torch.tensor([made.backbone.start_id]), own[mask]]).unsqueeze(0)
        logits = made.backbone.model(input_ids=tokens).logits[0, 1:]
        wanted = asked[mask]
        total += F.cross_entropy(logits[wanted != -100], wanted[wanted != -100], reduction="sum").item()
        count += int((wanted != -100).sum())
    assert loss.counts == {"words.loss": count} and count > 3
    assert loss.sums["words.loss"].item() == pytest.approx(total, rel=1e-4)


def test_draws_follow_from_the_pass_and_the_example_and_not_from_the_batch():
    made = model()
    collate = Collator(made, ["caption"], ["words"], Place(0, "s"))

    def holes(examples, which):
        batch = collate(examples, [which] * len(examples) if which is not None else None)
        labels = batch.targets["words"].labels["caption"]
        return {id_: row[row != -100].tolist() for id_, row in zip(batch.ids, labels, strict=True)}

    whole = holes(EXAMPLES, 0)
    apart = {name: row for example in EXAMPLES for name, row in holes([example], 0).items()}
    assert whole == apart == holes(EXAMPLES, 0)
    assert whole != holes(EXAMPLES, 1)
    assert holes(EXAMPLES, None) == holes(EXAMPLES, None)  # validation hides the same every epoch


def step(**training):
    chosen = {"batch_size": 12, "micro_batch": 5, "learning_rate": 1e-3, "precision": "fp32", "bucket": 1, **training}
    learnt = ("generator", "words")
    return Step(inputs=("caption",), learn=("backbone",), objectives=learnt, training=Training(**chosen))


@pytest.mark.parametrize("halved", [0, 2])
def test_writing_and_words_are_learnt_together_however_an_update_is_split(tmp_path, halved):
    """Each loss over its own count. A single example is not cut, or its words would count twice."""
    made = model()
    results = []
    for micro, times in ((100, 0), (2, halved)):
        context = toys.context(tmp_path, step(micro_batch=micro))
        material = make_material(made, context, EXAMPLES)
        accumulator = Accumulator(context, material, Cursor(halved=times), made, dict(made.named_parameters()), False)
        micros = [(n, material.batch(material.cut(0, n, 0)[0])) for n in range(len(material.plan.updates[0]))]
        _, means, _ = accumulator.gradients(0, micros, bool)
        results.append((means, {name: p.grad.clone() for name, p in made.named_parameters() if p.grad is not None}))
        made.zero_grad(set_to_none=True)
    (means, gradients), (others, split) = results
    assert set(means.each) == {"generator.loss", "words.loss"}
    assert means.each == pytest.approx(others.each, abs=1e-5)
    torch.testing.assert_close(gradients, split, atol=1e-6, rtol=1e-3)


def test_a_weight_multiplies_what_is_learnt_and_not_what_is_told():
    one, three = model(words=MaskedWords()), model(words=MaskedWords(weight=3.0))
    batch = Collator(one, ["caption"], ["generator", "words"])(EXAMPLES)
    loss, heavier = one(batch), three(batch)
    torch.testing.assert_close(heavier.sums, loss.sums)
    words = loss.sums["words.loss"] / loss.counts["words.loss"]
    assert heavier.mean.item() == pytest.approx((loss.mean + 2 * words).item(), rel=1e-5)


def test_what_is_read_is_encoded_once_for_several_objectives():
    made = model(words=MaskedWords(), more=MaskedWords(rate=0.3))
    batch = Collator(made, ["caption"], ["words"])(EXAMPLES)
    batch = replace(batch, targets={**batch.targets, "more": batch.targets["words"]})
    encode, times = made.backbone.encode, []
    made.backbone.encode = lambda *args, **more: times.append(1) or encode(*args, **more)
    made(batch)
    assert len(times) == 1


RECIPE = """
name = "toy"
[backbone]
type = "bert"
layers = 1
width = 16
heads = 2
[inputs.caption]
type = "text"
[generator]
type = "masked"
[objectives.words]
type = "masked_words"
{words}
[steps.pre]
inputs = ["caption"]
learn = ["backbone"]
objectives = ["words"]
evaluate = false
{step}
[data]
type = "scenes"
train_size = 20
val_size = 4
test_size = 4
"""


def told(folder, words="", step=""):
    """What `mmgen check` says."""
    (folder / "toy.toml").write_text(RECIPE.format(words=words, step=step))
    return toys.mmgen_here(folder, "check", "toy.toml").stderr


@pytest.mark.parametrize(
    "words, step, line",
    [
        (
            'inputs = ["image"]',
            '[inputs.image]\ntype = "regions"',
            "toy.toml:18: steps.pre.objectives: 'words' hides words of 'image', and the step reads: caption",
        ),
        ("", '[objectives.others]\ntype = "masked_words"', ""),
        ("mask = 0.8\nrandom = 0.3", "", "toy.toml:12: objectives.words: mask and random are shares of the same words"),
        ("rate = 0.0", "", "toy.toml:14: objectives.words.rate: "),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_learnt(tmp_path, words, step, line):
    assert line in told(tmp_path, words, step)


@pytest.mark.parametrize(
    "objectives, line",
    [
        ('["words", "more"]', "'words' and 'more' hide the input 'caption', and only one of them can"),
        ('["word"]', "there is no objective 'word'; did you mean 'words'?; there are: generator, words, more"),
        ('["words", "words"]', "'words' is named twice"),
        ('["generator", "words"]', ""),
    ],
)
def test_objectives_of_a_step_are_checked(tmp_path, objectives, line):
    text = RECIPE.format(words="", step='[objectives.more]\ntype = "masked_words"')
    (tmp_path / "toy.toml").write_text(text.replace('["words"]', objectives))
    assert (f"toy.toml:18: steps.pre.objectives: {line}" if line else "") in toys.mmgen_here(
        tmp_path, "check", "toy.toml"
    ).stderr


def test_nothing_to_score_is_told(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE.format(words="", step="").replace("evaluate = false", ""))
    said = toys.mmgen_here(tmp_path, "check", "toy.toml").stderr
    assert "steps.pre.evaluate: 'words' give nothing that could be scored; write evaluate = false" in said


def test_words_are_learnt_from_a_recipe_and_live_on(tmp_path):
    more = '[steps.write]\ninputs = ["caption"]\nlearn = ["backbone"]\nstart = "pre"'
    (tmp_path / "toy.toml").write_text(RECIPE.format(words="", step=more + "\n[training]\nepochs = 2"))
    toys.mmgen_here(tmp_path, "run", "toy.toml")
    steps = tmp_path / toys.PLACE / "steps"
    losses = [json.loads(line)["loss"] for line in (steps / "pre/log.jsonl").read_text().splitlines()]
    assert losses[-1] < losses[0] and not (steps / "pre/generations.jsonl").exists()
    assert (steps / "write/generations.jsonl").exists()
