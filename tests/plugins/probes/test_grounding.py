"""The probes: compared with the papers' definitions, with heads set by hand, and from the command line on a toy run."""

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from kit import toys
from mmgen_encoders import Bert
from mmgen_probes import Attention, Grounding, Similarity, heads, parses, phrases
from mmgen_probes.grounding import attention
from mmgen_probes.heads import Tally
from mmgen_probes.similarity import SimilarityProbe, start_states
from mmgen_probes.steps import picture_and_text
from mmgen_regions import Regions
from mmgen_text import Text

from mmgen import DataError, RecipeError, UnavailableError
from mmgen.attention_maps import collate, one_layer, token_attention
from mmgen.cli import main
from mmgen.evaluation.generate import generate
from mmgen.inference.load import load_run
from mmgen.model import compose
from mmgen.parts import Picture, ProbeInput, Record, TrainedStep
from mmgen.registry import installed
from mmgen.runs.probe import select_probes
from mmgen.runs.run import run
from mmgen.tensors import Example
from mmgen.testing import Greedy, ProbeSuite
from mmgen.testing.toy import TEXTS

pytestmark = pytest.mark.slow

COMPARED = ("test_result", "test_is_deterministic")  # tests of the suite that check drawings
BOXES = np.array([(0, 0, 0.5, 0.5), (0.5, 0.5, 1, 1), (0, 0, 1, 1)], np.float32)
FACTS = {
    "captions": ["a red cat near the water", "the cat"],
    "phrases": [[[0, 9, [0]], [15, 24, [1]]], [[0, 7, [0]]]],
    "things": [{"box": [0, 0, 0.5, 0.5]}, {"box": [0.5, 0.5, 1, 1]}],
}


def example(number: int) -> Example:
    """A picture of three regions with random features, and a caption whose phrases are known."""
    features = np.random.default_rng(number).normal(size=(3, 6)).astype(np.float32)
    record = Record(
        f"picture-{number}", features, BOXES, ("a cat", "water", "all"), np.array([0.2, 0.9, 0.5], np.float32)
    )
    return Example(f"e{number}", {"image": record, "caption": FACTS["captions"][0]}, (TEXTS[number],), FACTS)


EXAMPLES = [example(number) for number in range(4)]


@pytest.fixture
def drawn():
    """For tests that check drawings: drawings are made. (See `undrawn`.)"""


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    """In other tests drawings are empty files, because drawing takes most of a probe's time."""

    def saved(figure, path: Path) -> str:
        for kind in ("svg", "png"):
            path.with_name(f"{path.name}.{kind}").write_text('<svg viewBox="0 0 1 1"></svg>')
        return f"{path.name}.svg"

    if "drawn" not in request.fixturenames and request.node.name not in COMPARED:
        monkeypatch.setattr("mmgen.plotting.save", saved)


class Pictured(ProbeSuite):
    """The probed model: BERT with three regions and a caption."""

    def backbone_config(self):
        return Bert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90)

    def inputs(self):
        return {"image": Regions(fields=("image",), width=6, fingerprint={}), "caption": Text(fields=("caption",))}

    def generator_config(self):
        return Greedy(max_tokens=4)

    def examples(self):
        return EXAMPLES


class TestAttention(Pictured):
    def config(self):
        return Attention(examples=1)


class TestSimilarity(Pictured):
    def config(self):
        return Similarity()


class TestGrounding(Pictured):
    def config(self):
        return Grounding()


def model(seed: int = 0):
    bert = Pictured().model(seed)
    with torch.no_grad():
        for parameter in bert.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)) * 0.2)
    return bert


def subject(*inputs: str, models=None, examples=EXAMPLES, pictures=None) -> ProbeInput:
    """A step for every list of inputs, such as "image caption"."""
    step_models = models or [model(place) for place in range(len(inputs))]
    steps = [
        TrainedStep(f"s{place}", lambda step_model=step_model: step_model, tuple(names.split()), {}, place, generate)
        for place, (names, step_model) in enumerate(zip(inputs, step_models, strict=True))
    ]
    return ProbeInput(steps, examples, lambda: model(99), pictures or {})


# --- similarity


