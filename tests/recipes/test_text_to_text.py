"""Text to text with a real pretrained masked LM: the ALBERT for reactions in the package `rxnmapper`, whose folder is
read and whose code is not; trained to write the product of a reaction, and the same encoder from nothing."""

import importlib.util
from itertools import product
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
TEXTBOOK = """
    CC(=O)Cl.NCc1ccccc1 CC(=O)NCc1ccccc1
    CCO.O=C(O)c1ccccc1 CCOC(=O)c1ccccc1
    Brc1ccccc1.OB(O)c1ccc(F)cc1 Fc1ccc(-c2ccccc2)cc1
    BrCc1ccccc1.Oc1ccccc1 c1ccc(COc2ccccc2)cc1
    CC(=O)c1ccccc1.[BH4-].[Na+] CC(O)c1ccccc1
    O=[N+]([O-])c1ccc(F)cc1 Nc1ccc(F)cc1"""  # an amide, an ester, Suzuki's, Williamson's, a reduction, an aniline
GROUPS = ("C", "CC", "CCC", "CCCC", "C1CCCCC1", "c1ccccc1", "c1ccc(F)cc1", "c1ccc(Cl)cc1")
DRAWN = ("O=C(O){r}.OC{s} O=C({r})OC{s}", "O=C(Cl){r}.NC{s} O=C({r})NC{s}", "BrC{r}.OC{s} C({r})OC{s}")


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """The encoder as safetensors, with a tokenizer of its vocabulary."""
    package = importlib.util.find_spec("rxnmapper")
    if package is None:
        pytest.skip("rxnmapper is not installed; pip install --no-deps rxnmapper==0.4.3")
    source, folder = Path(package.submodule_search_locations[0]) / FOLDER, tmp_path_factory.mktemp("albert")
    model = AlbertForMaskedLM(AlbertConfig.from_json_file(source / "config.json"))
    weights = torch.load(source / "pytorch_model.bin", map_location="cpu", weights_only=True)
    assert not model.load_state_dict(weights, strict=False).missing_keys
    model.save_pretrained(folder)
    vocabulary = {word: number for number, word in enumerate((source / "vocab.txt").read_text().split("\n")) if word}
    tokenizer = Tokenizer(WordLevel(vocabulary, "[UNK]"))
    tokenizer.pre_tokenizer = Split(Regex(ATOMS), "isolated")
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "cls", "sep", "mask", "unk")}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    return folder


def reactions(pairs):
    return [Example(pair, {"source": f"{pair.split()[0]}>>"}, (pair.split()[1],)) for pair in pairs]


def nats(model, examples):
    """By token, ends left out: the pretrained model has met none."""
    return -fmean(value for (text,) in likelihood(model, examples) for value in text.log_probabilities[:-1])


@pytest.mark.exhaustive
def test_what_pretraining_with_a_head_is_worth(pretrained):
    """Textbook reactions before any training; then drawn esters, amides and ethers, of which every fourth is held
    out."""
    examples = reactions(form.format(r=r, s=s) for r, s, form in product(GROUPS, GROUPS, DRAWN))
    train, (before, after) = [example for n, example in enumerate(examples) if n % 4], ([], [])
    for draw_again in (False, True):
        torch.manual_seed(0)
        inputs = {"source": Text(fields=("source",))}
        model = compose(AnyEncoder(weights=str(pretrained)), inputs, Masked(max_tokens=32)).eval()
        if draw_again:
            model.backbone.model.load_state_dict(AlbertForMaskedLM(model.backbone.model.config).state_dict())
        before.append(nats(model, reactions(TEXTBOOK.strip().split("\n"))))
        fit(model, train, epochs=2, batch_size=16, learning_rate=5e-4)
        after.append(nats(model.eval(), examples[::4]))
    assert before[0] < 3.2 and before[1] > 5 and after[0] < 0.5 * after[1]
