"""Synthetic files in the layout of published archives, and small encoders saved as on hubs."""

import base64
import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from tokenizers.implementations import BertWordPieceTokenizer, ByteLevelBPETokenizer
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizerFast,
    ModernBertConfig,
    ModernBertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaTokenizer,
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