def test_similarity_is_the_cosine_of_cls_that_transformers_itself_gives(drawn, tmp_path):
    """Figure 3: the caption alone as `[CLS] caption`, the picture alone as `[CLS] regions`; against the plain
    encoder."""
    probed_steps = subject("caption")
    result = Similarity().build().run(probed_steps, tmp_path)
    bert, expected = probed_steps.steps[0].load(), []
    for entry in EXAMPLES:
        states = []
        for name in ("image", "caption"):
            segment = bert.embedders[name](**collate(bert, [entry], [name]).inputs[name]).states
            start = bert.backbone.embed(torch.tensor([[bert.backbone.start_id]]))
            with torch.no_grad():
                out = bert.backbone.model.base_model(
                    inputs_embeds=torch.cat([start, segment], 1), output_hidden_states=True
                )
            states.append(torch.stack([layer[0, 0] for layer in out.hidden_states[1:]]))
        expected.append(torch.cosine_similarity(*states, dim=-1))
    saved = json.loads((tmp_path / "similarity.json").read_text())
    assert saved["curves"]["s0"]["similarity"] == pytest.approx(torch.stack(expected).mean(0).tolist(), abs=1e-4)
    assert list(saved["curves"]) == ["s0", "random transformer"] and saved["inputs"] == ["image", "caption"]
    (rows,) = result.tables.values()
    assert rows[0] == ["step", "layer 1", "layer 2", "unpaired"] and rows[1][0] == "s0"
    assert result.plots == {"Cosine of [CLS] between image alone and caption alone": "similarity.svg"}
    assert (tmp_path / "similarity.png").stat().st_size > 1000


def test_inputs_of_other_data_are_not_compared():
    """A model may read texts that these examples lack: those of another step's own data."""

    class Reads:
        def __init__(self, field, boxes):
            self.field, self.boxes = field, boxes

        def describe(self, example):
            if self.field not in example.inputs:
                raise DataError(f"has no {self.field}")
            return {"boxes": self.boxes}

    embedders = {"question": Reads("question", []), "caption": Reads("caption", []), "image": Reads("image", [[0] * 4])}
    model = SimpleNamespace(embedders=embedders, inputs=tuple(embedders))
    assert picture_and_text(model, Example("x", {"caption": "a", "image": "b"}), model.inputs) == ("image", "caption")


def test_unpaired_is_never_a_picture_and_another_caption_of_its_own(tmp_path):
    """If every caption of a data set is an example, a picture's captions follow one another."""
    first, second = EXAMPLES[0], replace(EXAMPLES[1], inputs={**EXAMPLES[1].inputs, "caption": FACTS["captions"][1]})
    doubled = [first, replace(first, id="again", inputs={**first.inputs, "caption": "all is water"})]
    Similarity().build().run(subject("caption", examples=doubled), tmp_path)
    assert json.loads((tmp_path / "similarity.json").read_text())["curves"]["s0"]["unpaired"] is None
    bert = model(0)
    curve = SimilarityProbe(Similarity()).curve(bert, ("image", "caption"), [*doubled, second], lambda count: None)
    image_states, caption_states = (start_states(bert, name, [*doubled, second]) for name in ("image", "caption"))
    cosines = torch.cosine_similarity(
        image_states[:, [0, 2]], caption_states[:, [2, 1]], dim=-1
    )  # the first picture, and the third example's
    assert curve.unpaired == pytest.approx(cosines.mean(1).tolist(), abs=1e-4)


def test_padding_and_neighbours_do_not_change_a_state():
    bert = model()
    lengths = [
        replace(entry, inputs={**entry.inputs, "caption": text})
        for entry, text in zip(EXAMPLES, ("cat", "a red cat near", "a", "red"), strict=True)
    ]
    together = start_states(bert, "caption", lengths)
    alone = torch.cat([start_states(bert, "caption", [entry]) for entry in lengths], 1)
    assert torch.allclose(together, alone, atol=1e-5)


def test_similarity_of_a_model_without_pictures_or_with_a_causal_encoder_is_refused_in_one_line(tmp_path):
    texts = compose(
        Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90),
        {"caption": Text()},
        Greedy(),
        texts=TEXTS,
    ).eval()
    with pytest.raises(UnavailableError) as error:
        Similarity().build().run(subject("caption", models=[texts]), tmp_path)
    assert (
        str(error.value) == "s0: needs a picture and a text, but the model reads caption; name two inputs with 'inputs'"
    )
    causal = model()
    causal.backbone.masks = "causal"
    with pytest.raises(UnavailableError) as error:
        Similarity().build().run(subject("caption", models=[causal]), tmp_path)
    assert str(error.value) == "s0: EncoderBackbone reads from left to right, so its first slot [CLS] sees no input"


# --- attention


def test_attention_is_that_of_the_chosen_head(tmp_path):
    probed_steps = subject("image caption")
    Attention(layer=1, head=2, examples=1).build().run(probed_steps, tmp_path)
    bert = probed_steps.steps[0].load()
    tokens = [texts[0].tokens for texts in generate(bert, EXAMPLES)]
    batch = collate(bert, EXAMPLES, bert.inputs)
    expected = token_attention(bert, batch, tokens, {"chosen": one_layer(0, 1)})["chosen"]
    saved = json.loads((tmp_path / "attention.json").read_text())
    for entry, seen in zip(EXAMPLES, expected, strict=True):
        reading = saved["examples"][entry.id]
        assert reading["inputs"]["image"]["labels"] == ["a cat", "water", "all"]
        assert reading["inputs"]["caption"]["labels"] == ["a", "red", "cat", "near", "the", "water"]
        weights = torch.tensor(reading["steps"]["s0"]["weights"])
        assert torch.allclose(weights[0, :3], seen.inputs["image"][0], atol=2e-4)
        assert torch.allclose(weights.sum(1), torch.ones(len(weights)), atol=2e-3)


