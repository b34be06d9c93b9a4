"""Text to text with a real pretrained masked LM: the ALBERT for reactions in the package `rxnmapper`, whose folder is
read and whose code is not; trained to write the product of a reaction, and the same encoder from nothing."""

import importlib.util
import json
from pathlib import Path
from statistics import fmean

import pytest
import torch
from mmgen_encoders import AnyEncoder
from mmgen_generators import Masked
from mmgen_inputs import Text
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import AlbertConfig, AlbertForMaskedLM, PreTrainedTokenizerFast

from mmgen import Example, compose, fit
from mmgen.evaluation.answers import likelihood

FOLDER = "models/transformers/albert_heads_8_uspto_all_1310k"
ATOMS = r"\[[^\]]+\]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|/|:|~|@|\?|>>?|\*|\$|%[0-9]{2}|[0-9]"
TEXTBOOK = {
    "amide": ("CC(=O)Cl.NCc1ccccc1", "CC(=O)NCc1ccccc1"),
    "ester": ("CCO.O=C(O)c1ccccc1", "CCOC(=O)c1ccccc1"),
    "Suzuki": ("Brc1ccccc1.OB(O)c1ccc(F)cc1", "Fc1ccc(-c2ccccc2)cc1"),
    "Williamson": ("BrCc1ccccc1.Oc1ccccc1", "c1ccc(COc2ccccc2)cc1"),
    "reduction": ("CC(=O)c1ccccc1.[BH4-].[Na+]", "CC(O)c1ccccc1"),
    "aniline": ("O=[N+]([O-])c1ccc(F)cc1", "Nc1ccc(F)cc1"),
}
GROUPS = ("C", "CC", "CCC", "CCCC", "C1CCCCC1", "c1ccccc1", "c1ccc(F)cc1", "c1ccc(Cl)cc1")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """The encoder as safetensors, with a tokenizer of its vocabulary."""
    package = importlib.util.find_spec("rxnmapper")
    if package is None:
        pytest.skip("rxnmapper is not installed; pip install --no-deps rxnmapper==0.4.3")
    source, folder = Path(package.submodule_search_locations[0]) / FOLDER, tmp_path_factory.mktemp("albert")
    names = ("hidden_size", "embedding_size", "intermediate_size", "num_attention_heads", "num_hidden_layers")
    settings = json.loads((source / "config.json").read_text())
    sizes = {name: settings[name] for name in (*names, "vocab_size", "hidden_act", "max_position_embeddings")}
    model = AlbertForMaskedLM(AlbertConfig(**sizes))
    weights = torch.load(source / "pytorch_model.bin", map_location="cpu", weights_only=True)
    missing, _ = model.load_state_dict(weights, strict=False)
    assert not missing
    model.save_pretrained(folder)
    vocabulary = {word: number for number, word in enumerate((source / "vocab.txt").read_text().split("\n")) if word}
    tokenizer = Tokenizer(WordLevel(vocabulary, "[UNK]"))
    tokenizer.pre_tokenizer = Split(Regex(ATOMS), "isolated")
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "cls", "sep", "mask", "unk")}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    return folder


def model_of(folder, draw_again=False):
    torch.manual_seed(0)
    model = compose(AnyEncoder(weights=str(folder)), {"source": Text(fields=("source",))}, Masked(max_tokens=32)).eval()
    if draw_again:
        model.backbone.model.load_state_dict(AlbertForMaskedLM(model.backbone.model.config).state_dict())
    return model


def reactions(pairs):
    return [Example(str(n), {"source": f"{source}>>"}, (target,)) for n, (source, target) in enumerate(pairs)]


def nats(model, examples):
    """By token, ends left out: the pretrained model has met none."""
    rows = likelihood(model, examples)
    return -fmean(value for (text,) in rows for value in text.log_probabilities[:-1])


@pytest.mark.slow
@pytest.mark.exhaustive
def test_what_pretraining_with_a_head_is_worth(pretrained):
    """Textbook reactions before any training; then drawn esters, amides and ethers, of which every fourth is held
    out."""
    ready, blank = model_of(pretrained), model_of(pretrained, draw_again=True)
    textbook = reactions(TEXTBOOK.values())
    assert nats(ready, textbook) < 3.2 and nats(blank, textbook) > 5
    drawn = [
        pair
        for r in GROUPS
        for s in GROUPS
        for pair in (
            (f"O=C(O){r}.OC{s}", f"O=C({r})OC{s}"),
            (f"O=C(Cl){r}.NC{s}", f"O=C({r})NC{s}"),
            (f"BrC{r}.OC{s}", f"C({r})OC{s}"),
        )
    ]
    examples = reactions(drawn)
    train, test = [e for n, e in enumerate(examples) if n % 4], examples[::4]
    results = []
    for model in (ready, blank):
        fit(model, train, epochs=2, batch_size=16, learning_rate=5e-4)
        results.append(nats(model.eval(), test))
    assert results[0] < 0.5 * results[1]
