"""The predictor with a model composed here: texts, remarks, limits, errors, examples of a data set."""

import io
import json
import os
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from kit import toys
from mmgen_regions import Regions
from PIL import Image

from mmgen.data import part_checks
from mmgen.data.different_texts import choose_different
from mmgen.decoding import Decoding
from mmgen.errors import DataError, UnavailableError
from mmgen.evaluation.collapse import repeats_itself
from mmgen.examples import All, Example, Generation, Prediction
from mmgen.features.statistics import FeatureRange
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter
from mmgen.inference.answers import Answer, remark_on_all
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query, read_sources
from mmgen.model import compose
from mmgen.parts import Record
from mmgen.recipe.load import load
from mmgen.registry import installed

RECIPE = toys.recipe(
    inputs={"image": {"type": "regions", "extractor": {"type": "roi"}}, "caption": {"type": "text", "max_tokens": 6}},
    generator={"max_tokens": 6},
    steps={"both": {"inputs": ["image", "caption"], "train": ["image", "backbone"]}},
)
BOXES = np.array([[0, 0, 1, 1], [0, 0, 0.5, 1]], np.float32)
SEEN = Record("seen", np.eye(2, 3, dtype=np.float32), BOXES)
OTHER = Record("other", np.ones((2, 3), np.float32), BOXES)


TOO_LONG = "min_new_tokens: must be at most 5: generator.max_tokens = 6 includes the end token"
TOO_MANY = "num_return_sequences is 300, but must be at most 100"
TWICE = "n and num_return_sequences both set the number of texts; give one or the other"
ADVICE = "add caption=VALUE"
SURROGATE = "\\ud800.jpg: 'picture' contains a lone surrogate ('\\ud800.jpg'); remove it"
FINITE = "image: features must be finite and between -1e+15 and 1e+15; extract them again"


@pytest.fixture(scope="module")
def predictor(tmp_path_factory) -> Predictor:
    folder = tmp_path_factory.mktemp("predictor")
    (folder / "toy.toml").write_text(RECIPE)
    recipe = load(folder / "toy.toml", installed())[0]
    torch.manual_seed(0)
    inputs = {**recipe.inputs, "image": Regions(width=3, fingerprint={}, fields=("image",))}
    return Predictor(compose(recipe.backbone, inputs, recipe.generator, texts=["a red dog barks"] * 3), recipe, "both")


def test_repr(predictor):
    assert repr(predictor) == "<toy: step 'both', reads image and caption, gives text>"


def test_many_queries_get_what_each_gets_alone(predictor):
    queries = [SEEN, {"image": OTHER}, Query("own", {"image": SEEN, "caption": "dog"}), All((SEEN, OTHER))]
    together = predictor.ask(queries, caption="a red dog", n=2, batch_size=3)
    assert [answer.id for answer in together] == ["1", "2", "own", "4"] and len(together[0].texts) == 2
    for answer, query in zip(together, queries, strict=True):
        alone = predictor.ask(query, caption="a red dog", n=2)
        assert [text.text for text in alone.texts] == [text.text for text in answer.texts]
        assert alone.score == pytest.approx(answer.score, abs=1e-5) and alone.value == alone.texts[0].text


def test_two_pictures_of_one_query_are_all_and_a_list_is_two_queries(predictor):
    both = predictor.ask(All((SEEN, OTHER)), caption="a dog")
    assert isinstance(both, Answer) and both == predictor.ask(image=All((SEEN, OTHER)), caption="a dog")
    (listed,) = predictor.ask([{"image": [SEEN, OTHER], "caption": "a dog"}])
    assert listed.texts[0].score == both.texts[0].score
    assert len(predictor.ask([SEEN, OTHER], caption="a dog")) == 2
    with pytest.raises(DataError) as error:
        predictor.ask(image=[SEEN, OTHER], caption="a dog")
    assert str(error.value) == (
        "image: a list of pictures is ambiguous; write image=All((a, b)) for one "
        "query about both pictures (mmgen.examples.All), or pass a list of queries as the first argument"
    )


