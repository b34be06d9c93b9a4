"""Parts with typical mistakes, each with the suite and the test that must catch it, and words of the message."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from mmgen_generators import Masked
from mmgen_generators.masked import MaskedGenerator, MaskedTargets
from torch import nn

import mmgen
import mmgen.testing
from mmgen.attention import Cache, visible
from mmgen.decoding import Decoding
from mmgen.errors import DataError, UnavailableError
from mmgen.examples import Example, Prediction, Scores
from mmgen.objectives import Objective, TargetReader
from mmgen.parts import Extractor, FailedImage, Metric, Record
from mmgen.tensors import WRITTEN, Loss, Segment, Targets
from mmgen.testing import Greedy, Tiny, TinyBackbone, Toy, ToyDataset, Words
from mmgen.testing.rows import last, prefix
from mmgen.testing.tiny import SPECIAL, TinyCache, WordTokenizer
from mmgen.testing.toy import WordsEmbedder, WordsReader

CAPTIONS = [Example("one", {"caption": "a red cat"}), Example("two", {"caption": "a blue boat near the water"})]

# --- suites made on the spot ---


def backbone_suite(make):
    return type("Suite", (mmgen.testing.BackboneSuite,), {"config": lambda self: make()})


def tiny(backbone):
    """A suite for a backbone class in place of TinyBackbone."""

    class Changed(Tiny):
        """A changed one."""

        def build(self, texts=None, folder=None):
            built = super().build(texts, folder)
            changed = backbone(self, built.tokenizer.words)
            changed.load_state_dict(built.state_dict(), strict=False)
            return changed

    return backbone_suite(Changed)


def embedder(build, **members):
    """A suite for an embedder of captions."""

    class Changed(Words):
        """A changed one."""

        def build(self, backbone):
            return build(self.fields[0], backbone)

    return type(
        "Suite",
        (mmgen.testing.EmbedderSuite,),
        {"config": lambda self: Changed(), "examples": lambda self: CAPTIONS, **members},
    )


def generator(cls):
    class Changed(Masked):
        """A changed one."""

        def build(self, backbone):
            return cls(self, backbone)

        def refuses(self, decoding):
            return cls.refused(decoding) if hasattr(cls, "refused") else {}

    return type("Suite", (mmgen.testing.GeneratorSuite,), {"config": lambda self: Changed(max_tokens=8)})


def objective(cls):
    class Config(mmgen.ObjectiveConfig):
        """An objective."""

        type: Literal["judge"] = "judge"
        gives = "label"

        def build(self, backbone, vocabularies):
            return cls(backbone)

    return type("Suite", (mmgen.testing.ObjectiveSuite,), {"config": lambda self: Config()})


def dataset(cls):
    class Changed(Toy):
        """A changed one."""

        labels = getattr(cls, "named", ())

        def build(self):
            return cls()

    return type("Suite", (mmgen.testing.DatasetSuite,), {"config": lambda self: Changed()})


def metric(cls):
    class Config(mmgen.MetricConfig):
        """A metric."""

        type: Literal["counted"] = "counted"

        def build(self):
            return cls()

    return type("Suite", (mmgen.testing.MetricSuite,), {"config": lambda self: Config()})


def extractor(cls):
    class Config(mmgen.ExtractorConfig):
        """An extractor."""

        type: Literal["mean"] = "mean"

        def build(self):
            return cls()

    return type("Suite", (mmgen.testing.ExtractorSuite,), {"config": lambda self: Config()})


# --- backbones that are wrong in a typical way ---


class SeesPadding(TinyBackbone):
    def seen(self, slots, cache):
        layout = replace(slots.layout, role=slots.layout.role.clamp(min=1))
        return visible(layout, layout if cache is None else cache.grow(layout))


class SeesTheFuture(TinyBackbone):
    def seen(self, slots, cache):
        seen = super().seen(slots, cache)
        keys = slots.layout if cache is None else cache.layout
        return seen | (
            (slots.layout.group[:, :, None] == keys.group[:, None])
            & keys.real[:, None]
            & (slots.layout.group > 0)[:, :, None]
        )


class SeesOtherTargets(TinyBackbone):
    def seen(self, slots, cache):
        layout = replace(slots.layout, group=slots.layout.group.clamp(max=1))
        return visible(layout, layout if cache is None else cache.grow(layout))


class SeesOnlyItself(TinyBackbone):
    def seen(self, slots, cache):
        seen = super().seen(slots, cache)
        return seen & (
            torch.arange(seen.shape[2]) == torch.arange(seen.shape[1])[:, None] + seen.shape[2] - seen.shape[1]
        )


class CountsSlots(TinyBackbone):
    def encode(self, slots, cache=None, output=()):
        positions = torch.arange(slots.positions.shape[1]).expand_as(slots.positions)
        return super().encode(replace(slots, positions=positions), cache, output)


class ForgetfulCache(TinyCache):
    def forget(self, slots):
        Cache._change(self, lambda tensor: tensor[:, :-slots])
        self.states = {layer: (keys[:, slots:], values[:, slots:]) for layer, (keys, values) in self.states.items()}


class ForgetsTheWrongEnd(TinyBackbone):
    def new_cache(self):
        return ForgetfulCache()


class TiledCache(TinyCache):
    def repeat(self, times):
        self._change(lambda tensor: torch.cat([tensor] * times))


class TilesItsCache(TinyBackbone):
    def new_cache(self):
        return TiledCache()


class ClaimsLongRows(TinyBackbone):
    def __init__(self, config, words):
        super().__init__(config, words)
        self.max_positions += 1


class ForgetsTypes(TinyBackbone):
    def encode(self, slots, cache=None, output=()):
        return super().encode(replace(slots, types=torch.zeros_like(slots.types)), cache, output)


class CountsRowsFromTheEnd(TinyBackbone):
    """Counts rows from the end, like Python indices."""

    extra_positions = 1

    def __init__(self, config, words):
        super().__init__(config, words)
        self.extra_positions = 1

    def encode(self, slots, cache=None, output=()):
        return super().encode(replace(slots, positions=slots.positions % self.max_positions), cache, output)


class LooksNear(TinyBackbone):
    """Sees a window of four positions to either side."""

    def seen(self, slots, cache):
        return super().seen(slots, cache) & ((slots.positions.unsqueeze(1) - slots.positions.unsqueeze(2)).abs() <= 4)


def forgets_its_window():
    """A backbone with full attention, whose source model has a window."""

    def source_logits(self, backbone, ids):
        source = copy.deepcopy(backbone)
        source.__class__ = LooksNear
        return source.logits(last(source, prefix(source, ids.tolist())))

    suite = tiny(TinyBackbone)
    suite.source_logits = source_logits
    return suite


class DropsInEvaluation(TinyBackbone):
    def encode(self, slots, cache=None, output=()):
        return super().encode(replace(slots, states=torch.dropout(slots.states, 0.1, True)), cache, output)


class ForgetsItsWords(TinyBackbone):
    def save(self, folder):
        (folder / "words.json").write_text(str([*SPECIAL, *"abcdefgh"]).replace("'", '"'))


class EndsWithTheMask(TinyBackbone):
    end_id = 3


class NamesSpecialTokens(WordTokenizer):
    all_special_ids = ()

    def __call__(self, text, **options):
        cased = [[self.ids.get(word, 4) for word in line.split()] for line in [text] * isinstance(text, str) or text]
        return {"input_ids": cased[0] if isinstance(text, str) else cased}


class TakesSpecialTokens(TinyBackbone):
    def __init__(self, config, words):
        super().__init__(config, words)
        self.tokenizer = NamesSpecialTokens(words)


class MasksWholeRows(TinyBackbone):
    def seen(self, slots, cache):
        return super().seen(slots, cache) & slots.layout.real[:, :, None]


# --- embedders ---


class TakesWhatIsNotThere(WordsEmbedder):
    def published(self, weights):
        return {"scale": weights["bert.scale"]}


class TakesEverything(TinyBackbone):
    def published(self, weights):
        return weights


class LooksAtNeighbours(WordsEmbedder):
    def forward(self, ids, mask):
        states = super().forward(ids, mask).states
        return Segment(states - states.mean((0, 1)), mask)


class MasksNothing(WordsEmbedder):
    def forward(self, ids, mask):
        return Segment(super().forward(ids, mask).states, torch.ones_like(mask))


class HasAnIdleLayer(WordsEmbedder):
    def __init__(self, field, backbone):
        super().__init__(field, backbone)
        self.idle = nn.Linear(3, 3)


class KnowsItsWidth(WordsEmbedder):
    def forward(self, ids, mask):
        return Segment(super().forward(ids, mask).states[..., :12], mask)


class CannotTravel(WordsEmbedder):
    def __init__(self, field, backbone):
        super().__init__(field, backbone)
        self.reader.clean = lambda text: text.lower()


class ReadsAnything(WordsReader):
    def read(self, example):
        return torch.tensor(self.encode([example.inputs[self.field]])[0])


class RaisesKeyErrors(WordsEmbedder):
    def __init__(self, field, backbone):
        super().__init__(field, backbone)
        self.reader = ReadsAnything(field, backbone)


class NeverReadsTheSame(WordsReader):
    reads = 0

    def read(self, example):
        self.reads += 1
        return super().read(example).roll(self.reads)


class ReadsAnew(WordsEmbedder):
    def __init__(self, field, backbone):
        super().__init__(field, backbone)
        self.reader = NeverReadsTheSame(field, backbone)


class NumpyReader(WordsReader):
    def collate(self, items):
        return {name: tensor.numpy() for name, tensor in super().collate(items).items()}


class CollatesArrays(WordsEmbedder):
    def __init__(self, field, backbone):
        super().__init__(field, backbone)
        self.reader = NumpyReader(field, backbone)


class HidesInPlace(WordsReader):
    def hide(self, item, draw, hiding):
        ids, labels = super().hide(item, draw, hiding)
        item.copy_(ids)
        return item, labels


class ForgetsWhatItHid(WordsEmbedder):
    def __init__(self, field, backbone):
        super().__init__(field, backbone)
        self.reader = HidesInPlace(field, backbone)


class HidesNothing(WordsReader):
    hides = None


class SaysThatItHides(WordsEmbedder):
    def __init__(self, field, backbone):
        super().__init__(field, backbone)
        self.reader = HidesNothing(field, backbone)


class KeepsAPlainTensor(WordsEmbedder):
    def __init__(self, field, backbone):
        super().__init__(field, backbone)
        self.scale = torch.ones(backbone.input_size)

    def forward(self, ids, mask):
        return Segment(super().forward(ids, mask).states * self.scale, mask)


class MakesTensorsOnTheCpu(WordsEmbedder):
    def forward(self, ids, mask):
        return Segment(super().forward(ids, mask).states + torch.zeros(ids.shape[1], 1), mask)


class CountsTypesInHalves(WordsEmbedder):
    def forward(self, ids, mask):
        return Segment(super().forward(ids, mask).states, mask, types=mask.float() / 2)


class LinesUpFromTheRight(WordsEmbedder):
    def forward(self, ids, mask):
        places = torch.arange(mask.shape[1]).flip(0).expand(mask.shape)
        return Segment(super().forward(ids, mask).states, mask, positions=places)


class AddsTheBatchsMean(WordsEmbedder):
    def add(self, slots, collated, name):
        return slots.states.mean((0, 1)).expand_as(slots.states)


class AddsOneNumber(WordsEmbedder):
    def tail_term(self, slots, collated):
        return torch.ones(len(slots.states))


class OwnsTheBackbone(WordsEmbedder):
    def __init__(self, field, backbone):
        super().__init__(field, backbone)
        self.backbone = backbone


# --- generators ---


class Read(MaskedGenerator):
    """A masked generator with another reader."""

    reads: type[MaskedTargets]

    def __init__(self, config, backbone):
        super().__init__(config, backbone)
        self.reader = self.reads(config, backbone)


class AveragesItsLoss(MaskedGenerator):
    def forward(self, model, batch, targets):
        loss = super().forward(model, batch, targets)
        return Loss({"loss": loss.sums["loss"] / len(batch.ids)})


class WritesWithoutEnd(MaskedGenerator):
    def generate(self, model, batch, options):
        self.reader.max_tokens *= 2
        try:
            return super().generate(model, batch, options)
        finally:
            self.reader.max_tokens //= 2


class Backwards(MaskedTargets):
    def lay_out(self, targets):
        return super().lay_out([[[*reversed(target[:-1]), target[-1]] for target in row] for row in targets])


class LearnsOtherThanItWrites(Read):
    reads = Backwards


class NamesTheWrongExample(MaskedGenerator):
    def generate(self, model, batch, options):
        return [[replace(text, id=batch.ids[0]) for text in texts] for texts in super().generate(model, batch, options)]


class WritesStrings(MaskedGenerator):
    def generate(self, model, batch, options):
        return [[text.text for text in texts] for texts in super().generate(model, batch, options)]


class LosesATextOfTwo(MaskedGenerator):
    def generate(self, model, batch, options):
        return [texts[:1] for texts in super().generate(model, batch, options)]


class WritesByCountingSlots(MaskedGenerator):
    """Takes the number of slots for the next position while it writes."""

    def generate(self, model, batch, options):
        def prefix(batch):
            known = laid_out(batch)
            return replace(known, free=known.slots.layout.real.sum(1, keepdim=True))

        laid_out, model.prefix = model.prefix, prefix
        try:
            return super().generate(model, batch, options)
        finally:
            model.prefix = laid_out


class ForgetsTerms(MaskedGenerator):
    """While it writes."""

    def generate(self, model, batch, options):
        def prefix(batch):
            return replace(laid_out(batch), term=None)

        laid_out, model.prefix = model.prefix, prefix
        try:
            return super().generate(model, batch, options)
        finally:
            model.prefix = laid_out


class IgnoresOptions(MaskedGenerator):
    def generate(self, model, batch, options):
        written = super().generate(model, batch, Decoding())
        return [texts * options.num_return_sequences for texts in written]


class WritesSpecialTokens(MaskedGenerator):
    def generate(self, model, batch, options):
        model.backbone.forbidden_ids, known = (), model.backbone.forbidden_ids
        try:
            return super().generate(model, batch, options)
        finally:
            model.backbone.forbidden_ids = known


class RefusesWithoutAName(MaskedGenerator):
    def generate(self, model, batch, options):
        if options != Decoding():
            raise UnavailableError("not with me")
        return super().generate(model, batch, options)


class RefusesEverything(MaskedGenerator):
    def generate(self, model, batch, options):
        raise UnavailableError("num_beams = 1 is beneath me")


class HidesWords(MaskedGenerator):
    def forward(self, model, batch, targets):
        ids = torch.where(targets.tail.layout.role == WRITTEN, model.backbone.mask_id, targets.tail.ids)
        return super().forward(model, batch, replace(targets, tail=replace(targets.tail, ids=ids)))


class OneABatch(MaskedTargets):
    def collate(self, rows):
        return replace(super().collate(rows), counts={"loss": 1})


class CountsExamples(Read):
    reads = OneABatch


class Denies(HidesWords):
    """A correct generator that hides words, declares it, and refuses unsupported options."""

    reads_as_laid_out = False
    refused = staticmethod(Greedy().refuses)

    def generate(self, model, batch, options):
        if names := self.refused(options):
            raise UnavailableError(f"knows no {', '.join(names)}")
        return super().generate(model, batch, options)


class DeniesTooLate(Denies):
    refused = staticmethod(lambda decoding: {})

    def generate(self, model, batch, options):
        if names := Greedy().refuses(options):
            raise UnavailableError(f"knows no {', '.join(names)}")
        return super().generate(model, batch, options)


class DeniesWhatItDoes(MaskedGenerator):
    refused = staticmethod(Greedy().refuses)


class SlotAToken(MaskedTargets):
    def slots(self, tokens):
        return tokens


class CountsASlotAToken(Read):
    reads = SlotAToken


# --- objectives ---


class Labels(TargetReader):
    """Predicts whether the first target is about a red thing."""

    def collate(self, rows):
        labels = torch.tensor([float("red" in example.targets[0]) for example in rows.examples])
        return Targets({"loss": len(labels)}, {"labels": labels})


class Judge(Objective):
    """A correct objective: one number from the first state."""

    reads = Labels

    def __init__(self, backbone):
        super().__init__()
        self.reader, self.head = self.reads(), nn.Linear(backbone.hidden_size, 1)

    def forward(self, model, batch, targets):
        logits = self.head(model.encode(batch).first).squeeze(-1)
        return Loss({"loss": F.binary_cross_entropy_with_logits(logits, targets.labels["labels"], reduction="sum")})

    def predict(self, model, batch, targets):
        scores = self.head(model.encode(batch).first).squeeze(-1).tolist()
        return [Prediction(id_, score > 0, score) for id_, score in zip(batch.ids, scores, strict=True)]


class DrawnLabels(Labels):
    def collate(self, rows):
        targets = super().collate(rows)
        return replace(targets, labels={"labels": torch.rand(len(rows.examples))})


class DrawsAnew(Judge):
    reads = DrawnLabels


class HeldLabels(Labels):
    def __init__(self):
        self.embedding = nn.Embedding(2, 3)


class KeepsAModule(Judge):
    reads = HeldLabels


class ArrayLabels(Labels):
    def collate(self, rows):
        return Targets({"loss": len(rows.examples)}, {"labels": np.zeros(len(rows.examples))})


class CollatesAnArray(Judge):
    reads = ArrayLabels

    def forward(self, model, batch, targets):
        return super().forward(model, batch, Targets({}, {"labels": torch.tensor(targets.labels["labels"])}))


class NaNCounts(Labels):
    def collate(self, rows):
        return replace(super().collate(rows), counts={"loss": float("nan")})


class CountsNaN(Judge):
    reads = NaNCounts


class TwoCounts(Labels):
    def collate(self, rows):
        return replace(super().collate(rows), counts={"loss": 1, "more": 1})


class CountsWhatItHasNot(Judge):
    reads = TwoCounts


class PredictsNumbers(Judge):
    def predict(self, model, batch, targets):
        return [prediction.score for prediction in super().predict(model, batch, targets)]


class PredictsTensors(Judge):
    def predict(self, model, batch, targets):
        return [replace(p, value=torch.tensor(p.value)) for p in super().predict(model, batch, targets)]


class PredictsBackwards(Judge):
    def predict(self, model, batch, targets):
        return super().predict(model, batch, targets)[::-1]


# --- data sets, metrics, extractors ---


class RepeatsIds(ToyDataset):
    def split(self, name):
        return [replace(example, id=str(number)) for number, example in enumerate(super().split(name))]


class Shuffles(ToyDataset):
    def split(self, name):
        return random.sample(super().split(name), len(super().split(name)))


class LeaksTheTest(ToyDataset):
    def split(self, name):
        return [
            *super().split(name),
            *([replace(self.examples_by_split["test"][0], id="again")] if name == "train" else []),
        ]


class HasEmptyQuestions(ToyDataset):
    def split(self, name):
        return [replace(example, targets=(" ",)) for example in super().split(name)]


class AsksATextNotATuple(ToyDataset):
    def split(self, name):
        return [replace(example, targets=example.targets[0]) for example in super().split(name)]


class HasOneWithoutTargets(ToyDataset):
    def split(self, name):
        first, *rest = super().split(name)
        return [replace(first, targets=()), *rest]


class HasLabelsThatItDoesNotName(ToyDataset):
    def split(self, name):
        return [replace(example, labels={"truth": True}) for example in super().split(name)]


class ChoosesFromAList(ToyDataset):
    named = ("truth",)

    def vocabularies(self):
        return {"truth": ["False", "True"]}


class HasAnInputWithoutAlternatives(ToyDataset):
    def split(self, name):
        return [replace(example, inputs={**example.inputs, "more": ()}) for example in super().split(name)]


class ListsAlternatives(ToyDataset):
    def split(self, name):
        return [
            replace(example, inputs={**example.inputs, "caption": list(example.inputs["caption"])})
            for example in super().split(name)
        ]


class Counted(Metric):
    """A correct metric: the share of texts that are among the references."""

    def score(self, generations, examples):
        hits = [float(text.text in example.targets) for text, example in zip(generations, examples, strict=True)]
        return Scores({"hits": sum(hits) / len(hits)}, {"hits": hits})


class LosesExamples(Counted):
    def score(self, generations, examples):
        scores = super().score(generations, examples)
        return Scores(scores.values, {"hits": scores.per_example["hits"][1:]})


class DividesByNothing(Counted):
    def score(self, generations, examples):
        return Scores({"words": 1 / min(len(text.text.split()) for text in generations)})


class ScoresInADict(Counted):
    def score(self, generations, examples):
        return super().score(generations, examples).values


class ScoresNumpy(Counted):
    def score(self, generations, examples):
        return Scores({"hits": np.float32(super().score(generations, examples).values["hits"])})


class NamesByNumber(Counted):
    def score(self, generations, examples):
        return Scores({1: 0.5})


class WritesANoteWithoutAComma(Counted):
    def score(self, generations, examples):
        return replace(super().score(generations, examples), notes=("of exact matches"))


class SaysNothing(Counted):
    def score(self, generations, examples):
        return Scores({"hits": None})


class Mean(Extractor):
    """A correct extractor: the mean colour of each box."""

    fingerprint = {"name": "mean"}

    def records(self, source, skip=frozenset()):
        for picture in source:
            if picture.key in skip:
                continue
            try:
                pixels = np.asarray(picture.load(), dtype=np.float32)
            except DataError as error:
                yield FailedImage(picture.key, str(error))
                continue
            features = np.stack([pixels.mean((0, 1))] * len(picture.boxes))
            yield Record(picture.key, features, np.asarray(picture.boxes, dtype=np.float32))


class BoxesInPixels(Mean):
    def records(self, source, skip=frozenset()):
        for record in super().records(source, skip):
            yield record if isinstance(record, FailedImage) else replace(record, boxes=record.boxes * 48)


class StopsAtBroken(Mean):
    def records(self, source, skip=frozenset()):
        for record in super().records(source, skip):
            if isinstance(record, FailedImage):
                raise DataError(record.reason)
            yield record


BROKEN = [
    (
        tiny(SeesPadding),
        "test_padding_has_no_influence",
        "the content of padded slots changes the states of real slots",
    ),
    (
        tiny(SeesTheFuture),
        "test_later_tokens_have_no_influence",
        "a token of a target changes the states of earlier tokens",
    ),
    (
        tiny(SeesOtherTargets),
        "test_packed_targets_equal_separate_ones",
        "targets packed behind one input see each other",
    ),
    (tiny(SeesOnlyItself), "test_a_mask_sees_its_input_and_earlier_tokens", "a [MASK] does not see its input"),
    (tiny(CountsSlots), "test_batches_equal_single_rows", "count by `slots.positions`, not by slots"),
    (tiny(ForgetsTheWrongEnd), "test_cache_forgets", "after cache.forget(n), the same slots have different states"),
    (
        tiny(TilesItsCache),
        "test_cache_repeats_and_selects",
        "cache.repeat(2) must give every row twice, one after the other",
    ),
    (
        forgets_its_window(),
        "test_equals_its_source",
        "plain rows of 64 slots have different logits than the source model",
    ),
    (tiny(ClaimsLongRows), "test_longest_row", "a row of max_positions (65) slots fails"),
    (tiny(ForgetsTypes), "test_token_types_matter", "slots of token type 1 have the states of type 0; encode must use"),
    (
        tiny(CountsRowsFromTheEnd),
        "test_extra_positions_differ",
        "positions -1 and 63 are the same; position -1 - k is extra row k",
    ),
    (
        tiny(DropsInEvaluation),
        "test_is_deterministic",
        "in eval mode, a second run of the same row gives different states",
    ),
    (
        tiny(ForgetsItsWords),
        "test_save_and_load",
        "the tokenizer built from the saved folder gives different tokens",
    ),
    (tiny(EndsWithTheMask), "test_attributes", "must be four different ids"),
    (tiny(TakesSpecialTokens), "test_text_and_tokens", "does the tokenizer lack `all_special_ids`?"),
    (tiny(MasksWholeRows), "test_gradients_are_finite", "is a row fully masked? every slot must see itself"),
    (tiny(TakesEverything), "test_published_weights", "published takes weights with unknown names (of.nobody.weight, "),
    (
        embedder(TakesWhatIsNotThere),
        "test_published_weights",
        "published fails on weights without its names; test names with `in` (KeyError: 'bert.scale')",
    ),
    (embedder(LooksAtNeighbours), "test_neighbours_and_padding_change_nothing", "a row must not depend on other rows"),
    (
        embedder(MasksNothing),
        "test_neighbours_and_padding_change_nothing",
        "has 3 slots alone and 6 in a batch; mask the padding",
    ),
    (
        embedder(CountsTypesInHalves),
        "test_shapes",
        "types of a Segment must be torch.int64 of shape (2, 6), not torch.float32 (2, 6)",
    ),
    (
        embedder(LinesUpFromTheRight),
        "test_types_and_positions",
        "has different positions in a batch than alone",
    ),
    (embedder(AddsTheBatchsMean), "test_added_terms", "example 'one': the added terms differ in a batch; a row must"),
    (
        embedder(AddsOneNumber),
        "test_added_terms",
        "tail_term must return a tensor of shape (2, 12) or None, not tensor([1., 1.]); also for rows",
    ),
    (embedder(HasAnIdleLayer), "test_gradients_reach_every_parameter", "no gradient reaches idle.weight, idle.bias"),
    (
        embedder(KnowsItsWidth),
        "test_shapes",
        "states have width 12, but input_size of the backbone is 28",
    ),
    (embedder(CannotTravel), "test_reader", "the reader cannot be pickled, which loader workers need"),
    (
        embedder(RaisesKeyErrors),
        "test_a_missing_input",
        "read must raise a DataError that names the example (raises KeyError: 'caption')",
    ),
    (embedder(ReadsAnew), "test_reads_are_deterministic", "read twice gives different ids"),
    (embedder(CollatesArrays), "test_reads_are_deterministic", "collate returns 'ids' as a ndarray, not as a tensor"),
    (embedder(ForgetsWhatItHid), "test_hiding", "hide changes its item; copy the item before hiding parts"),
    (embedder(SaysThatItHides), "test_hiding", "the config hides words, but its reader hides None"),
    (
        embedder(KeepsAPlainTensor),
        "test_moves_to_another_device",
        "scale is a plain tensor and stays on the CPU when the embedder moves to a GPU; use register_buffer (mul gets",
    ),
    (
        embedder(MakesTensorsOnTheCpu),
        "test_moves_to_another_device",
        "forward creates tensors on the CPU; create them on the device of its arguments",
    ),
    (
        embedder(OwnsTheBackbone),
        "test_does_not_own_the_backbone",
        "contains the backbone's words.weight as a parameter, which would be saved twice and trained with the "
        "input; write self._backbone = [backbone], a list",
    ),
    (
        generator(IgnoresOptions),
        "test_options_are_obeyed_or_refused",
        "with num_beams=2, num_return_sequences=2 the same text is written twice; obey the option, or refuse it with "
        "an "
        "UnavailableError that names the option",
    ),
    (generator(WritesSpecialTokens), "test_writes_no_special_tokens", "is written; leave out `backbone.forbidden_ids`"),
    (
        generator(RefusesWithoutAName),
        "test_texts_match_their_tokens",
        "num_beams=2, num_return_sequences=2 is refused without naming an option: 'not with me'",
    ),
    (
        generator(DeniesTooLate),
        "test_texts_match_their_tokens",
        "num_beams=2, num_return_sequences=2 is refused only in generate; let `refuses` return num_beams too",
    ),
    (
        generator(DeniesWhatItDoes),
        "test_texts_match_their_tokens",
        "`refuses` returns num_beams, num_return_sequences, but generate writes with num_beams=2",
    ),
    (
        generator(CountsASlotAToken),
        "test_layout_of_targets",
        "slots(2) is 2, but lay_out returns 3 slots for a target of 2 tokens",
    ),
    (
        generator(RefusesEverything),
        "test_the_default_options_are_obeyed",
        "the default options are refused; a generator must write with `Decoding()` (UnavailableError: num_beams = 1",
    ),
    (
        generator(HidesWords),
        "test_reads_as_laid_out",
        "in training, forward reads different tokens than lay_out returned, so attention maps would show rows that the "
        "model never reads; set reads_as_laid_out = False",
    ),
    (
        generator(CountsExamples),
        "test_counts_and_sums",
        "the reader counts 1 for a batch of examples that count [1, 1, 1, 1, 1] (generator.loss); a count is the "
        "number of "
        "predictions",
    ),
    (
        dataset(AsksATextNotATuple),
        "test_examples_are_keys_and_texts",
        "targets are 'what color is the cat ?', not a tuple of texts; write (text,) with the comma",
    ),
    (
        dataset(HasAnInputWithoutAlternatives),
        "test_examples_are_keys_and_texts",
        "input 'more' has no value; leave the input out",
    ),
    (
        dataset(ListsAlternatives),
        "test_examples_are_keys_and_texts",
        "the alternatives of 'caption' are a list; write a tuple",
    ),
    (generator(AveragesItsLoss), "test_counts_and_sums", "the loss of a batch must be the sum of its examples' losses"),
    (
        objective(DrawsAnew),
        "test_draws_depend_on_the_example",
        "two reads in one epoch give different targets; draw only from `Rows.draw`",
    ),
    (
        objective(KeepsAModule),
        "test_the_reader_can_be_pickled",
        "the reader has a module (embedding);",
    ),
    (
        objective(PredictsTensors),
        "test_predictions",
        "the value of the prediction for 'red-cat' cannot be written as JSON (TypeError: Object of type Tensor is not",
    ),
    (
        objective(PredictsBackwards),
        "test_predictions",
        "predict returns answers to ['black-boat']; expected ['red-cat']",
    ),
    (objective(CollatesAnArray), "test_counts_and_sums", "collate returns labels 'labels' as a ndarray, not as a"),
    (objective(CountsNaN), "test_counts_and_sums", "collate counts nan for 'loss'; a count must be a number of at"),
    (objective(CountsWhatItHasNot), "test_counts_and_sums", "collate counts 'loss', 'more'; its losses are 'loss'"),
    (objective(PredictsNumbers), "test_predictions", "'float' object has no attribute 'id'"),
    (generator(WritesStrings), "test_longest_text", "'str' object has no attribute 'id'"),
    (
        generator(LosesATextOfTwo),
        "test_texts_match_their_tokens",
        "generate returns answers to ['red-cat']; expected ['red-cat', 'red-cat']",
    ),
    (generator(WritesWithoutEnd), "test_longest_text", "max_tokens is 8"),
    (
        generator(LearnsOtherThanItWrites),
        "test_overfits_one_pair",
        "writing must use what training uses",
    ),
    (
        generator(WritesByCountingSlots),
        "test_writes_after_shared_positions",
        "write with model.written or model.behind, and do not count slots",
    ),
    (
        generator(ForgetsTerms),
        "test_writing_uses_added_terms",
        "the score of a text is not minus its mean loss; write with model.written",
    ),
    (
        generator(NamesTheWrongExample),
        "test_texts_match_their_tokens",
        "returns answers to ['red-cat', 'red-cat']; expected [",
    ),
    (dataset(RepeatsIds), "test_examples_are_keys_and_texts", "give every example of all splits its own id"),
    (dataset(Shuffles), "test_is_deterministic", "has different examples when read again"),
    (dataset(LeaksTheTest), "test_splits_are_disjoint", "is also in 'train', word for word"),
    (dataset(HasEmptyQuestions), "test_examples_are_keys_and_texts", "has an empty target; leave the target out"),
    (
        dataset(HasOneWithoutTargets),
        "test_examples_are_keys_and_texts",
        "has neither targets nor labels, but other examples have targets; leave the example out",
    ),
    (
        dataset(HasLabelsThatItDoesNotName),
        "test_labels",
        "example 'red-cat' of 'train' has 'truth', but the config's labels are none",
    ),
    (
        dataset(ChoosesFromAList),
        "test_labels",
        "vocabularies() returns ['False', 'True'] for 'truth'; expected a tuple of different texts",
    ),
    (metric(LosesExamples), "test_per_example", "hits has 15 values for 16 examples"),
    (metric(DividesByNothing), "test_one_example_and_an_empty_text", "(ZeroDivisionError: division by zero)"),
    (metric(ScoresInADict), "test_values", "returns {'hits': 0.5}; expected a mmgen.examples.Scores"),
    (metric(ScoresNumpy), "test_values", "what score returns cannot be written as JSON (TypeError: Object of type"),
    (metric(NamesByNumber), "test_values", "score returns a score named 1; names must be texts"),
    (metric(WritesANoteWithoutAComma), "test_values", "score returns notes 'of exact matches'; expected a tuple"),
    (metric(SaysNothing), "test_values", "hits is None, but no note says why"),
    (extractor(BoxesInPixels), "test_one_record_per_image", "are not (x0, y0, x1, y1) relative to the image's size"),
    (extractor(StopsAtBroken), "test_a_broken_picture_is_reported", "yield FailedImage(key, reason)"),
]