def test_a_drawing_has_a_panel_a_word_with_boxes_and_words_and_its_letters_are_no_formulas(drawn, tmp_path):
    from PIL import Image

    picture = Picture("picture-0", lambda: Image.new("RGB", (300, 200), (200, 220, 240)))
    odd = replace(EXAMPLES[0], id="an/odd id", inputs={**EXAMPLES[0].inputs, "caption": "a $cat$ costs $2 \\frac"})
    probed_steps = subject("image caption", "caption", examples=[odd], pictures={"picture-0": picture})
    result = Attention().build().run(probed_steps, tmp_path)
    letters = (tmp_path / "an_odd_id.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(letters)
    assert ">s0<" in letters and ">s1<" in letters and "frac<" in letters
    assert (tmp_path / "an_odd_id.png").read_bytes()[:4] == b"\x89PNG"
    (rows,) = result.tables.values()
    assert rows[0] == ["step", "image", "caption", "marks", "what was written", "words"]
    assert rows[2][1] is None and sum(value for value in rows[1][1:5]) == pytest.approx(100)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"layer": 3}, "s0: layer = 3: the encoder has 2 layers"),
        ({"head": 5}, "s0: head = 5: a layer has 4 heads"),
    ],
)
def test_an_unknown_layer_or_head(settings, words, tmp_path):
    with pytest.raises(UnavailableError) as error:
        Attention(**settings).build().run(subject("caption"), tmp_path)
    assert str(error.value) == words


def test_an_unknown_example(tmp_path):
    with pytest.raises(DataError) as error:
        Attention(ids=("e1", "e7")).build().run(subject("caption"), tmp_path)
    assert str(error.value) == "ids: no example e7; name some of the 4 examples, such as e0"


# --- grounding


def test_attention_from_words_to_regions_is_that_of_transformers_itself():
    bert = model()
    lengths = [EXAMPLES[0], replace(EXAMPLES[1], inputs={**EXAMPLES[1].inputs, "caption": "the cat"})]
    for entry, weights in zip(lengths, attention(bert, lengths, ("image", "caption"), "caption", "image"), strict=True):
        regions = bert.embedders["image"](**collate(bert, [entry], ["image"]).inputs["image"]).states
        start, end = (
            bert.backbone.embed(torch.tensor([[mark]])) for mark in (bert.backbone.start_id, bert.backbone.end_id)
        )
        words = bert.backbone.embed(torch.tensor([bert.backbone.encode_text(entry.inputs["caption"])]))
        bert.backbone.model.set_attn_implementation("eager")
        with torch.no_grad():
            row = torch.cat([start, regions, end, words], 1)
            out = bert.backbone.model.base_model(inputs_embeds=row, output_attentions=True).attentions
        bert.backbone.model.set_attn_implementation("sdpa")
        assert torch.allclose(weights, torch.stack([layer[0, :, 5:, 1:4] for layer in out]), atol=1e-5)


def test_heads_are_counted_as_visualbert_counts_them():
    """Two heads by hand: one is correct and attends to regions, the other is correct more often but hardly attends."""
    tally = Tally()
    fits = torch.tensor([True, False])
    for looked in ([[0.5, 0.1], [0.06, 0.04]], [[0.2, 0.6], [0.06, 0.04]]):
        tally.add(torch.tensor([looked]), fits, surest=1, scored=True)
    assert tally.right.tolist() == [[1, 2]] and tally.percent(tally.regions).tolist() == [
        [pytest.approx(70), pytest.approx(10)]
    ]
    assert tally.rank_heads() == [(0, 1), (0, 0)] and tally.is_active((0, 0), 0.2) and not tally.is_active((0, 1), 0.2)
    assert (tally.confident, tally.any_region, tally.at_best) == (0, 1.0, 2)


def test_every_head_is_drawn_within_its_panel(tmp_path, monkeypatch):
    """Panels share an axis, and the highest head may be in any of them."""
    low, high = Tally(), Tally()
    for _ in range(10):
        low.add(torch.tensor([[[0.2, 0.6], [0.3, 0.4]]]), torch.tensor([False, False]), surest=1, scored=True)
        high.add(torch.tensor([[[0.6, 0.2], [0.4, 0.3]]]), torch.tensor([True, False]), surest=1, scored=True)
    drawn = []
    monkeypatch.setattr(heads.plotting, "save", lambda figure, path: drawn.extend(figure.axes))
    heads._draw_panels([("low", 0, low), ("high", 1, high)], 0.2, tmp_path / "figure")
    assert len(drawn) == 2
    for axes in drawn:
        lowest, highest = axes.get_ylim()
        assert lowest == 0 and all(0 <= y <= highest for dots in axes.collections for _, y in dots.get_offsets().data)
    assert max(y for dots in drawn[1].collections for _, y in dots.get_offsets().data) == 100


