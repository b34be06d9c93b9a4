"""Sentence-image matching: the drawn pairs of captions, and training."""

import random
from functools import partial

import pytest
from kit import toys
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_inputs import Text
from mmgen_objectives import MaskedWords, SentenceImage
from mmgen_objectives.statements import TwoCaptions

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.examples import Example
from mmgen.model import Objectives, compose
from mmgen.testing import Words

EXAMPLES = toys.examples(12)


class TestSentenceImage(mmgen.testing.ObjectiveSuite):
    def config(self):
        return SentenceImage()

    def inputs(self):
        return {"caption": Words(), "second": Words(fields=("second",))}


def pairs(count=400):
    """Pairs of captions that the objective draws of pictures with two captions each."""
    examples = [Example(f"p{i}", {"image": f"p{i}", "caption": (f"a {i}", f"b {i}")}) for i in range(20)]
    reader, drawn_pairs = TwoCaptions(SentenceImage()), []
    for number in range(count):
        example, draw = examples[number % 20], random.Random(number)
        rest = [candidate for candidate in examples if candidate is not example]
        (row,) = reader.rows(example, draw, partial(draw.choice, rest))
        drawn_pairs.append((example.id[1:], row.inputs["caption"], row.inputs["second"], row.labels["drawn"]))
    return drawn_pairs


def test_half_of_the_second_captions_are_of_another_picture_and_the_others_are_another_of_the_same():
    drawn_pairs = pairs()
    assert sum(fits for *_, fits in drawn_pairs) / len(drawn_pairs) == pytest.approx(0.5, abs=0.08)
    for number, first, second, fits in drawn_pairs:
        assert first.split()[1] == number and first != second
        assert (second.split()[1] == number) == fits


def test_validation_draws_from_all_captions_as_training_does():
    """A second caption that fits is another one, never the first again."""
    composed = compose(
        Bert(num_hidden_layers=1, hidden_size=16, num_attention_heads=2, vocab_size=90),
        {"caption": Text(), "second": Text(fields=("second",))},
        None,
        texts=[" ".join(toys.WORDS)] * 3,
        objectives=Objectives({"fits": SentenceImage()}),
    )
    collate = Collator(composed, composed.inputs, ["fits"], RngKey(0, "s"), EXAMPLES)
    rows = [row.example for example in EXAMPLES for row in collate.read(example)]
    fitting = [row.inputs for row in rows if row.labels["drawn"]]
    assert len(fitting) > 2 and all(inputs["caption"] != inputs["second"] for inputs in fitting)


def test_a_pair_is_drawn_for_every_pass_and_the_same_in_any_batch():
    composed = compose(
        Bert(num_hidden_layers=1, hidden_size=16, num_attention_heads=2, vocab_size=90),
        {"caption": Text(), "second": Text(fields=("second",))},
        Masked(max_tokens=9),
        texts=[" ".join(toys.WORDS)] * 3,
        objectives=Objectives({"fits": SentenceImage(), "words": MaskedWords()}),
    )
    collate = Collator(composed, composed.inputs, ["fits", "words"], RngKey(0, "s"), EXAMPLES)

    def second_captions(batch):
        fits = batch.targets["fits"].labels["classes"].tolist()
        ids = [row[row > 0].tolist() for row in batch.inputs["second"]["ids"]]
        return dict(zip(batch.ids, zip(fits, ids, strict=True), strict=True))

    together = second_captions(collate(EXAMPLES, [0] * 12))
    assert together == {k: v for example in EXAMPLES for k, v in second_captions(collate([example], [0])).items()}
    assert (
        together != second_captions(collate(EXAMPLES, [1] * 12)) and len({fits for fits, _ in together.values()}) == 2
    )
    loss = composed(collate(EXAMPLES, [0] * 12))
    assert loss.counts["fits.loss"] == 12 and set(loss.sums) == {"fits.loss", "words.loss"}
