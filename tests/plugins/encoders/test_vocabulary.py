"""Vocabularies for encoders without weights: the same texts give the same pieces, in any order."""

from mmgen_encoders.vocabulary import SPECIAL, load_tokenizer, train_tokenizer

TEXTS = ["A red dog, a red ball!", "the dog sees the ball", "a dog"]


def test_frequent_words_are_pieces_and_other_words_are_spelt(tmp_path):
    tokenizer = train_tokenizer(TEXTS, 60)
    assert tokenizer.tokenize("A dog, the xed") == ["a", "dog", ",", "the", "[UNK]"]
    assert tokenizer.tokenize("gas") == ["g", "##a", "##s"]
    assert tokenizer.decode(tokenizer("the dog sees")["input_ids"]) == "the dog sees"
    assert [getattr(tokenizer, name) for name in SPECIAL] == [*SPECIAL.values()]
    tokenizer.save_pretrained(tmp_path)
    assert load_tokenizer(tmp_path).get_vocab() == tokenizer.get_vocab()
