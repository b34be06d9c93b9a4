"""The conformance suite of backbones: what one declares, its widths, and what a run needs of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import Tensor

from ..parts import Backbone
from ..tensors import MASK
from .caching import CacheSuite
from .rows import last, prefix, some_ids
from .sight import ENCODE, SightSuite
from .suite import expect, expect_equal, expect_published, skip
from .toy import TEXTS


class BackboneSuite(SightSuite, CacheSuite):
    """What every generator relies on. `config()` returns a `BackboneConfig`; keep it small: every test builds it.

    A suite that defines `source_logits` compares the backbone with the model that it is made from. Let `source_length`
    be beyond every window of the encoder, or make the windows in `config()` small.
    """

    source_length = 160  # slots of the rows that are compared; fewer where max_positions is smaller

    def source_logits(self, backbone: Backbone, ids: Tensor) -> Tensor:
        """Logits (B, L, V) that the source model itself gives for plain rows of tokens (B, L), without padding. What
        the backbone drops everywhere alike (a window, a scale) shows only here."""
        return skip("has no source model to compare with; define source_logits")

    def test_equals_its_source(self) -> None:
        backbone, length = self.backbone(), self.source_length
        words = some_ids(backbone, 8)
        length = min(length, backbone.max_positions)
        ids = torch.tensor([[words[(5 * n + n // 8 + shift) % 8] for n in range(length)] for shift in range(2)])
        with torch.no_grad():
            wanted = self.source_logits(backbone, ids)
            found = backbone.logits(last(backbone, prefix(backbone, ids.tolist())))
        expect_equal(
            found,
            wanted,
            f"plain rows of {length} slots have other logits than the source model gives; does a window, a scale or a "
            "head get lost?",
            ENCODE,
        )

    def test_what_it_declares(self) -> None:
        backbone = self.backbone()
        for name in ("input_size", "hidden_size", "max_positions"):
            expect(
                isinstance(getattr(backbone, name, None), int) and getattr(backbone, name) > 0,
                f"{name} must be a whole number over 0",
                "mmgen.parts.Backbone",
            )
        for name in ("types", "extra_positions"):
            expect(
                isinstance(getattr(backbone, name), int) and getattr(backbone, name) >= 0,
                f"{name} must be a whole number, 0 where there are none",
                "mmgen.parts.Backbone",
            )
        expect(
            backbone.masks in ("any", "causal"),
            f'masks is {backbone.masks!r}; it must be "any" or "causal"',
            "mmgen.parts.Backbone",
        )
        expect(isinstance(backbone.caches, bool), "caches must be True or False", "mmgen.parts.Backbone")
        ids = [backbone.start_id, backbone.end_id, backbone.mask_id, backbone.pad_id]
        expect(
            len(set(ids)) == 4
            and all(isinstance(token, int) and 0 <= token < len(backbone.tokenizer) for token in ids),
            f"start_id, end_id, mask_id and pad_id must be four different ids of the tokenizer; they are {ids}",
            "mmgen.parts.Backbone",
        )

    def test_text_and_tokens(self) -> None:
        backbone = self.backbone()
        ids = backbone.encode_text(TEXTS[0])
        special = {backbone.start_id, backbone.end_id, backbone.mask_id, backbone.pad_id}
        expect(
            ids and not special & set(ids),
            "encode_text must give tokens, and no special ones",
            "mmgen.parts.Backbone.encode_text",
        )
        text = backbone.decode_text(ids)
        expect(
            backbone.decode_text([backbone.start_id, *ids, backbone.end_id, backbone.pad_id]) == text,
            "decode_text must leave special tokens out",
            "mmgen.parts.Backbone.decode_text",
        )
        expect(
            "".join(text.split()).lower() == "".join(TEXTS[0].split()).lower(),
            f"'{TEXTS[0]}' comes back from its tokens as '{text}'",
            "mmgen.parts.Backbone.decode_text",
        )

    def test_published_weights(self) -> None:
        expect_published(self.backbone())

    def test_widths(self) -> None:
        backbone = self.backbone()
        before, tail, _ = self.rows(backbone)
        row = before.followed_by(tail)
        expect(
            row.states.shape[-1] == backbone.input_size,
            f"embed gives width {row.states.shape[-1]}; input_size says {backbone.input_size}",
            "mmgen.parts.Backbone.embed",
        )
        states = last(backbone, row)
        wanted = (*row.positions.shape, backbone.hidden_size)
        expect(
            states.shape == wanted,
            f"encode gives states {tuple(states.shape)}; (B, L, hidden_size) is {wanted}",
            "mmgen.parts.Backbone.encode",
        )
        logits = backbone.logits(states)
        expect(
            logits.shape[:-1] == states.shape[:-1] and logits.shape[-1] >= len(backbone.tokenizer),
            f"logits {tuple(logits.shape)} leave out some of the {len(backbone.tokenizer)} tokens",
            "mmgen.parts.Backbone.logits",
        )
        expect_equal(
            backbone.logits(states[:, 0]),
            logits[:, 0],
            "logits of one slot differ when they are made alone",
            "mmgen.parts.Backbone.logits",
        )

    def test_states_asked_for(self) -> None:
        backbone = self.backbone()
        before, tail, _ = self.rows(backbone)
        row = before.followed_by(tail)
        asked = row.layout.role == MASK
        asked[0, 1] = True  # any slots may be asked for, and not as many in each row
        expect_equal(
            backbone.states_at(row, asked),
            last(backbone, row)[asked],
            "states of the slots asked for differ from those that encode gives",
            "mmgen.parts.Backbone.states",
        )

    def test_embed_is_words_alone(self) -> None:
        backbone = self.backbone()
        word = backbone.embed(torch.tensor([[some_ids(backbone, 1)[0]] * 3]))
        expect_equal(
            word[:, 0],
            word[:, 2],
            "one word has other embeddings in another place; embed must leave positions to encode",
            "mmgen.parts.Backbone.embed",
        )

    def test_kept_states_and_attentions(self) -> None:
        backbone = self.backbone()
        before, tail, _ = self.rows(backbone)
        row = before.followed_by(tail)
        kept = backbone.encode(row, output=("hidden", "attentions"))
        expect_equal(kept.last, last(backbone, row), "states differ when more is kept", "mmgen.parts.Backbone.encode")
        batch, length = row.positions.shape
        for states in kept.hidden:
            expect(
                states.shape == (batch, length, backbone.hidden_size),
                f"hidden states are {tuple(states.shape)}, not (B, L, hidden_size)",
                "mmgen.tensors.Encoded",
            )
        for weights in kept.attentions:
            expect(
                weights.ndim == 4 and weights.shape[0] == batch and weights.shape[2:] == (length, length),
                f"attentions are {tuple(weights.shape)}, not (B, heads, L, M)",
                "mmgen.tensors.Encoded",
            )
            expect_equal(
                weights.sum(-1),
                torch.ones_like(weights[..., 0]),
                "attentions of a slot do not add up to 1",
                "mmgen.tensors.Encoded",
                1e-3,
            )
        expect(
            not kept.attentions or len(kept.hidden) == len(kept.attentions) + 1,
            "hidden must hold the embeddings and one tensor a layer",
            "mmgen.tensors.Encoded",
        )

    def test_longest_row(self) -> None:
        backbone = self.backbone()
        ids = some_ids(backbone, 4)
        longest = min(backbone.max_positions, 4096)
        row = prefix(backbone, [[ids[n % 4] for n in range(longest)]])
        try:
            states = last(backbone, row)
        except (IndexError, RuntimeError) as error:
            raise AssertionError(
                f"a row of max_positions ({backbone.max_positions}) slots fails: {error}. Read: mmgen.parts.Backbone"
            ) from None
        expect(
            bool(torch.isfinite(states).all()), "the longest row has states that are not finite", "mmgen.parts.Backbone"
        )

    def test_same_again(self) -> None:
        backbone = self.backbone()
        row = self.rows(backbone)[0]
        expect_equal(
            last(backbone, row),
            last(backbone, row),
            "in eval mode the same row has other states the second time",
            "torch.nn.Module.eval",
            0.0,
        )

    def test_save_and_build_again(self) -> None:
        backbone = self.backbone()
        with tempfile.TemporaryDirectory() as folder:
            backbone.save(Path(folder))
            again = self.config().build(folder=Path(folder)).eval()
        expect(
            again.encode_text(TEXTS[0]) == backbone.encode_text(TEXTS[0]),
            "the tokenizer that is built from the saved folder gives other tokens",
            "mmgen.parts.Backbone.save",
        )
        again.load_state_dict(backbone.state_dict())
        states = last(backbone, self.rows(backbone)[0])
        expect_equal(
            states,
            last(again, self.rows(again)[0]),
            "saved, built again and given the same weights, it gives other states",
            "mmgen.configs.BackboneConfig.build",
        )
        expect_equal(
            backbone.logits(states),
            again.logits(states),
            "saved, built again and given the same weights, it gives other logits",
            "mmgen.configs.BackboneConfig.build",
        )

    def test_gradients_are_finite(self) -> None:
        backbone = self.backbone()
        before, tail, _ = self.rows(backbone)
        backbone.logits(last(backbone, before.followed_by(tail))).logsumexp(-1).sum().backward()
        gradients = [parameter.grad for parameter in backbone.parameters() if parameter.grad is not None]
        expect(gradients, "no parameter gets a gradient", "mmgen.parts.Backbone")
        expect(
            all(torch.isfinite(gradient).all() for gradient in gradients),
            "with padding, gradients are not finite; is a row wholly masked? every slot must see itself",
            ENCODE,
        )