def test_one_query_that_cannot_be_read_keeps_the_others(predictor):
    good, cut, odd, unknown, long = predictor.ask(
        [
            SEEN,
            {"image": SEEN, "caption": "a dog " * 9},
            {"image": SEEN, "caption": 7},
            {"image": SEEN, "text": "x"},
            "x" * 300,
        ],
        caption="a red dog",
    )
    assert long.error == f"{'x' * 300}: no such file"
    assert good.texts and not good.error and cut.texts
    assert cut.remarks[0] == "caption has 18 tokens; only the first 6 are read (max_tokens)"
    assert (odd.error, odd.texts) == ("'caption' must be a string, not 7", ())
    assert unknown.error == "4: unknown input 'text'; available: image, caption, prompt, avoid"
    for property_ in ("value", "score"):
        with pytest.raises(DataError, match="^'caption' must be a string, not 7$"):
            getattr(odd, property_)


@pytest.mark.parametrize(
    ("query", "named", "message"),
    [
        (SEEN, {"caption": "x", "n": 0}, "n must be a positive integer"),
        (SEEN, {"caption": "x", "n": True}, "n must be a positive integer"),
        (SEEN, {"caption": "x", "n": 10**6}, "n is 1000000, but must be at most 100"),
        (SEEN, {"caption": "x", "batch_size": 0}, "batch_size must be a positive integer, not 0"),
        (SEEN, {"caption": "\ud800"}, "this query: 'caption' contains a lone surrogate ('\\ud800'); remove it"),
        (7, {"caption": "x"}, "image: expected a picture, a key or features, but got 7"),
        ("gone.jpg", {"caption": "x"}, "gone.jpg: no such file"),
        ("/dev", {"caption": "x"}, "/dev: is a folder; give one picture"),
        ("/dev/null", {"caption": "x"}, "/dev/null: is not a regular file"),
        (
            "http://x.org/y.jpg",
            {"caption": "x"},
            "http://x.org/y.jpg: is a web address; download the picture, and give the file",
        ),
        (SEEN, {"caption": "x", "options": 5}, "options must be a Decoding, not 5"),
        (SEEN, {"caption": "x", "options": Decoding(min_new_tokens=99)}, TOO_LONG),
        (SEEN, {"caption": "x", "options": Decoding(do_sample=True, num_return_sequences=300)}, TOO_MANY),
        (SEEN, {"caption": "x", "do_sample": True, "num_return_sequences": 300}, TOO_MANY),
        (SEEN, {"caption": "x", "options": Decoding(), "n": -5}, "options replaces n; give one or the other"),
        (
            SEEN,
            {"caption": "x", "options": Decoding(), "n": 3, "num_beams": 3},
            "options replaces n and num_beams; give one or the other",
        ),
        (SEEN, {"caption": "x", "n": 2, "num_return_sequences": 3}, TWICE),
        (SEEN, {}, f"this query: 'caption' is missing: step 'both' reads image and caption; {ADVICE}"),
        ("x" * 300, {"caption": "x"}, f"{'x' * 300}: no such file"),
        ("\ud800.jpg", {"caption": "x"}, SURROGATE),
        (np.zeros((0, 0, 3), np.uint8), {"caption": "x"}, "image: the picture has no pixels: it is 0 wide and 0 high"),
        (SEEN, {"caption": "x", "min_new_tokens": 99}, TOO_LONG),
        (
            SEEN,
            {"caption": "x", "do_sample": True, "num_beams": 2, "n": 3},
            "num_return_sequences: 3 texts need num_beams of at least that number, not 2, or num_beams = 1, so that "
            "each text is sampled",
        ),
        (
            Example("e", {"image": SEEN, "caption": "\ud800"}),
            {},
            "e: 'caption' contains a lone surrogate ('\\ud800'); remove it",
        ),
        (Record("big", np.full((2, 3), 1e38, np.float32), BOXES), {"caption": "x"}, FINITE),
        ({"image": {"features": [[1e39, 0, 0]], "boxes": [[0, 0, 1, 1]]}}, {"caption": "x"}, FINITE),
        (
            {"image": {"features": [[1, 2, 3]]}},
            {"caption": "x"},
            'image: the model needs boxes; add "boxes", with one box per row of features',
        ),
    ],
)
def test_what_cannot_be_asked_is_a_line(predictor, query, named, message):
    with pytest.raises(DataError) as error:
        predictor.ask(query, **named)
    assert str(error.value) == message


