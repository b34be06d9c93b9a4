"""Prompts: packed rows and cached texts equal rows of one prompt and one target; other targets never see a prompt."""

from dataclasses import replace

import pytest
import torch
from kit import naive, toys
from kit.weights import built_once, perturbed
from mmgen_encoders import Bert
from mmgen_generators import Causal, Masked
from mmgen_inputs import Text

from mmgen import DataError, Decoding
from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.evaluation.answers import generate
from mmgen.examples import Example
from mmgen.model import compose
from mmgen.prompts import prompts_of

CLOSE = 1e-5
PROMPTS = ("red ball", "how many", "", "the dog near")
WAYS = pytest.mark.parametrize("generator", [Masked, Causal])
BEAMS = Decoding(num_beams=3, num_return_sequences=2)


@built_once
def model_of(generator=Masked):
    """A model of random weights whose texts depend on positions and may end anywhere."""
    torch.manual_seed(0)
    inputs, generator = {"caption": Text()}, generator(max_tokens=9)
    return perturbed(compose(Bert(**toys.SIZES), inputs, generator, texts=toys.TEXTS), 0.2)


def prompted(count=4):
    """Examples with one to four targets, each with its prompt; some prompts are empty."""
    return [
        replace(example, labels={"prompt": tuple(PROMPTS[(i + k) % 4] for k in range(len(example.targets)))})
        for i, example in enumerate(toys.examples(count))
    ]


def loss_of(model, examples):
    batch = Collator(model, ["caption"])([resolve(example) for example in examples])
    return model(batch).sums["generator.loss"]


def singles(example):
    """The example's targets as examples of one target and one prompt."""
    pairs = zip(example.targets, prompts_of(example), strict=True)
    return [replace(example, targets=(target,), labels={"prompt": prompt}) for target, prompt in pairs]


@WAYS
def test_packed_targets_with_prompts_equal_single_rows(generator):
    model = model_of(generator)
    total = loss_of(model, prompted())
    alone = sum(loss_of(model, [single]) for example in prompted() for single in singles(example))
    torch.testing.assert_close(total, alone, atol=1e-4, rtol=CLOSE)
    assert abs(total - loss_of(model, toys.examples(4))) > 0.1, "prompts change the loss"


@torch.no_grad()
def test_writing_is_the_papers_procedure_behind_a_prompt():
    """Training is in tests/plugins/generators/test_likelihood.py."""
    model = model_of()
    backbone, (example, *_) = model.backbone, prompted()
    x = naive.text_prefix(backbone, resolve(example).inputs["caption"])
    (texts,) = generate(model, [example])
    for text, prompt in zip(texts, dict.fromkeys(prompts_of(example)), strict=True):
        written: list[int] = []
        while len(written) < 9 and backbone.end_id not in written:
            logp = naive.distribution(backbone, x, written, backbone.encode_text(prompt))
            written.append(int(naive.without_special(backbone, logp).argmax()))
        assert list(text.tokens) == written
        assert text.prompt == prompt


@pytest.mark.slow
@WAYS
def test_texts_of_several_prompts_equal_those_of_one(generator):
    """Whatever other prompts an example has, whatever the batch, cached or not."""
    model, examples = model_of(generator), prompted(3)
    texts = generate(model, examples, BEAMS)
    assert [len(row) for row in texts] == [2 * len({*prompts_of(example)}) for example in examples]
    for example, row in zip(examples, texts, strict=True):
        alone = [
            text
            for prompt in dict.fromkeys(prompts_of(example))
            for text in generate(model, [replace(example, labels={"prompt": prompt})], BEAMS)[0]
        ]
        assert [(text.prompt, text.tokens) for text in row] == [(text.prompt, text.tokens) for text in alone]
        assert [text.score for text in row] == pytest.approx([text.score for text in alone], abs=CLOSE)
    assert len({text.text for row in texts for text in row}) > len(examples), "prompts change texts"


@WAYS
@torch.no_grad()
def test_cached_writing_equals_encoding_everything_again(generator):
    model, examples = model_of(generator), prompted()
    cached = generate(model, examples, BEAMS)
    model.backbone.caches = False
    for first, second in zip(cached, generate(model, examples, BEAMS), strict=True):
        assert [text.tokens for text in first] == [text.tokens for text in second]
        assert [text.score for text in first] == pytest.approx([text.score for text in second], abs=CLOSE)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (("a", "b"), "example 'e' has 2 prompts for 1 targets; give one per target"),
        (3, "example 'e': 'prompt' must be a string or a list of strings, not 3"),
        (["a", 3], "example 'e': 'prompt' must be a string or a list of strings, not ['a', 3]"),
    ],
)
def test_wrong_prompts(label, message):
    with pytest.raises(DataError) as error:
        prompts_of(Example("e", {}, ("t",), labels={"prompt": label}))
    assert str(error.value) == message
