"""Encoders that see: rows with pictures equal transformers' own model and processor; packed rows, cached writing and
gradients equal the paper's procedure."""

import pytest
import torch
from kit import families, seeing
from kit.reencoded import assert_matches_reencoding

from mmgen.data.collate import Collator
from mmgen.decoding import Decoding
from mmgen.evaluation.answers import generate
from mmgen.testing import BackboneSuite

pytestmark = pytest.mark.slow

CLOSE = 1e-5


def prefixes(model):
    return model.prefix(Collator(model, model.inputs)(seeing.examples())).slots


@torch.no_grad()
def test_rows_with_pictures_are_those_of_transformers(tmp_path):
    """Ragged rows with one picture, cut into tiles or not, and with two."""
    model = seeing.model()
    source, processor = seeing.source(seeing.saved(model.backbone, tmp_path))
    before = prefixes(model)
    logits = model.backbone.logits(model.backbone.encode(before).last)
    for row, example in enumerate(seeing.examples()):
        names = example.shown("image")
        done = processor(
            images=[[seeing.picture(name).load() for name in names]],
            text=f"[CLS]{'<image>' * len(names)}[SEP]{example.inputs['caption']}",
            size={"longest_edge": 64},
            add_special_tokens=False,
            return_tensors="pt",
        )
        expected = source(**done).logits[0]
        real = before.layout.real[row]
        assert expected.shape[0] == real.sum() and len(expected) > 2 * 4  # beyond the window
        largest = max(1.0, float(expected.abs().max()))
        torch.testing.assert_close(logits[row, real], expected, atol=CLOSE * largest, rtol=0)


def test_packed_rows_are_the_papers_procedure_with_its_gradients():
    model = seeing.model()
    backbone = model.backbone
    before, ids = prefixes(model), families.some_ids(backbone, 8)
    targets = [[[*ids[3:6], backbone.end_id], ids[:2]], [ids[:1], ids[2:7]], [ids[:3]]]
    alone = [row[real] for row, real in zip(before.states, before.layout.real, strict=True)]
    packed = families.packed_log_probabilities(backbone, before, targets)
    naive = families.naive_log_probabilities(backbone, alone, targets)
    largest = float(torch.stack(naive).detach().abs().max())  # such as 12, whose rounding differs between kinds of CPU
    torch.testing.assert_close(torch.stack(packed), torch.stack(naive), atol=CLOSE * max(1.0, largest), rtol=0)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    gradients, expected = (
        torch.autograd.grad(sum(row[7] for row in rows), trained, allow_unused=True, retain_graph=True)
        for rows in (packed, naive)
    )
    for gradient, right in zip(gradients, expected, strict=True):
        assert (gradient is None) == (right is None)
        if gradient is not None:
            torch.testing.assert_close(gradient, right, atol=CLOSE * max(1.0, float(right.abs().max())), rtol=0)
    reached = {id(p) for p, gradient in zip(trained, gradients, strict=True) if gradient is not None}
    base = backbone.model.base_model
    assert {id(p) for part in (base.vision_model, base.connector) for p in part.parameters()} <= reached


def test_cached_writing_is_encoding_again():
    model = seeing.model()
    assert_matches_reencoding(model, seeing.examples())
    texts = []
    for caches in (True, False):
        model.backbone.caches = caches
        texts.append(generate(model, seeing.examples(), Decoding(num_beams=3, num_return_sequences=2)))
    for cached, fresh in zip(*texts, strict=True):
        assert [text.tokens for text in cached] == [text.tokens for text in fresh]
        assert [text.score for text in cached] == pytest.approx([text.score for text in fresh], abs=CLOSE)


class TestModernVBert(BackboneSuite):
    def config(self):
        return seeing.config()

    def source_logits(self, backbone, ids):
        return families.source_logits(backbone, ids)