@pytest.mark.parametrize("error", [TypeError("'<' not supported between 'int' and 'str'"), KeyError("x")])
def test_the_words_of_python_are_not_an_answer(predictor, monkeypatch, error):
    def read(self, example):
        raise error

    monkeypatch.setattr(type(predictor.model.embedders["caption"].reader), "read", read)
    with pytest.raises(DataError) as raised:
        predictor.ask(SEEN, caption="x")
    assert str(raised.value) == (
        f"image and caption: a value has a form that cannot be read ({type(error).__name__}); see the examples of the "
        "data set"
    )


def test_a_picture_needs_the_extractor_of_the_training_features(predictor, tmp_path):
    with pytest.raises(UnavailableError) as error:
        predictor.ask(np.zeros((8, 8, 3), np.uint8), caption="x")
    assert str(error.value).startswith("toy: features of this extractor of 'image' differ from the training ")


def test_examples_of_a_data_set_are_queries_too(predictor):
    examples = tuple(Example(name, {"image": SEEN, "caption": ("a dog", "red")}) for name in "ab")
    answers = predictor.predict(examples)
    assert [answer.id for answer in answers] == ["a", "b"]
    assert [answer.value for answer in answers] == [texts[0].text for texts in predictor.generate(examples, Decoding())]


def test_several_texts_are_searched_by_what_the_generator_knows(predictor, monkeypatch):
    assert predictor.decoding(3).num_beam_groups == 3
    kind, refused = type(predictor.recipe.generator), {"num_beam_groups"}
    monkeypatch.setattr(kind, "refuses", lambda self, options: refused & options.model_fields_set)
    assert predictor.decoding(3) == Decoding(num_beams=3, num_return_sequences=3)
    refused |= {"num_beams"}
    assert predictor.decoding(3) == Decoding(do_sample=True, num_return_sequences=3)
    refused |= {"do_sample"}
    with pytest.raises(DataError, match="^the generator 'masked' writes one text per query; n must be 1$"):
        predictor.decoding(3)


def test_warming_up_answers_once(predictor, monkeypatch):
    answered = []
    monkeypatch.setattr(predictor, "_compute_outcomes", lambda examples, options: answered.append(examples) or ["x"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predictor.warm()
    assert len(answered) == 1


def test_a_picture_unlike_all_known_ones_is_remarked(predictor, tmp_path):
    draw = np.random.default_rng(0)
    with StoreWriter(tmp_path / "known.h5", {"extractor": "drawn"}, dtype="float32") as writer:
        for number in range(60):
            writer.add(Record(str(number), draw.normal(0, 1, (2, 3)).astype(np.float32), BOXES))
        writer.finish()
    image = Regions(features=tmp_path / "known.h5", width=3, fingerprint={"extractor": "drawn"}, fields=("image",))
    recipe = predictor.recipe
    model = compose(recipe.backbone, {**recipe.inputs, "image": image}, recipe.generator, texts=["a red dog"] * 3)
    predictor_of_step = Predictor(model, recipe, "both")
    like, unlike, key = predictor_of_step.ask(
        [
            Record("like", np.full((2, 3), 0.3, np.float32), BOXES),
            Record("unlike", np.full((2, 3), 9, np.float32), BOXES),
            "7",
        ],
        caption="a red dog",
    )

    def remarks(answer):
        return [remark for remark in answer.remarks if remark.startswith("image: the picture is unlike")]

    known = FeatureRange.of(FeatureStore(tmp_path / "known.h5"), None)
    assert remarks(unlike) == [
        "image: the picture is unlike the pictures that the model knows (its features are "
        f"{known.distance(np.full(3, 9)):.1f} deviations from their mean, those of known pictures at most "
        f"{known.farthest:.1f}); expect no sensible answer"
    ]
    assert not remarks(like) and not remarks(key) and not key.error
    (tmp_path / "known.h5").unlink()  # a run that was moved without its features
    alone = Predictor(model, recipe, "both").ask(Record("unlike", np.full((2, 3), 9, np.float32), BOXES), caption="x")
    assert not remarks(alone) and not alone.error


def test_a_text_that_repeats_itself_is_remarked():
    assert repeats_itself("what is the red dog doing near a tree ?") == ""
    assert repeats_itself("which " * 20) == "the text repeats itself: 20 words, 1 of them different"
    assert repeats_itself(" ?") == "the text contains no word"


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        ("is the the dog big ?", "the the"),
        ("What Is is it ?", "Is is"),
        ("is the dog the dog near it ?", "the dog the dog"),
        ("what color is it ? what color is it ?", "what color is it ? what color is it"),
        ("combien de de chats", "de de"),
        ("was ist auf auf dem Bild", "auf auf"),
        (
            "is there a red dog on the grass is there a red dog on the grass",
            "is there a red dog on the grass is there a",
        ),
        ("is the theme the other one ?", ""),
        ("is the dog near the house near the tree ?", ""),
        ("how many dogs are in the red car in the snow ?", ""),
        ("the", ""),
    ],
)
def test_words_that_are_written_twice_in_a_row_are_remarked(text, twice):
    remark = repeats_itself(text)
    assert remark.startswith(f"the text stutters: '{twice}") if twice else not remark


