"""Backbones: who may look at whom, so that what is packed into one row equals what is encoded apart."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..parts import Backbone
from ..tensors import MASK, PAD, PREFIX, WRITTEN
from .rows import BuildsRows, behind, last, pick, prefix, some_ids, with_states
from .suite import expect, expect_equal, fail, skip

ENCODE = "mmgen.parts.Backbone.encode and mmgen/attention.py"
TYPES = "mmgen.parts.Backbone and mmgen.tensors.Slots"


class SightSuite(BuildsRows):
    """What a slot sees, and what it must not see."""

    def test_padding_has_no_influence(self) -> None:
        backbone = self.backbone()
        before, tail, _ = self.rows(backbone)
        row = before.followed_by(tail)
        states = last(backbone, row)
        other = last(backbone, with_states(row, row.layout.role == PAD, backbone, some_ids(backbone, 1)[0]))
        real = row.layout.real
        expect_equal(
            states[real],
            other[real],
            "what stands in padded slots changes the states of real ones; encode must obey the mask of "
            "`visible(slots.layout)`",
            ENCODE,
        )

    def test_a_batch_gives_what_single_rows_give(self) -> None:
        backbone = self.backbone()
        ids = some_ids(backbone, 8)
        inputs, targets = [[backbone.start_id, *ids[:3]], [backbone.start_id, *ids[2:8]]], [[ids[3:6]], [ids[:1]]]
        together = prefix(backbone, inputs, width=9)
        batch = last(backbone, together.followed_by(behind(backbone, together, targets)))[:, 9:]
        for number in range(2):
            alone = prefix(backbone, inputs[number : number + 1])
            tail = behind(backbone, alone, targets[number : number + 1])
            states = last(backbone, alone.followed_by(tail))[:, len(inputs[number]) :]
            expect_equal(
                batch[number : number + 1, : states.shape[1]],
                states,
                "a row has other states in a batch, where padding stands between its input and its target; count by "
                "`slots.positions`, not by slots",
                ENCODE,
            )

    def test_positions_matter(self) -> None:
        backbone = self.backbone()
        row = self.rows(backbone)[0]
        moved = replace(row, positions=row.positions * 2)  # + 1 changes nothing where positions are rotary or relative
        difference = (last(backbone, row) - last(backbone, moved)).abs().max().item()
        if backbone.masks == "any":
            expect(
                difference > 1e-6, "states are the same at other positions; encode must use `slots.positions`", ENCODE
            )

    def test_token_types_matter(self) -> None:
        backbone = self.backbone()
        if not backbone.types:
            skip("has no token types")
        row = self.rows(backbone)[0]
        found = {}
        for kind in sorted({0, 1, backbone.types - 1} & {*range(backbone.types)}):
            try:
                found[kind] = last(backbone, replace(row, types=torch.full_like(row.types, kind)))
            except IndexError as error:
                fail(f"types is {backbone.types}, and slots of token type {kind} fail: {error}", TYPES)
        for kind, states in found.items():
            expect(
                not kind or (states - found[0]).abs().max().item() > 1e-6,
                f"slots of token type {kind} have the states of type 0; encode must use `slots.types`, or types is 0",
                TYPES,
            )

    def test_extra_positions_are_rows_of_their_own(self) -> None:
        backbone = self.backbone()
        if not backbone.extra_positions:
            skip("has no extra positions")
        row = self.rows(backbone)[0]
        found: dict[int, Tensor] = {}
        for position in (*range(-min(4, backbone.extra_positions), 0), 0, backbone.max_positions - 1):
            moved = row.positions.index_fill(1, torch.tensor([1]), position)
            found[position] = last(backbone, replace(row, positions=moved))
            for other, states in found.items():
                expect(
                    other == position or (states - found[position]).abs().max().item() > 1e-6,
                    f"positions {other} and {position} are one; -1 - k is row k of those behind the table's own",
                    "mmgen.tensors.Slots and mmgen.parts.Backbone",
                )

    def test_what_comes_later_has_no_influence(self) -> None:
        backbone = self._any()
        before, tail, _ = self.rows(backbone)
        row, inputs = before.followed_by(tail), before.layout.real
        states = last(backbone, row)
        wrong = "the input's states change with what is written behind it; an input sees itself only"
        expect_equal(states[:, : inputs.shape[1]][inputs], last(backbone, before)[inputs], wrong, ENCODE)
        later = (row.layout.role == WRITTEN) & (row.layout.time >= 2)
        earlier = row.layout.real & ~later & ~((row.layout.role == MASK) & (row.layout.time > 2))
        other = last(backbone, with_states(row, later, backbone, some_ids(backbone, 8)[7]))
        wrong = "a token of a target changes the states of earlier ones, or of the [MASK]s that predict them"
        expect_equal(states[earlier], other[earlier], wrong, ENCODE)

    def test_reads_from_left_to_right(self) -> None:
        backbone = self.backbone()
        if backbone.masks != "causal":
            skip("obeys any mask")
        row = self.rows(backbone)[0]
        later = row.layout.real & (row.positions >= 3)
        other = last(backbone, with_states(row, later, backbone, some_ids(backbone, 8)[7]))
        expect_equal(
            last(backbone, row)[:, :3],
            other[:, :3],
            'a slot changes the states of earlier ones, though masks is "causal"',
            ENCODE,
        )

    def test_a_mask_sees_its_input_and_what_was_told(self) -> None:
        backbone = self._any()
        before, tail, _ = self.rows(backbone)
        row, token = before.followed_by(tail), some_ids(backbone, 8)[7]
        masks = (row.layout.role == MASK) & (row.layout.time == 3)
        states = last(backbone, row)[masks]
        for what, where in (
            ("its input", row.layout.role == PREFIX),
            ("the tokens before it", (row.layout.role == WRITTEN) & (row.layout.time == 2)),
        ):
            difference = (states - last(backbone, with_states(row, where, backbone, token))[masks]).abs().max().item()
            expect(difference > 1e-6, f"a [MASK] does not see {what}", ENCODE)

    def test_packed_targets_equal_separate_ones(self) -> None:
        backbone = self._any()
        before, tail, targets = self.rows(backbone)
        packed = last(backbone, before.followed_by(tail))[:, before.positions.shape[1] :]
        for number, groups in enumerate(targets):
            one = pick(before, [number])
            for group, target in enumerate(groups, 1):
                alone = last(backbone, one.followed_by(behind(backbone, one, [[target]])))[:, one.positions.shape[1] :]
                where = (tail.layout.group[number] == group) & tail.layout.real[number]
                expect_equal(
                    packed[number : number + 1, where], alone, "targets packed behind one input see one another", ENCODE
                )
                for step in range(1, len(target) + 1):
                    naive = last(backbone, one.followed_by(behind(backbone, one, [[target]], [step])))[:, -1]
                    wrong = (
                        f"the [MASK] of step {step} is not what re-encoding the input, the tokens before it and "
                        "one [MASK] gives"
                    )
                    expect_equal(alone[:, len(target) - 2 + step], naive, wrong, ENCODE)

    def _any(self) -> Backbone:
        backbone = self.backbone()
        return backbone if backbone.masks == "any" else skip("reads from left to right only")
