"""Typical mistakes of part authors: the suite of each kind catches them in words, and passes a correct part."""

import copy
import itertools
import json
import random
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from kit import COSTLY
from kit.suites import CAPTIONS, failures
from mmgen_generators import Masked
from mmgen_generators.masked import MaskedGenerator, MaskedTargets
from pydantic import Field
from torch import nn

import mmgen
import mmgen.testing
from mmgen.attention import visible
from mmgen.cards import Bar, Card, Piece
from mmgen.decoding import Decoding
from mmgen.errors import DataError, UnavailableError
from mmgen.examples import Prediction, Scores
from mmgen.objectives import Objective, TargetReader
from mmgen.parts import Callback, Extractor, FailedImage, Metric, Probe, ProbeResult, Record, Renderer
from mmgen.tensors import WRITTEN, Encoded, Loss, Segment, Targets
from mmgen.testing import Tiny, TinyBackbone, Toy, ToyDataset, Words
from mmgen.testing.rows import last, prefix
from mmgen.testing.tiny import TinyCache
from mmgen.testing.toy import WordsEmbedder, WordsReader

# --- a correct part of each kind --------------------------------------------------------------------------------------


class Labels(TargetReader):
    """Whether the first target is about a red thing."""

    def collate(self, rows):
        labels = torch.tensor([float("red" in example.targets[0]) for example in rows.examples])
        return Targets({"loss": len(labels)}, {"labels": labels})


class Judge(Objective):
    """One number from the first state."""

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


class Counted(Metric):
    """The share of texts that are among the references."""

    def score(self, generations, examples):
        hits = [float(text.text in example.targets) for text, example in zip(generations, examples, strict=True)]
        return Scores({"hits": sum(hits) / len(hits)}, {"hits": hits})


class Mean(Extractor):
    """The mean colour of each box."""

    fingerprint = {"name": "mean"}

    def records(self, source, skip=frozenset()):
        for picture in source:
            if picture.key not in skip:
                yield self.record(picture)

    def record(self, picture):
        try:
            features = [np.asarray(picture.load(), np.float32).mean((0, 1))] * len(picture.boxes)
        except DataError as error:
            return FailedImage(picture.key, str(error))
        return Record(picture.key, np.stack(features), np.asarray(picture.boxes, np.float32))


class Sure(Probe):
    """The surest text of every step."""

    def run(self, subject, out):
        if not subject.examples:
            raise DataError("sure: there are no examples to look at")
        rows = [["step", "surest"]]
        for step in subject.steps:
            written = step.generate(step.load(), subject.examples)
            rows.append([step.name, max(text.score for (text,) in written)])
        (out / "table.json").write_text(json.dumps(rows))
        (out / "plot.svg").write_text("<svg/>")
        return ProbeResult({"How sure": rows}, {"How sure": "plot.svg"})


class Shown(Renderer):
    """A text as it is."""

    def card(self, example, prediction):
        return Card(line=prediction.text)

    def line(self, example, prediction):
        return prediction.text


class Watching(Callback):
    """Draws from a generator of its own."""

    def on_update(self, step, record):
        torch.rand(1, generator=torch.Generator())


class AnyBackbone(Tiny):
    def build(self, texts=None, folder=None):
        return self.change(super().build(texts, folder))


class AnyEmbedder(Words):
    def build(self, backbone):
        return self.change(super().build(backbone))


class AnyGenerator(Masked):
    max_tokens: int = Field(8, description="tokens of a text")

    def build(self, backbone):
        return self.change(super().build(backbone))


class AnyObjective(mmgen.ObjectiveConfig):
    type: Literal["judge"] = "judge"
    gives = "label"

    def build(self, backbone, vocabularies):
        return self.change(Judge(backbone))


def without_arguments(base, part):
    """The config class of a part that is built from nothing."""

    class Any(base):
        type: Literal["any"] = "any"

        def build(self):
            return self.change(part())

    return Any


PARTS = {  # kind -> class of the correct part, class of its config, members of its suite
    "Backbone": (TinyBackbone, AnyBackbone, {}),
    "Embedder": (WordsEmbedder, AnyEmbedder, {"examples": lambda self: CAPTIONS}),
    "Generator": (MaskedGenerator, AnyGenerator, {}),
    "Objective": (Judge, AnyObjective, {}),
    "Dataset": (ToyDataset, without_arguments(Toy, ToyDataset), {}),
    "Metric": (Counted, without_arguments(mmgen.MetricConfig, Counted), {}),
    "Extractor": (Mean, without_arguments(mmgen.ExtractorConfig, Mean), {}),
    "Probe": (Sure, without_arguments(mmgen.ProbeConfig, Sure), {}),
    "Renderer": (Shown, without_arguments(mmgen.RendererConfig, Shown), {}),
    "Callback": (Watching, without_arguments(mmgen.CallbackConfig, Watching), {}),
}


