"""The conformance suite of backbones: what changes a state, packed and cached rows, and what a run needs. The contract
is in `mmgen.parts.Backbone`, `mmgen.attention.visible`, `mmgen.tensors.Slots` and `mmgen.tensors.Encoded`."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from ..configs import BackboneConfig
from ..parts import Backbone
from ..tensors import MASK, PREFIX, WRITTEN, Slots, apply
from .rows import behind, last, pick, prefix, some_ids
from .suite import TOLERANCE, Suite, assert_close, explained, largest_difference, skip
from .toy import TEXTS

SEEN = 1e-6  # states that differ by more have seen what was changed


class BackboneSuite(Suite[BackboneConfig]):
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

    def backbone(self) -> Backbone:
        """A new backbone in eval mode, with the same weights every time."""
        return self.seeded(self.buildable().build, texts=TEXTS).eval()

    def rows(self, backbone: Backbone) -> tuple[list[list[int]], list[list[list[int]]], Slots, Slots]:
        """Two inputs of different lengths, and targets of each: two if slots do not see other targets, else one. Then
        the slots of both."""
        ids, start = some_ids(backbone, 8), backbone.start_id
        inputs, count = [[start, *ids[:3]], [start, *ids[2:8]]], 2 if self.config().mixes == "visible" else 1
        targets = [[ids[3:6] + [backbone.end_id], ids[:2]][:count], [ids[:1], ids[4:7]][:count]]
        before = prefix(backbone, inputs)
        return inputs, targets, before, behind(backbone, before, targets)

    def row(self, backbone: Backbone) -> Slots:
        """Both inputs with their targets."""
        _, _, before, tail = self.rows(backbone)
        return before.followed_by(tail)

    def test_equals_its_source(self) -> None:
        backbone = self.backbone()
        words, length = some_ids(backbone, 8), min(self.source_length, backbone.max_positions)
        ids = [[words[(5 * n + n // 8 + shift) % 8] for n in range(length)] for shift in range(2)]
        with torch.no_grad():
            source = self.source_logits(backbone, torch.tensor(ids))
            logits = backbone.logits(last(backbone, prefix(backbone, ids)))
        message = (
            f"plain rows of {length} slots have different logits than the source model; is a window or scale lost?"
        )
        assert_close(logits, source, message)

    def test_text_and_tokens(self) -> None:
        backbone = self.backbone()
        special = [backbone.start_id, backbone.end_id, backbone.mask_id, backbone.pad_id]
        different = len({*special} & {*range(len(backbone.tokenizer))}) == 4
        assert different, f"start_id, end_id, mask_id and pad_id must be four ids of the tokenizer, but are {special}"
        names = " ".join(backbone.tokenizer.convert_ids_to_tokens(special))
        assert {*backbone.encode_text(f"{TEXTS[0]} {names}")}.isdisjoint(special), (
            "encode_text must return tokens that are not special, also where a text contains their names; does the "
            "tokenizer lack `all_special_ids`?"
        )
        text = backbone.decode_text([*special, *backbone.encode_text(TEXTS[0])])
        same = "".join(text.split()).lower() == "".join(TEXTS[0].split()).lower()
        assert same, f"'{TEXTS[0]}' is decoded as '{text}'; decode_text must leave special tokens out, and only them"

    def test_states(self) -> None:
        """Shapes, and the same states for every way to ask for them."""
        backbone = self.backbone()
        row, states = self.row(backbone), last(backbone, self.row(backbone))
        length = states.shape[1]
        right = states.shape == (*row.positions.shape, backbone.hidden_size) and states.isfinite().all()
        assert right, (
            f"encode returns {tuple(states.shape)}, or not finite: (B, L, hidden_size); a slot must see itself"
        )
        mask = row.layout.role == MASK
        mask[0, 1] = True  # any slots may be selected, and their number may differ by row
        assert_close(backbone.states_at(row, mask), states[mask], "states_at and encode return different states")
        encoded = backbone.encode(row, output=("hidden", "attentions"))
        assert_close(encoded.last, states, "in eval mode, a second run of the same row gives other states")
        for hidden in encoded.hidden:
            assert hidden.shape == states.shape, f"hidden has the shape {tuple(hidden.shape)}, not (B, L, hidden_size)"
        for weights in encoded.attentions:
            complete = weights.shape[2:] == (length, length) and (weights.sum(-1) - 1).abs().max() < 1e-3
            assert complete, "attentions are not (B, heads, L, M), or do not sum to 1"
        with explained("a row of max_positions slots fails"):
            longest = last(backbone, prefix(backbone, [(some_ids(backbone, 4) * 1024)[: backbone.max_positions]]))
            (longest.sum() + backbone.logits(states).logsumexp(-1).sum()).backward()
        gradients = [p.grad for p in backbone.parameters() if p.grad is not None]
        finite = gradients and all(tensor.isfinite().all() for tensor in [longest, *gradients])
        assert finite, "with padding, or in the longest row, states or gradients are not finite"

    def test_other_words_change_only_what_sees_them(self) -> None:
        backbone = self.backbone()
        row, word = self.row(backbone), some_ids(backbone, 8)[7]
        states, words = last(backbone, row), backbone.embed(torch.full_like(row.positions, word))
        role, time, early = row.layout.role, row.layout.time, row.positions < 3
        changes = list[tuple[str, Tensor, Tensor, bool]]()  # message, other words, states to read, do they change?
        if self.config().mixes == "visible":
            mask = (role == MASK) & (time == 3)
            changes += [
                ("a [MASK] does not see its input", role == PREFIX, mask, True),
                ("a [MASK] does not see the tokens before it", (role == WRITTEN) & (time == 2), mask, True),
            ]
        if backbone.masks == "causal":
            message = 'a slot changes the states of earlier slots, though masks is "causal"'
            changes += [(message, ~early, early & row.layout.real, False)]
        for message, changed, read, seen in changes:
            mixed = torch.where(changed.unsqueeze(-1), words, row.states)
            difference = largest_difference(states[read], last(backbone, replace(row, states=mixed))[read])
            assert difference > SEEN if seen else difference <= TOLERANCE, message

    def test_types_and_positions_change_states(self) -> None:
        """The first and last token type, the extra positions, and the first and last position differ."""
        backbone = self.backbone()
        row, extra, places = self.row(backbone), backbone.extra_positions, list[int]()
        if extra or (backbone.masks, self.config().mixes) == ("any", "visible"):
            places = [*range(-min(4, extra), 0), 0, backbone.max_positions - 1]
        kinds = sorted({*range(backbone.types)} & {0, backbone.types - 1})
        types = [replace(row, types=torch.full_like(row.types, kind)) for kind in kinds]
        columns = [row.positions.index_fill(1, torch.tensor([1]), place) for place in places]
        for variants in (types, [replace(row, positions=column) for column in columns]):
            with explained("a token type or position fails; the backbone has fewer than types or extra_positions say"):
                states = [last(backbone, variant) for variant in variants]
            for first, second in itertools.combinations(states, 2):
                assert largest_difference(first, second) > SEEN, (
                    "two token types, or two positions, give the same states; encode must use `slots.types` and "
                    "`slots.positions`, where -1 - k is extra row k (`mmgen.tensors.Slots`)"
                )

    def test_packed_targets_equal_separate_ones(self) -> None:
        """Without the padding between input and target that a row has in a batch; and step by step."""
        backbone = self.backbone()
        inputs, targets, before, tail = self.rows(backbone)
        packed = last(backbone, before.followed_by(tail))[:, before.positions.shape[1] :]
        for number, (ids, groups) in enumerate(zip(inputs, targets, strict=True)):
            single = prefix(backbone, [ids])
            for group, target in enumerate(groups, 1):
                alone, *steps = (
                    last(backbone, single.followed_by(behind(backbone, single, [[target]], step)))[0, len(ids) :]
                    for step in range(len(target) + 1)
                )
                message = (
                    "targets packed behind one input change its states or those of one another, or padding does; "
                    "encode must obey `mmgen.attention.visible` and count by `slots.positions`"
                )
                assert_close(packed[number, tail.layout.group[number] == group], alone, message)
                for step, states in enumerate(steps, 1) if self.config().mixes == "visible" else ():
                    message = f"the [MASK] of step {step} differs from one behind the input and the tokens before it"
                    assert_close(alone[len(target) - 2 + step], states[-1], message)

    def test_cache_equals_no_cache(self) -> None:
        """Also after rows have been forgotten, repeated and selected, and slots rearranged."""
        backbone = self.backbone()
        if not backbone.caches:
            skip("does not cache")
        _, _, before, tail = self.rows(backbone)
        length, cache = before.positions.shape[1], backbone.new_cache()
        rows, inputs = last(backbone, before.followed_by(tail)), before.layout.real
        first = backbone.encode(before, cache).last
        assert_close(first[inputs], rows[:, :length][inputs], "with a cache, the input has different states")
        for message, order, change in (
            ("slots have different states if the slots before them come from the cache", [0, 1], lambda: None),
            ("after cache.forget(n), the same slots have different states", [0, 1], lambda: None),
            ("cache.repeat(2) must give every row twice, one after the other", [0, 0, 1, 1], lambda: cache.repeat(2)),
            ("cache.select(rows) must keep these rows", [1, 0, 1], lambda: cache.select(torch.tensor([3, 0, 2]))),
        ):
            change()
            slots = pick(tail, order)
            states, real = backbone.encode(slots, cache).last, slots.layout.real
            assert_close(states[real], rows[order, length:][real], message)
            cache.forget(tail.positions.shape[1])
        if self.config().mixes != "row":  # there a slot continues from the slots before it
            ids, end = some_ids(backbone, 4), backbone.end_id
            slots = behind(backbone, pick(before, order), [[[*ids[:2], end], [*ids[2:], end]]] * 3)
            states = backbone.encode(slots, cache).last
            cache.rearrange(torch.arange(5).repeat(2).expand(3, -1))  # y_1 y_2 m_1 m_2 m_3 of the first, for both
            again = backbone.encode(apply(slots, lambda tensor: tensor[:, -1:]), cache).last  # m_3 of the second
            message = "after cache.rearrange(slots) the last slots must have the keys and values of the given slots"
            assert_close(again[:, 0], states[:, 4], message)

    def test_save_and_load(self) -> None:
        backbone = self.backbone()
        with tempfile.TemporaryDirectory() as folder:
            backbone.save(Path(folder))
            restored = self.config().build(folder=Path(folder)).eval()
        restored.load_state_dict(backbone.state_dict())
        first, second = (some.logits(last(some, self.row(some))) for some in (backbone, restored))
        assert_close(first, second, "saved and built again with the same weights, tokens or logits are different")

    def test_gradient_checkpointing(self) -> None:
        """With recomputed layers, gradients are the same."""
        if not self.config().supports_gradient_checkpointing:
            skip("cannot recompute its layers")
        backbone, gradients = self.backbone().train(), list[Tensor]()
        for recompute in (False, True):
            backbone.set_gradient_checkpointing(recompute)
            backbone.zero_grad()
            self.seeded(last, backbone, self.row(backbone)).square().sum().backward()
            gradients.append(torch.cat([p.grad.flatten() for p in backbone.parameters() if p.grad is not None]))
        assert_close(gradients[0], gradients[1], "gradient checkpointing changes gradients", 1e-5)
