"""Synthetic files in the layout of published archives, and small encoders saved as on hubs."""

import base64
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from mmgen_inputs.pictures import ModernVBert
from PIL import Image
from tokenizers.implementations import BertWordPieceTokenizer, ByteLevelBPETokenizer
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizerFast,
    CLIPConfig,
    CLIPImageProcessor,
    CLIPModel,
    Idefics3ImageProcessor,
    ModernBertConfig,
    ModernBertForMaskedLM,
    ModernVBertConfig,
    ModernVBertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaTokenizer,
    YolosConfig,
    YolosForObjectDetection,
    YolosImageProcessor,
)

from mmgen.cli import main

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
IMAGES = range(1, 4)
TEXTS = ["What is the Dog doing?", "Where are they going to?", "A dog runs over the green field.", "A man with a dog."]
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 130,
}


def bert(folder: Path, lower: bool = False) -> Path:
    words = BertWordPieceTokenizer(lowercase=lower)
    words.train_from_iterator(TEXTS * 9, vocab_size=120, show_progress=False)
    folder.mkdir(parents=True)
    words.save_model(str(folder))
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=lower)
    tokenizer.save_pretrained(folder)
    BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **SIZES)).save_pretrained(folder)
    return folder


def roberta(folder: Path) -> Path:
    words = ByteLevelBPETokenizer()
    words.train_from_iterator(
        TEXTS * 9, vocab_size=300, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], show_progress=False
    )
    folder.mkdir(parents=True)
    words.save_model(str(folder))
    tokenizer = RobertaTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    RobertaForMaskedLM(RobertaConfig(vocab_size=len(tokenizer), pad_token_id=1, **SIZES)).save_pretrained(folder)
    return folder


def modernbert(folder: Path) -> Path:
    """Its window is four positions to either side."""
    bert(folder)
    words = len(BertTokenizerFast.from_pretrained(folder))
    kinds = {"local_attention": 8, "layer_types": ["full_attention", "sliding_attention"], "pad_token_id": 0}
    ModernBertForMaskedLM(
        ModernBertConfig(vocab_size=words, **SIZES | {"num_hidden_layers": 2}, **kinds)
    ).save_pretrained(folder)
    return folder


def modernvbert(folder: Path) -> Path:
    """Tiles of 32 pixels, 4 tokens each. Its head is not tied, and its tower has a head, as in the published one."""
    bert(folder)
    tokenizer = BertTokenizerFast.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": list(ModernVBert.special_tokens)})
    tokenizer.save_pretrained(folder)
    vision = {"image_size": 32, "patch_size": 8, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = SIZES | {"num_hidden_layers": 2, "vocab_size": len(tokenizer), "local_attention": 8, "pad_token_id": 0}
    config = ModernVBertConfig(
        text_config={"model_type": "modernbert", **text},
        vision_config={"model_type": "siglip_vision_model", "intermediate_size": 16, **vision},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pixel_shuffle_factor=2,
    )
    ModernVBertForMaskedLM(config).save_pretrained(folder)
    Idefics3ImageProcessor(size={"longest_edge": 64}, max_image_size={"longest_edge": 32}).save_pretrained(folder)
    return folder


def yolos(folder: Path) -> Path:
    """A detector of three classes."""
    sizes = {name: size for name, size in SIZES.items() if name != "max_position_embeddings"}
    config = YolosConfig(**sizes, image_size=[64, 64], num_detection_tokens=4, num_labels=3)
    for part in (YolosForObjectDetection(config), YolosImageProcessor(size={"shortest_edge": 64, "longest_edge": 64})):
        part.save_pretrained(folder)
    return folder


def clip(folder: Path) -> Path:
    bert(folder)
    tower = {name: SIZES[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")}
    text = tower | {"vocab_size": 120, "max_position_embeddings": 16, "intermediate_size": 16}
    CLIPModel(
        CLIPConfig(text_config=text, vision_config=tower | {"image_size": 32, "patch_size": 16}, projection_dim=8)
    ).save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def image_files(folder: Path, ids: Iterable[int]) -> None:
    """Images as COCO names them."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    for image in ids:
        pixels = draw.integers(0, 255, (40, 60, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"COCO_train2014_{image:012}.jpg")


def regions(place: Path, images) -> None:
    """Regions of images in bottom-up-attention's TSV, imported as the README says."""
    draw = np.random.default_rng(0)
    boxes = np.array([[0, 0, 8, 8], [2, 2, 9, 6]], np.float32)
    lines = []
    for image in images:
        features = draw.random((2, 2048), np.float32)
        packed = [base64.b64encode(values.tobytes()).decode() for values in (boxes, features)]
        lines.append("\t".join([str(image), "10", "10", "2", *packed]))
    place.parent.mkdir(parents=True, exist_ok=True)
    tsv = place.with_suffix(".tsv")
    tsv.write_text("\n".join(lines) + "\n")
    done = CliRunner().invoke(
        main, ["features", "import", str(tsv), str(place), "--type", "bottom_up_tsv"], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output


def captions(path: Path, images) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    annotations = [
        {"id": 10 * image + n, "image_id": image, "caption": TEXTS[2 + n]} for image in images for n in range(2)
    ]
    path.write_text(json.dumps({"images": [], "annotations": annotations}))