def suite(kind, config=(), reader=(), **members):
    """The suite of a part that differs from the correct one in `members`, its config in `config`, its reader in
    `reader`. `made` among the members is called with the built part."""
    part, base, more = PARTS[kind]
    cls = type("Changed", (part,), members)

    def change(self, built):
        built.__class__ = cls
        if reader:
            name = f"Reader{len(globals())}"  # of this module, so that it can be pickled
            methods = {**dict(reader), "__module__": __name__, "__qualname__": name}
            built.reader.__class__ = globals().setdefault(name, type(name, (type(built.reader),), methods))
        if "made" in members:
            built.made()
        return built

    declared = {"renders": frozenset({"text"})} if kind == "Renderer" else {}
    described = {"__doc__": "A changed one.", "change": change, "__module__": __name__}
    config_class = type("ChangedConfig", (base,), {**described, **declared, **dict(config)})
    return type(
        f"Test{kind}", (getattr(mmgen.testing, f"{kind}Suite"),), {"config": lambda self: config_class(), **more}
    )


# --- tests ------------------------------------------------------------------------------------------------------------


MISTAKES = []


def mistake(kind, test, says, **changes):
    marks = [pytest.mark.slow] * (f"test_{test}" in COSTLY)
    MISTAKES.append(pytest.param(suite(kind, **changes), f"test_{test}", says, id=says[:40], marks=marks))


# Backbones


def sees(**layout):
    """A backbone that takes the rows' layout for another one."""

    def seen(self, slots, cache):
        wrong = replace(slots.layout, **{name: change(getattr(slots.layout, name)) for name, change in layout.items()})
        return visible(wrong, wrong if cache is None else cache.grow(wrong))

    return {"seen": seen}


def reads(**columns):
    """A backbone that reads other columns than those of its slots."""

    def encode(self, slots, cache=None, output=()):
        wrong = {name: change(self, slots) for name, change in columns.items()}
        return TinyBackbone.encode(self, replace(slots, **wrong), cache, output)

    return {"encode": encode}


def caching(**methods):
    return {"new_cache": lambda self: type("WrongCache", (TinyCache,), methods)()}


def near(self, slots, cache):
    """Four positions to either side."""
    distance = slots.positions.unsqueeze(1) - slots.positions.unsqueeze(2)
    return TinyBackbone.seen(self, slots, cache) & (distance.abs() <= 4)


def alone(self, slots, cache):
    """Every slot sees itself only."""
    return TinyBackbone.seen(self, slots, cache) & torch.eye(slots.positions.shape[1], dtype=torch.bool)


PACKED, CACHE = "packed_targets_equal_separate_ones", "cache_equals_no_cache"
mistake("Backbone", PACKED, "or padding does; encode must obey", **sees(role=lambda role: role.clamp(min=1)))
mistake(
    "Backbone",
    PACKED,
    "and count by `slots.positions`",
    **reads(positions=lambda self, slots: torch.arange(slots.positions.shape[1]).expand_as(slots.positions)),
)
mistake(
    "Backbone",
    "types_and_positions_change_states",
    "give the same states",
    **reads(types=lambda self, slots: slots.types * 0),
)
mistake(
    "Backbone",
    CACHE,
    "cache.repeat(2) must give every row twice",
    **caching(repeat=lambda self, times: self._change(lambda t: torch.cat([t] * times))),
)
mistake(
    "Backbone",
    "save_and_load",
    "tokens or logits are different",
    embed=lambda self, ids: self.words(ids) + id(self) % 1000,
)

mistake("Backbone", "other_words_change_only_what_sees_them", "a [MASK] does not see its input", seen=alone)

# Embedders


def embeds(change):
    """An embedder whose segment is changed."""
    return {"forward": lambda self, ids, mask: Segment(*change(WordsEmbedder.forward(self, ids, mask).states, mask))}


