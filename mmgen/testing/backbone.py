"""The conformance suite of backbones: what changes a state, packed and cached rows, and what a run needs. The contract
is in `mmgen.parts.Backbone`, `mmgen.attention.visible`, `mmgen.tensors.Slots` and `mmgen.tensors.Encoded`."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from ..configs import BackboneConfig
from ..parts import Backbone
from ..tensors import MASK, PREFIX, WRITTEN, Slots, apply
from .rows import behind, last, pick, prefix, some_ids
from .suite import TOLERANCE, Suite, assert_close, assert_published, explained, largest_difference, skip
from .toy import TEXTS

SEEN = 1e-6  # states that differ by more have seen what was changed


Slotwise = Callable[[Slots], Tensor]  # rows -> (B, L) bool


@dataclass(frozen=True)
class Change:
    """Other words at the slots `changed` must not change the states of the slots `read`; with `seen`, they must.

    kind  of backbones: what `Backbone.masks` or `BackboneConfig.mixes` says
    """

    message: str
    kind: str
    changed: Slotwise
    read: Slotwise
    seen: bool = False


def of_role(role: int, *times: int) -> Slotwise:
    """Slots of this role; with `times`, only those of these times."""
    return lambda slots: (slots.layout.role == role) & (not times or torch.isin(slots.layout.time, torch.tensor(times)))


CHANGES = (
    Change("a [MASK] does not see its input", "visible", of_role(PREFIX), of_role(MASK, 3), True),
    Change("a [MASK] does not see the tokens before it", "visible", of_role(WRITTEN, 2), of_role(MASK, 3), True),
    Change(
        'a slot changes the states of earlier slots, though masks is "causal"',
        "causal",
        lambda slots: slots.positions >= 3,
        lambda slots: slots.layout.real & (slots.positions < 3),
    ),
    Change(
        'a slot changes the states of other slots, though the config says mixes = "nothing"',
        "nothing",
        lambda slots: slots.positions == 1,
        lambda slots: slots.layout.real & (slots.positions != 1),
    ),
)


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

    def test_attributes(self) -> None:
        backbone = self.backbone()
        assert_published(backbone)
        ids = [backbone.start_id, backbone.end_id, backbone.mask_id, backbone.pad_id]
        different = len({*ids} & {*range(len(backbone.tokenizer))}) == 4
        assert different, f"start_id, end_id, mask_id and pad_id must be four ids of the tokenizer, but are {ids}"
        fits = backbone.masks == "any" or backbone.masks == "causal" and self.config().mixes != "visible"
        assert fits, (
            'masks must be "any", or "causal" with mixes = "row" on the config, so that `mmgen check` refuses '
            "generators that need any mask"
        )

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
        row, ids = self.row(backbone), some_ids(backbone, 4)
        states, size, width = last(backbone, row), backbone.input_size, row.states.shape[-1]
        assert width == size, f"embed returns width {width}, but input_size is {size}"
        right = states.shape == (*row.positions.shape, backbone.hidden_size) and states.isfinite().all()
        assert right, (
            f"encode returns {tuple(states.shape)}, or not finite: (B, L, hidden_size); a slot must see itself"
        )
        logits = backbone.logits(states)
        assert logits.shape[-1] >= len(backbone.tokenizer), "logits have fewer columns than there are tokens"
        assert_close(backbone.logits(states[:, 0]), logits[:, 0], "the logits of one slot depend on the other slots")
        assert_close(states, last(backbone, row), "in eval mode, a second run of the same row gives other states", 0.0)
        mask = row.layout.role == MASK
        mask[0, 1] = True  # any slots may be selected, and their number may differ by row
        assert_close(backbone.states_at(row, mask), states[mask], "states_at and encode return different states")
        word = backbone.embed(torch.tensor([ids[:1] * 3]))
        message = "the embedding of a word depends on its position; embed must leave positions to encode"
        assert_close(word[:, 0], word[:, 2], message)
        with explained("a row of max_positions slots fails"):
            longest = last(backbone, prefix(backbone, [(ids * 1024)[: backbone.max_positions]]))
            (longest.sum() + logits.logsumexp(-1).sum()).backward()
        gradients = [p.grad for p in backbone.parameters() if p.grad is not None]
        finite = gradients and longest.isfinite().all() and all(gradient.isfinite().all() for gradient in gradients)
        assert finite, "with padding, or in the longest row, states or gradients are not finite"

    def test_hidden_states_and_attentions(self) -> None:
        backbone = self.backbone()
        row = self.row(backbone)
        encoded, states = backbone.encode(row, output=("hidden", "attentions")), last(backbone, row)
        assert_close(encoded.last, states, "encode returns different states with more names in `output`")
        layers, length = len(encoded.attentions), states.shape[1]
        complete = not layers or [hidden.shape for hidden in encoded.hidden] == [states.shape] * (layers + 1)
        assert complete, "hidden must be the embeddings and one tensor per layer, (B, L, hidden_size)"
        for weights in encoded.attentions:
            whole = weights.shape[2:] == (length, length) and (weights.sum(-1) - 1).abs().max() < 1e-3
            assert whole, "attentions are not (B, heads, L, M), or do not sum to 1"

    def test_other_words_change_only_what_sees_them(self) -> None:
        backbone = self.backbone()
        row, token = self.row(backbone), some_ids(backbone, 8)[7]
        states, other = last(backbone, row), backbone.embed(torch.full_like(row.positions, token))
        for change in CHANGES:
            if change.kind in (backbone.masks, self.config().mixes):
                mixed = torch.where(change.changed(row).unsqueeze(-1), other, row.states)
                changed, read = last(backbone, replace(row, states=mixed)), change.read(row)
                difference = largest_difference(states[read], changed[read])
                assert difference > SEEN if change.seen else difference <= TOLERANCE, change.message

    def test_types_and_positions_change_states(self) -> None:
        """Every token type, the extra positions, and the first and last position differ."""
        backbone = self.backbone()
        row, types, extra = self.row(backbone), backbone.types, backbone.extra_positions
        variants = {kind: replace(row, types=torch.full_like(row.types, kind)) for kind in range(types)}
        pairs = [(variants[0], variants[kind]) for kind in {1, types - 1} & variants.keys() - {0}]
        if extra or (backbone.masks, self.config().mixes) == ("any", "visible"):
            places = (*range(-min(4, extra), 0), 0, backbone.max_positions - 1)
            columns = [row.positions.index_fill(1, torch.tensor([1]), place) for place in places]
            pairs += itertools.combinations([replace(row, positions=positions) for positions in columns], 2)
        for first, second in pairs:
            with explained("a token type or position fails; the backbone has fewer than types or extra_positions say"):
                difference = largest_difference(last(backbone, first), last(backbone, second))
            assert difference > SEEN, (
                "two token types, or two positions, give the same states; encode must use `slots.types` and "
                "`slots.positions`, where -1 - k is extra row k (`mmgen.tensors.Slots`)"
            )

    def test_packed_targets_equal_separate_ones(self) -> None:
        """Without the padding between input and target that a row has in a batch; and step by step."""
        backbone = self.backbone()
        inputs, targets, before, tail = self.rows(backbone)
        packed = last(backbone, before.followed_by(tail))[:, before.positions.shape[1] :]
        for number, (row, groups) in enumerate(zip(inputs, targets, strict=True)):
            single = prefix(backbone, [row])
            for group, target in enumerate(groups, 1):

                def states(step: int = 0, single: Slots = single, target: list[int] = target) -> Tensor:
                    slots = single.followed_by(behind(backbone, single, [[target]], step))
                    return last(backbone, slots)[0, single.positions.shape[1] :]

                alone, slots = states(), tail.layout.group[number] == group
                message = (
                    "targets packed behind one input change its states or those of one another, or padding does; "
                    "encode must obey `mmgen.attention.visible` and count by `slots.positions`"
                )
                assert_close(packed[number, slots], alone, message)
                for step in range(1, len(target) + 1) if self.config().mixes == "visible" else ():
                    message = f"the [MASK] of step {step} differs from one behind the input and the tokens before it"
                    assert_close(alone[len(target) - 2 + step], states(step)[-1], message)

    def test_cache_equals_no_cache(self) -> None:
        """Also after rows have been forgotten, repeated and selected."""
        backbone = self.backbone()
        if not backbone.caches:
            skip("does not cache")
        _, _, before, tail = self.rows(backbone)
        length, cache = before.positions.shape[1], backbone.new_cache()
        rows, inputs = last(backbone, before.followed_by(tail)), before.layout.real
        first = backbone.encode(before, cache).last
        assert_close(first[inputs], rows[:, :length][inputs], "with a cache, the input has different states")
        assert len(cache) == length, f"the cache has {len(cache)} slots after {length}; call cache.grow(slots.layout)"
        for message, order, change in (
            ("slots have different states if the slots before them come from the cache", [0, 1], lambda: None),
            ("after cache.forget(n), the same slots have different states", [0, 1], lambda: None),
            ("cache.repeat(2) must give every row twice, one after the other", [0, 0, 1, 1], lambda: cache.repeat(2)),
            (
                "cache.select(rows) must keep these rows, in this order",
                [1, 0, 1],
                lambda: cache.select(torch.tensor([3, 0, 2])),
            ),
        ):
            change()
            slots = pick(tail, order)
            states, real = backbone.encode(slots, cache).last, slots.layout.real
            assert_close(states[real], rows[order, length:][real], message)
            cache.forget(tail.positions.shape[1])

    def test_cache_rearranges(self) -> None:
        """Two targets behind each input, y_1 y_2 m_1 m_2 m_3 each; the second continues from the tokens of the
        first."""
        backbone = self.backbone()
        if not backbone.caches or self.config().mixes == "row":
            skip("does not cache, or continues from the slots before, so that other slots cannot be put there")
        ids, cache, (_, _, before, _) = some_ids(backbone, 8), backbone.new_cache(), self.rows(backbone)
        targets = [[*ids[:2], backbone.end_id], [*ids[4:6], backbone.end_id]]
        tail = behind(backbone, before, [targets, targets[::-1]])
        states = backbone.encode(before.followed_by(tail), cache).last
        cache.rearrange(torch.arange(5).repeat(2).expand(2, -1))  # the slots of the first target, for both
        again = backbone.encode(apply(tail, lambda tensor: tensor[:, -1:]), cache).last  # m_3 of the second target
        message = "after cache.rearrange(slots) the last slots must have the keys and values of the given slots"
        assert_close(again[:, 0], states[:, before.positions.shape[1] + 4], message)

    def test_save_and_load(self) -> None:
        backbone = self.backbone()
        with tempfile.TemporaryDirectory() as folder:
            backbone.save(Path(folder))
            restored = self.config().build(folder=Path(folder)).eval()
        restored.load_state_dict(backbone.state_dict())
        first, second = (some.logits(last(some, self.row(some))) for some in (backbone, restored))
        assert_close(first, second, "saved and built again with the same weights, tokens or logits are different")

    def test_gradient_checkpointing(self) -> None:
        """With recomputed layers, gradients are the same and less is kept for the backward pass."""
        if not self.config().supports_gradient_checkpointing:
            skip("cannot recompute its layers")
        backbone, gradients, kept = self.backbone().train(), list[Tensor](), [0, 0]
        for recompute in (False, True):

            def keep(tensor: Tensor, recompute: bool = recompute) -> Tensor:
                kept[recompute] += tensor.numel()
                return tensor

            backbone.set_gradient_checkpointing(recompute)
            backbone.zero_grad()
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                loss = self.seeded(last, backbone, self.row(backbone)).square().sum()
            loss.backward()
            gradients.append(torch.cat([p.grad.flatten() for p in backbone.parameters() if p.grad is not None]))
        assert_close(gradients[0], gradients[1], "gradient checkpointing changes gradients", 1e-5)
        assert kept[1] < kept[0], "gradient checkpointing keeps as much for the backward pass as without it"