def test_a_model_that_looks_at_the_right_region_is_right(tmp_path):
    """Queries and keys by hand: every word attends only to the region in the upper left corner."""
    bert = model()
    layer = bert.backbone.model.base_model.encoder.layer[1].attention.self
    with torch.no_grad():
        layer.query.weight.zero_()
        layer.query.bias.fill_(1.0)
    states = {}
    layer.register_forward_pre_hook(lambda module, arguments: states.setdefault("x", arguments[0]))
    rows = attention(bert, EXAMPLES[:1], ("image", "caption"), "caption", "image")
    target = states["x"][0, 1]  # of the first region
    rest = torch.cat([states["x"][0, :1], states["x"][0, 2:]])
    direction = torch.linalg.lstsq(torch.cat([target[None], rest]), torch.eye(len(rest) + 1)[:, :1]).solution[:, 0]
    with torch.no_grad():
        layer.key.weight.copy_(direction.repeat(32, 1) * 20)
        layer.key.bias.zero_()
    layer._forward_pre_hooks.clear()
    weights = attention(bert, EXAMPLES[:1], ("image", "caption"), "caption", "image")[0]
    assert rows[0].shape == weights.shape and weights[1, :, :, 0].min() > 0.9
    one_caption = [
        replace(EXAMPLES[0], facts={**FACTS, "captions": FACTS["captions"][:1], "phrases": FACTS["phrases"][:1]})
    ]
    result = Grounding(top_heads=9).build().run(subject("image caption", models=[bert], examples=one_caption), tmp_path)
    saved = json.loads((tmp_path / "grounding.json").read_text())["s0"]["entities"]
    assert saved["accuracy"][1] == [50.0] * 4 and saved["count"] == 2  # right for the cat, wrong for the water
    assert min(saved["attention_on_regions"][1]) > 90 and {"2-1", "2-2", "2-3", "2-4"} <= set(saved["active"])
    assert saved["confident"] == 50.0 and saved["at_best"] == 100.0  # the surest region is the water
    rows = result.tables["Entity grounding, % of phrases: best heads"]
    assert rows[-3] == ["s0", "surest region", 50.0, None, "2"] and rows[-1] == ["s0", "at best", 100.0, None, "2"]
    assert rows[-2][2] == pytest.approx(100 / 3)


def test_a_failing_step_is_a_note_and_no_result_is_an_error(tmp_path):
    result = Grounding().build().run(subject("image caption", "caption"), tmp_path)
    assert result.notes[0] == "s1: reads caption; grounding needs regions with boxes and a caption"
    with pytest.raises(UnavailableError) as error:
        Grounding().build().run(subject("image"), tmp_path)
    assert str(error.value) == "s0: reads image; grounding needs regions with boxes and a caption"
    with pytest.raises(DataError) as error:
        Grounding().build().run(subject("image caption", examples=[replace(EXAMPLES[0], facts={})]), tmp_path)
    assert str(error.value) == (
        "the data set has no boxes for the captions' phrases; name a folder of Flickr30k Entities with 'annotations'"
    )


# --- Flickr30k Entities


XML = """<annotation><size><width>200</width><height>100</height></size>
<object><name>7</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>101</xmax><ymax>51</ymax></bndbox></object>
<object><name>7</name><name>8</name><bndbox><xmin>101</xmin><ymin>51</ymin><xmax>201</xmax><ymax>101</ymax></bndbox></object>
<object><name>9</name><scene>1</scene><nobndbox>1</nobndbox></object></annotation>"""
SENTENCES = (
    "[/EN#7/animals A red cat] near [/EN#9/scene the street] and [/EN#8/other/bodyparts water] "
    ".\n[/EN#7/animals The cat] .\n"
)


@pytest.fixture
def flickr(tmp_path) -> Path:
    for part in ("Sentences", "Annotations"):
        (tmp_path / part).mkdir()
    (tmp_path / "Sentences/1000.txt").write_text(SENTENCES)
    (tmp_path / "Annotations/1000.xml").write_text(XML)
    return tmp_path


