"""Masked words: hiding, the loss by the papers' definition, and checks of recipes."""

import random
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from kit import toys
from kit.objectives import model_of
from mmgen_encoders import Bert, Roberta
from mmgen_inputs import Text
from mmgen_objectives import MaskedWords, SentenceImage

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.tensors import Hiding

EXAMPLES = toys.examples(12)


class TestMaskedWords(mmgen.testing.ObjectiveSuite):
    def config(self):
        return MaskedWords(mlm_probability=0.5)


def model(backbone=Bert, **objectives):
    return model_of({"caption": Text()}, objectives or {"words": MaskedWords()}, None, backbone, " ".join(toys.WORDS))


def text_reader(backbone=Bert):
    return model(backbone).embedders["caption"].reader


def hidden(reader, text, hiding, seed=0):
    item = reader.read(Example("e", {"caption": text}))
    return item, *reader.hide(item, random.Random(seed), hiding)


def test_a_share_of_the_words_is_hidden_in_three_ways():
    reader = text_reader()
    reader.max_tokens = 6000
    item, ids, labels = hidden(reader, " ".join(toys.WORDS * 400), Hiding(0.15, (0.8, 0.1)))
    predicted = labels != -100
    assert torch.equal(labels[predicted], item[predicted]) and torch.equal(ids[~predicted], item[~predicted])
    assert predicted.float().mean() == pytest.approx(0.15, abs=0.02)
    masked = ids[predicted] == reader.mask_id
    unchanged = ids[predicted] == item[predicted]
    assert masked.float().mean() == pytest.approx(0.8, abs=0.05)
    assert unchanged.float().mean() == pytest.approx(0.1 + 0.1 / 80, abs=0.04)
    special = torch.tensor(reader.tokenizer.all_special_ids)
    assert not torch.isin(ids[predicted & ~(ids == reader.mask_id)], special).any()


@pytest.mark.parametrize("backbone", [Bert, Roberta])
def test_whole_words_are_hidden_with_all_their_pieces(backbone):
    reader = text_reader(backbone)
    text = "zebra what redball colors"  # words that the vocabulary has in pieces
    item = reader.read(Example("e", {"caption": text}))
    words = reader._tokens_by_word(item.tolist())
    assert len(words) == 4 < len(item) and [place for word in words for place in word] == [*range(len(item))]
    for seed in range(20):
        _, _, labels = hidden(reader, text, Hiding(0.5, (0.8, 0.1), whole_words=True), seed)
        assert all(len({int(labels[place]) == -100 for place in word}) == 1 for word in words)


def test_the_loss_is_the_cross_entropy_of_hidden_words_with_all_else_visible():
    """Compared with the encoder called directly on [CLS] and the masked caption, example by example."""
    composed = model()
    collate = Collator(composed, ["caption"], ["words"], RngKey(0, "s"))
    batch = collate(EXAMPLES, [0] * len(EXAMPLES))
    loss = composed(batch)
    ids, labels = batch.inputs["caption"]["ids"], batch.targets["words"].labels["caption"]
    total, count = 0.0, 0
    for row_ids, row_labels, mask in zip(ids, labels, batch.inputs["caption"]["mask"], strict=True):
        tokens = torch.cat([torch.tensor([composed.backbone.start_id]), row_ids[mask]]).unsqueeze(0)
        logits = composed.backbone.model(input_ids=tokens).logits[0, 1:]
        expected = row_labels[mask]
        total += F.cross_entropy(logits[expected != -100], expected[expected != -100], reduction="sum").item()
        count += int((expected != -100).sum())
    assert loss.counts == {"words.loss": count} and count > 3
    assert loss.sums["words.loss"].item() == pytest.approx(total, rel=1e-4)


def test_draws_follow_from_the_pass_and_the_example_and_not_from_the_batch():
    composed = model()
    collate = Collator(composed, ["caption"], ["words"], RngKey(0, "s"))

    def holes(examples, which):
        batch = collate(examples, [which] * len(examples) if which is not None else None)
        labels = batch.targets["words"].labels["caption"]
        return {id_: row[row != -100].tolist() for id_, row in zip(batch.ids, labels, strict=True)}

    together = holes(EXAMPLES, 0)
    apart = {name: row for example in EXAMPLES for name, row in holes([example], 0).items()}
    assert together == apart == holes(EXAMPLES, 0)
    assert together != holes(EXAMPLES, 1)
    assert holes(EXAMPLES, None) == holes(EXAMPLES, None)  # validation hides the same every epoch


def test_a_weight_multiplies_the_gradient_and_not_the_logged_loss():
    plain, weighted = model(words=MaskedWords()), model(words=MaskedWords(weight=3.0))
    batch = Collator(plain, ["caption"], ["generator", "words"])(EXAMPLES)
    loss, heavier = plain(batch), weighted(batch)
    torch.testing.assert_close(heavier.sums, loss.sums)
    words = loss.sums["words.loss"] / loss.counts["words.loss"]
    assert heavier.mean.item() == pytest.approx((loss.mean + 2 * words).item(), rel=1e-5)


def test_inputs_are_encoded_once_for_several_objectives():
    composed = model(words=MaskedWords(), more=MaskedWords(mlm_probability=0.3))
    batch = Collator(composed, ["caption"], ["words"])(EXAMPLES)
    batch = replace(batch, targets={**batch.targets, "more": batch.targets["words"]})
    encode, times = composed.backbone.encode, []
    composed.backbone.encode = lambda *args, **more: times.append(1) or encode(*args, **more)
    composed(batch)
    assert len(times) == 1


def test_examples_of_a_single_picture_are_refused():
    composed = model(words=MaskedWords(), fits=SentenceImage())
    collate = Collator(composed, ["caption"], ["fits"], RngKey(0, "s"), [EXAMPLES[0]] * 3)
    with pytest.raises(DataError, match="example 'e0': no other picture was found to take a text from"):
        for which in range(20):  # half of the draws ask for another picture
            collate([EXAMPLES[0]], [which])
