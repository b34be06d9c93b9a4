"""Exactly n different texts: chosen by score and distance, away from texts to avoid, or a line that says why not."""

from dataclasses import replace

import pytest
from kit import toys

from mmgen import Decoding
from mmgen.data.part_checks import choose_different
from mmgen.evaluation.answers import generate
from mmgen.examples import Generation
from mmgen.tensors import Batch, Targets

END = 0
POOL = {  # tokens -> mean log-probability
    (1, 2, 3): -0.1,
    (1, 2, 4): -0.2,
    (1, 2, 3, 5): -0.3,
    (6, 7): -0.9,
    (8, 9, 10): -3.0,
}


class Words:
    """A backbone as far as choosing needs one: a token is decoded as its number."""

    end_id = END

    def decode_text(self, tokens):
        return " ".join(str(token) for token in tokens if token != END)


def pool_of(id_, texts=POOL):
    words = Words()
    return [Generation(id_, words.decode_text(tokens), (*tokens, END), score) for tokens, score in texts.items()]


def choose(n, difference, texts=POOL):
    batch = Batch(("a",), {}, {"generator": Targets({})})
    options = Decoding(candidates=5, num_return_sequences=n, difference=difference)
    (chosen,) = choose_different(lambda searched: [pool_of("a", texts)], batch, options, Words())
    return [text.tokens[:-1] for text in chosen]


def test_more_beams_are_tried_before_there_are_too_few():
    widths = []

    def write(options):
        widths.append(options.num_beams)
        return [pool_of("a")[: options.num_beams // 4]]

    options = Decoding(candidates=4, num_return_sequences=2)
    (chosen,) = choose_different(write, Batch(("a",), {}), options, Words())
    assert widths == [4, 8] and len(chosen) == 2


@pytest.mark.slow
def test_a_model_writes_exactly_n():
    """For every example and each of its prompts; the same again, and in a batch as alone."""
    model, examples = toys.model(), toys.examples(3)
    labels = {"prompt": ("red", "how many")}
    examples[1] = replace(examples[1], targets=(), labels=labels)
    options = Decoding(candidates=12, num_return_sequences=4)
    texts = generate(model, examples, options)
    assert [len({text.text.casefold() for text in row}) for row in texts] == [4, len({t.text for t in texts[1]}), 4]
    by_prompt = [[text.text for text in texts[1] if text.prompt == prompt] for prompt in labels["prompt"]]
    assert [len({*texts_of_prompt}) for texts_of_prompt in by_prompt] == [4, 4]
    for example, row in zip(examples, texts, strict=True):
        assert [text.tokens for text in generate(model, [example], options)[0]] == [text.tokens for text in row]