def test_flickr30k_entities_are_read(flickr):
    known = [Example("a", {"image": "1000.jpg", "caption": "x"}), Example("b", {"image": "1001", "caption": "x"})]
    first, second = phrases.flickr30k(flickr, known, "image", "caption")
    assert first.text == "A red cat near the street and water ." == first.example.inputs["caption"]
    assert [first.text[phrase.first : phrase.end] for phrase in first.phrases] == ["A red cat", "water"]
    assert first.phrases[0].boxes == ((0, 0, 0.5, 0.5), (0.5, 0.5, 1, 1)) and first.phrases[1].boxes == (
        (0.5, 0.5, 1, 1),
    )
    assert second.text == "The cat ."


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (
            "Sentences/1000.txt",
            "fine\n[/EN#7/people A man runs\n",
            "{}:2: '[/EN#7/people A man runs' is not a marked phrase; expected e.g. [/EN#283585/people Two men]",
        ),
        ("Annotations/1000.xml", "<annotation>\n<size>", "{}:2: invalid XML: no element found"),
        (
            "Annotations/1000.xml",
            "<annotation/>",
            "{}:1: no picture size; expected <size><width>500</width><height>375</height></size>",
        ),
    ],
)
def test_damaged_annotations_are_named(flickr, file, text, words):
    (flickr / file).write_text(text)
    with pytest.raises(DataError) as error:
        phrases.flickr30k(flickr, [Example("a", {"image": "1000.jpg"})], "image", "caption")
    assert str(error.value) == words.format(flickr / file)


def test_a_folder_that_is_no_annotations(tmp_path):
    with pytest.raises(DataError) as error:
        phrases.flickr30k(tmp_path, [], "image", "caption")
    assert (
        str(error.value)
        == f"annotations: {tmp_path} has no folder Sentences; give the one that Flickr30k Entities unpacks to"
    )


# --- syntactic grounding


CONLLU = """# text = a red cat near the water
1\ta\ta\tDET\t_\t_\t3\tdet\t_\t_
2\tred\tred\tADJ\t_\t_\t3\tamod\t_\t_
3\tcat\tcat\tNOUN\t_\t_\t0\troot\t_\t_
4\tnear\tnear\tADP\t_\t_\t6\tcase\t_\t_
5\tthe\tthe\tDET\t_\t_\t6\tdet\t_\t_
6\twater\twater\tNOUN\t_\t_\t3\tnmod\t_\t_

1-2\tCan't\t_\t_\t_\t_\t_\t_\t_\t_
1\tCa\tcan\tAUX\t_\t_\t0\troot\t_\t_
2\tn't\tnot\tPART\t_\t_\t1\tadvmod\t_\t_
2.1\tsee\tsee\tVERB\t_\t_\t_\t_\t_\t_
3\tit\tit\tPRON\t_\t_\t1\tobj\t_\t_
"""


def test_words_bound_to_a_phrase_are_found_in_both_directions(tmp_path):
    (tmp_path / "captions.conllu").write_text(CONLLU)
    sentences = parses.read(tmp_path / "captions.conllu")
    assert list(sentences) == ["aredcatnearthewater", "can'tit"]
    text = "a red  cat near the water"  # spaced in another way
    words = sentences[parses.letters(text)]
    cat = parses.related_words(text, phrases.Phrase(0, 10, ()), words)
    assert [(relation, text[first:end]) for relation, first, end in cat] == [
        ("det", "a"),
        ("amod", "red"),
        ("nmod", "water"),
    ]
    water = parses.related_words(text, phrases.Phrase(16, 25, ()), words)
    assert [(relation, text[first:end]) for relation, first, end in water] == [
        ("case", "near"),
        ("det", "the"),
        ("nmod", "cat"),
    ]
    split = sentences["can'tit"]
    assert [(word.form, word.first, word.end) for word in split] == [("Ca", 0, 5), ("n't", 0, 5), ("it", 5, 7)]


def test_only_parsed_captions_have_relations(drawn, tmp_path):
    (tmp_path / "captions.conllu").write_text(CONLLU)
    out = tmp_path / "out"
    out.mkdir()
    result = (
        Grounding(parses=tmp_path / "captions.conllu", active_threshold=0).build().run(subject("image caption"), out)
    )
    rows = result.tables["Grounding by relation, % of words: best active heads of s0"]
    assert [(row[0], row[4]) for row in rows[1:]] == [("det", "8"), ("nmod", "8"), ("amod", "4"), ("case", "4")]
    assert (out / result.plots["Grounding by relation of s0"]).exists() and (out / "relations-s0.png").exists()
    saved = json.loads((out / "grounding.json").read_text())["s0"]
    assert saved["nmod"]["count"] == 8 and np.array(saved["amod"]["accuracy"]).shape == (2, 4)


