"""Inputs in a row: positions, token types, the source of each slot, and terms on other inputs' slots. Packed and
cached results equal rows written out by hand."""

import pytest
import torch
from kit import toys
from kit.bag import Bag
from kit.weights import perturbed
from mmgen_encoders import Bert, Roberta
from mmgen_generators import Causal, Masked
from mmgen_generators.causal_writing import CausalStepper
from mmgen_generators.masked_writing import MaskedStepper
from mmgen_inputs import Text

from mmgen import DataError
from mmgen.configs import SequenceConfig
from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.examples import Example
from mmgen.model import compose
from mmgen.sequence import lay_out
from mmgen.tensors import Segment
from mmgen.testing import Tiny, Words

CLOSE = 2e-5


def segment(real, types=None, positions=None):
    """A segment of (B, N) slots of width 1; the value of each slot is its index."""
    mask = torch.tensor(real).bool()
    states = torch.arange(mask.shape[1]).expand(mask.shape).unsqueeze(-1).float()
    return Segment(states, mask, *(None if column is None else torch.tensor(column) for column in (types, positions)))


def test_positions_go_on_after_those_used_and_a_separator_has_the_type_before_it():
    first = segment([[1], [1]])
    text = segment([[1, 1, 1], [1, 0, 0]], types=[[0, 0, 1], [0, 7, 7]])
    regions = segment(  # all in one position, an end with its own; and one slot in the backbone's extra row 0
        [[1, 1, 1, 1], [1, 0, 1, 1]], types=[[2, 2, 3, 2]] * 2, positions=[[0, 0, 1, -1], [0, 99, 1, -1]]
    )
    slots, free = lay_out([("", first), ("words", text), ("", first), ("image", regions), ("", first)])
    assert slots.positions.tolist() == [[0, 1, 2, 3, 4, 5, 5, 6, -1, 7], [0, 1, 1, 1, 2, 3, 3, 4, -1, 5]]
    assert free.tolist() == [[8], [6]]
    assert slots.types.tolist() == [[0, 0, 0, 1, 1, 2, 2, 3, 2, 2], [0, 0, 0, 0, 0, 2, 0, 3, 2, 2]]
    assert slots.source.tolist() == [[-1, 0, 0, 0, -1, 1, 1, 1, 1, -1]] * 2
    assert slots.index.tolist() == [[-1, 0, 1, 2, -1, 0, 1, 2, 3, -1]] * 2
    assert slots.of("image").nonzero().tolist() == [[0, 5], [0, 6], [0, 7], [0, 8], [1, 5], [1, 7], [1, 8]]
    assert not slots.of("sound").any()


def test_an_input_without_any_slot_uses_no_position_and_leaves_the_type_as_it_was():
    first = segment([[1], [1]])
    empty = segment([[0], [1]], types=[[1], [1]], positions=[[5], [5]])
    slots, free = lay_out([("", first), ("a", empty), ("", first)])
    assert slots.positions.tolist()[0][::2] == [0, 1] and slots.positions.tolist()[1] == [0, 6, 7]
    assert (
        slots.types.tolist()[0][::2] == [0, 0] and slots.types.tolist()[1] == [0, 1, 1] and free.tolist() == [[2], [8]]
    )
    none = Segment(torch.zeros(2, 0, 1), torch.zeros(2, 0).bool(), *[torch.zeros(2, 0).long()] * 2)
    slots, free = lay_out([("", first), ("a", none), ("", first)])
    assert slots.positions.tolist() == [[0, 1]] * 2 and free.tolist() == [[2]] * 2


# --- the rows of a model ---


def model(generator, backbone=Bert, position=0, seed=0, **more):
    """A caption as text, then as a bag of words that share a position; with a term on every slot."""
    torch.manual_seed(seed)
    encoder = backbone(**toys.SIZES, extra_token_types=1, extra_positions=2)
    inputs = {"caption": Text(), "things": Bag(fields=("caption",), position=position, token_type=2)}
    sequence = SequenceConfig(target_token_type=1, **more)
    built = compose(encoder, inputs, generator, texts=toys.TEXTS, sequence=sequence)
    return perturbed(built)


def batch_of(built, examples, **more):
    return Collator(built, built.inputs, **more)([resolve(example) for example in examples])


def by_hand(built, example, tail, masked):
    """log P of the next token after `tail`, from a row written out with transformers alone, without mmgen's layouts,
    positions, types or caches. `masked`: read from a [MASK] after the tail."""
    backbone, bag = built.backbone, built.embedders["things"]
    words = backbone.encode_text(resolve(example).inputs["caption"])
    tail = [*tail, backbone.mask_id] if masked else tail
    embed = backbone.model.get_input_embeddings()
    n, position = len(words), bag.config.position
    ids = torch.tensor([backbone.start_id, *words, backbone.end_id, *words])
    term = bag.change(embed(torch.tensor(words))).mean(0)
    states = torch.cat([embed(ids), bag.end[None], embed(torch.tensor(tail))])
    added = term.expand_as(states).clone()
    added[n + 2 : 2 * n + 2] = bag.change(embed(torch.tensor(words))) * 0.5
    added[2 * n + 2] = 0
    first = n + 2  # where the bag begins, in positions
    shared, end = (first, first + 1) if position >= 0 else (position, first)
    positions = torch.tensor([*range(n + 2), *[shared] * n, end, *range(end + 1, end + 1 + len(tail))])
    types = torch.tensor([0] * (n + 2) + [2] * (n + 1) + [1] * len(tail))
    table = backbone.model.config.max_position_embeddings  # the encoder's own rows; the extra ones stand behind them
    rows = torch.where(positions < 0, table - 1 - positions, positions + backbone.first_position)
    length, inputs = len(states), 2 * n + 3
    sees = torch.zeros(length, length)
    for row in range(length):
        sees[row, inputs if row < inputs else row + 1 :] = torch.finfo(torch.float32).min
    backbone.model.set_attn_implementation("eager")
    out = backbone.model.base_model(
        inputs_embeds=(states + added)[None],
        attention_mask=sees[None, None],
        position_ids=rows[None],
        token_type_ids=types[None],
    )
    backbone.model.set_attn_implementation("sdpa")
    return backbone.logits(out.last_hidden_state[0, -1]).log_softmax(-1)


