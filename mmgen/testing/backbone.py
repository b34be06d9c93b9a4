"""The conformance suite of backbones: attributes, widths, and what a run needs. The contract is in
`mmgen.parts.Backbone`, `mmgen.tensors.Slots` and `mmgen.tensors.Encoded`."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from ..parts import Backbone
from ..tensors import MASK, Slots
from .caching import CacheSuite
from .rows import last, prefix, some_ids
from .suite import assert_close, assert_published, explained, skip
from .toy import TEXTS
from .visibility import SightSuite


class BackboneSuite(SightSuite, CacheSuite):
    """What every generator relies on. `config()` returns a `BackboneConfig`; keep it small: every test builds it.

    A suite that defines `source_logits` compares the backbone with its source model. `source_length` must exceed every
    attention window of the encoder, or `config()` must make the windows small. A config with another `mixes` than
    "visible" is not asked what slots see.
    """

    source_length = 160  # slots of the rows that are compared; fewer where max_positions is smaller

    def source_logits(self, backbone: Backbone, ids: Tensor) -> Tensor:
        """Logits (B, L, V) of the source model for plain rows of tokens (B, L), without padding. Only this comparison
        shows what the backbone drops everywhere (a window, a scale)."""
        return skip("has no source model to compare with; define source_logits")

    def test_equals_its_source(self) -> None:
        backbone = self.backbone()
        words, length = some_ids(backbone, 8), min(self.source_length, backbone.max_positions)
        ids = torch.tensor([[words[(5 * n + n // 8 + shift) % 8] for n in range(length)] for shift in range(2)])
        message = (
            f"plain rows of {length} slots have different logits than the source model; is a window, a scale or a head "
            f"lost?"
        )
        with torch.no_grad():
            source = self.source_logits(backbone, ids)
            assert_close(backbone.logits(last(backbone, prefix(backbone, ids.tolist()))), source, message)

    def test_attributes(self) -> None:
        backbone = self.backbone()
        for name, least in (
            ("input_size", 1),
            ("hidden_size", 1),
            ("max_positions", 1),
            ("types", 0),
            ("extra_positions", 0),
        ):
            value = getattr(backbone, name, None)
            assert isinstance(value, int) and value >= least, f"{name} must be an integer of {least} or more"
        mixes = self.config().mixes
        assert mixes in ("visible", "row", "nothing"), (
            f'mixes of the config is {mixes!r}; mixes must be "visible", "row" or "nothing"'
        )
        assert backbone.masks in ("any", "causal"), f'masks is {backbone.masks!r}; masks must be "any" or "causal"'
        assert backbone.masks == "any" or mixes != "visible", (
            'masks is "causal", but mixes of the config is "visible"; set mixes = "row" on the config, so that '
            "`mmgen check` refuses generators that need any mask"
        )
        assert isinstance(backbone.caches, bool), "caches must be True or False"
        ids = [backbone.start_id, backbone.end_id, backbone.mask_id, backbone.pad_id]
        known = all(isinstance(token, int) and 0 <= token < len(backbone.tokenizer) for token in ids)
        assert known and len(set(ids)) == 4, (
            f"start_id, end_id, mask_id and pad_id must be four different ids of the tokenizer, but are {ids}"
        )

    def test_text_and_tokens(self) -> None:
        backbone = self.backbone()
        ids = backbone.encode_text(TEXTS[0])
        special = [backbone.start_id, backbone.end_id, backbone.mask_id, backbone.pad_id]
        names = " ".join(backbone.tokenizer.convert_ids_to_tokens(special))
        read = {*ids, *backbone.encode_text(f"{TEXTS[0]} {names}")}
        assert ids and read.isdisjoint(special), (
            "encode_text must return tokens that are not special, also where a text contains their names; does the "
            "tokenizer lack `all_special_ids`?"
        )
        text = backbone.decode_text(ids)
        plain = backbone.decode_text([backbone.start_id, *ids, backbone.end_id, backbone.pad_id]) == text
        assert plain, "decode_text must leave special tokens out"
        same = "".join(text.split()).lower() == "".join(TEXTS[0].split()).lower()
        assert same, f"'{TEXTS[0]}' is decoded as '{text}'"

    def test_published_weights(self) -> None:
        assert_published(self.backbone())

    def test_widths(self) -> None:
        backbone, _, _, row = self._row()
        width, size = row.states.shape[-1], backbone.input_size
        assert width == size, f"embed returns width {width}, but input_size is {size}"
        states = last(backbone, row)
        shape = (*row.positions.shape, backbone.hidden_size)
        assert states.shape == shape, (
            f"encode returns states {tuple(states.shape)}; expected (B, L, hidden_size) = {shape}"
        )
        logits, words = backbone.logits(states), len(backbone.tokenizer)
        complete = logits.shape[:-1] == states.shape[:-1] and logits.shape[-1] >= words
        assert complete, f"logits {tuple(logits.shape)} have fewer columns than the {words} tokens"
        alone = backbone.logits(states[:, 0])
        assert_close(alone, logits[:, 0], "the logits of one slot depend on the other slots")

    def test_states_at_some_slots(self) -> None:
        backbone, _, _, row = self._row()
        mask = row.layout.role == MASK
        mask[0, 1] = True  # any slots may be selected, and their number may differ by row
        message = "states_at and encode return different states for these slots"
        assert_close(backbone.states_at(row, mask), last(backbone, row)[mask], message)

    def test_embed_adds_no_positions(self) -> None:
        backbone = self.backbone()
        word = backbone.embed(torch.tensor([[some_ids(backbone, 1)[0]] * 3]))
        message = "the embedding of a word depends on its position; embed must leave positions to encode"
        assert_close(word[:, 0], word[:, 2], message)

    def test_hidden_states_and_attentions(self) -> None:
        backbone, _, _, row = self._row()
        encoded = backbone.encode(row, output=("hidden", "attentions"))
        hidden, attentions = encoded.hidden, encoded.attentions
        assert_close(encoded.last, last(backbone, row), "encode returns different states with more names in `output`")
        batch, length = row.positions.shape
        for states in hidden:
            right = states.shape == (batch, length, backbone.hidden_size)
            assert right, f"hidden states are {tuple(states.shape)}, not (B, L, hidden_size)"
        for weights in attentions:
            right = weights.ndim == 4 and weights.shape[0] == batch and weights.shape[2:] == (length, length)
            assert right, f"attentions are {tuple(weights.shape)}, not (B, heads, L, M)"
            sums = weights.sum(-1)
            assert_close(sums, torch.ones_like(sums), "attentions of a slot do not sum to 1", 1e-3)
        complete = not attentions or len(hidden) == len(attentions) + 1
        assert complete, "hidden must contain the embeddings and one tensor per layer"

    def test_longest_row(self) -> None:
        backbone = self.backbone()
        ids = some_ids(backbone, 4)
        row = prefix(backbone, [[ids[n % 4] for n in range(min(backbone.max_positions, 4096))]])
        with explained(f"a row of max_positions ({backbone.max_positions}) slots fails"):
            states = last(backbone, row)
        assert states.isfinite().all(), "the longest row has states that are not finite"

    def test_is_deterministic(self) -> None:
        backbone = self.backbone()
        row = self.rows(backbone)[0]
        message = "in eval mode, a second run of the same row gives different states"
        assert_close(last(backbone, row), last(backbone, row), message, 0.0)

    def test_save_and_load(self) -> None:
        backbone = self.backbone()
        with tempfile.TemporaryDirectory() as folder:
            backbone.save(Path(folder))
            restored = self.config().build(folder=Path(folder)).eval()
        same = restored.encode_text(TEXTS[0]) == backbone.encode_text(TEXTS[0])
        assert same, "the tokenizer built from the saved folder gives different tokens"
        restored.load_state_dict(backbone.state_dict())
        states, message = (
            last(backbone, self.rows(backbone)[0]),
            "saved and built again with the same weights, the backbone",
        )
        assert_close(states, last(restored, self.rows(restored)[0]), f"{message} gives different states")
        assert_close(backbone.logits(states), restored.logits(states), f"{message} gives different logits")

    def test_gradients_are_finite(self) -> None:
        backbone, _, _, row = self._row()
        backbone.logits(last(backbone, row)).logsumexp(-1).sum().backward()
        gradients = [parameter.grad for parameter in backbone.parameters() if parameter.grad is not None]
        assert gradients, "no parameter gets a gradient"
        finite = all(gradient.isfinite().all() for gradient in gradients)
        message = "with padding, gradients are not finite; is a row fully masked? every slot must see itself"
        assert finite, message

    def test_gradient_checkpointing(self) -> None:
        """With recomputed layers, gradients are the same and less is kept for the backward pass."""
        if not self.config().supports_gradient_checkpointing:
            skip("cannot recompute its layers")
        backbone, _, _, row = self._row()
        row = replace(row, states=row.states.detach())
        (plain, plain_size), (recomputed, size) = (self._gradients(backbone.train(), row, on) for on in (False, True))
        assert plain.keys() == recomputed.keys(), "with gradient checkpointing, different parameters have gradients"
        for name, gradient in plain.items():
            assert_close(recomputed[name], gradient, f"gradient checkpointing changes the gradient of {name}", 1e-5)
        assert size < plain_size, (
            f"gradient checkpointing keeps {size} numbers for the backward pass, {plain_size} without it"
        )

    def _gradients(self, backbone: Backbone, row: Slots, recompute: bool) -> tuple[dict[str, Tensor], int]:
        """Gradients by parameter, and how many numbers the forward pass keeps for the backward pass."""
        backbone.set_gradient_checkpointing(recompute)
        backbone.zero_grad()
        sizes: list[int] = []

        def keep(tensor: Tensor) -> Tensor:
            sizes.append(tensor.numel())
            return tensor

        with torch.random.fork_rng():
            torch.manual_seed(0)
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                total = last(backbone, row).square().sum()
            total.backward()
        named = backbone.named_parameters()
        return {name: p.grad.clone() for name, p in named if p.grad is not None}, sum(sizes)