def test_relations_come_from_the_data_set(tmp_path):
    """Without a file, from its facts; a parse that does not fit its caption is named."""
    (tmp_path / "captions.conllu").write_text(CONLLU)
    parse = [(3, "det"), (3, "amod"), (0, "root"), (6, "case"), (6, "det"), (3, "nmod")]
    known = [replace(entry, facts={**FACTS, "parses": [parse, [[2, "det"], [0, "root"]]]}) for entry in EXAMPLES]
    saved = []
    for name, examples, config in (
        ("file", EXAMPLES, Grounding(parses=tmp_path / "captions.conllu")),
        ("facts", known, Grounding()),
    ):
        (tmp_path / name).mkdir()
        config.build().run(subject("image caption", examples=examples), tmp_path / name)
        saved.append(json.loads((tmp_path / name / "grounding.json").read_text())["s0"])
    assert saved[1].pop("det")["count"] == 12  # the second caption has one too, and the file does not know it
    assert saved[0].pop("det")["count"] == 8
    assert saved[0] == saved[1] and set(saved[0]) == {"entities", "nmod", "amod", "case"}
    wrong = [replace(entry, facts={**FACTS, "parses": [parse[:-1]]}) for entry in EXAMPLES]
    with pytest.raises(DataError) as error:
        Grounding().build().run(subject("image caption", examples=wrong), tmp_path / "facts")
    assert str(error.value) == "example 'e0': the parse has 5 words, but the caption has 6"


def test_an_input_that_an_objective_makes_is_left_out(tmp_path):
    """A step that was pretrained with a second caption is looked into with the first."""
    inputs = {**Pictured().inputs(), "second": Text(fields=("second",), token_type=1)}
    bert = compose(Pictured().backbone_config(), inputs, Pictured().generator_config(), texts=TEXTS).eval()
    result = Grounding(active_threshold=0).build().run(subject("image caption second", models=[bert]), tmp_path)
    alone = Grounding(active_threshold=0).build().run(subject("image caption", models=[bert]), tmp_path)
    assert result == alone


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 a a DET", "{}:1: 1 columns; CoNLL-U has 10 columns, separated by tabs"),
        ("1\ta\t_\t_\t_\t_\tx\tdet\t_\t_", "{}:1: 'x' is not a word number"),
        ("2\ta\t_\t_\t_\t_\t1\tdet\t_\t_", "{}:1: word 2 follows word 0"),
        ("1\ta\t_\t_\t_\t_\t7\tdet\t_\t_", "{}:1: the head is word 7, but the sentence has 1"),
    ],
)
def test_a_damaged_parse_is_named(line, words, tmp_path):
    (tmp_path / "x.conllu").write_text(line + "\n")
    with pytest.raises(DataError) as error:
        parses.read(tmp_path / "x.conllu")
    assert str(error.value) == words.format(tmp_path / "x.conllu")


# --- from the command line


