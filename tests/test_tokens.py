"""Special tokens in people's texts are ordinary characters, whatever the tokenizer and wherever the text stands."""

import pickle
import re

import pytest
from kit import archives, toys
from mmgen_encoders.vocabulary import train_tokenizer
from mmgen_inputs.pictures import ModernVBert
from transformers import AddedToken, AutoTokenizer, XLMRobertaTokenizer
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

from mmgen.tokens import TextEncoder

WORDS = "is the big cls sep mask pad unk s a dog ?".split()


def bert(folder):
    return train_tokenizer([" ".join([*WORDS, *"[]<>/"])] * 3, 120)


def roberta(folder):
    return AutoTokenizer.from_pretrained(archives.roberta(folder / "roberta"))


def sentencepiece(folder):
    """Its special tokens are pieces too, and become unknown words."""
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    letters = [(letter, -5.0 - number / 100) for number, letter in enumerate("\u2581abcdefghiklmnopstu<>/?[]")]
    return XLMRobertaTokenizer(vocab=[*pieces, *letters, ("<mask>", 0.0)])


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


KINDS = [bert, roberta, sentencepiece, python, more]


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
        assert len(ids) > len(encode([re.sub("|".join(map(re.escape, names)), "", text)])[0]), text  # nothing is lost
    plain = ["is the dog big?", "", "a dog " * 9]
    assert encode(plain) == tokenizer(plain, add_special_tokens=False)["input_ids"]
    if kind in (bert, roberta, more):
        assert encode(texts) == tokenizer(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    if kind in (bert, more):
        assert unknown not in encode([f"the {names[0]} dog"])[0]


@pytest.mark.parametrize("kind", [bert, roberta, sentencepiece, more])
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


def test_the_tokens_of_a_text_are_counted_by_its_words():
    """Each word is encoded once, with what precedes it in a text."""
    encode = TextEncoder(toys.model().backbone.tokenizer)
    for text in ("red", "the red  ball?", "red red", "", "house red"):
        assert encode.count(text) == len(encode([text])[0]), text
    calls, tokenizer_call = [], encode.tokenizer
    encode.tokenizer = lambda *arguments, **options: calls.append(arguments) or tokenizer_call(*arguments, **options)
    assert encode.count("red") and not calls
