"""Tests of the backbone suite: what changes a state: which slots a slot sees, kinds and positions; packed rows.

A backbone's `encode` must obey `mmgen.attention.visible` and the positions and types of `mmgen.tensors.Slots`."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..parts import Backbone
from ..tensors import MASK, PAD, PREFIX, WRITTEN, Slots
from .rows import BuildsRows, behind, last, pick, prefix, some_ids, with_states
from .suite import assert_close, explained, skip

SEEN = 1e-6  # states that differ by more have seen what was changed


class SightSuite(BuildsRows):
    """Checks what a slot sees and what it must not see."""

    def test_padding_has_no_influence(self) -> None:
        backbone, _, tail, row = self._row()
        changed = with_states(row, row.layout.role == PAD, backbone, some_ids(backbone, 1)[0])
        real = row.layout.real
        message = (
            "the content of padded slots changes the states of real slots; encode must obey the mask of "
            "`mmgen.attention.visible`"
        )
        assert_close(last(backbone, row)[real], last(backbone, changed)[real], message)

    def test_batches_equal_single_rows(self) -> None:
        backbone = self.backbone()
        ids = some_ids(backbone, 8)
        inputs, targets = [[backbone.start_id, *ids[:3]], [backbone.start_id, *ids[2:8]]], [[ids[3:6]], [ids[:1]]]
        padded_prefix = prefix(backbone, inputs, width=9)
        batch = last(backbone, padded_prefix.followed_by(behind(backbone, padded_prefix, targets)))[:, 9:]
        message = (
            "a row has different states in a batch, with padding between input and target; count by `slots.positions`, "
            "not by slots"
        )
        for number in range(2):
            alone = prefix(backbone, inputs[number : number + 1])
            tail = behind(backbone, alone, targets[number : number + 1])
            states = last(backbone, alone.followed_by(tail))[:, len(inputs[number]) :]
            assert_close(batch[number : number + 1, : states.shape[1]], states, message)

    def test_positions_matter(self) -> None:
        backbone = self.backbone()
        if backbone.masks != "any" or self.config().mixes != "visible":
            skip("has no attention, or reads only from left to right, so it may work without positions")
        row = self.rows(backbone)[0]
        moved = replace(row, positions=row.positions * 2)  # + 1 changes nothing where positions are rotary or relative
        differs = _largest_difference(last(backbone, row), last(backbone, moved)) > SEEN
        assert differs, "states do not change with the positions; encode must use `slots.positions`"

    def test_token_types_matter(self) -> None:
        backbone = self.backbone()
        if not backbone.types:
            skip("has no token types")
        row = self.rows(backbone)[0]
        states = {}
        for kind in sorted({0, 1, backbone.types - 1} & {*range(backbone.types)}):
            with explained(f"types is {backbone.types}, and slots of token type {kind} fail"):
                states[kind] = last(backbone, replace(row, types=torch.full_like(row.types, kind)))
            differs = not kind or _largest_difference(states[kind], states[0]) > SEEN
            assert differs, (
                f"slots of token type {kind} have the states of type 0; encode must use `slots.types`, or types must "
                f"be 0"
            )

    def test_extra_positions_differ(self) -> None:
        backbone = self.backbone()
        if not backbone.extra_positions:
            skip("has no extra positions")
        row = self.rows(backbone)[0]
        states_at_position: dict[int, Tensor] = {}
        for position in (*range(-min(4, backbone.extra_positions), 0), 0, backbone.max_positions - 1):
            states = last(backbone, replace(row, positions=row.positions.index_fill(1, torch.tensor([1]), position)))
            for before, earlier_states in states_at_position.items():
                differs = _largest_difference(states, earlier_states) > SEEN
                assert differs, (
                    f"positions {before} and {position} are the same; position -1 - k is extra row k "
                    "(mmgen.tensors.Slots)"
                )
            states_at_position[position] = states

    def test_later_tokens_have_no_influence(self) -> None:
        backbone, before, _, row = self._row(needs="any")
        inputs = before.layout.real
        states = last(backbone, row)
        message = "the input's states depend on the target; an input may see only itself"
        assert_close(states[:, : inputs.shape[1]][inputs], last(backbone, before)[inputs], message)
        later = (row.layout.role == WRITTEN) & (row.layout.time >= 2)
        earlier = row.layout.real & ~later & ~((row.layout.role == MASK) & (row.layout.time > 2))
        changed = last(backbone, with_states(row, later, backbone, some_ids(backbone, 8)[7]))
        message = "a token of a target changes the states of earlier tokens, or of the [MASK]s that predict them"
        assert_close(states[earlier], changed[earlier], message)

    def test_reads_from_left_to_right(self) -> None:
        backbone = self.backbone()
        if backbone.masks != "causal":
            skip("obeys any mask")
        row = self.rows(backbone)[0]
        later = row.layout.real & (row.positions >= 3)
        changed = last(backbone, with_states(row, later, backbone, some_ids(backbone, 8)[7]))
        message = 'a slot changes the states of earlier slots, though masks is "causal"'
        assert_close(last(backbone, row)[:, :3], changed[:, :3], message)

    def test_slots_do_not_mix(self) -> None:
        backbone = self.backbone()
        if self.config().mixes != "nothing":
            skip("mixes slots")
        row = self.rows(backbone)[0]
        second = row.layout.real & (row.positions == 1)
        changed = last(backbone, with_states(row, second, backbone, some_ids(backbone, 8)[7]))
        message = 'a slot changes the states of other slots, though the config says mixes = "nothing"'
        assert_close(last(backbone, row)[row.layout.real & ~second], changed[row.layout.real & ~second], message)

    def test_a_mask_sees_its_input_and_earlier_tokens(self) -> None:
        backbone, _, _, row = self._row(needs="any")
        masks = (row.layout.role == MASK) & (row.layout.time == 3)
        states = last(backbone, row)[masks]
        for name, changed_slots in (
            ("its input", row.layout.role == PREFIX),
            ("the tokens before it", (row.layout.role == WRITTEN) & (row.layout.time == 2)),
        ):
            changed = last(backbone, with_states(row, changed_slots, backbone, some_ids(backbone, 8)[7]))[masks]
            assert _largest_difference(states, changed) > SEEN, f"a [MASK] does not see {name}"

    def test_packed_targets_equal_separate_ones(self) -> None:
        backbone, before, tail, row = self._row(needs="any")
        packed = last(backbone, row)[:, before.positions.shape[1] :]
        for number, groups in enumerate(self.rows(backbone)[2]):
            single = pick(before, [number])
            length = single.positions.shape[1]
            for group, target in enumerate(groups, 1):
                alone = last(backbone, single.followed_by(behind(backbone, single, [[target]])))[:, length:]
                group_slots = (tail.layout.group[number] == group) & tail.layout.real[number]
                message = "targets packed behind one input see each other"
                assert_close(packed[number : number + 1, group_slots], alone, message)
                for step in range(1, len(target) + 1):
                    naive = last(backbone, single.followed_by(behind(backbone, single, [[target]], [step])))[:, -1]
                    message = (
                        f"the [MASK] of step {step} differs from re-encoding the input, the tokens before and one "
                        f"[MASK]"
                    )
                    assert_close(alone[:, len(target) - 2 + step], naive, message)

    def _row(self, needs: str = "") -> tuple[Backbone, Slots, Slots, Slots]:
        """A backbone, its inputs, the targets behind them, and the full rows. Skips if the backbone has other masks
        than the test needs."""
        backbone = self.backbone()
        if needs and backbone.masks != needs:
            skip("reads from left to right only")
        if needs and self.config().mixes != "visible":
            skip("has no attention")
        before, tail, _ = self.rows(backbone)
        return backbone, before, tail, before.followed_by(tail)


def _largest_difference(first: Tensor, second: Tensor) -> float:
    return (first - second).abs().max().item()