PROBES = """\
[probes.heads]
type = "grounding"
top_heads = 2
[probes.looks]
type = "attention"
examples = 1
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    from mmgen.recipe.load import load

    folder = tmp_path_factory.mktemp("probes")
    (folder / "toy.toml").write_text(
        toys.recipe_with_pictures(folder / "runs", epochs=1, rate=1e-3, train=16, val=2, test=5) + PROBES
    )
    return run(load(folder / "toy.toml", installed())[0]).path


def probed(*arguments: str):
    return CliRunner().invoke(main, ["probe", *arguments])


def test_the_recipes_probes_run_and_say_where_everything_is(drawn, done):
    before = {path: path.read_bytes() for path in (done / "steps").rglob("*") if path.is_file()}
    result = probed(str(done))
    assert result.exit_code == 0, result.output
    assert "| both" in result.output and f"heads: all files are in {done}/probes/heads" in result.output
    assert "words: reads caption; grounding needs regions with boxes and a caption" in result.output
    assert sorted(path.name for path in (done / "probes/heads").iterdir()) == [
        "findings.json",
        "grounding.json",
        "grounding.png",
        "grounding.svg",
        "relations-both.png",
        "relations-both.svg",
        "tables.md",
    ]
    assert {"test-00000.svg", "test-00000.png", "attention.json"} <= {
        path.name for path in (done / "probes/looks").iterdir()
    }
    assert before == {path: path.read_bytes() for path in (done / "steps").rglob("*") if path.is_file()}
    assert not list((done / "probes").glob(".*"))


def test_flickr30k_files_of_drawn_scenes_give_the_same_results(done, tmp_path):
    """Phrases from Flickr30k Entities, dependencies from a CoNLL-U file; the annotations alone know no dependencies."""
    parsed = []
    for part in ("Sentences", "Annotations"):
        (tmp_path / part).mkdir()
    for scene in load_run(done).recipe.data.build().split("test"):
        lines, objects = [], []
        for place, thing in enumerate(scene.facts["things"]):
            corners = "".join(
                f"<{side}>{1000 * number + 1}</{side}>"
                for side, number in zip(("xmin", "ymin", "xmax", "ymax"), thing["box"], strict=True)
            )
            for caption, spans in enumerate(scene.facts["phrases"]):
                names = [
                    f"<name>{caption}0{number}</name>" for number, (_, _, things) in enumerate(spans) if place in things
                ]
                objects.append(f"<object>{''.join(names)}<bndbox>{corners}</bndbox></object>")
        for caption, (text, spans) in enumerate(zip(scene.facts["captions"], scene.facts["phrases"], strict=True)):
            for number, (first, end, _) in reversed(list(enumerate(spans))):
                text = f"{text[:first]}[/EN#{caption}0{number}/other {text[first:end]}]{text[end:]}"
            lines.append(text)
        for text, parse in zip(scene.facts["captions"], scene.facts["parses"], strict=True):
            parsed += [
                f"{number}\t{word}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"
                for number, (word, (head, relation)) in enumerate(zip(text.split(), parse, strict=True), 1)
            ]
            parsed.append("\n")
        (tmp_path / f"Sentences/{scene.id}.txt").write_text("\n".join(lines))
        size = "<size><width>1000</width><height>1000</height></size>"
        (tmp_path / f"Annotations/{scene.id}.xml").write_text(f"<annotation>{size}{''.join(objects)}</annotation>")
    (tmp_path / "captions.conllu").write_text("".join(parsed))
    annotated = ("--set", f"heads.annotations={tmp_path}")
    results = []
    for settings in ((), (*annotated, "--set", f"heads.parses={tmp_path}/captions.conllu"), annotated):
        assert probed(str(done), "--probe", "heads", *settings).exit_code == 0
        results.append(json.loads((done / "probes/heads/grounding.json").read_text()))
    assert (
        results[0] == results[1]
        and results[0]["both"]["entities"]["count"] > 40
        and results[0]["both"]["amod"]["count"] > 9
    )
    assert results[2] == {"both": {"entities": results[0]["both"]["entities"]}}


def test_the_attention_of_the_probe_is_the_one_of_the_report(done):
    """attention.json equals the attention in the page of the same run."""
    assert probed(str(done), "--probe", "looks").exit_code == 0
    saved = json.loads((done / "probes/looks/attention.json").read_text())["examples"]
    page = (done / "report.html").read_text(encoding="utf-8")
    looks = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])[
        "looks"
    ]
    for name, look in looks.items():
        rows = [(saved[name]["steps"][step]["weights"], look["weights"]["last"][step]) for step in ("words", "both")]
        assert all(
            np.allclose(1e4 * np.array(saved_weights), np.array(page_weights), atol=2)
            for saved_weights, page_weights in rows
        ) and any(saved_weights for saved_weights, _ in rows)
        assert [unit.strip() for unit in look["units"]["caption"]] == saved[name]["inputs"]["caption"]["labels"]


def test_a_probe_that_is_not_in_the_recipe_runs_with_its_defaults_on_one_step(drawn, done):
    result = probed(str(done), "--probe", "similarity", "--step", "both", "--set", "similarity.batch_size=3")
    assert result.exit_code == 0, result.output
    saved = json.loads((done / "probes/similarity/similarity.json").read_text())
    assert list(saved["curves"]) == ["both", "random transformer"] and saved["examples"] == 5
    assert json.loads((done / "probes/similarity/findings.json").read_text())["settings"]["batch_size"] == 3
    again = (done / "probes/similarity/similarity.svg").read_bytes()
    assert probed(str(done), "--probe", "similarity", "--step", "both").exit_code == 0
    assert (done / "probes/similarity/similarity.svg").read_bytes() == again


def test_the_report_shows_results_of_probes_and_runs_no_script_of_them(drawn, done):
    assert probed(str(done), "--probe", "heads", "--probe", "similarity").exit_code == 0
    path = done / "probes/heads/findings.json"
    before = path.read_text()
    path.write_text(before.replace("Entity grounding by layer", "<script>alert(1)</script>"))
    assert CliRunner().invoke(main, ["report", str(done)]).exit_code == 0
    path.write_text(before)
    page = (done / "report.html").read_text(encoding="utf-8")
    section = page[page.index('<section id="inside">') : page.index('<section id="reproduce">')]
    assert re.findall(r'<h3 id="inside-(.*?)"', section)[:1] == ["heads"] and "<script>alert" not in page
    assert (
        section.count('<img src="data:image/svg+xml;base64,') == 3  # entities, relations, similarity
        and "Grounding by relation of both" in section
        and "random transformer" in section
        and "any region" in section
    )
    path.write_text('{"tables": 1}')
    result = CliRunner().invoke(main, ["report", str(done)])
    path.write_text(before)
    assert result.exit_code == 1 and result.output.splitlines()[-1] == f"error: {path}: damaged: 'tables' is 1"


def test_a_report_does_without_the_plugin_of_a_probe(done):
    """It is gone: what it has found stays in the page; only `mmgen probe` for all of the recipe's needs it."""
    path = done / "recipe.json"
    before = path.read_text()
    settings = json.loads(before)
    settings["probes"]["lost"] = {"type": "gone"}
    path.write_text(json.dumps(settings))
    try:
        shown = CliRunner().invoke(main, ["report", str(done), "--pictures", "1"])
        unnamed, named = probed(str(done)), probed(str(done), "--probe", "heads")
    finally:
        path.write_text(before)
    assert shown.exit_code == 0, shown.output
    message = (
        f"error: {path}: probes.lost.type: no probe is called 'gone'\n  installed probes: attention, grounding, "
        "similarity\n"
    )
    assert (unnamed.exit_code, unnamed.output) == (1, message)
    assert named.exit_code == 0, named.output