NEIGHBOURS = "neighbours_and_padding_change_nothing"
mistake(
    "Embedder",
    NEIGHBOURS,
    "different states in a batch",
    **embeds(lambda states, mask: (states - states.mean((0, 1)), mask)),
)
mistake("Embedder", NEIGHBOURS, "mask padding", **embeds(lambda states, mask: (states, torch.ones_like(mask))))
mistake(
    "Embedder",
    "parameters",
    "self._backbone = [backbone], a list",
    made=lambda self: setattr(self, "backbone", self._backbone[0]),
)
mistake(
    "Embedder",
    "reader",
    "cannot be pickled",
    made=lambda self: setattr(self.reader, "clean", lambda text: text.lower()),
)
COUNT = itertools.count()
mistake(
    "Embedder",
    "reader",
    "augment must draw only from `draw`",
    reader={"augment": lambda self, example, name, draw: replace(example, id=f"{next(COUNT)}")},
)


def hide_in_place(self, item, draw, hiding):
    ids, labels = WordsReader.hide(self, item, draw, hiding)
    return item.copy_(ids), labels


mistake("Embedder", "hiding", "hide changes its item", reader={"hide": hide_in_place})

# Objectives and generators

LOSSES = "losses_of_a_batch_are_those_of_its_examples"


def collates(base, change):
    """A reader that changes the targets of a batch."""
    return {"collate": lambda self, rows: change(base.collate(self, rows), rows)}


def loses(base, change):
    def forward(self, model, batch, targets):
        total = base.forward(self, model, batch, targets).sums["loss"]
        return Loss({"loss": change(total, batch)})

    return {"forward": forward}


def in_a_list(self):
    self.__dict__["layers"] = [self._modules.pop("head")]
    self.__dict__["head"] = self.layers[0]


mistake(
    "Objective", LOSSES, "unless over_batch is set (own.loss)", **loses(Judge, lambda loss, batch: loss / batch.size)
)
mistake(
    "Objective", LOSSES, "count predictions", reader=collates(Labels, lambda t, rows: replace(t, counts={"loss": 1}))
)
mistake("Objective", "reader_and_weights", "keep layers as attributes or in a nn.ModuleList", made=in_a_list)
mistake(
    "Objective",
    "config_and_reader_agree",
    "gives of the config says True, but predict says False",
    predict=Objective.predict,
)


mistake("Objective", "training_lowers_the_loss", "do not detach it", **loses(Judge, lambda loss, batch: loss.detach()))


def in_one_group(tail):
    return replace(tail, layout=replace(tail.layout, group=tail.layout.group.clamp(max=1)))


def without_terms(self, model, batch, options):
    prefix = model.prefix
    model.prefix = lambda batch: replace(prefix(batch), term=None)
    try:
        return MaskedGenerator.generate(self, model, batch, options)
    finally:
        del model.prefix


def hide_words(self, model, batch, targets):
    ids = torch.where(targets.tail.layout.role == WRITTEN, model.backbone.mask_id, targets.tail.ids)
    return MaskedGenerator.forward(self, model, batch, replace(targets, tail=replace(targets.tail, ids=ids)))


def refusing(self, model, batch, options):
    if options.num_beams > 1:
        raise UnavailableError("no beams")
    return MaskedGenerator.generate(self, model, batch, options)


WAYS = "every_way_of_writing"
mistake("Generator", WAYS, "`refuses` and the message must name an option that is set", generate=refusing)
mistake(
    "Generator",
    WAYS,
    "obey the options, or refuse them with an UnavailableError",
    generate=lambda self, model, batch, options: [
        texts * options.num_return_sequences for texts in MaskedGenerator.generate(self, model, batch, Decoding())
    ],
)
mistake("Generator", "layout_of_targets", "set reads_as_laid_out = False", forward=hide_words)
mistake(
    "Generator",
    "overfits_one_pair",
    "writing must use what training uses",
    reader={
        "lay_out": lambda self, targets: MaskedTargets.lay_out(
            self, [[[*reversed(target[:-1]), target[-1]] for target in row] for row in targets]
        )
    },
)
mistake(
    "Generator",
    "targets_of_one_example_do_not_see_one_another",
    "what is drawn for a target must not depend on the others",
    reader={"lay_out": lambda self, targets: in_one_group(MaskedTargets.lay_out(self, targets))},
)
mistake("Generator", "trains_as_it_writes", "which add the terms too", generate=without_terms)

# Data sets, metrics, extractors


def splits(change):
    return {"split": lambda self, name: change(ToyDataset.split(self, name), name)}


mistake(
    "Dataset",
    "splits",
    "give every example of all splits its own id",
    **splits(lambda e, _: [replace(x, id=str(n)) for n, x in enumerate(e)]),
)
mistake(
    "Dataset", "splits", "different examples when read or built again", **splits(lambda e, _: random.sample(e, len(e)))
)


def scores(change):
    return {"score": lambda self, texts, examples: change(Counted.score(self, texts, examples), texts)}


