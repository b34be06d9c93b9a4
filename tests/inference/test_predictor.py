"""The predictor with a model composed here: texts, remarks, limits, errors, examples of a data set."""

import numpy as np
import pytest
import torch
from kit import toys
from kit.refusals import refusal
from mmgen_inputs import Regions

from mmgen.decoding import Decoding
from mmgen.errors import DataError
from mmgen.examples import All, Example, Generation
from mmgen.inference import predictor as predictor_module
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query
from mmgen.model import compose
from mmgen.parts import Record

RECIPE = toys.recipe(
    inputs={"image": {"type": "regions", "extractor": {"type": "roi"}}, "caption": {"type": "text", "max_tokens": 6}},
    generator={"max_tokens": 6},
    steps={"both": {"inputs": ["image", "caption"], "train": ["image", "backbone"]}},
)
BOXES = np.array([[0, 0, 1, 1], [0, 0, 0.5, 1]], np.float32)
SEEN = Record("seen", np.eye(2, 3, dtype=np.float32), BOXES)
OTHER = Record("other", np.ones((2, 3), np.float32), BOXES)


FINITE = "query 1: image: image 'big': features are not finite, or too large for float32"
RED = {"image": SEEN, "caption": "a red dog"}


@pytest.fixture(scope="module")
def predictor(tmp_path_factory) -> Predictor:
    recipe = toys.loaded(tmp_path_factory.mktemp("predictor"), RECIPE)
    torch.manual_seed(0)
    inputs = {**recipe.inputs, "image": Regions(width=3, fingerprint={}, fields=("image",))}
    return Predictor(compose(recipe.backbone, inputs, recipe.generator, texts=["a red dog barks"] * 3), recipe, "both")


def test_many_queries_get_what_each_gets_alone(predictor):
    """Two pictures of one query are `All` or a list."""
    queries = [RED, {"image": OTHER, "caption": "dog"}, Query("own", {"image": SEEN, "caption": "dog"})]
    queries += [{"image": All((SEEN, OTHER)), "caption": "red"}, {"picture": [SEEN, OTHER], "caption": "red"}]
    together = predictor.ask_all(queries, n=2, batch_size=3)
    assert [answer.id for answer in together] == ["query 1", "query 2", "own", "query 4", "query 5"]
    for answer, query in zip(together, queries, strict=True):
        alone = predictor.ask(query, 2)
        assert len(alone.texts) == 2 and [text.text for text in alone.texts] == [text.text for text in answer.texts]
        assert alone.score == pytest.approx(answer.score, abs=1e-5) and alone.value == alone.texts[0].text
    assert together[3].value == together[4].value
    with pytest.raises(DataError, match="^'a.jpg' is one query; use ask or predict, or give a list"):
        predictor.predict_all("a.jpg")


def test_one_query_that_cannot_be_read_keeps_the_others_and_is_named(predictor):
    good, odd, cut, unknown, line = predictor.ask_all(
        [
            RED,
            {"image": SEEN, "caption": 7},
            {"image": SEEN, "caption": "\U0001f4a5" + " a dog" * 9},
            {"image": SEEN, "text": "x"},
            Query("q", {"image": "gone.jpg", "caption": "a"}, place="ask.jsonl:7"),
        ],
    )
    assert good.texts and not good.error and cut.texts
    assert cut.remarks[:2] == (
        "caption has 19 tokens; only the first 6 are read (max_tokens)",
        "caption contains 1 word or character that is not in the tokenizer's vocabulary",
    )
    assert unknown.error == "query 4: unknown input 'text'; available: image, caption, prompt"
    assert line.error == "ask.jsonl:7: gone.jpg: no such file"
    assert odd.texts == ()
    for property_ in ("value", "score"):
        with pytest.raises(DataError, match="^query 2: 'caption' must be a string, not 7$"):
            getattr(odd, property_)