@pytest.mark.parametrize(
    ("text", "stop"),
    [
        ("what color are the", "the"),
        ("What color is the?", "the"),
        ("a cat and", "and"),
        ("is there a", "there a"),
        ("what is it made of?", ""),
        ("is this vitamin a?", ""),
        ("combien il y en a ?", ""),
        ("was zieht sie an?", ""),
        ("what color is the ball", ""),
    ],
)
def test_a_text_that_stops_before_a_word_is_remarked(predictor, monkeypatch, text, stop):
    tokens = (7, 8, predictor.model.backbone.end_id)
    monkeypatch.setattr("mmgen.inference.predictor.write_texts", lambda *_: [[Generation("q", text, tokens, -1.0)]])
    remark = f"the text has no end: it stops after '{stop}'"
    remarks = predictor.ask(SEEN, caption="a red dog").remarks
    assert (remark in remarks) if stop else not any("no end" in remark for remark in remarks)


def test_remarks_are_on_every_text_and_name_the_text(predictor, monkeypatch):
    end = predictor.model.backbone.end_id
    texts = [("is it red ?", (7, 8, end)), ("is the the dog", (7, 8, 9)), ("what is it is", (7, 8, 7, 9))]
    written = [Generation("q", text, tokens, -1.0) for text, tokens in texts]
    monkeypatch.setattr("mmgen.inference.predictor.write_texts", lambda *_: [written])
    cut = "the text has no end: it is cut after 3 tokens (generator.max_tokens)"
    remarks = predictor.ask(SEEN, caption="a red dog", n=3).remarks
    assert remarks[-3:] == (
        "text 2: the text stutters: 'the the'",
        f"text 2: {cut}",
        f"text 3: {cut.replace('3', '4')}",
    )
    written[:] = written[1:2]
    assert predictor.ask(SEEN, caption="a red dog").remarks[-2:] == ("the text stutters: 'the the'", cut)


SAMPLING = Decoding(do_sample=True, temperature=3.0)


def test_a_seed_gives_a_query_the_same_texts_alone_and_among_others(predictor):
    queries = [SEEN, {"image": OTHER}, {"image": SEEN, "caption": "a dog"}, SEEN]
    together = predictor.ask(queries, caption="a red dog", options=SAMPLING, seed=5)
    assert {answer.seed for answer in together} == {5} and together[0].as_json()["seed"] == 5
    others = predictor.ask(queries[::-1], caption="a red dog", options=SAMPLING, seed=5, batch_size=3)[::-1]
    for query, answer, other in zip(queries, together, others, strict=True):
        alone = predictor.ask(query, caption="a red dog", options=SAMPLING, seed=5)
        assert alone.texts[0].tokens == answer.texts[0].tokens == other.texts[0].tokens
        assert alone.score == answer.score == other.score  # to the bit: each is written in a pass of its own
    drawn = {answer.texts[0].tokens for answer in together}
    assert len(drawn) == 3  # equal queries have equal texts, and others others
    assert predictor.ask(SEEN, caption="a red dog", options=SAMPLING, seed=6).texts[0].tokens not in drawn