mistake(
    "Metric", "scores", "in another; generation i is of", **scores(lambda s, texts: Scores({"x": len(texts[0].text)}))
)
mistake(
    "Metric",
    "one_example_and_an_empty_text",
    "(ZeroDivisionError: division by zero)",
    **scores(lambda s, texts: Scores({"x": 1 / min(len(text.text.split()) for text in texts)})),
)


def stop(self, picture):
    record = Mean.record(self, picture)
    if isinstance(record, FailedImage):
        raise DataError(record.reason)
    return record


def in_pixels(self, picture):
    record = Mean.record(self, picture)
    return replace(record, boxes=record.boxes * 48)


mistake("Extractor", "records", "are not (x0, y0, x1, y1) relative", record=in_pixels)
mistake(
    "Extractor",
    "pictures",
    "depend on the other images of the batch",
    records=lambda self, source, skip=frozenset(): (
        replace(record, features=record.features + len(source)) if isinstance(record, Record) else record
        for record in Mean.records(self, source, skip)
    ),
)
mistake("Extractor", "pictures", "yield FailedImage(key, reason)", record=stop)

# Probes, renderers, callbacks


def after(change):
    """A probe that does `change(model of a step, out)` when it is done, and returns what that gives."""

    def run(self, subject, out):
        result = Sure.run(self, subject, out)
        return change(subject.steps[0].load(), out) or result

    return {"run": run}


PROBE = {
    "run leaves the model in training mode; restore eval mode": lambda model, out: model.train() and None,
    "name files relative": lambda model, out: ProbeResult({"table": [["file"], [str(out)]]}),
    "run changes weights, gradients or requires_grad": lambda model, out: (
        [p.data.add_(1) for p in model.parameters()] * 0
    ),
    "a different result the second time": lambda model, out: ProbeResult({"runs": [["runs"], [next(COUNT)]]}),
}
for words, change in PROBE.items():
    mistake("Probe", "result", words, **after(change))
CARDS = "cards_and_lines"
mistake("Renderer", CARDS, "are 'red'; the example has", card=lambda self, *_: Card(texts={"caption": (Piece("red"),)}))
mistake("Renderer", CARDS, "expected one line of text", line=lambda self, *_: "two\nlines")
mistake(
    "Renderer",
    CARDS,
    "no labels, says what is right",
    card=lambda self, *_: Card(bars=(Bar("red", 1.0, right=True),)),
)
mistake(
    "Callback",
    "it_watches_a_run",
    "torch's global generator",
    on_update=lambda self, step, record: torch.rand(1) and None,
)
mistake(
    "Callback",
    "it_watches_a_run",
    "copy a record before you change it",
    on_epoch_end=lambda self, step, record: record.clear(),
)


@pytest.mark.parametrize(("broken", "test", "says"), MISTAKES)
def test_a_mistake_is_caught_in_words(broken, test, says):
    with pytest.raises(Exception) as caught:  # noqa: B017, PT011 - what a part raises, as it is
        getattr(broken(), test)()
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_a_window_that_the_source_has_is_missed(monkeypatch):
    """A backbone with full attention, whose source model has a window."""

    def source_logits(self, backbone, ids):
        source = copy.deepcopy(backbone)
        monkeypatch.setattr(type(source), "seen", near)
        logits = source.logits(last(source, prefix(source, ids.tolist())))
        monkeypatch.undo()
        return logits

    windowed = suite("Backbone")
    windowed.source_logits = source_logits
    with pytest.raises(AssertionError, match="plain rows of 64 slots have different logits than the source model"):
        windowed().test_equals_its_source()


@pytest.mark.slow
@pytest.mark.parametrize("kind", PARTS)
def test_a_correct_part_passes(kind):
    assert failures(suite(kind)) == {}


@pytest.mark.slow
def test_a_causal_backbone_that_cannot_cache_passes():
    """A recurrent network: reads left to right, skips padding, sees no masks."""

    def encode(self, slots, cache=None, output=()):
        state, states = slots.states.new_zeros(len(slots.states), self.hidden_size), []
        for number in range(slots.states.shape[1]):
            state = torch.where(slots.layout.real[:, number, None], self.cell(slots.states[:, number], state), state)
            states.append(state)
        return Encoded(torch.stack(states, 1))

    def made(self):
        self.cell, self.types = nn.GRUCell(self.input_size, self.hidden_size), 0

    recurrent = {"encode": encode, "made": made, "masks": "causal", "caches": False}
    assert failures(suite("Backbone", config={"mixes": "row"}, **recurrent)) == {}