@pytest.mark.parametrize(
    ("query", "named", "message"),
    [
        (RED, {"options": {"num_beam": 2}}, "num_beam: no such key; did you mean 'num_beams'?"),
        (RED, {"n": 0}, "num_return_sequences: must be at least 1, not 0"),
        (RED, {"seed": 3}, "seed: has an effect only on a decoding that samples"),
        ({"image": Record("big", np.full((2, 3), np.inf, np.float32), BOXES), "caption": "x"}, {}, FINITE),
    ],
)
def test_what_cannot_be_asked_is_a_line(predictor, query, named, message):
    assert refusal(predictor.ask, query, **named).startswith(message)


def test_the_words_of_python_are_not_an_answer(predictor, monkeypatch):
    def read(self, example):
        raise KeyError("x")

    monkeypatch.setattr(type(predictor.model.embedders["caption"].reader), "read", read)
    assert refusal(predictor.ask, RED) == (
        "query 1: image and caption: a value has a form that cannot be read (KeyError); see the examples of the data "
        "set"
    )


def test_the_recipes_decoding_is_what_answers_use(predictor, monkeypatch):
    beams = Decoding(num_beams=3, length_penalty=0.5)
    monkeypatch.setattr(predictor, "recipe", predictor.recipe.model_copy(update={"decoding": beams}))
    assert predictor.decoding() is beams
    assert predictor.decoding(3) == Decoding(candidates=20, num_return_sequences=3, length_penalty=0.5)
    assert predictor.ask(RED).texts[0].tokens == predictor.ask(Example("e", RED)).texts[0].tokens
    assert len({text.text for text in predictor.ask(RED, 5).texts}) == 5


def test_remarks_are_on_every_text_and_name_the_text(predictor, monkeypatch):
    end = predictor.model.backbone.end_id
    texts = [("is it red ?", (7, 8, end)), ("is the dog", (7, 8, 9)), ("why is it ?", (7, 8, end))]
    written = [Generation("q", text, tokens, -1.0) for text, tokens in texts]
    monkeypatch.setattr("mmgen.inference.predictor.write_texts", lambda *_: [written])
    cut = "has no end: it is cut after 3 tokens (generator.max_tokens)"
    assert predictor.ask(RED).remarks[-1] == f"text 2 {cut}"
    written[:] = written[1:2]
    assert predictor.ask(RED).remarks[-1] == f"the text {cut}"


SAMPLING = Decoding(do_sample=True, temperature=3.0)


@pytest.mark.slow
def test_a_seed_gives_a_query_the_same_texts_alone_and_among_others(predictor):
    queries = [RED, {**RED, "image": OTHER}, {**RED, "caption": "a dog"}, RED]
    together = predictor.ask_all(queries, options=SAMPLING, seed=5)
    assert {answer.seed for answer in together} == {5} and together[0].as_json()["seed"] == 5
    others = predictor.ask_all(queries[::-1], options=SAMPLING, seed=5, batch_size=3)[::-1]
    for query, answer, other in zip(queries, together, others, strict=True):
        alone = predictor.ask(query, options=SAMPLING, seed=5)
        assert alone.texts[0].tokens == answer.texts[0].tokens == other.texts[0].tokens
        assert [answer.score, other.score] == pytest.approx([alone.score] * 2, abs=1e-5)
    drawn = {answer.texts[0].tokens for answer in together}
    assert together[0].texts[0].tokens == together[3].texts[0].tokens and len(drawn) > 1
    assert predictor.ask(RED, options=SAMPLING, seed=6).texts[0].tokens not in drawn


def test_a_seed_is_drawn_from_torchs_numbers(predictor):
    torch.manual_seed(1)
    first = predictor.ask(RED, options=SAMPLING)
    torch.manual_seed(1)
    assert first == predictor.ask(RED, options=SAMPLING) == predictor.ask(RED, options=SAMPLING, seed=first.seed)


def test_a_model_of_drawn_scenes_says_so_once(predictor, caplog):
    limits = "trained on drawn scenes; expect no sensible answer about anything else"
    predictor_module._warn_once.cache_clear()
    for _ in range(2):
        predictor.ask_all([RED, RED])
    assert [record.getMessage() for record in caplog.records if "trained" in record.getMessage()] == [f"toy: {limits}"]