def test_a_seed_that_is_not_given_is_drawn_and_repeats_the_texts(predictor):
    first, second = (predictor.ask(SEEN, caption="a dog", options=SAMPLING) for _ in range(2))
    assert first.seed != second.seed
    assert predictor.ask(SEEN, caption="a dog", options=SAMPLING, seed=first.seed).texts == first.texts
    torch.manual_seed(1)
    third, state = predictor.ask(SEEN, caption="a dog", do_sample=True), torch.get_rng_state()
    torch.manual_seed(1)
    assert predictor.ask(SEEN, caption="a dog", do_sample=True) == third and (torch.get_rng_state() == state).all()
    assert predictor.ask(SEEN, caption="a dog").seed is None


@pytest.mark.parametrize(
    ("seed", "options", "message"),
    [
        (3, {}, "seed: has an effect only on a decoding that samples (do_sample = true); leave it out"),
        (-1, {"do_sample": True}, "seed must be a whole number of at least 0, not -1"),
        ("x", {"do_sample": True}, "seed must be a whole number of at least 0, not 'x'"),
    ],
)
def test_seeds_that_are_refused(predictor, seed, options, message):
    with pytest.raises(DataError) as error:
        predictor.ask(SEEN, caption="a dog", seed=seed, **options)
    assert str(error.value) == message


def test_a_model_of_drawn_scenes_says_so_once(predictor, caplog, monkeypatch):
    limits = "trained on drawn scenes; expect no sensible answer about anything else"
    monkeypatch.setattr(predictor, "_said_limits", False)
    assert predictor.limits == limits and limits in predictor._repr_html_()
    for _ in range(2):
        predictor.ask([SEEN, SEEN], caption="a dog")
    assert [record.getMessage() for record in caplog.records if "trained" in record.getMessage()] == [f"toy: {limits}"]


def test_answers_that_are_all_the_same_are_remarked():
    answers = [Answer(str(number), (Generation(str(number), "what is it ?", (), -1.0),)) for number in range(12)]
    assert remark_on_all([*answers, Answer("odd", error="odd")]) == (
        "12 of 12 texts are the same ('what is it ?'); the texts say little about the input; train "
        "longer or with another learning rate, and check the loss curve"
    )
    assert remark_on_all(answers[:3]) == remark_on_all([]) == ""


def test_an_answer_is_a_line_of_json():
    text = Generation("q", "a dog", (5, 6), -0.12345)
    assert Answer("q", (text,)).as_json() == {"id": "q", "texts": [{"text": "a dog", "score": -0.1235}]}
    choice = Answer("q", prediction=Prediction("q", {"choice": 1}, 0.5), remarks=("cut",))
    assert choice.as_json() == {"id": "q", "value": {"choice": 1}, "score": 0.5, "remarks": ["cut"]}
    assert Answer("q", error="odd").as_json() == {"id": "q", "error": "odd"}


def test_every_row_is_looked_at_for_words_that_are_cut(predictor, monkeypatch):
    """Of a prediction with choices, each choice is a row."""
    captions = ("a dog", "a dog " * 9, "red " * 9, "a dog " * 9)
    reads = [predictor.prepare(Query("q", {"image": SEEN, "caption": caption})).read for caption in captions]
    several = replace(reads[0], rows=[row for read in reads for row in read.rows])
    monkeypatch.setattr(predictor, "_collate", SimpleNamespace(read=lambda example: several))
    answer = predictor.prepare(Query("q", {"image": SEEN, "caption": captions[0]})).answer
    assert answer.remarks == (
        "caption has 18 tokens; only the first 6 are read (max_tokens)",
        "caption has 9 tokens; only the first 6 are read (max_tokens)",
    )