# one position for all; an extra row
POSITIONS = [pytest.param(0, marks=pytest.mark.slow), -2]
FAMILIES = [Bert, *(pytest.param(family, marks=pytest.mark.slow) for family in (Roberta, toys.Albert))]


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("family", FAMILIES, ids=["Bert", "Roberta", "Albert"])
@torch.no_grad()
def test_packed_training_equals_rows_by_hand(family, position):
    built, examples = model(Masked(max_tokens=9), family, position), toys.examples(4)
    total = 0.0
    for example in examples:
        for target in built.generator.reader.targets(example):
            total -= sum(float(by_hand(built, example, target[:t], True)[token]) for t, token in enumerate(target))
    assert built(batch_of(built, examples)).sums["generator.loss"].item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("position", POSITIONS)
@torch.no_grad()
def test_next_token_training_equals_rows_by_hand(position):
    built, examples = model(Causal(max_tokens=9), Bert, position), toys.examples(3)
    total, begin = 0.0, built.backbone.end_id
    for example in examples:
        for target in built.generator.reader.targets(example):
            tokens = [begin, *target]
            total -= sum(
                float(by_hand(built, example, tokens[: t + 1], False)[token]) for t, token in enumerate(target)
            )
    assert built(batch_of(built, examples)).sums["generator.loss"].item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("family", FAMILIES[::2], ids=["with a cache", "without"])
@torch.no_grad()
def test_every_step_of_writing_is_a_row_by_hand_while_inputs_leave(family):
    """Three rows per input, which are exchanged; finished inputs are dropped one by one."""
    built, examples = model(Masked(max_tokens=9), family, -2), toys.examples(4)
    writing = MaskedStepper(built, built.prefix(batch_of(built, examples, objectives=())))
    written, draw = torch.empty(12, 0, dtype=torch.long), torch.Generator().manual_seed(0)
    for step in range(5):
        logp = writing.next_logits(written).log_softmax(-1)
        assert len(writing.active) == len(examples) - max(0, step - 1)
        for row in range(3 * max(0, step - 1), 12):
            expected = by_hand(built, examples[row // 3], written[row].tolist(), True)
            torch.testing.assert_close(logp[row], expected, atol=CLOSE, rtol=0)
        rows = torch.randint(0, 3, (12,), generator=draw) + torch.arange(4).repeat_interleave(3) * 3
        written = torch.cat([written[rows], torch.randint(5, 30, (12, 1), generator=draw)], 1)
        writing.reorder_cache(rows)
        if step:  # all rows of the next input end
            written[3 * (step - 1) : 3 * step, -1] = built.backbone.end_id


@torch.no_grad()
def test_every_step_of_writing_next_tokens_is_a_row_by_hand():
    built, examples = model(Causal(max_tokens=9), Bert, -2), toys.examples(3)
    begin = built.backbone.end_id
    for caches in (True, False):
        built.backbone.caches = caches
        writing = CausalStepper(built, built.prefix(batch_of(built, examples, objectives=())), begin)
        written, draw = torch.empty(6, 0, dtype=torch.long), torch.Generator().manual_seed(0)
        for _ in range(4):
            logp = writing.next_logits(written).log_softmax(-1)
            for row in range(6):
                expected = by_hand(built, examples[row // 2], [begin, *written[row].tolist()], False)
                torch.testing.assert_close(logp[row], expected, atol=CLOSE, rtol=0)
            rows = torch.tensor([1, 1, 2, 3, 5, 4])
            written = torch.cat([written[rows], torch.randint(5, 30, (6, 1), generator=draw)], 1)
            writing.reorder_cache(rows)


@torch.no_grad()
def test_only_what_is_written_needs_room_behind_the_inputs():
    """Eleven words and [CLS] fill the encoder's twelve positions: the input can be encoded, but no text can follow."""
    built = compose(Tiny(positions=12), {"caption": Words()}, Masked(max_tokens=8)).eval()

    def batch(words):
        return Collator(built, ["caption"], objectives=())([Example("a", {"caption": " ".join(["red"] * words)})])

    assert built.encode(batch(11)).states.shape[:2] == (1, 12)
    with pytest.raises(
        DataError, match="needs 12 positions, but the encoder has 12, 8 of them reserved for the text; "
    ):
        built.prefix(batch(11))
    with pytest.raises(DataError, match="needs 13 positions, but the encoder has 12; use shorter inputs$"):
        built.encode(batch(12))


def test_a_target_token_type_that_the_backbone_lacks_is_reported():
    with pytest.raises(DataError, match="sequence.target_token_type = 2, but the backbone has 2 token types, "):
        compose(Tiny(), {"caption": Words()}, Masked(), sequence=SequenceConfig(target_token_type=2))
