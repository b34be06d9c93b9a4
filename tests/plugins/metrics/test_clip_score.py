"""CLIPScore with tiny random weights, made on the spot: compared with the formula, and in a run on drawn scenes."""

import pytest
import torch
from kit.refusals import refusal
from mmgen_encoders.vocabulary import train_tokenizer
from mmgen_metrics import ClipScore
from PIL import Image
from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

from mmgen.data.datasets import pictures_of
from mmgen.errors import DataError
from mmgen.examples import Example, Generation
from mmgen.parts import Picture
from mmgen.testing import MetricSuite
from mmgen.testing.toy import Toy

pytestmark = pytest.mark.slow

TEXTS = ["a photo depicts a red ball", "a photo depicts a dog near the blue tree", "what is it ?"]
SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A folder with a CLIP model of a few weights."""
    folder = tmp_path_factory.mktemp("clip")
    tokenizer = train_tokenizer(TEXTS * 3, 200)
    text = {
        **SMALL,
        "vocab_size": len(tokenizer),
        "max_position_embeddings": 16,
        "eos_token_id": tokenizer.sep_token_id,
    }
    torch.manual_seed(0)
    config = CLIPConfig(text_config=text, vision_config={**SMALL, "image_size": 32, "patch_size": 16}, projection_dim=8)
    CLIPModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


EXAMPLES = [Example(str(n), {"image": f"picture-{n}", "caption": "a ball"}) for n in range(3)]
COLORS = ("red", "blue", "green")


def pictures(examples):
    return {
        example.inputs["image"]: Picture(example.inputs["image"], lambda color=color: Image.new("RGB", (40, 36), color))
        for example, color in zip(examples, COLORS, strict=False)
        if "image" in example.inputs
    }


def texts(*lines):
    return [Generation(str(number), line, (), 0.0) for number, line in enumerate(lines)]


def metric(weights, **settings):
    built = ClipScore(model=str(weights), **settings).build()
    built.prepare(pictures, torch.device("cpu"))
    return built


class TestClipScore(MetricSuite):
    @pytest.fixture(autouse=True)
    def folder(self, weights):
        self.model = str(weights)

    def config(self):
        return ClipScore(model=self.model)

    def metric(self):
        scorer = self.config().build()
        scorer.prepare(lambda examples: pictures_of(Toy().build(), examples), torch.device("cpu"))
        return scorer


def test_scores_are_those_of_the_formula(weights):
    scorer = metric(weights)
    scores = scorer.score(texts("a red ball", "a dog", ""), EXAMPLES)
    tokens = scorer.tokenizer(["A photo depicts a red ball"], return_tensors="pt")
    pixels = scorer.processor(images=[Image.new("RGB", (40, 36), "red")], return_tensors="pt")
    with torch.inference_mode():
        output = scorer.model(input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"], **pixels)
    cosine = float(output.text_embeds @ output.image_embeds.T)
    assert scores.per_example["clip_score"][0] == pytest.approx(250 * max(cosine, 0), abs=1e-3)
    assert scores.values["clip_score"] == pytest.approx(sum(scores.per_example["clip_score"]) / 3)


def test_a_special_token_in_a_text_is_ordinary_characters(weights):
    scores = [
        metric(weights).score(texts(*[line] * 3), EXAMPLES).per_example["clip_score"]
        for line in ("a red ball [SEP] near the dog", "a red ball [ sep ] near the dog")
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3) and any(scores[0])


def test_batches_change_nothing(weights):
    lines = texts("a red ball", "a dog near the blue tree and the red ball", "")
    alone = metric(weights, batch_size=1).score(lines, EXAMPLES).per_example["clip_score"]
    assert metric(weights).score(lines, EXAMPLES).per_example["clip_score"] == pytest.approx(alone, abs=1e-3)


def test_an_example_without_a_picture_and_a_model_that_cannot_be_loaded_are_named(weights, tmp_path):
    message = refusal(metric(weights).score, texts("a ball"), [Example("one", {"caption": "a ball"})])
    assert message == "clip_score: example 'one' has no picture; the data set needs raw images (data.images)"
    with pytest.raises(DataError, match="^clip_score: '.*' cannot be loaded; set model to a folder or hub name"):
        ClipScore(model=str(tmp_path)).build()