def test_a_line_with_an_overlong_name_keeps_the_others(predictor, tmp_path):
    features = {"features": SEEN.features.tolist(), "boxes": BOXES.tolist()}
    lines = [{"image": image, "caption": "a red dog"} for image in (features, "x" * 300, features)]
    (tmp_path / "ask.jsonl").write_text("\n".join(map(json.dumps, lines)))
    first, long, last = predictor.answers(read_sources([tmp_path / "ask.jsonl"]))
    assert first.texts and [text.text for text in last.texts] == [text.text for text in first.texts]
    assert long.error == f"{tmp_path / ('x' * 300)}: no such file"


def test_a_file_with_an_odd_name_is_a_picture(predictor, tmp_path, monkeypatch):
    """Names that are not UTF-8 reach Python with lone surrogates."""
    path = tmp_path / os.fsdecode(b"caf\xe9.png")
    path.write_bytes(b"")
    monkeypatch.setattr(predictor.features, "_extract", lambda name, picture, ready=None: SEEN)
    assert predictor.ask(str(path), caption="x").texts


def test_an_opened_file_is_read_once_for_all_queries(predictor, monkeypatch):
    pictures = []
    monkeypatch.setattr(
        predictor.features, "_extract", lambda name, picture, ready=None: pictures.append(picture) or SEEN
    )
    content = io.BytesIO()
    Image.new("RGB", (4, 3)).save(content, "png")
    content.seek(0)
    answers = predictor.ask([{"caption": "a dog"}, {"caption": "red"}], image=content)
    assert [answer.error for answer in answers] == ["", ""]
    assert [picture.load().size for picture in pictures] == [(4, 3)] * 2


def test_every_prompt_has_its_own_texts(predictor):
    """In the order of the prompts, as if each were asked alone; a query without a prompt may be in the same batch."""
    queries = [{"image": SEEN, "prompt": ["a dog", "red"]}, {"image": OTHER}, {"image": SEEN, "prompt": "red"}]
    several, without, single = predictor.ask(queries, caption="a red dog", n=2)
    assert [text.prompt for text in several.texts] == ["a dog", "a dog", "red", "red"]
    assert [text.text for text in several.texts[2:]] == [text.text for text in single.texts]
    assert without.as_json() == {**predictor.ask(OTHER, caption="a red dog", n=2).as_json(), "id": "2"}
    assert [text["prompt"] for text in single.as_json()["texts"]] == ["red", "red"]
    assert all("prompt" not in text for text in without.as_json()["texts"])


@pytest.mark.parametrize("prompt", [3, ["red", 3], {"a": 1}])
def test_a_prompt_is_a_text(predictor, prompt):
    with pytest.raises(DataError) as error:
        predictor.ask(SEEN, caption="a red dog", prompt=prompt)
    assert str(error.value) == (f"example 'this query': 'prompt' must be a string or a list of strings, not {prompt!r}")


def test_texts_to_avoid_are_not_written_again(predictor):
    first = predictor.ask(SEEN, caption="a red dog", n=3, candidates=9)
    avoid = [text.text for text in first.texts[:2]]
    again = predictor.ask(SEEN, caption="a red dog", n=3, avoid=avoid)
    assert len({text.text for text in again.texts}) == 3
    assert not {text.text for text in again.texts} & {*avoid}
    with pytest.raises(DataError) as error:
        predictor.ask(SEEN, caption="a red dog", avoid=[1])
    assert str(error.value) == "example 'this query': 'avoid' must be a string or a list of strings, not [1]"


def test_a_query_with_too_few_different_texts_stops_no_other(predictor, monkeypatch):
    def choose(write, batch, options, backbone):
        if "1" in batch.ids:
            raise DataError("'1': 3 different texts are required")
        return choose_different(write, batch, options, backbone)

    monkeypatch.setattr(part_checks, "choose_different", choose)
    first, second = predictor.ask([SEEN, OTHER], caption="a red dog", n=3, candidates=9)
    assert first.error == "'1': 3 different texts are required" and len(second.texts) == 3