def test_untrained_models_have_the_shape_and_not_the_weights(done):
    from mmgen.runs.probe import untrained_model

    trained, fresh = load_run(done, "both").model, untrained_model(load_run(done, "both"))
    assert {name: tensor.shape for name, tensor in trained.state_dict().items()} == {
        name: tensor.shape for name, tensor in fresh.state_dict().items()
    }
    assert not any(
        torch.equal(tensor, fresh.state_dict()[name])
        for name, tensor in trained.state_dict().items()
        if tensor.dim() == 2 and "mean" not in name
    )
    assert fresh.embedders["caption"]._backbone[0] is fresh.backbone and not fresh.training


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--step", "bth"],
            "error: --step bth: the recipe has no such step; did you mean 'both'?; available: words, both",
        ),
        (
            ["--probe", "head"],
            "error: --probe head: there is no such probe; did you mean 'heads'?; there are: heads, looks, attention, "
            "grounding, similarity",
        ),
        (
            ["--set", "similarity.batch_size=3"],
            "error: --set similarity.batch_size=3: write PROBE.KEY=VALUE; the probes are: heads, looks",
        ),
        (["--set", "heads=3"], "error: --set heads=3: write PROBE.KEY=VALUE; the probes are: heads, looks"),
        (["--set", "heads.iou=0.3"], "error: --set heads.iou=0.3: iou: this key is called 'iou_threshold' now"),
        (
            ["--set", "looks.layer=0", "--set", "looks.head=1"],
            "error: --set looks.head=1: head: needs one layer, because layer = 0 is the mean over layers; set layer "
            "too",
        ),
    ],
)
def test_mistakes_are_one_line(done, arguments, words):
    result = probed(str(done), *arguments)
    assert result.exit_code == 1 and result.output.splitlines()[-1] == words


def test_a_failing_probe_does_not_stop_the_others_and_keeps_old_results(done):
    assert probed(str(done), "--probe", "looks").exit_code == 0
    before = (done / "probes/looks/attention.json").read_bytes()
    result = probed(str(done), "--set", "looks.layer=7")
    assert (
        result.exit_code == 0
        and "looks: words: layer = 7: the encoder has 2 layers; both: layer = 7: the encoder has 2 layers"
        in result.output
    )
    assert (done / "probes/looks/attention.json").read_bytes() == before
    alone = probed(str(done), "--probe", "looks", "--set", "looks.layer=7")
    assert alone.exit_code == 1


def test_settings_are_laid_over_the_recipes_own(done):
    recipe = load_run(done).recipe
    assert select_probes(recipe, (), ["heads.iou_threshold=0.7"], installed())["heads"] == Grounding(
        top_heads=2, iou_threshold=0.7
    )
    with pytest.raises(RecipeError) as error:
        select_probes(recipe.model_copy(update={"probes": {}}), (), (), installed())
    assert str(error.value) == "the recipe has no [probes]; choose with --probe: attention, grounding, similarity"


def test_a_name_that_would_lead_out_of_the_folder_is_refused(done):
    recipe = load_run(done).recipe
    with pytest.raises(RecipeError) as error:
        select_probes(recipe.model_copy(update={"probes": {"../steps": Grounding()}}), (), (), installed())
    assert (
        str(error.value)
        == "probes.../steps: the name of a probe must consist of letters, digits, '_', '-' and '.', because it "
        "names a folder"
    )


def test_many_examples_are_thinned_out_and_those_drawn_are_among_them(tmp_path):
    result = Attention(limit=2, ids=("e3",)).build().run(subject("caption"), tmp_path)
    assert list(json.loads((tmp_path / "attention.json").read_text())["examples"]) == ["e0", "e2", "e3"]
    assert "3 of 4 examples, evenly spaced" in result.notes and (tmp_path / "e3.svg").exists()


def test_probes_in_a_recipe_do_not_make_it_another_run(done):
    """A finished run stays finished with other probes in its recipe, and stores the new ones."""
    from mmgen.recipe.load import load

    recipe = load(done.parents[3] / "toy.toml", installed(), sets=("probes.looks.layer=1",))[0]
    assert run(recipe).path == done and load_run(done).recipe.probes["looks"] == Attention(layer=1, examples=1)
    run(load(done.parents[3] / "toy.toml", installed())[0])


def test_a_folder_without_a_run(tmp_path):
    result = probed(str(tmp_path))
    assert result.exit_code == 1
    assert (
        result.output
        == f"error: {tmp_path}: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)\n"
    )
