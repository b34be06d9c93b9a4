"""Special tokens in people's texts are ordinary characters, whatever the tokenizer and wherever the text stands."""

import csv
import pickle
import re

import pytest
import torch
from kit import archives, toys
from mmgen_encoders import Bert
from mmgen_encoders.vocabulary import train_tokenizer
from mmgen_generators import AnyOrder, Causal, Masked
from mmgen_inputs import Text
from mmgen_inputs.pictures import ModernVBert
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AddedToken, AutoTokenizer, PreTrainedTokenizerFast, XLMRobertaTokenizer
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.data.unread_text import remarks
from mmgen.examples import Example
from mmgen.model import compose
from mmgen.objectives import Rows
from mmgen.tokens import TextEncoder

WORDS = "is the big cls sep mask pad unk s a dog ?".split()
HOLES = "is the [MASK] big [PAD] ? [CLS] [SEP]"


def bert(folder):
    return train_tokenizer([" ".join([*WORDS, *"[]<>/"])] * 3, 120)


def roberta(folder):
    return AutoTokenizer.from_pretrained(archives.roberta(folder / "roberta"))


def sentencepiece(folder):
    """Its special tokens are pieces too, and become unknown words."""
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    letters = [(letter, -5.0 - number / 100) for number, letter in enumerate("\u2581abcdefghiklmnopstu<>/?[]")]
    return XLMRobertaTokenizer(vocab=[*pieces, *letters, ("<mask>", 0.0)])


def words(folder):
    """Words between blanks: a special token's name is a word of the vocabulary."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    tokenizer = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {f"{name.strip('[]').lower()}_token": name for name in names[:5]}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def python(folder):
    """Not fast, and its word pieces never split a special token."""
    folder.mkdir(parents=True, exist_ok=True)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"[]<>/"]
    (folder / "vocab.txt").write_text("\n".join(names))
    tokenizer = BertTokenizerLegacy(str(folder / "vocab.txt"))
    tokenizer.add_tokens(["big-dog"])
    return tokenizer


def more(folder):
    """With special tokens of its own, of which one is only in its file."""
    tokenizer = bert(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": [*ModernVBert.special_tokens]})
    tokenizer.backend_tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return tokenizer


KINDS = [bert, roberta, sentencepiece, words, python, more]


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_becomes_a_special_token(kind, tmp_path):
    tokenizer = kind(tmp_path)
    encode = pickle.loads(pickle.dumps(TextEncoder(tokenizer)))
    unknown = tokenizer.unk_token_id
    assert {*tokenizer.all_special_ids} <= encode.special_ids
    names = tokenizer.convert_ids_to_tokens(sorted(encode.special_ids))
    texts = [f"the {name} dog" for name in names] + [f"the{name}{name} dog" for name in names] + names
    for text, ids in zip(texts, encode([*texts, "the dog"]), strict=False):
        assert encode.special_ids.isdisjoint({*ids} - {unknown}), text
        if kind is not words:  # nothing is lost
            assert len(ids) > len(encode([re.sub("|".join(map(re.escape, names)), "", text)])[0]), text
    plain = ["is the dog big?", "", "a dog " * 9]
    assert encode(plain) == tokenizer(plain, add_special_tokens=False)["input_ids"]
    if kind in (bert, roberta, more):
        assert encode(texts) == tokenizer(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    if kind in (bert, more):
        assert unknown not in encode([f"the {names[0]} dog"])[0]


def test_added_words_stay_words(tmp_path):
    tokenizer = python(tmp_path)
    added = tokenizer.convert_tokens_to_ids("big-dog")
    (ids,) = TextEncoder(tokenizer)(["the big-dog [SEP]"])
    assert added in ids and tokenizer.sep_token_id not in ids


@pytest.mark.parametrize("kind", [bert, roberta, sentencepiece, words, more])
def test_offsets_are_those_of_the_text(kind, tmp_path):
    encode = TextEncoder(kind(tmp_path))
    for name in encode.tokenizer.convert_ids_to_tokens(sorted(encode.special_ids)):
        text = f"the {name} big{name} dog"
        offsets = encode.letters(text)
        assert len(offsets) == len(encode([text])[0])
        covered = {
            place for first, end in offsets for place in range(first, end)
        }  # a blank has the next letter's place
        assert covered >= {place for place, letter in enumerate(text) if letter != " "}
        assert offsets == sorted(offsets) and max(end for _, end in offsets) == len(text)


def asking(generator):
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 120}
    texts = [" ".join([*WORDS, *toys.WORDS, *"[]<>"])] * 3
    return compose(Bert(**sizes), {"caption": Text()}, generator, texts=texts).eval()


@pytest.mark.parametrize("generator", [Masked(max_tokens=30), Causal(max_tokens=30), AnyOrder(max_tokens=30)])
def test_captions_targets_prompts_and_avoided_texts(generator):
    """All of a person's characters are read, trained on, and kept away from."""
    model = asking(generator)
    backbone, reader = model.backbone, model.generator.reader
    example = Example("x", {"caption": HOLES}, (HOLES,))
    (ids,) = Collator(model, model.inputs, objectives=())([resolve(example)]).inputs["caption"]["ids"].tolist()
    assert "".join(backbone.decode_text(ids).split()) == "".join(HOLES.lower().split())
    ((target,),) = [reader.targets(example)]
    assert target == [*ids, backbone.end_id]
    assert not [*remarks("caption", Text(), backbone, resolve(example))]
    if reader.reads_prompts:
        asked = Example("q", {"caption": "a dog"}, labels={"prompt": HOLES, "avoid": [HOLES]})
        labels = reader.ask(Rows([resolve(asked)])).labels
        assert labels["prompt"].tolist() == [[ids]] == labels["avoid"].tolist()


def test_only_a_text_that_asks_for_blanks_has_masks():
    model = asking(AnyOrder(max_tokens=30))
    reader, mask = model.generator.reader, model.backbone.mask_id
    tokens = reader._partial_text(resolve(Example("x", {"caption": "a"}, labels={"text": "the [MASK] [SEP] <mask>"})))
    assert tokens.count(mask) == 1 and model.backbone.end_id not in tokens
    assert model.backbone.decode_text(tokens).replace(" ", "") == "the[sep]<mask>"


TABLE = """
name = "holes"
[backbone]
type = "bert"
num_hidden_layers = 1
hidden_size = 32
num_attention_heads = 2
[inputs.caption]
type = "text"
[generator]
type = "masked"
[training]
batch_size = 4
epochs = 8
learning_rate = 1e-2
[steps.words]
inputs = ["caption"]
train = ["backbone"]
[data]
type = "table"
folder = "."
files = { train = "rows.csv", val = "few.csv", test = "few.csv" }
"""


def test_a_table_with_special_tokens_trains_a_model_that_writes_all_of_them(tmp_path):
    for name, count in (("rows", 40), ("few", 2)):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "caption", "question"])
            rows.writerows([[number, "a [SEP] dog", "is the [MASK] big [PAD] ?"] for number in range(count)])
    (tmp_path / "holes.toml").write_text(TABLE)
    done = toys.mmgen_here(tmp_path, "run", "holes.toml")
    assert done.returncode == 0, done.stderr
    done = toys.mmgen_here(tmp_path, "generate", "runs/holes/default/seed-0", "--caption", "a [SEP] dog")
    assert done.returncode == 0, done.stderr
    assert "isthe[mask]big[pad]?" in done.stdout.replace(" ", "")


@pytest.mark.parametrize("family", ["wordpiece", "bpe"])
def test_the_tokens_of_a_text_are_counted_by_its_words(family):
    """Each word is encoded once, with what precedes it in a text."""
    tokenizer = toys.model().backbone.tokenizer
    if family == "bpe":
        byte_level = Tokenizer(
            models.BPE({"<unk>": 0, "\u0120": 1, "r": 2, "e": 3, "d": 4, "\u0120r": 5}, [("\u0120", "r")])
        )
        byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level, unk_token="<unk>")
    encode = TextEncoder(tokenizer)
    for text in ("red", "the red  ball?", "red red", "", "house red"):
        letters = [letter for letter in text if family == "wordpiece" or letter in "red "]
        text = " ".join("".join(letters).split())  # byte-level tokens of further blanks are not counted
        assert encode.count(text) == len(encode([text])[0]), text
    calls, tokenizer_call = [], encode.tokenizer
    encode.tokenizer = lambda *arguments, **options: calls.append(arguments) or tokenizer_call(*arguments, **options)
    assert encode.count("red") and not calls
